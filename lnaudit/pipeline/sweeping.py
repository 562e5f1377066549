"""A sweep: every site at many epsilons, each judged as a scan with that epsilon would judge it (design 4)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..findings import Finding, worst
from ..report import Point, SweepReport, SweptSite
from ..rules import RULES, ResultFacts, SiteFacts, result_findings, site_findings
from ..site import NotAudited, Site
from ..summarize import Progress, Summarizer
from ..summary import Summary
from ..tabulate import point_of, swept_result, swept_site
from ..version import __version__
from ..wording import SAME
from .facts import facts_of
from .loop import counted, each, worst_verdict
from .response import curves
from .settings import Settings

BY_ELEMENTS_BELOW = 1 << 20  # elements: larger sites take the row error from the closed form
# findings about the file itself, which no epsilon changes
ABOUT_THE_FILE = ("LN001", "LN002", "LN003", "LN004", "LN005", "LN006", "LN007")


@dataclass(frozen=True, kw_only=True)
class SiteSweep:
    """What one site contributes to a report."""

    report: SweptSite
    findings: list[Finding]


def sweep(
    sites: Iterable[Site | NotAudited],
    settings: Settings,
    epsilons: tuple[float, ...],
    progress: Progress | None = None,
    *,
    own: bool = False,
) -> SweepReport:
    """Judge sites at each epsilon, with `own` also at that of the site itself."""
    summarizer = settings.summarizer()
    sweeps, not_audited = each(sites, lambda site: _sweep_site(site, settings, summarizer, epsilons, own, progress))
    return SweepReport(
        kind="sweep",
        lnaudit_version=__version__,
        config=settings.reported,
        summary=counted(swept.report for swept in sweeps),
        not_audited=not_audited,
        sites=[swept.report for swept in sweeps],
        rules={
            code: RULES[code].name
            for code in sorted({c for s in sweeps for r in s.report.results for p in r.points for c in p.codes})
        },
        findings=[finding for swept in sweeps for finding in swept.findings],
    )


def _sweep_site(
    site: Site,
    settings: Settings,
    summarizer: Summarizer,
    epsilons: tuple[float, ...],
    own: bool,
    progress: Progress | None,
) -> SiteSweep:
    points = epsilons
    if own:
        others = (e for e in epsilons if not math.isclose(e, site.epsilon, rel_tol=SAME))
        points = tuple(sorted((*others, site.epsilon)))
    by_elements = site.rows.rows * site.rows.features < BY_ELEMENTS_BELOW
    plan = replace(settings.plan(site), points=points, by_elements=by_elements)
    summary = summarizer.summarize(site.rows, plan, progress, site.source or site.name)
    facts = facts_of(site, summary, settings.policy)
    report = swept_site(site, summary)
    report.response = curves(site, plan)
    columns = _points(facts.name, summary)
    for i, column in enumerate(columns):
        severity = worst(result_findings(ResultFacts(site=facts, number=i)))
        report.results.append(swept_result(summary, i, severity, column))
    report.verdict = worst_verdict(result.verdict for result in report.results)
    findings = [finding for finding in site_findings(facts) if finding.code in ABOUT_THE_FILE]
    return SiteSweep(report=report, findings=findings)


def _points(name: str, summary: Summary) -> list[list[Point]]:
    """Return the points of each emulation."""
    columns: list[list[Point]] = [[] for _ in summary.results]
    for number in range(len(summary.points)):
        point = summary.at_point(number)
        facts = SiteFacts(name=name, source="", summary=point)
        ratio = point.input.collapse_ratio(point.plan.epsilon, p50=0.5)["p50"]
        for i, column in enumerate(columns):
            column.append(point_of(point, i, ratio, result_findings(ResultFacts(site=facts, number=i))))
    return columns
