"""The table of a site: a row a format and kernel; where it does not fit, fewer columns, then a block a row."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .. import wording
from ..report import Result
from ..wording import verdict_word
from .style import Style, bound

BLOCKS_BELOW = 72
_INDENT = "  "
_GAP = "  "
# a kernel with overrides, native:reduction=serial,variance=one_pass, may be broken behind these
_KERNEL_PIECE = re.compile(r"[^:,]+[:,]?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One column: its title, its text for a result, when it leaves a table that is too wide (0: never)."""

    title: str
    text: Callable[[Result], str]
    left: bool = False
    leaves: int = 0
    short: str = ""


VERDICT = Column(title="", text=lambda r: verdict_word(r.verdict), left=True)
KERNEL = Column(title="kernel", text=lambda r: r.kernel, left=True)
RATIO = Column(
    title="ratio min/p50",
    text=lambda r: wording.pair(wording.ratio(r.collapse_ratio.get("min")), wording.ratio(r.collapse_ratio.get("p50"))),
    leaves=1,
    short="ratio",
)
COLUMNS = (
    VERDICT,
    Column(title="format", text=lambda r: r.format, left=True),
    KERNEL,
    Column(title="NaN/Inf", text=lambda r: wording.count(max(r.nonfinite_rows, r.affine["nonfinite_rows"]))),
    Column(title="all-zero", text=lambda r: wording.count(r.collapsed_rows)),
    Column(title="var=0", text=lambda r: wording.count(r.variance_zero_rows), leaves=2),
    RATIO,
    Column(
        title="error p50/max",
        text=lambda r: wording.pair(wording.short(r.error.get("p50")), wording.short(r.error.get("max"))),
    ),
    Column(title="safe epsilon", text=lambda r: wording.epsilon_range(r.recommendation.lower, r.recommendation.upper)),
    Column(title="use", text=lambda r: r.recommendation.use),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """The columns that fit, with their widths."""

    columns: tuple[Column, ...]
    widths: tuple[int, ...]

    @property
    def has_ratio(self) -> bool:
        """Whether the ratio is among them."""
        return any(column.text is RATIO.text for column in self.columns)


def table_lines(results: Sequence[Result], style: Style) -> list[str]:
    """Return the table of a site."""
    layout = choose_layout(results, style)
    if layout is None:
        return [line for result in results for line in _block(result, style)]
    lines = [_physical_line(layout, [column.title for column in layout.columns])]
    for result in results:
        lines += _row(layout, result, style)
    return lines


def choose_layout(results: Sequence[Result], style: Style) -> Layout | None:
    """Return the first layout that fits: all columns, without `ratio`, without `var=0`; None if none does."""
    if style.columns < BLOCKS_BELOW:
        return None
    short = tuple(replace(column, title=column.short or column.title) for column in COLUMNS)
    fewer = (tuple(column for column in short if not 0 < column.leaves <= gone) for gone in range(3))
    layouts = (_fit(columns, results, style.columns) for columns in (COLUMNS, *fewer))
    return next((layout for layout in layouts if layout is not None), None)


def _fit(columns: tuple[Column, ...], results: Sequence[Result], width: int) -> Layout | None:
    """Fit the columns into the width; the kernel's name may be broken for it."""
    widths = [max(map(len, (column.title, *map(column.text, results)))) for column in columns]
    excess = len(_INDENT) + sum(widths) + len(_GAP) * (len(columns) - 1) - width
    if excess > 0:
        kernel = columns.index(KERNEL)
        pieces = [piece for r in results for piece in _KERNEL_PIECE.findall(r.kernel)]
        widths[kernel] -= excess
        if widths[kernel] < max(map(len, (KERNEL.title, *pieces))):
            return None
    return Layout(columns=columns, widths=tuple(widths))


def _row(layout: Layout, result: Result, style: Style) -> list[str]:
    cells = [column.text(result) for column in layout.columns]
    kernel = layout.columns.index(KERNEL)
    names = _broken(cells[kernel], layout.widths[kernel])
    cells[kernel] = names[0]
    first = _physical_line(layout, cells)
    start = len(_INDENT)
    word = cells[0]
    first = first[:start] + style.paint(word) + first[start + len(word) :]
    more = [_physical_line(layout, [name if i == kernel else "" for i in range(len(cells))]) for name in names[1:]]
    return [first, *more]


def _physical_line(layout: Layout, cells: Sequence[str]) -> str:
    padded = (
        cell.ljust(width) if column.left else cell.rjust(width)
        for cell, column, width in zip(cells, layout.columns, layout.widths, strict=True)
    )
    return (_INDENT + _GAP.join(padded)).rstrip()


def _broken(kernel: str, width: int) -> list[str]:
    lines = [""]
    for piece in _KERNEL_PIECE.findall(kernel):
        if lines[-1] and len(lines[-1]) + len(piece) > width:
            lines.append("")
        lines[-1] += piece
    return lines


def _block(result: Result, style: Style) -> list[str]:
    """Return one result as a block: the verdict stands first here too."""
    figures = [bound(f"{column.title} {column.text(result)}") for column in COLUMNS[3:]]
    word = verdict_word(result.verdict)
    indent = " " * (len(_INDENT) + 6)
    head = f"{_INDENT}{style.paint(word)}  {result.format} {result.kernel}"
    return [head, *style.wrap("; ".join(figures), indent, indent)]
