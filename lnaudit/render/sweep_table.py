"""The tables of a sweep: a line an epsilon; several emulations side by side, or one in full."""

from __future__ import annotations

from collections.abc import Sequence

from .. import wording
from ..report import Point, SweptResult, SweptSite
from ..wording import verdict_word
from .sparkline import HIGHEST, LOWEST, sparkline
from .style import Style

_INDENT, _GAP = "  ", "   "
LONGEST_CURVE = 16  # characters
_LONGEST_KERNEL = 16  # longer names stand below the table


def column_name(result: SweptResult, site: SweptSite) -> str:
    """Return how an emulation is called in the tables of a site: by its format where all have the same kernel."""
    kernels = list(dict.fromkeys(r.kernel for r in site.results))
    if len(kernels) == 1:
        return result.format
    short = result.kernel if len(result.kernel) <= _LONGEST_KERNEL else f"kernel {kernels.index(result.kernel) + 1}"
    return f"{result.format} {short}"


def has_mark(site: SweptSite) -> bool:
    """Whether a line of the tables of several emulations is that of the dump's own epsilon."""
    points = site.results[0].points if len(site.results) > 1 else []
    return site.name != site.source and any(point.epsilon == site.epsilon for point in points)


def grid_lines(site: SweptSite, style: Style) -> list[list[str]]:
    """Return tables of all emulations, as many side by side as fit, and the long names of kernels."""
    first = _first_columns(site)
    columns = [_column(result, site, style) for result in site.results]
    room = style.columns - len(_INDENT) - len(first[0])
    tables: list[list[str]] = []
    while columns:
        fitting, used = 1, _width(columns[0])
        while fitting < len(columns) and used + len(_GAP) + _width(columns[fitting]) <= room - len(_GAP):
            used += len(_GAP) + _width(columns[fitting])
            fitting += 1
        tables.append(_side_by_side([first, *columns[:fitting]], style))
        columns = columns[fitting:]
    kernels = list(dict.fromkeys(result.kernel for result in site.results))
    long = [f"{_INDENT}kernel {i}: {k}" for i, k in enumerate(kernels, 1) if len(k) > _LONGEST_KERNEL]
    return [*tables, long] if len(kernels) > 1 else tables


def _first_columns(site: SweptSite) -> list[str]:
    points = site.results[0].points
    epsilons = ["epsilon", *(wording.epsilon(p.epsilon) for p in points)]
    ratios = ["ratio", *(wording.ratio(p.collapse_ratio) for p in points)]
    marks = ["", *(" *" if has_mark(site) and p.epsilon == site.epsilon else "" for p in points)]
    left = [f"{e}{m}" for e, m in zip(epsilons, marks, strict=True)]
    wide, curve = max(map(len, left)), f"error {wording.epsilon(LOWEST)}..{wording.epsilon(HIGHEST)}"
    lines = [f"{e:{wide}}{_GAP}{r:>7}" for e, r in zip(left, ratios, strict=True)]
    return [f"{line:{len(curve)}}" for line in [*lines, curve]]


def _column(result: SweptResult, site: SweptSite, style: Style) -> list[str]:
    cells = [f"{verdict_word(point.verdict):4}  {_worst(point)}" for point in result.points]
    errors = [None if point.nonfinite_rows else point.error["max"] for point in result.points]
    return [column_name(result, site), *cells, sparkline(_thinned(errors), ascii=style.ascii or not style.curves)]


def _thinned(values: list[float | None]) -> list[float | None]:
    """Return at most as many values as a curve may have characters; None and the largest of a group count most."""
    group = -(-len(values) // LONGEST_CURVE)
    groups = [values[i : i + group] for i in range(0, len(values), group)]
    return [None if None in some else max(value for value in some if value is not None) for some in groups]


def _worst(point: Point) -> str:
    """Return what is worst about a point: rows that are lost, or the largest error of one."""
    if point.nonfinite_rows:
        return f"{wording.count(point.nonfinite_rows)} NaN"
    if point.collapsed_rows:
        return f"{wording.count(point.collapsed_rows)} zero"
    return wording.short(point.error["max"])


def _width(column: Sequence[str]) -> int:
    return max(map(len, column))


def _side_by_side(columns: Sequence[Sequence[str]], style: Style) -> list[str]:
    widths = [_width(column) for column in columns]
    lines = []
    for cells in zip(*columns, strict=True):
        padded = [f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True)]
        lines.append(_INDENT + _GAP.join(_painted(cell, style) for cell in padded).rstrip())
    return lines


def _painted(cell: str, style: Style) -> str:
    word = cell[:4]
    return f"{style.paint(word)}{cell[4:]}" if word in ("FAIL", "warn", "pass") else cell


def single_lines(result: SweptResult, style: Style) -> list[str]:
    """Return the table of one emulation."""
    titles = ("epsilon", "ratio", "out std", "error max", "NaN/Inf", "all-zero", "verdict")
    rows = [
        (
            wording.epsilon(point.epsilon),
            wording.ratio(point.collapse_ratio),
            _deviation(point.output_std),
            wording.short(point.error["max"]),
            wording.count(point.nonfinite_rows),
            wording.count(point.collapsed_rows),
            verdict_word(point.verdict),
        )
        for point in result.points
    ]
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    lines = []
    for cells in (titles, *rows):
        start = f"{cells[0]:{widths[0]}}"
        middle = (f"{cell:>{width}}" for cell, width in zip(cells[1:-1], widths[1:-1], strict=True))
        lines.append(_INDENT + "  ".join([start, *middle, _painted(cells[-1], style)]))
    return lines


def _deviation(value: float | None) -> str:
    """Write a standard deviation with six decimals, as the textbooks do."""
    return "-" if value is None else f"{value:.6f}" if value == 0 or 1e-4 <= value < 1e4 else wording.magnitude(value)
