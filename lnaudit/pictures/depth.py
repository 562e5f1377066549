"""A model in depth: its sites from the first to the last, a cell for each format and kernel, coloured by verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from .. import wording
from ..report import Report
from .cells import DAGGER, LEGEND_LINE, ONE_LINE, Grid, draw_cells, legend_lines, verdict_legend
from .model import Row, columns_of, rows_of
from .picture import Picture, Table
from .style import INK, SMALL, TINY, VERDICTS, Look, axes_at, bare, emulation_labels
from .text import distinct, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .picture import Canvas

MOST_READABLE = 60  # sites; more have smaller cells
_ROOM, _WIDEST, _NARROWEST = 7.7, 1.3, 0.2  # inches: cells of all columns, one cell
_LONGEST, _CHARACTER = 34, 0.072  # of the name of a site: characters, inches of one
_TALL, _TWO_LINES, _LOW, _TALLEST = 0.27, 0.36, 0.14, 400.0  # inches: rows with text and without, all of them
_MARGIN, _UNJUDGED = 0.12, ": not judged"
_FIGURES_WIDTH = 0.84  # inches that error and headroom need


def depth_picture(report: Report) -> Picture:
    """Return the picture of all sites of a report."""
    plot = _Plot(rows_of(report), columns_of(report))
    return Picture(
        name="depth",
        title=f"{wording.counted(len(plot.sites), 'site')} in order: which formats and kernels hold",
        description=_description(plot),
        table=_table(plot),
        draw=partial(_draw, plot),
        size=plot.size,
    )


@dataclass(frozen=True, slots=True)
class _Plot:
    sites: list[Row]
    columns: list[tuple[str, str]]

    @property
    def cell(self) -> tuple[float, float]:
        """Width and height of a cell in inches."""
        count, rows = max(1, len(self.columns)), max(1, len(self.sites))
        wide = min(_WIDEST, max(_NARROWEST, _ROOM / count))
        tall = _LOW if rows > MOST_READABLE else _TALL if wide >= ONE_LINE or wide < _FIGURES_WIDTH else _TWO_LINES
        return wide, min(tall, _TALLEST / rows)

    @property
    def labels(self) -> list[str]:
        """The names of the sites as they are drawn."""
        names = distinct((site.name for site in self.sites), _LONGEST - len(_UNJUDGED))
        whole = distinct((site.name for site in self.sites), _LONGEST)
        return [whole[site.name] if site.judged else names[site.name] + _UNJUDGED for site in self.sites]

    @property
    def kernels(self) -> dict[str, str]:
        """The names of the kernels as they are drawn."""
        return distinct((kernel for _, kernel in self.columns), 24 if self.upright else 16)

    @property
    def upright(self) -> bool:
        """Whether cells are too narrow for names that lie."""
        return self.cell[0] < 0.8

    @property
    def grid(self) -> Grid:
        """The cells."""
        (wide, tall), found = self.cell, [[site.cells.get(key) for key in self.columns] for site in self.sites]
        verdicts = [[cell.verdict if cell else None for cell in row] for row in found]
        texts = [[cell.figures if cell else "" for cell in row] for row in found]
        marked = {(x, y) for y, row in enumerate(found) for x, cell in enumerate(row) if cell and cell.marked}
        return Grid(verdicts, wide, tall, texts if wide >= _FIGURES_WIDTH and tall >= _TALL else None, marked=marked)

    @property
    def legend(self) -> list[str]:
        """The lines beside the colours."""
        grid = self.grid
        first, *others = grid.explained.split("; ")
        if grid.texts:
            first = first.replace(" (1 =", " and headroom to the largest number of the format (error 1 =")
        said = [first, *others] + [f"{DAGGER} known from the baseline, or accepted by the policy"] * bool(grid.marked)
        return legend_lines(self.width, said)

    @property
    def foot(self) -> float:
        """Inches of the legend."""
        return 0.24 + LEGEND_LINE * max(1, len(self.legend))

    @property
    def width(self) -> float:
        """Inches of all of it."""
        return max(self.margin + self.cell[0] * max(1, len(self.columns)) + _MARGIN, 6.4)

    @property
    def margin(self) -> float:
        """Inches of the names of the sites."""
        return 0.25 + _CHARACTER * max(map(len, self.labels), default=4)

    @property
    def head(self) -> float:
        """Inches of the names of the columns: they stand upright where cells are narrow."""
        longest = max(map(len, self.kernels.values()), default=0)
        return 0.5 if not self.upright else 0.35 + 0.075 * max(longest, 6)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the picture in inches."""
        return self.width, self.head + self.cell[1] * max(1, len(self.sites)) + self.foot


def _draw(plot: _Plot, figure: Canvas) -> None:
    (wide, tall), rows, count = plot.cell, max(1, len(plot.sites)), max(1, len(plot.columns))
    axes = axes_at(figure, plot.size, (plot.margin, plot.foot, wide * count, tall * rows))
    bare(axes)
    axes.set_xlim(0, count)
    axes.set_ylim(rows, 0)
    draw_cells(axes, plot.grid)
    _site_names(plot, axes, tall)
    _column_names(plot, axes)
    verdict_legend(figure, plot.size, 0.12, plot.legend)


def _site_names(plot: _Plot, axes: Axes, tall: float) -> None:
    size = SMALL if tall >= _TALL else TINY
    every = math.ceil(1.05 * TINY / 72 / tall)
    labels = plot.labels
    for number in range(0, len(labels), every):
        name = labels[number]
        place = axes.get_yaxis_transform()
        axes.text(-0.08 / (plot.cell[0] * max(1, len(plot.columns))), number + 0.5, name, transform=place, ha="right",
                  va="center", fontsize=size)  # fmt: skip


def _column_names(plot: _Plot, axes: Axes) -> None:
    tall, place, kernels = plot.cell[1], 0, plot.kernels
    for fmt, group in groupby(plot.columns, key=lambda key: key[0]):
        count = len(list(group))
        up = -(plot.head - 0.16) / tall
        axes.text(place + count / 2, up, shorten(fmt, 3 + int(count * plot.cell[0] / 0.08)), ha="center", va="center",
                  fontweight="bold", fontsize=SMALL)  # fmt: skip
        axes.plot([place + 0.04, place + count - 0.04], [up + 0.1 / tall] * 2, color=INK, linewidth=0.8, clip_on=False)
        place += count
    for number, (_, kernel) in enumerate(plot.columns):
        look: Look = {"ha": "center", "va": "bottom", "fontsize": SMALL, "rotation": 90 if plot.upright else 0}
        axes.text(number + 0.5, -0.05 / tall, kernels[kernel], **look)


def _description(plot: _Plot) -> str:
    bad, labels = [], emulation_labels(plot.columns)
    for key in plot.columns:
        cells = [site.cells[key] for site in plot.sites if key in site.cells]
        counts = [(v, sum(cell.verdict == v for cell in cells)) for v in ("fail", "warn")]
        said = [f"{count} {VERDICTS[v].word}" for v, count in counts if count]
        if said:
            bad.append(f"{labels[key]} {' and '.join(said)}")
    unjudged = sum(not site.judged for site in plot.sites)
    judged = unjudged < len(plot.sites) and plot.columns
    found = wording.joined(bad) if bad else "all pass" if judged else "none was judged"
    beside = f"; {wording.counted(unjudged, 'site')} without a finite row: not judged" if unjudged else ""
    sites = wording.counted(len(plot.sites), "site")
    return (
        f"A row for each of {sites} in order, a cell for each format and kernel with its verdict. Of these: "
        f"{found}{beside}."
    )


def _table(plot: _Plot) -> Table:
    def row(site: Row) -> Iterator[str]:
        yield site.name if site.judged else site.name + _UNJUDGED
        yield from (cell.text if (cell := site.cells.get(key)) else "-" for key in plot.columns)

    headings = (
        "site: verdict, error of the worst row, headroom",
        *(wording.printable(f"{fmt} {kernel}") for fmt, kernel in plot.columns),
    )
    return Table(headings=headings, rows=tuple(tuple(row(site)) for site in plot.sites))
