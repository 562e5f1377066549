"""How every report of a person ends: one line of total, what could not be audited, the exit code."""

from __future__ import annotations

import re
from collections import Counter

from ..findings import Finding, at_or_above
from ..report import Document, Report, SiteReport, SweepReport
from ..wording import counted, joined, verdict_word
from .style import Style, bound

_NAMED_RESULTS = 3  # so many are named in the total, more are counted
# an error of an emulation is its verdict
_NOUNS = ("site error", "site warning", "warning", "latent warning", "note", "latent note")
_VERDICTS = re.compile(r"(\d) (FAIL|warn|pass)\b")


def total(report: Document) -> str:
    """Return the sentence that counts sites, verdicts and findings, or sites and epsilons."""
    return (
        _of_sweep(report) if isinstance(report, SweepReport) else _of_scan(report) if isinstance(report, Report) else ""
    )


def missing(report: Document) -> str:
    """Count the files that could not be audited, "" if there are none."""
    return f"{counted(len(report.not_audited), 'file')} could not be audited" if report.not_audited else ""


def exit_sentences(report: Document) -> list[str]:
    """Say what ends the process with which code, and what does not."""
    fail_on = report.config.get("fail_on", "never")
    said = [*_left_out(report), *(["exit 2 (not audited)."] if report.not_audited else [])]
    if not isinstance(report, Report):
        return said
    bad = at_or_above(report.findings, fail_on)
    if bad and not report.not_audited:
        latent = ", latent only: not on this data" if all(finding.latent for finding in bad) else ""
        said.append(f"exit 1 ({counted(len(bad), 'finding')} at or above --fail-on {fail_on}{latent}).")
    fails = any(site.verdict == "fail" for site in report.sites)
    if fails and len(report.sites) > 1 and fail_on == "never" and report.kind == "scan":
        said.append("Findings alone do not fail a scan: --fail-on error.")
    return said


def _left_out(report: Document) -> list[str]:
    """Say which rules were not looked at: a run without them is not a clean one."""
    select, ignore = report.config.get("select") or ["LN"], report.config.get("ignore") or []
    said = [] if "LN" in select else [f"only {joined(select)}"]
    said += [f"without {joined(ignore)}"] if ignore else []
    return [f"Rules: {', '.join(said)}."] if said else []


def painted(line: str, style: Style) -> str:
    """Colour the verdicts of a total."""
    return _VERDICTS.sub(lambda m: f"{m[1]} {style.paint(m[2])}", line)


def _of_sweep(report: SweepReport) -> str:
    amounts = sorted({len(site.results[0].points) for site in report.sites})
    if report.maps and not amounts:
        return f"{counted(len(report.maps), 'map')}."
    if not amounts:
        return f"{counted(len(report.sites), 'site')}: nothing was swept."
    most = f"{f'{amounts[0]} to ' if len(amounts) > 1 else ''}{counted(amounts[-1], 'epsilon')}"
    maps = f", {counted(len(report.maps), 'map')}" if report.maps else ""
    return f"{counted(len(report.sites), 'site')} at {most}{maps}."


def _of_scan(report: Report) -> str:
    sites = report.sites
    if not sites:
        return "0 sites: nothing was audited."
    verdicts = [site.verdict if site.judged else "not judged" for site in sites]
    amounts = [(verdict, verdicts.count(verdict)) for verdict in ("fail", "warn", "pass", "not judged")]
    counts = ", ".join(f"{n} {verdict_word(verdict)}" for verdict, n in amounts if n)
    asides = "; ".join([*(_culprits(sites[0]) if len(sites) == 1 else []), *_beside(report)])
    return f"{counted(len(sites), 'site')}: {counts}{f' ({asides})' if asides else ''}."


def _culprits(site: SiteReport) -> list[str]:
    """Name the formats and kernels that have the verdict of the site."""
    if site.verdict == "pass":
        return []
    names = [bound(f"{r.format} {r.kernel}") for r in site.results if r.verdict == site.verdict]
    if len(names) > _NAMED_RESULTS:
        return [f"{len(names)} of {len(site.results)} results"]
    return [", ".join(names)] if names else []


def _beside(report: Report) -> list[str]:
    """Count what the verdicts do not show: findings about a whole site, warnings and notes, what is latent apart.

    Then what does not count: findings that a baseline knows or the policy accepts.
    """
    nouns = Counter(_noun(finding) for finding in report.findings if not finding.known)
    said = [counted(nouns[noun], noun) for noun in _NOUNS if nouns[noun]]
    known = sum(finding.known for finding in report.findings)
    said += [f"{counted(known, 'finding')} known"] if known else []
    said += [f"{counted(len(report.accepted), 'finding')} accepted"] if report.accepted else []
    return [", ".join(said)] if said else []


def _noun(finding: Finding) -> str:
    where = "site " if finding.format is None and finding.severity != "note" else ""
    return f"{where}{'latent ' if finding.latent else ''}{finding.severity}"
