"""What the page of a large model leaves out: figures of all but the worst sites, and how to draw one."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from ... import wording
from ...report import Report, SiteReport, SweepReport, SweptSite
from .marks import OfSite
from .parts import said

MOST_DRAWN = 100  # sites: with all of 200, a ladder of kernels or a sweep would be over 10 MB
_WORST_FIRST = ("fail", "warn", "pass")


def drawn_sites(report: Report | SweepReport, found: Mapping[str, OfSite]) -> set[str]:
    """Return the names of the sites that have figures: all, or of more than 100 the worst.

    Of so many, a site that passes everywhere and of which nothing was found has none.
    """
    able = [site for site in report.sites if site.judged and site.results]
    if len(report.sites) <= MOST_DRAWN:
        return {site.name for site in able}
    bad = {site.name: _bad(site) for site in able}
    worst = sorted(able, key=lambda site: (_WORST_FIRST.index(site.verdict), -bad[site.name]))
    return {site.name for site in [s for s in worst if bad[s.name] or found[s.name].all_marks()][:MOST_DRAWN]}


def left_out(site: SiteReport | SweptSite) -> str:
    """Say that the figure of a site is left out, and which command draws it."""
    swept = isinstance(site, SweptSite)
    words = ["--family", site.name] if swept and site.name == site.source else [site.source]
    words += [] if swept else ["--eps", wording.epsilon(site.epsilon)]
    command = shlex.join(["lnaudit", "sweep" if swept else "scan", *map(said, words), "--report", "figure.svg"])
    return f"Of more than {MOST_DRAWN} sites the worst have figures here. That of this one: {command}"


def _bad(site: SiteReport | SweptSite) -> int:
    """Count the verdicts that are no pass."""
    if isinstance(site, SweptSite):
        return sum(point.verdict != "pass" for result in site.results for point in result.points)
    return sum(result.verdict != "pass" for result in site.results)
