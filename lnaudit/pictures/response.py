"""Response and sensitivity of the family (-t, 0, t): what epsilon does to a small row, as a curve.

Left h(t), the last element of the core, which goes to +-sqrt(3/2); right its slope h'(t), log-log. The curves are the
formulas of `lnaudit.theory`; what the kernels give is drawn as markers at the t of the sweep.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from .. import theory, wording
from ..report import ResponseCurve, SweptSite
from .picture import Picture, Table
from .scale import LogScale
from .style import COLORS, DASHES, INK, MARKERS, SMALL, STROKES, Dash, Look, axes_at, emulation_labels, legend_columns
from .text import site_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .picture import Canvas

_WIDTH, _LEFT, _PANEL_WIDTH, _BETWEEN = 8.6, 0.62, 3.55, 0.82  # inches
_PANEL, _TOP, _AXIS, _LEGEND_LINE = 3.1, 0.34, 0.52, 0.2
_PER_DECADE = 12  # points of a drawn curve
_UPPER, _LOWER = "sqrt(3/2) = 1.22474", "-sqrt(3/2) = -1.22474"


def response_picture(site: SweptSite) -> Picture | None:
    """Return the picture of a site; None if it is not of that family."""
    sizes = [abs(t) for curve in site.response for t in curve.t if t != 0 and math.isfinite(t)]
    if not sizes:
        return None
    plot = _Plot(site.response, _grid(min(sizes), max(sizes)))
    epsilons = [wording.epsilon(curve.epsilon) for curve in site.response]
    return Picture(
        name="response",
        title=f"{site_title(site)}: response and sensitivity",
        description=(
            f"Left the response h(t) of the family (-t, 0, t) for epsilon {', '.join(epsilons)}, between the dashed "
            f"asymptotes {_LOWER} and {_UPPER}; the smaller epsilon, the steeper it is at 0. Right "
            f"the sensitivity h'(t), at most 1/sqrt(epsilon)."
        ),
        table=_table(site.response),
        draw=partial(_draw, plot),
        size=plot.size,
    )


@dataclass(frozen=True, slots=True)
class _Plot:
    curves: list[ResponseCurve]
    t: list[float]  # > 0, ascending

    @property
    def kernels(self) -> list[tuple[str, str]]:
        return list(dict.fromkeys((k["format"], k["kernel"]) for curve in self.curves for k in curve.kernels))

    @property
    def legend_lines(self) -> tuple[int, int]:
        epsilons, kernels = self.columns
        return -(-len(self.curves) // epsilons), -(-(len(self.kernels) + 1) // kernels)

    @property
    def columns(self) -> tuple[int, int]:
        """Columns of the legends: epsilons, kernels."""
        epsilons = (f"epsilon {wording.epsilon(curve.epsilon)}" for curve in self.curves)
        kernels = (_MEASURED, *emulation_labels(self.kernels, _KERNEL).values())
        return legend_columns(epsilons, 6, _WIDTH, 0.64), legend_columns(kernels, 4, _WIDTH, 0.44)

    @property
    def foot(self) -> float:
        return _AXIS + _LEGEND_LINE * sum(self.legend_lines) + 0.2

    @property
    def size(self) -> tuple[float, float]:
        return _WIDTH, _TOP + _PANEL + self.foot


_MEASURED = "slope, measured in float64"
_KERNEL = 18  # characters of a kernel in the legend
_MARKERS = (*MARKERS, *STROKES)


def _grid(least: float, most: float) -> list[float]:
    """Return the t at which the formulas are drawn: from the smallest to the largest, in equal ratios."""
    count = max(2, math.ceil(_PER_DECADE * math.log10(most / least)) + 1) if most > least else 1
    return [least, *(least * (most / least) ** (i / (count - 1)) for i in range(1, count - 1)), most][: max(count, 1)]


def _look(number: int) -> tuple[str, Dash]:
    return COLORS[number % len(COLORS)], DASHES[(number // len(COLORS) + number) % len(DASHES)]


def _draw(plot: _Plot, figure: Canvas) -> None:
    left = axes_at(figure, plot.size, (_LEFT, plot.foot, _PANEL_WIDTH, _PANEL))
    right = axes_at(figure, plot.size, (_LEFT + _PANEL_WIDTH + _BETWEEN, plot.foot, _PANEL_WIDTH, _PANEL))
    _draw_response(plot, left)
    _draw_sensitivity(plot, right)
    _legends(plot, figure)


def _draw_response(plot: _Plot, axes: Axes) -> None:
    least, most = plot.t[0], plot.t[-1]
    axes.set_xscale("symlog", linthresh=least, linscale=0.5)
    axes.set_xlim(-most * 1.5, most * 1.5)
    positions, labels = LogScale.over([least, most]).ticks(4)
    # the smallest would touch 0
    ticks = [(10.0**decade, text) for decade, text in zip(positions, labels, strict=True)]
    marked = [(p, text) for p, text in ticks if 3 * least < p <= most]
    marked = marked or [(most, wording.epsilon(most))]
    axes.set_xticks(
        [*(-p for p, _ in reversed(marked)), 0.0, *(p for p, _ in marked)],
        [*(f"-{text}" for _, text in reversed(marked)), "0", *(text for _, text in marked)],
    )
    axes.set_xticks([], minor=True)
    axes.set_ylim(-1.52, 1.52)
    axes.set_title("response h(t) = t/sqrt(2t^2/3+epsilon)", fontsize=SMALL, loc="left", fontweight="bold")
    axes.set_xlabel("t (linear about 0, log elsewhere)")
    t = [*(-value for value in reversed(plot.t)), 0.0, *plot.t]
    names = emulation_labels(plot.kernels)
    for number, curve in enumerate(plot.curves):
        color, dash = _look(number)
        style: Look = {"color": color, "linestyle": dash, "linewidth": 1.5}
        axes.plot(t, theory.response(t, curve.epsilon), label=f"epsilon {wording.epsilon(curve.epsilon)}", **style)
        for kernel in curve.kernels:
            key = kernel["format"], kernel["kernel"]
            marker, label = _MARKERS[plot.kernels.index(key) % len(_MARKERS)], names[key]
            look: Look = {
                "markersize": 4.5,
                "markerfacecolor": "none",
                "markeredgecolor": color,
                "markeredgewidth": 0.9,
            }
            axes.plot(curve.t, kernel["response"], linestyle="none", marker=marker, label=label, **look)
    for height, text, up in ((theory.ASYMPTOTE, _UPPER, "bottom"), (-theory.ASYMPTOTE, _LOWER, "top")):
        axes.axhline(height, color=INK, linewidth=1, linestyle=(0, (6, 3)), label="asymptote")
        beside: Look = {"transform": axes.get_yaxis_transform(), "ha": "left", "va": up, "fontsize": SMALL}
        axes.text(0.02, height + (0.03 if up == "bottom" else -0.03), text, **beside)


def _draw_sensitivity(plot: _Plot, axes: Axes) -> None:
    slopes = [[float(theory.sensitivity(t, curve.epsilon)) for t in plot.t] for curve in plot.curves]
    drawn = [slope for curve in slopes for slope in curve if slope > 0]
    up, across = LogScale.over(drawn or [1.0]), LogScale.over([plot.t[0], plot.t[-1]])
    up.on(axes, "y", 8)
    across.on(axes, "x", 7)
    if not drawn:
        text = "epsilon 0: a step, whose slope is 0 everywhere but at t = 0"
        axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=SMALL)
    axes.set_title("sensitivity h'(t) = epsilon/(2t^2/3+epsilon)^(3/2)", fontsize=SMALL, loc="left", fontweight="bold")
    axes.set_xlabel("|t|")
    for number, (curve, slope) in enumerate(zip(plot.curves, slopes, strict=True)):
        if curve.epsilon == 0:  # a step: the slope is 0 everywhere but at t = 0, and has no place on a log axis
            continue
        color, dash = _look(number)
        label = f"epsilon {wording.epsilon(curve.epsilon)}"
        axes.plot(list(map(across.at, plot.t)), list(map(up.at, slope)), color=color, linestyle=dash, linewidth=1.5,
                  label=label)  # fmt: skip
        measured = [
            (abs(t), value)
            for t, value in zip(curve.t, curve.sensitivity_measured, strict=True)
            if t != 0 and 0 < value < math.inf
        ]
        look: Look = {"linestyle": "none", "marker": "+", "markersize": 6, "color": color, "label": "measured"}
        axes.plot([across.at(t) for t, _ in measured], [up.at(value) for _, value in measured], **look)


def _legends(plot: _Plot, figure: Canvas) -> None:
    from matplotlib.lines import Line2D

    lines = []
    for number, curve in enumerate(plot.curves):
        color, dash = _look(number)
        lines.append(Line2D([], [], color=color, linestyle=dash, label=f"epsilon {wording.epsilon(curve.epsilon)}"))
    points = [
        Line2D([], [], linestyle="none", marker=_MARKERS[i % len(_MARKERS)], markerfacecolor="none", color=INK,
               markersize=5, label=label)
        for i, label in enumerate(emulation_labels(plot.kernels, _KERNEL).values())
    ]  # fmt: skip
    points.append(Line2D([], [], linestyle="none", marker="+", color=INK, label=_MEASURED))
    first = (_LEGEND_LINE * plot.legend_lines[1] + 0.08) / plot.size[1]
    figure.legend(
        handles=lines, loc="lower left", ncols=plot.columns[0], bbox_to_anchor=(0.01, first), handlelength=3.2
    )
    figure.legend(handles=points, loc="lower left", ncols=plot.columns[1], bbox_to_anchor=(0.01, 0))


def _table(curves: list[ResponseCurve]) -> Table:
    names = list(dict.fromkeys((k["format"], k["kernel"]) for curve in curves for k in curve.kernels))
    rows = []
    for curve in curves:
        responses = {(k["format"], k["kernel"]): k["response"] for k in curve.kernels}
        for i, t in enumerate(curve.t):
            given = (wording.six(responses[name][i]) if name in responses else "-" for name in names)
            slopes = wording.six(curve.sensitivity[i]), wording.magnitude(curve.sensitivity_measured[i])
            rows.append(
                (wording.epsilon(curve.epsilon), wording.epsilon(t), wording.six(curve.response[i]), *given, *slopes)
            )
    kernels = (wording.printable(f"{fmt} {kernel}") for fmt, kernel in names)
    return Table(headings=("epsilon", "t", "h(t)", *kernels, "h'(t)", "h'(t), measured"), rows=tuple(rows))
