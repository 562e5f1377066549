"""Curves of a sweep in characters: error against epsilon, a curve a format and kernel."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle

from .. import wording
from ..errors import LnauditError
from ..pictures import report_extra
from ..report import Document, Point, SweepReport, SweptResult, SweptSite
from ..wording import counted
from .style import DEFAULT_STYLE, Style
from .sweep_table import column_name

_HEIGHT = 17  # lines
_MARGIN = 12  # columns that uniplot needs for the numbers of the axis
_NARROWEST, _WIDEST = 20, 88  # columns of the plot itself
_EASILY_SEEN = 8  # characters
MARKS = "+x*o#%@&"  # what points are in plain ASCII
_SIDE = "\N{BOX DRAWINGS LIGHT VERTICAL}"  # what stands beside the curves
_FRAME = str.maketrans("┌┐└┘─│┬┴├┤┼", "++++-|+++++")


@dataclass(frozen=True, slots=True)
class _Curve:
    """The name of an emulation, its points (epsilon, error), and what they are in plain ASCII."""

    name: str
    points: list[tuple[float, float]]
    mark: str


def plot_lines(document: Document, style: Style = DEFAULT_STYLE) -> str:
    """Draw the error of the worst row against epsilon on log axes, a plot a site of a sweep.

    Points whose epsilon or error is 0, or that lost a row, have no place on log axes: below a plot they are told. A
    curve that would lie under others is drawn on top of them. Maps have no curves.

    Raises
    ------
    LnauditError
        If the extra `report` is not installed, or the document is no sweep.
    """
    if not isinstance(document, SweepReport):
        raise LnauditError("draws the curves of a sweep", "lnaudit sweep --plot", "--plot")
    plots = [_plot(site, style) for site in document.sites]
    if document.maps:
        maps = counted(len(document.maps), "map")
        plots.append("\n".join([*style.wrap(f"{maps} without curves: --report FILE.html draws maps"), ""]))
    return "\n".join(plots)


def _plot(site: SweptSite, style: Style) -> str:
    name = style.safe(site.name)
    if not site.judged:
        return "\n".join([*style.wrap(f"{name}: no row is finite, so there is no curve"), ""])
    named = ((column_name(result, site), _points(result)) for result in site.results)
    seen = ((name, points) for name, points in named if points)
    curves = [_Curve(name, points, mark) for (name, points), mark in zip(seen, cycle(MARKS), strict=False)]
    lines = style.wrap(f"{name}: error of the worst row against epsilon")
    if curves:
        lines += _drawn(curves, style)
    for why, results in _not_drawn(site).items():
        lines += style.wrap(f"not drawn: {', '.join(results)}: {why}", "  ", "    ")
    return "\n".join([*lines, ""])


def _points(result: SweptResult) -> list[tuple[float, float]]:
    """Return (epsilon, error) where both have a logarithm and no row is lost."""
    return [(point.epsilon, point.error["max"] or 0) for point in result.points if not _why_not(point)]


def _why_not(point: Point) -> str:
    """Say why a point has no place on log axes, "" if it has one."""
    error = point.error["max"]
    if point.nonfinite_rows or (error is not None and not math.isfinite(error)):
        return "rows are NaN/Inf"
    if not error:
        return "no error"
    return "" if point.epsilon > 0 else "no place on a log axis"


def _not_drawn(site: SweptSite) -> dict[str, list[str]]:
    """Return why points are not drawn and at which epsilons, each with the emulations of which that is true."""
    found: dict[str, list[str]] = {}
    for result in site.results:
        reasons: dict[str, list[str]] = {}
        for point in result.points:
            if why := _why_not(point):
                reasons.setdefault(why, []).append(wording.epsilon(point.epsilon))
        for why, epsilons in reasons.items():
            several = f"{len(epsilons)} epsilons from {epsilons[0]} to {epsilons[-1]}"
            at = several if len(epsilons) > 1 else f"epsilon {epsilons[0]}"
            found.setdefault(f"{at}: {why}", []).append(column_name(result, site))
    return found


def _drawn(curves: Sequence[_Curve], style: Style) -> list[str]:
    # blocks of several curves are told apart by colour alone
    plain = style.ascii or not style.curves or (len(curves) > 1 and not style.color)
    # what is drawn later lies on top
    seen = _seen(curves, style)
    order = sorted(curves, key=lambda curve: seen[curve.mark] < _EASILY_SEEN)
    seen = _seen(order, style)
    text = _text(order, style, plain=plain)
    if style.ascii or not style.curves:
        text = text.translate(_FRAME)
    under = [curve.name for curve in curves if seen[curve.mark] < min(_EASILY_SEEN, len(curve.points))]
    told = style.wrap(f"under other curves, all or most of it: {', '.join(under)}", "  ", "    ") if under else []
    return [*(line.rstrip() for line in text.splitlines()), *told]


def _seen(curves: Sequence[_Curve], style: Style) -> Counter[str]:
    """Count the characters of each curve that no later one covers."""
    lines = (line for line in _text(curves, style, plain=True).splitlines() if line.startswith(_SIDE))
    return Counter(mark for line in lines for mark in line[1 : line.rindex(_SIDE)])


def _text(curves: Sequence[_Curve], style: Style, *, plain: bool) -> str:
    return _uniplot()(
        xs=[[epsilon for epsilon, _ in curve.points] for curve in curves],
        ys=[[error for _, error in curve.points] for curve in curves],
        legend_labels=[curve.name for curve in curves],
        lines=[len(curve.points) > 1 for curve in curves],
        width=max(_NARROWEST, min(_WIDEST, style.columns - _MARGIN)),
        height=_HEIGHT,
        x_as_log=True,
        y_as_log=True,
        color=style.color and len(curves) > 1,
        character_set="ascii" if plain else "block",
        force_ascii_characters=[curve.mark for curve in curves],
    )


def _uniplot() -> Callable[..., str]:
    with report_extra("--plot"):
        from uniplot import plot_to_string
    return plot_to_string
