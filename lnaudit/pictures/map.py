"""A map: what becomes of a family as two of its parameters vary, a cell for each pair of values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from .. import wording
from ..report import VerdictMap
from .cells import LEGEND_LINE, Grid, draw_cells, legend_lines, verdict_legend
from .picture import Picture, Table
from .style import INK, SMALL, VERDICTS, axes_at, emulation_label
from .text import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .picture import Canvas

_ROOM, _LARGEST, _SMALLEST = (6.4, 5.0), (1.0, 0.36), 0.05  # inches: all cells, one cell
_LEFT, _RIGHT, _TOP, _FOOT = 0.95, 0.25, 0.15, 0.68
_FEW = 60  # cells; in more of them a letter is calmer than a word
_TICK = (0.46, 0.17)  # inches that a label needs across and upwards
_TEXT_WIDTH = 0.62  # inches of a cell with the word and the error


def map_picture(found: VerdictMap) -> Picture:
    """Return the picture of a map."""
    plot = _Plot(found)
    across, up = map(wording.printable, found.parameters)
    verdicts = [verdict for row in found.verdicts for verdict in row]
    counts = [f"{verdicts.count(v)} {paint.word}" for v, paint in VERDICTS.items() if v in verdicts]
    what = f"{emulation_label(found.format, found.kernel)}, epsilon {wording.epsilon(found.epsilon)}"
    return Picture(
        name="map",
        title=f"{wording.printable(found.family)}: {what}",
        description=(
            f"Verdicts of {what}, over {across} ({_ends(found.values[0])}) to the right and {up} "
            f"({_ends(found.values[1])}) upwards. {wording.counted(len(verdicts), 'cell')}: {', '.join(counts)}."
        ),
        table=_table(found),
        draw=partial(_draw, plot),
        size=plot.size,
    )


def _ends(values: list[float]) -> str:
    return f"{wording.epsilon(values[0])} to {wording.epsilon(values[-1])}" if values else "no value"


@dataclass(frozen=True, slots=True)
class _Plot:
    found: VerdictMap

    @property
    def counts(self) -> tuple[int, int]:
        return max(1, len(self.found.values[0])), max(1, len(self.found.values[1]))

    @property
    def cell(self) -> tuple[float, float]:
        """Width and height of a cell in inches."""
        (wide, tall), (x, y) = _ROOM, self.counts
        return max(_SMALLEST, min(_LARGEST[0], wide / x)), max(_SMALLEST, min(_LARGEST[1], tall / y))

    @property
    def grid(self) -> Grid:
        (wide, tall), (x, y), found, texts = self.cell, self.counts, self.found, None
        if wide >= _TEXT_WIDTH and tall >= 0.34:
            texts = [[_error(found, x, y) for x in range(len(row))] for y, row in enumerate(found.errors)]
        return Grid(found.verdicts, wide, tall, texts, words=x * y <= _FEW)

    @property
    def width(self) -> float:
        return max(5.6, _LEFT + self.cell[0] * self.counts[0] + _RIGHT)

    @property
    def legend(self) -> list[str]:
        return legend_lines(self.width, [self.grid.explained])

    @property
    def foot(self) -> float:
        """Inches of the names of the axis and the legend."""
        return _FOOT + LEGEND_LINE * len(self.legend)

    @property
    def size(self) -> tuple[float, float]:
        return self.width, _TOP + self.cell[1] * self.counts[1] + self.foot


def _draw(plot: _Plot, figure: Canvas) -> None:
    found, (wide, tall), (x, y) = plot.found, plot.cell, plot.counts
    axes = axes_at(figure, plot.size, (_LEFT, plot.foot, wide * x, tall * y))
    axes.set_xlim(0, x)
    axes.set_ylim(0, y)
    draw_cells(axes, plot.grid)
    _borders(found, axes)
    _ticks(axes, "x", found.values[0], _TICK[0] / wide)
    _ticks(axes, "y", found.values[1], _TICK[1] / tall)
    axes.set_xlabel(shorten(found.parameters[0]))
    axes.set_ylabel(shorten(found.parameters[1]))
    verdict_legend(figure, plot.size, 0.12, plot.legend)


def _error(found: VerdictMap, x: int, y: int) -> str:
    """Write the error of the worst row of a cell."""
    return "NaN/Inf" if found.nonfinite_rows[y][x] else wording.short(found.errors[y][x])


def _ticks(axes: Axes, axis: str, values: list[float], room: float) -> None:
    """Label the values that have room, whole decades first where they suffice."""
    decades = [i for i, value in enumerate(values) if value > 0 and math.log10(value) % 1 in (0.0, 1.0)]
    apart = min((b - a for a, b in pairwise(decades)), default=0)
    every = max(1, math.ceil(room))
    chosen = decades if len(decades) > 2 and apart >= every else list(range(0, len(values), every))
    put = axes.set_xticks if axis == "x" else axes.set_yticks
    put([i + 0.5 for i in chosen], [wording.epsilon(values[i]) for i in chosen], fontsize=SMALL)


def _borders(found: VerdictMap, axes: Axes) -> None:
    """Draw a line between neighbours of unlike verdict."""
    rows, across, up = found.verdicts, [], []
    for y, row in enumerate(rows):
        across += [(x, y) for x in range(1, len(row)) if row[x] != row[x - 1]]
        up += [(x, y) for x in range(len(row)) if y and row[x] != rows[y - 1][x]]
    axes.vlines([x for x, _ in across], [y for _, y in across], [y + 1 for _, y in across], color=INK, linewidth=1)
    axes.hlines([y for _, y in up], [x for x, _ in up], [x + 1 for x, _ in up], color=INK, linewidth=1)


def _table(found: VerdictMap) -> Table:
    across, up = found.parameters
    rows = tuple(
        (
            wording.epsilon(found.values[0][x]),
            wording.epsilon(found.values[1][y]),
            VERDICTS[verdict].word,
            _error(found, x, y),
            wording.count(found.nonfinite_rows[y][x]),
            ", ".join(found.codes[y][x]) or "-",
        )
        for y, row in enumerate(found.verdicts)
        for x, verdict in enumerate(row)
    )
    named = wording.printable(across), wording.printable(up)
    return Table(headings=(*named, "verdict", "error, worst row", "NaN/Inf rows", "codes"), rows=rows)
