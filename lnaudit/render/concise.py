"""A line a finding, for logs and grep: never broken, never cut.

``SOURCE: error: LN104 collapsed-rows [float16 native] 600 of 600 rows come out all zero (row 17); remedy: ...``

The site stands behind the source, in parentheses, where it has a name of its own; the line of source that a policy
gives it goes before, as editors and problem matchers read it. The last line is the total.
"""

from __future__ import annotations

from ..findings import Finding
from ..report import Document, Report, SweepReport, SweptResult, SweptSite
from ..wording import epsilon, verdict_word
from .style import DEFAULT_STYLE, Style, unbound
from .sweep import run_text, swept_badly
from .sweep_map import cells_text, passes
from .terminal import loud
from .terminal_findings import title_of
from .totals import exit_sentences, missing, painted, total


def render_concise(report: Report, style: Style = DEFAULT_STYLE) -> str:
    """Return the new findings of a scan or check, a line each, and the total."""
    told = loud(report) if style.quiet else [finding for finding in report.findings if not finding.known]
    return _text([finding_line(finding, style, _anchors(report)) for finding in told], report, style)


def render_concise_sweep(report: SweepReport, style: Style = DEFAULT_STYLE) -> str:
    """Return a line a site, format and kernel: at which epsilons it fails, warns and passes; and the total."""
    lines = []
    for site in report.sites:
        if style.quiet and not swept_badly(site, report):
            continue
        lines += [finding_line(f, style, _anchors(report)) for f in report.findings if f.site == site.name]
        if not site.judged:
            continue
        lines += [
            f"{_where(site.source, site.name, style)}: {_swept(site, result, report, style)}"
            for result in site.results
            if not style.quiet or any(point.verdict != "pass" for point in result.points)
        ]
    for found in report.maps:
        if not (style.quiet and passes(found)):
            where = f"{style.safe(found.family)}: [{found.format} {found.kernel}] epsilon {epsilon(found.epsilon)}"
            lines.append(f"{where}: {cells_text(found, report.rules)}")
    return _text(lines, report, style)


def finding_line(finding: Finding, style: Style, anchors: dict[str, str]) -> str:
    """Return one finding as a line; anchors: the lines of source that sites stand for, by name."""
    anchor = f"{style.safe(anchors[finding.site])}: " if finding.site in anchors else ""
    about = f"[{finding.format} {finding.kernel}]" if finding.format else ""
    row = "" if finding.row is None else f"(row {finding.row})"
    what = " ".join(filter(None, (finding.code, finding.name, about, style.safe(title_of(finding)), row)))
    remedy = f"; remedy: {style.safe(finding.remedy)}" if finding.remedy else ""
    return f"{anchor}{_where(finding.source, finding.site, style)}: {style.paint(finding.severity)}: {what}{remedy}"


def _anchors(report: Report | SweepReport) -> dict[str, str]:
    return {site.name: site.anchor for site in report.sites if site.anchor}


def _where(source: str, site: str, style: Style) -> str:
    """Return the source, and the name of the site if that is not the path without its suffix, or the end of it."""
    stem = source.rpartition(".")[0]
    plain = site in (source, stem) or stem.endswith(f"/{site}")
    return style.safe(source) if plain else f"{style.safe(source)} ({style.safe(site)})"


def _swept(site: SweptSite, result: SweptResult, report: SweepReport, style: Style) -> str:
    said = f"[{result.format} {result.kernel}] {run_text(result, report.rules)}"
    own = next((p for p in result.points if p.epsilon == site.epsilon and site.name != site.source), None)
    if own is not None:
        said += f"; the site's own {epsilon(own.epsilon)}: {verdict_word(own.verdict)}"
    return said


def _text(lines: list[str], report: Document, style: Style) -> str:
    notes = [] if style.quiet else [f"note: {style.safe(note)}" for note in report.notes]
    lost = [f"{style.safe(n.source)}: not audited: {style.safe(n.reason)}" for n in report.not_audited]
    sentences = [painted(unbound(total(report)), style), *([f"{missing(report)}."] if report.not_audited else [])]
    return "\n".join([*notes, *lines, *lost, "  ".join([*sentences, *exit_sentences(report)])]) + "\n"
