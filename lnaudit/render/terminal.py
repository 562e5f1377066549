"""The report as a page of text for a person: the sites, what they have in common, one line of total."""

from __future__ import annotations

import re

from ..findings import Finding, at_or_above
from ..report import Document, Report, SiteReport
from ..wording import counted
from .style import DEFAULT_STYLE, Style, bound, verdict_word
from .terminal_matrix import matrix_lines
from .terminal_model import epsilon_lines, folded_findings, folded_lines, what_to_do_lines
from .terminal_site import legend_lines, site_lines

_NAMED_RESULTS = 3  # so many are named in the total, more are counted
_VERDICTS = re.compile(r"(\d) (FAIL|warn|pass)\b")


def render_table(report: Report, style: Style = DEFAULT_STYLE) -> str:
    """Return the report for a terminal or a log: plain ASCII but for names and colours."""
    blocks = [style.wrap(f"note: {style.safe(note)}", "", "  ") for note in report.notes]
    folded = folded_findings(report)
    told = [finding for finding in report.findings if finding not in folded and not finding.known]
    blocks += [site_lines(site, told, style) for site in report.sites]
    if report.sites:
        blocks.append(legend_lines(report, style))
    if len(report.sites) > 1:
        blocks += [matrix_lines(report, style), what_to_do_lines(report, style), epsilon_lines(report, style)]
        blocks.append(folded_lines(folded, style))
    blocks.append(end_lines(_total(report), report, style) + style.wrap(_exit_code(report)))
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def end_lines(total: str, report: Document, style: Style) -> list[str]:
    """Return the total and the files that could not be audited."""
    missing = f"  {counted(len(report.not_audited), 'file')} could not be audited:" if report.not_audited else ""
    lines = [_VERDICTS.sub(lambda m: f"{m[1]} {style.paint(m[2])}", line) for line in style.wrap(total + missing)]
    for entry in report.not_audited:
        lines += style.wrap(f"{style.safe(entry.source)}: {style.safe(entry.reason)}", "  ", "    ")
    return lines


def _exit_code(report: Report) -> str:
    """Say what ends the process with which code, and what does not."""
    fail_on = report.config.get("fail_on", "never")
    said = ["exit 2 (not audited)."] if report.not_audited else []
    bad = len(at_or_above(report.findings, fail_on))
    if bad and not report.not_audited:
        said.append(f"exit 1 ({counted(bad, 'finding')} at or above --fail-on {fail_on}).")
    fails = any(site.verdict == "fail" for site in report.sites)
    if fails and len(report.sites) > 1 and fail_on == "never":
        said.append("Findings alone do not fail a scan: --fail-on error.")
    return "  ".join(said)


def _total(report: Report) -> str:
    sites = report.sites
    if not sites:
        return "0 sites: nothing was audited."
    verdicts = [site.verdict for site in sites]
    amounts = [(verdict, verdicts.count(verdict)) for verdict in ("fail", "warn", "pass")]
    counts = ", ".join(f"{n} {verdict_word(verdict)}" for verdict, n in amounts if n)
    asides = "; ".join([*(_culprits(sites[0]) if len(sites) == 1 else []), *_beside(report.findings)])
    return f"{counted(len(sites), 'site')}: {counts}{f' ({asides})' if asides else ''}."


def _culprits(site: SiteReport) -> list[str]:
    """Name the formats and kernels that have the verdict of the site."""
    if site.verdict == "pass":
        return []
    names = [bound(f"{r.format} {r.kernel}") for r in site.results if r.verdict == site.verdict]
    if len(names) > _NAMED_RESULTS:
        return [f"{len(names)} of {len(site.results)} results"]
    return [", ".join(names)] if names else []


def _beside(findings: list[Finding]) -> list[str]:
    """Count what the verdicts do not show: findings about a whole site, warnings and notes."""
    of_sites = [f.severity for f in findings if f.format is None]
    warnings = sum(f.severity == "warning" and f.format is not None for f in findings)
    amounts = [
        (of_sites.count("error"), "site error"),
        (of_sites.count("warning"), "site warning"),
        (warnings, "warning"),
        (sum(f.severity == "note" for f in findings), "note"),
    ]
    said = [counted(n, noun) for n, noun in amounts if n]
    return [", ".join(said)] if said else []
