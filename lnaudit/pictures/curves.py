"""A sweep as curves: what every epsilon does in each format and kernel.

Four plots on one log axis of epsilon: the error of the worst row and of the median row, the share of failing rows, and
the collapse ratio, which is exact and the same for all of them. Epsilon 0 stands left of the axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from .. import wording
from ..report import Point, SweptSite
from .picture import Picture, Table
from .scale import LogScale
from .style import INK, SMALL, SOLID, TEXT, VERDICTS, Line, Look, axes_at, emulation_labels, legend_columns, lines_of
from .text import shorten, site_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .picture import Canvas

_WIDTH, _LEFT, _PANEL_WIDTH, _BETWEEN = 8.6, 0.72, 3.45, 0.82  # inches
_PANEL, _GAP, _TOP, _AXIS, _LEGEND_LINE = 1.75, 0.42, 0.34, 0.5, 0.2
_LEGEND_COLUMNS = 3
_HANDLE = 0.88  # inches in the legend: a line with its air
_OWN: Look = {"color": INK, "linewidth": 1.2, "linestyle": (0, (4, 2))}
_LIMIT: Look = {"color": INK, "linewidth": 1.0, "linestyle": (0, (1, 1.5))}
_Values = list[float | None]
_Panel = tuple[str, list[tuple[Line, _Values]]]


def curves_picture(site: SweptSite, limits: Mapping[str, float] | None = None) -> Picture:
    """Return the picture of a site; limits: the accepted error of a row for each format where the site has none."""
    plot = _Plot.of(site, {**(limits or {}), **site.limits})
    return Picture(
        name="curves",
        title=f"{site_title(site)}: what each epsilon does",
        description=_description(site),
        table=_table(site),
        draw=partial(_draw, plot),
        size=plot.size,
    )


@dataclass(frozen=True, slots=True)
class _Plot:
    epsilons: list[float]
    panels: list[_Panel]
    limits: dict[str, float]
    own: float | None
    lines: list[Line]

    @classmethod
    def of(cls, site: SweptSite, limits: Mapping[str, float]) -> _Plot:
        lines = lines_of((r.format, r.kernel) for r in site.results)
        points = site.results[0].points if site.results else []
        epsilons = [point.epsilon for point in points]

        def curves(value: Callable[[Point], float | None]) -> list[tuple[Line, _Values]]:
            return [(lines[r.format, r.kernel], [value(point) for point in r.points]) for r in site.results]

        rows = max(1, int(site.input.get("finite_rows") or 0))
        ratio = Line("exact, the median row", INK, SOLID, ".")
        panels = [
            ("error of the worst row", curves(_worst)),
            ("error of the median row", curves(_median)),
            ("share of failing rows", curves(lambda point: point.failing_rows / rows)),
            ("collapse ratio q/(q+epsilon)", [(ratio, [point.collapse_ratio for point in points])]),
        ]
        used = {r.format: limits[r.format] for r in site.results if r.format in limits}
        own = site.epsilon if site.name != site.source else None  # a family has none
        return cls(epsilons, panels, used, own, list(lines.values()))

    @property
    def legend_lines(self) -> int:
        return -(-len(self.entries) // self.columns)

    @property
    def columns(self) -> int:
        """Columns of the legend: as many as have room."""
        return legend_columns((text for text, _ in self.entries), _LEGEND_COLUMNS, _WIDTH, _HANDLE)

    @property
    def entries(self) -> list[tuple[str, Look]]:
        """What the legend explains: the words and the look of the line."""
        found: list[tuple[str, Look]] = [
            (line.label, {"color": line.color, "linestyle": line.dash, "marker": line.marker, "markeredgewidth": 0})
            for line in self.lines
        ]
        if self.own is not None:
            found.append((f"the site's own epsilon {wording.epsilon(self.own)}", _OWN))
        for limit in dict.fromkeys(self.limits.values()):
            formats = [fmt for fmt, value in self.limits.items() if value == limit]
            of = "" if len(formats) == len(self.limits) else f" of {shorten(', '.join(formats))}"
            found.append((f"accepted error {wording.epsilon(limit)}{of}", _LIMIT))
        return found

    @property
    def foot(self) -> float:
        return _AXIS + _LEGEND_LINE * self.legend_lines + 0.12

    @property
    def size(self) -> tuple[float, float]:
        return _WIDTH, _TOP + 2 * _PANEL + _GAP + self.foot


def _worst(point: Point) -> float | None:
    """Return the error of the worst row, Inf where a row is lost."""
    return math.inf if point.nonfinite_rows else point.error["max"]


def _median(point: Point) -> float | None:
    """Return the error of the median row, Inf where all rows are lost."""
    return math.inf if point.error["p50"] is None and point.nonfinite_rows else point.error["p50"]


def _draw(plot: _Plot, figure: Canvas) -> None:
    scale = LogScale.over([*plot.epsilons, *([] if plot.own is None else [plot.own])])
    for number, panel in enumerate(plot.panels):
        across, down = number % 2, number // 2
        left = _LEFT + across * (_PANEL_WIDTH + _BETWEEN)
        bottom = plot.foot + (1 - down) * (_PANEL + _GAP)
        axes = axes_at(figure, plot.size, (left, bottom, _PANEL_WIDTH, _PANEL))
        _draw_panel(plot, panel, axes, scale)
        scale.on(axes, "x", 7, labelled=down == 1)
        if down == 1:
            axes.set_xlabel("epsilon")
    _legend(plot, figure)


def _draw_panel(plot: _Plot, panel: _Panel, axes: Axes, scale: LogScale) -> None:
    title, curves = panel
    limits = list(dict.fromkeys(plot.limits.values())) if title.startswith("error") else []
    known = [value for _, values in curves for value in values if value is not None]
    up = LogScale.over([*limits, *known])
    for limit in limits:
        axes.axhline(up.at(limit), **_LIMIT, label="limit")
    if not known:
        text = "no row that is not constant"
        axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=SMALL)
    up.on(axes, "y", 6)
    axes.set_title(title, fontsize=TEXT, loc="left", fontweight="bold")
    axes.grid(True, linewidth=0.4, alpha=0.25)
    where = [scale.at(epsilon) for epsilon in plot.epsilons]
    for number, (line, values) in enumerate(curves):
        heights = [math.nan if value is None else up.at(value) for value in values]
        # 0 is no neighbour of the first number: no line between them
        start = sum(epsilon == 0 for epsilon in plot.epsilons)
        style: Look = {"color": line.color, "linewidth": 1.5, "linestyle": line.dash, "zorder": 3 - 0.01 * number}
        axes.plot(where[start:], heights[start:], label=line.label, **style)
        # what coincides is seen: the markers of the first are the largest
        marker: Look = {"marker": line.marker, "markersize": 6.0 - 2.5 * number / max(1, len(curves))}
        axes.plot(where, heights, linestyle="none", color=line.color, markeredgewidth=0, zorder=3.5, **marker)
    if plot.own is not None:
        axes.axvline(scale.at(plot.own), label="own epsilon", **_OWN)


def _legend(plot: _Plot, figure: Canvas) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=text, **look) for text, look in plot.entries]
    figure.legend(
        handles=handles, loc="lower left", ncols=plot.columns, bbox_to_anchor=(0.02, 0), handlelength=5.5, numpoints=2
    )


def _description(site: SweptSite) -> str:
    said, labels = [], emulation_labels((r.format, r.kernel) for r in site.results)
    for result in site.results:
        worst = {v: sum(point.verdict == v for point in result.points) for v in VERDICTS}
        counts = [f"{count} {VERDICTS[v].word}" for v, count in worst.items() if count]
        said.append(f"{labels[result.format, result.kernel]} {', '.join(counts)}")
    points = site.results[0].points if site.results else []
    ends = [wording.epsilon(points[i].epsilon) for i in (0, -1)] if points else ["-", "-"]
    return (
        f"Error of the worst and of the median row, share of failing rows and collapse ratio against epsilon from "
        f"{ends[0]} to {ends[1]}. Verdicts at the {wording.counted(len(points), 'point')}: {'; '.join(said) or 'none'}."
    )


def _table(site: SweptSite) -> Table:
    headings = (
        "epsilon", "format", "kernel", "error, worst row", "error, median row", "failing rows", "NaN/Inf rows",
        "collapse ratio", "verdict",
    )  # fmt: skip
    rows = tuple(
        (
            wording.epsilon(point.epsilon),
            wording.printable(result.format),
            wording.printable(result.kernel),
            wording.short(point.error["max"]),
            wording.short(point.error["p50"]),
            wording.count(point.failing_rows),
            wording.count(point.nonfinite_rows),
            wording.ratio(point.collapse_ratio),
            VERDICTS[point.verdict].word,
        )
        for result in site.results
        for point in result.points
    )
    return Table(headings=headings, rows=rows)
