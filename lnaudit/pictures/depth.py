"""A model in depth: its sites from the first to the last, a cell for each format and kernel, coloured by verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from .. import wording
from ..report import Report, Result
from .cells import ONE_LINE, Grid, draw_cells, verdict_legend
from .picture import Picture, Table
from .style import INK, SMALL, TINY, VERDICTS, axes_at, bare, emulation_label
from .text import headroom_text, shorten, site_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .picture import Canvas

MOST_READABLE = 60  # sites; more have smaller cells
_ROOM, _WIDEST, _NARROWEST = 7.7, 1.3, 0.2  # inches: cells of all columns, one cell
_LONGEST, _CHARACTER = 34, 0.072  # of the name of a site: characters, inches of one
_TALL, _TWO_LINES, _LOW, _TALLEST = 0.27, 0.36, 0.14, 400.0  # inches: rows with text and without, all of them
_MARGIN, _FOOT = 0.12, 0.62
_FIGURES_WIDTH = 0.84  # inches that error and headroom need
Key = tuple[str, str]


def depth_picture(report: Report) -> Picture:
    """Return the picture of all sites of a report."""
    keys = dict.fromkeys((r.format, r.kernel) for site in report.sites for r in site.results)
    formats = list(dict.fromkeys(fmt for fmt, _ in keys))
    columns = sorted(keys, key=lambda key: formats.index(key[0]))
    found = [{(r.format, r.kernel): r for r in site.results} for site in report.sites]
    names = [site_title(site) for site in report.sites]
    plot = _Plot(names, columns, found)
    return Picture(
        name="depth",
        title=f"{wording.counted(len(names), 'site')} in order: which formats and kernels hold",
        description=_description(plot),
        table=_table(plot),
        draw=partial(_draw, plot),
        size=plot.size,
    )


@dataclass(frozen=True, slots=True)
class _Plot:
    names: list[str]
    columns: list[Key]
    found: list[dict[Key, Result]]

    @property
    def cell(self) -> tuple[float, float]:
        """Width and height of a cell in inches."""
        count, rows = max(1, len(self.columns)), max(1, len(self.names))
        wide = min(_WIDEST, max(_NARROWEST, _ROOM / count))
        tall = _LOW if rows > MOST_READABLE else _TALL if wide >= ONE_LINE or wide < _FIGURES_WIDTH else _TWO_LINES
        return wide, min(tall, _TALLEST / rows)

    @property
    def labels(self) -> float:
        """Inches of the names of the sites."""
        return 0.25 + _CHARACTER * max((len(shorten(name, _LONGEST)) for name in self.names), default=4)

    @property
    def head(self) -> float:
        """Inches of the names of the columns: they stand upright where cells are narrow."""
        longest = max((len(shorten(kernel, 24)) for _, kernel in self.columns), default=0)
        return 0.5 if self.cell[0] >= 0.8 else 0.35 + 0.075 * max(longest, 6)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the picture in inches."""
        (wide, tall), count, rows = self.cell, max(1, len(self.columns)), max(1, len(self.names))
        return max(self.labels + wide * count + _MARGIN, 6.4), self.head + tall * rows + _FOOT


def _draw(plot: _Plot, figure: Canvas) -> None:
    (wide, tall), rows, count = plot.cell, max(1, len(plot.names)), max(1, len(plot.columns))
    axes = axes_at(figure, plot.size, (plot.labels, _FOOT, wide * count, tall * rows))
    bare(axes)
    axes.set_xlim(0, count)
    axes.set_ylim(rows, 0)
    verdicts = [[r.verdict if (r := found.get(key)) else None for key in plot.columns] for found in plot.found]
    detailed = wide >= _FIGURES_WIDTH and tall >= _TALL
    texts = [[_figures(found.get(key)) for key in plot.columns] for found in plot.found] if detailed else None
    grid = Grid(verdicts, wide, tall, texts)
    draw_cells(axes, grid)
    _site_names(plot, axes, tall)
    _column_names(plot, axes)
    more = f"{grid.explained}{' and headroom to the largest number of the format' * detailed}"
    verdict_legend(figure, plot.size, (0.08, _FOOT - 0.2), more)


def _site_names(plot: _Plot, axes: Axes, tall: float) -> None:
    size = SMALL if tall >= _TALL else TINY
    every = math.ceil(1.05 * TINY / 72 / tall)
    for number in range(0, len(plot.names), every):
        name = shorten(plot.names[number], _LONGEST)
        place = axes.get_yaxis_transform()
        axes.text(-0.08 / (plot.cell[0] * max(1, len(plot.columns))), number + 0.5, name, transform=place, ha="right",
                  va="center", fontsize=size)  # fmt: skip


def _column_names(plot: _Plot, axes: Axes) -> None:
    tall, upright, place = plot.cell[1], plot.cell[0] < 0.8, 0
    for fmt, group in groupby(plot.columns, key=lambda key: key[0]):
        count = len(list(group))
        up = -(plot.head - 0.16) / tall
        axes.text(place + count / 2, up, shorten(fmt, 3 + int(count * plot.cell[0] / 0.08)), ha="center", va="center",
                  fontweight="bold", fontsize=SMALL)  # fmt: skip
        axes.plot([place + 0.04, place + count - 0.04], [up + 0.1 / tall] * 2, color=INK, linewidth=0.8, clip_on=False)
        place += count
    for number, (_, kernel) in enumerate(plot.columns):
        turn = {"rotation": 90, "va": "bottom"} if upright else {"va": "bottom"}
        axes.text(
            number + 0.5, -0.05 / tall, shorten(kernel, 24 if upright else 16), ha="center", fontsize=SMALL, **turn
        )


def _figures(result: Result | None) -> str:
    if result is None:
        return ""
    error = "NaN/Inf" if result.nonfinite_rows else wording.short(result.error["max"])
    return f"{error}  {headroom_text(result.headroom)}"


def _description(plot: _Plot) -> str:
    bad = []
    for key in plot.columns:
        verdicts = [found[key].verdict for found in plot.found if key in found]
        said = [f"{verdicts.count(v)} {VERDICTS[v].word}" for v in ("fail", "warn") if v in verdicts]
        if said:
            bad.append(f"{emulation_label(*key)} {' and '.join(said)}")
    found = wording.joined(bad) if bad else "all pass" if plot.columns else "none was judged"
    sites = wording.counted(len(plot.names), "site")
    return f"A row for each of {sites} in order, a cell for each format and kernel with its verdict. Of these: {found}."


def _table(plot: _Plot) -> Table:
    def row(name: str, found: dict[Key, Result]) -> Iterator[str]:
        yield name
        for key in plot.columns:
            result = found.get(key)
            yield "-" if result is None else f"{VERDICTS[result.verdict].word}  {_figures(result)}"

    headings = (
        "site: verdict, error of the worst row, headroom",
        *(wording.printable(f"{fmt} {kernel}") for fmt, kernel in plot.columns),
    )
    rows = tuple(tuple(row(name, found)) for name, found in zip(plot.names, plot.found, strict=True))
    return Table(headings=headings, rows=rows)
