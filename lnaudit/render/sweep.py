"""A sweep as a page of text: a section a site, and one line of total."""

from __future__ import annotations

import math
from itertools import groupby

from .. import wording
from ..report import Point, SweepReport, SweptResult, SweptSite
from ..wording import counted
from .style import DEFAULT_STYLE, Style
from .sweep_map import LEGEND, map_lines, passes
from .sweep_response import response_lines
from .sweep_table import column_name, grid_lines, has_mark, single_lines
from .terminal import end_lines, note_lines
from .terminal_site import NORMS, flushing, header_lines
from .totals import exit_sentences

_INDENT, _HANGING = "  ", "    "
_SMALL = 0.1  # of the normalized scale: an output so small makes any error look small
_FAMILIES = "Yours: lnaudit sweep acts.npy     Other families: lnaudit synth --help     One row: --family bump"


def render_sweep(report: SweepReport, style: Style = DEFAULT_STYLE) -> str:
    """Return the sweep for a terminal or a log; plain ASCII but for names, colours and curves."""
    blocks = [] if style.quiet else note_lines(report, style)
    for site in report.sites:
        if not style.quiet or swept_badly(site, report):
            blocks += _section(site, report, style)
    maps = [found for found in report.maps if not (style.quiet and passes(found))]
    blocks += [map_lines(found, report.rules, style) for found in maps]
    blocks.append(LEGEND if maps else [])
    if report.config.get("no_data") and report.sites and not style.quiet:
        blocks.append(style.wrap(_FAMILIES))
    blocks.append(_end(report, style))
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def swept_badly(site: SweptSite, report: SweepReport) -> bool:
    """Whether anything about a site is worth a line of a quiet sweep: a point, or what the file is."""
    fails = any(point.verdict != "pass" for result in site.results for point in result.points)
    return fails or any(finding.site == site.name and finding.severity != "note" for finding in report.findings)


def _end(report: SweepReport, style: Style) -> list[str]:
    return [*end_lines(report, style), *style.wrap("  ".join(exit_sentences(report)))]


def _section(site: SweptSite, report: SweepReport, style: Style) -> list[list[str]]:
    findings = [f"{f.severity}: {f.code} {f.name}: {f.title}" for f in report.findings if f.site == site.name]
    facts = [*findings, *flushing(report.config), *_marked(site)]
    header = [*_title(site, report, style), *(line for fact in facts for line in style.wrap(fact, _INDENT, _HANGING))]
    if not site.judged:
        return [[*header, f"{_INDENT}no row is finite: nothing was judged"]]
    if len(site.results) == 1:
        if site.results[0].error_by == "closed-form":
            header.append(f"{_INDENT}error: before the output is rounded")
        return [header, single_lines(site.results[0], style), _runs(site, report, style), *response_lines(site, style)]
    header += style.wrap(_cells(site), _INDENT, _HANGING)
    return [header, *grid_lines(site, style), _runs(site, report, style), *response_lines(site, style)]


def _title(site: SweptSite, report: SweepReport, style: Style) -> list[str]:
    """Say what is swept: a family by its name, a dump as a scan says it."""
    kernels = list(dict.fromkeys(result.kernel for result in site.results))
    formats = [result.format for result in site.results]
    what = f"{formats[0]} {kernels[0]}" if len(formats) == 1 else kernels[0] if len(kernels) == 1 else ""
    if site.name != site.source:
        lines = header_lines(site, style, epsilon="the site's epsilon")
        return [*lines, *(style.wrap(f"kernel: {what}", _INDENT, _HANGING) if what else [])]
    constant, zero, rows = (site.input[key] for key in ("constant_rows", "zero_rows", "finite_rows"))
    facts = [
        "no PATH given" if report.config.get("no_family") else "",
        NORMS.get(site.norm, site.norm) + (f", {what}" if what else ""),
        f"{constant} of the {counted(rows, 'row')} constant" if rows > constant > zero else "",
        f"{zero} of the {counted(rows, 'row')} zero" if rows > zero > 0 else "",
        f"{'all zero' if zero == rows else 'all rows constant'}" if constant == rows else "",
    ]
    return style.wrap(f"{style.safe(site.name)}   ({'; '.join(filter(None, facts))})", "", _INDENT)


def _marked(site: SweptSite) -> list[str]:
    return ["*: the site's own epsilon"] if has_mark(site) else []


def _cells(site: SweptSite) -> str:
    least, most = (wording.magnitude(site.variance.get(end)) for end in ("min", "max"))
    what = "mean square" if site.norm == "rms" else "variance"
    told = site.name != site.source or site.variance.get("min") is None
    q = "" if told else f"{what} q: {least} to {most}.  "
    by = sorted({result.error_by for result in site.results})
    before = ", before the output is rounded" if by == ["closed-form"] else ""
    return (
        f"{q}ratio: exact q/(q+eps), median row.  cells: verdict, then the worst row's error{before}, or how many of "
        f"the {counted(site.input['finite_rows'], 'row')} are NaN/Inf or all zero"
    )


def _runs(site: SweptSite, report: SweepReport, style: Style) -> list[str]:
    """Say for each emulation at which epsilons it passes and what is wrong at the others."""
    lines: list[str] = []
    names = [column_name(result, site) for result in site.results]
    width = max(map(len, names), default=0)
    for name, result in zip(names, site.results, strict=True):
        lines += style.wrap(run_text(result, report.rules), f"{_INDENT}{name:{width}}  ", " " * (width + 4))
    sets = [point.epsilon for point in site.results[0].points if (point.collapse_ratio or 1.0) < 0.5]
    if sets:
        lines += style.wrap(
            f"From {wording.epsilon(sets[0])} on epsilon sets the scale of the median row, not the data (q < eps).",
            _INDENT,
            _HANGING,
        )
    return lines


def run_text(result: SweptResult, rules: dict[str, str]) -> str:
    """Say of an emulation from where to where it passes, warns or fails, and why."""
    said: list[str] = []
    for (verdict, codes), group in groupby(result.points, key=lambda p: (p.verdict, tuple(p.codes))):
        points = list(group)
        ends = dict.fromkeys(wording.epsilon(point.epsilon) for point in (points[0], points[-1]))
        where = "at every epsilon" if len(points) == len(result.points) else f"at {' to '.join(ends)}"
        why = f" ({', '.join(f'{code} {rules[code]}' for code in codes)})" if codes else ""
        small = "" if verdict != "pass" or not said else _small(points[0])
        said.append(f"{'FAIL' if verdict == 'fail' else verdict} {where}{why}{small}")
    return "; ".join(said)


def _small(point: Point) -> str:
    """Say that what passes is a small output, whose error is small because of that."""
    scale = math.sqrt(point.collapse_ratio) if point.collapse_ratio is not None else 1.0
    return f" (the whole output is {wording.percent(scale)} of its size)" if scale < _SMALL else ""
