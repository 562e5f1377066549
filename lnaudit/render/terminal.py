"""The report as a page of text for a person: the sites, what they have in common, one line of total."""

from __future__ import annotations

from ..findings import Finding, at_or_above
from ..report import Document, Report
from .style import DEFAULT_STYLE, Style
from .terminal_matrix import matrix_lines
from .terminal_model import epsilon_lines, folded_findings, folded_lines, what_to_do_lines
from .terminal_site import legend_lines, site_lines
from .totals import exit_sentences, missing, painted, total


def render_table(report: Report, style: Style = DEFAULT_STYLE) -> str:
    """Return the report for a terminal or a log: plain ASCII but for names and colours."""
    blocks = _quiet(report, style) if style.quiet else _whole(report, style)
    blocks.append(end_lines(report, style) + style.wrap("  ".join(exit_sentences(report))))
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _whole(report: Report, style: Style) -> list[list[str]]:
    blocks = note_lines(report, style)
    folded = folded_findings(report)
    told = [finding for finding in report.findings if finding not in folded and not finding.known]
    blocks += [site_lines(site, told, style) for site in report.sites]
    if report.sites:
        blocks.append(legend_lines(report, style))
    if len(report.sites) > 1:
        blocks += [matrix_lines(report, style), what_to_do_lines(report, style), epsilon_lines(report, style)]
        blocks.append(folded_lines(folded, style))
    return blocks


def _quiet(report: Report, style: Style) -> list[list[str]]:
    """Return the sections of the sites that fail or warn, with the findings that make them."""
    told = loud(report)
    names = {finding.site for finding in told}
    return [site_lines(site, told, style) for site in report.sites if site.name in names]


def loud(report: Document) -> list[Finding]:
    """Return the findings that are told even if little is wanted: new ones that warn or count for the exit code."""
    counted = {id(finding) for finding in at_or_above(report.findings, report.config.get("fail_on", "never"))}
    warning = {id(finding) for finding in at_or_above(report.findings, "warning")}
    return [finding for finding in report.findings if id(finding) in counted | warning]


def note_lines(report: Document, style: Style) -> list[list[str]]:
    """Return what there is to say about the run, a block a note."""
    return [style.wrap(f"note: {style.safe(note)}", "", "  ") for note in report.notes]


def end_lines(report: Document, style: Style) -> list[str]:
    """Return the total and the files that could not be audited."""
    left = f"  {missing(report)}:" if report.not_audited else ""
    lines = [painted(line, style) for line in style.wrap(total(report) + left)]
    for entry in report.not_audited:
        lines += style.wrap(f"{style.safe(entry.source)}: {style.safe(entry.reason)}", "  ", "    ")
    return lines
