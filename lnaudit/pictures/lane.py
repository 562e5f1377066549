"""One lane of the window picture: a format and kernel, what it can hold, its noise, its safe epsilons, the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import wording
from ..report import Recommendation, Result, SiteReport
from .scale import LogScale
from .style import BLUE, GREEN, INK, SMALL, TEXT, VERDICTS, VERMILION, Look, block
from .text import distinct, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .picture import Canvas

HIGH = 0.46  # inches of a lane
_BAR = (0.1, 0.9)  # of a lane from its top: where a bar begins and where it ends
_NOISE, _SAFE = (0.16, 0.46), (0.54, 0.84)
_SEEN = 0.08  # decades of the narrowest band that is seen
_FORMAT, _KERNEL = 16, 20  # characters
_NOISE_STYLE: Look = {"facecolor": "none", "edgecolor": VERMILION, "hatch": "/////", "linewidth": 0.9}


def lanes_of(site: SiteReport) -> list[Lane]:
    """Return the lanes of a site."""
    kernels = distinct((result.kernel for result in site.results), _KERNEL)
    return [Lane(result, site.epsilon, kernels[result.kernel]) for result in site.results]


@dataclass(frozen=True, slots=True)
class Lane:
    """What is drawn of a result: the result, the model's epsilon, and the kernel as it is named in the picture."""

    result: Result
    epsilon: float
    kernel: str

    @property
    def facts(self) -> str:
        """The second line beside the verdict."""
        if self.result.epsilon_class == "zero" and self.epsilon > 0:
            return f"{wording.epsilon(self.epsilon)} is held as 0"
        if self.result.verdict == "fail" and self.result.recommendation.reason == "keeps":
            return _cause(self.result)
        return _safe_text(self.result.recommendation)

    @property
    def use(self) -> str:
        """The first line beside the verdict."""
        text = self.result.recommendation.use
        return text if text in ("keep", "none") else f"use {text}"


def _cause(result: Result) -> str:
    """Say in few letters why a result fails that no epsilon mends."""
    if result.cast.overflow_rows or result.cast.destroyed_rows:
        return "lost in the cast"
    if result.nonfinite_rows:
        return f"{wording.counted(result.nonfinite_rows, 'row')} NaN/Inf"
    if result.collapsed_rows:
        return f"{wording.counted(result.collapsed_rows, 'row')} all zero"
    return f"error {wording.short(result.error['max'])}"


def _safe_text(advice: Recommendation) -> str:
    lower, upper = advice.lower, advice.upper
    if lower is None or upper is None:
        return "no epsilon is safe"
    if lower == upper:
        return f"safe: {wording.epsilon(lower)} alone"
    if wording.opens_below(lower):
        return "all tried are safe" if wording.opens_above(upper) else f"safe: up to {wording.epsilon(upper)}"
    if wording.opens_above(upper):
        return f"safe: from {wording.epsilon(lower)}"
    return f"safe: {wording.epsilon(lower)} to {wording.epsilon(upper)}"


def draw_lane(axes: Axes, lane: Lane, number: int, scale: LogScale) -> None:
    """Draw a lane: its top is at `number`, its foot one below."""
    result = lane.result
    _range(axes, result.range, number, scale)
    _noise(axes, result.noise, number, scale)
    _safe(axes, lane, number, scale)
    axes.axhline(number + 1, color=INK, linewidth=0.4, alpha=0.3)
    beside = axes.get_yaxis_transform()
    axes.text(
        -0.02,
        number + 0.32,
        shorten(result.format, _FORMAT),
        transform=beside,
        ha="right",
        va="center",
        fontweight="bold",
    )
    axes.text(-0.02, number + 0.72, lane.kernel, transform=beside, ha="right", va="center", fontsize=SMALL)
    _verdict(axes, lane, number)


def _block(axes: Axes, ends: tuple[float, float], of: tuple[float, float], number: int, **look: Any) -> None:
    block(axes, ends, (number + of[0], number + of[1]), **look)


def _range(axes: Axes, held: dict[str, float], number: int, scale: LogScale) -> None:
    """Draw what can hold variance + epsilon, its subnormal part lighter; caps where it ends inside the plot."""
    low, high = scale.least, scale.limits[1]
    smallest, normal, largest = (scale.within(held[key]) for key in ("smallest", "normal", "max"))
    if normal > smallest:
        _block(axes, (smallest, normal), _BAR, number, facecolor=INK, alpha=0.07, label="subnormal")
        if normal > low and smallest < high:
            axes.plot([normal, normal], [number + 0.1, number + 0.9], color=INK, linewidth=0.8, linestyle=(0, (2, 2)))
    _block(axes, (normal, largest), _BAR, number, facecolor=INK, alpha=0.17, label="range")
    for end in (smallest, largest):
        if low < end < high:
            axes.plot([end, end], [number + 0.06, number + 0.94], color=INK, linewidth=2.4, solid_capstyle="butt")


def _noise(axes: Axes, noise: dict[str, float | None], number: int, scale: LogScale) -> None:
    """Draw the noise up to the median row, and from there to the worst; an arrow where all of it is off the plot."""
    typical, worst = noise["p50"], noise["max"]
    if typical is None or worst is None or not worst > 0:
        return
    low, high = scale.least, scale.limits[1]
    left, right = scale.within(typical), scale.within(worst)
    if right <= low or left >= high:
        pointing, x = ("<", max(low, scale.share(0.012))) if right <= low else (">", scale.share(0.988))
        axes.plot([x], [number + sum(_NOISE) / 2], marker=pointing, markersize=5, color=VERMILION, linestyle="none")
    _block(
        axes,
        (low, left),
        _NOISE,
        number,
        facecolor=VERMILION,
        alpha=0.33,
        linewidth=0,
        label="below the noise",
    )
    if low < right and left < high:
        # a band of no width would not be seen
        _block(axes, (max(low, min(left, right - _SEEN)), right), _NOISE, number, label="noise", **_NOISE_STYLE)


def _safe(axes: Axes, lane: Lane, number: int, scale: LogScale) -> None:
    """Draw the window of safe epsilons, the one to use, and an epsilon that is held as 0."""
    advice, y = lane.result.recommendation, number + sum(_SAFE) / 2
    if advice.lower is not None and advice.upper is not None:
        left = scale.least if wording.opens_below(advice.lower) else scale.within(advice.lower)
        # a window of one epsilon would not be seen
        ends = (left, scale.within(advice.upper))
        ends = ends if advice.lower < advice.upper else (left - 2 * _SEEN, left + 2 * _SEEN)
        _block(axes, ends, _SAFE, number, facecolor=GREEN, label="safe")
    if advice.epsilon is not None:
        fill = INK if advice.verified else "none"
        marker: Look = {"marker": "D", "markersize": 7, "markerfacecolor": fill, "markeredgecolor": INK}
        axes.plot([scale.at(advice.epsilon)], [y], linestyle="none", label="use", zorder=5, **marker)
    if lane.result.epsilon_class == "zero":
        style: Look = {"marker": "X", "markersize": 8, "color": VERMILION, "markeredgewidth": 0}
        axes.plot([scale.at(0.0)], [number + 0.5], linestyle="none", zorder=5, label="held as 0", **style)


def _verdict(axes: Axes, lane: Lane, number: int) -> None:
    """Write the verdict in its colour, what to use, and the window."""
    paint, beside = VERDICTS[lane.result.verdict], axes.get_yaxis_transform()
    look: Look = {"facecolor": paint.fill, "alpha": paint.alpha, "transform": beside, "clip_on": False}
    block(axes, (1.02, 1.12), (number + 0.12, number + 0.88), label=paint.word, **look)
    middle: Look = {"va": "center", "transform": beside}
    axes.text(1.07, number + 0.5, paint.word, ha="center", color=paint.text, fontweight="bold", **middle)
    axes.text(1.14, number + 0.32, lane.use, fontsize=TEXT, fontweight="bold", **middle)
    axes.text(1.14, number + 0.72, lane.facts, fontsize=SMALL, **middle)


@dataclass(frozen=True, slots=True)
class Legend:
    """Explains the marks: a swatch and a word each, in two lines at the foot of a figure of that size in inches."""

    figure: Canvas
    size: tuple[float, float]

    def draw(self) -> None:
        """Draw it."""
        self._swatch(0.1, 0, "variances of the rows", facecolor=BLUE)
        self._swatch(2.15, 0, "noise of rounding: to the median, the worst row", **_NOISE_STYLE)
        self._swatch(5.4, 0, "can be held", facecolor=INK, alpha=0.17)
        self._swatch(6.85, 0, "as a subnormal", facecolor=INK, alpha=0.07)
        self._line(0.1, "the model's epsilon", across=True, color=INK, linewidth=1.6)
        self._swatch(2.15, 1, "safe epsilons", facecolor=GREEN)
        self._line(3.7, "the one to use (hollow: not verified)", marker="D", markersize=7, color=INK)
        held: Look = {"marker": "X", "markersize": 8, "color": VERMILION, "markeredgewidth": 0}
        self._line(6.85, "epsilon held as 0", **held)

    def _at(self, x: float, line: float) -> tuple[float, float]:
        return x / self.size[0], (0.42 - 0.25 * line) / self.size[1]

    def _swatch(self, x: float, line: int, word: str, **look: Any) -> None:
        from matplotlib.patches import Rectangle

        size = 0.25 / self.size[0], 0.13 / self.size[1]
        look = {"linewidth": 0, "transform": self.figure.transSubfigure, **look}
        self.figure.add_artist(Rectangle(self._at(x, line + 0.26), *size, **look))
        self._word(x, line, word)

    def _line(self, x: float, word: str, *, across: bool = False, **look: Any) -> None:
        from matplotlib.lines import Line2D

        ends = [self._at(x + shift, 1) for shift in ((0.0, 0.25) if across else (0.125,))]
        look = {"transform": self.figure.transSubfigure, **look}
        self.figure.add_artist(Line2D([end[0] for end in ends], [end[1] for end in ends], **look))
        self._word(x, 1, word)

    def _word(self, x: float, line: int, word: str) -> None:
        self.figure.text(*self._at(x + 0.33, line), word, va="center", fontsize=SMALL)
