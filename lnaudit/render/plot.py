"""Curves of a sweep in characters: error against epsilon, a curve a format and kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..errors import LnauditError
from ..pictures import report_extra
from ..report import Document, SweepReport, SweptResult, SweptSite
from .style import DEFAULT_STYLE, Style
from .sweep_table import column_name

_HEIGHT = 17  # lines
_MARGIN = 12  # columns that uniplot needs for the numbers of the axis
_NARROWEST, _WIDEST = 20, 88  # columns of the plot itself
MARKS = "+x*o#%@&"  # what points are in plain ASCII
_FRAME = str.maketrans("┌┐└┘─│┬┴├┤┼", "++++-|+++++")


def plot_lines(document: Document, style: Style = DEFAULT_STYLE) -> str:
    """Draw the error of the worst row against epsilon on log axes, a plot a site of a sweep.

    Points whose epsilon or error is 0, or that lost a row, have no place on log axes and are left out.

    Raises
    ------
    LnauditError
        If the extra `report` is not installed, or the document is no sweep.
    """
    if not isinstance(document, SweepReport):
        raise LnauditError("draws the curves of a sweep", "lnaudit sweep --plot", "--plot")
    return "\n".join(_plot(site, style) for site in document.sites)


def _plot(site: SweptSite, style: Style) -> str:
    curves = [(result, _curve(result)) for result in site.results]
    drawn = [(column_name(result, site), points) for result, points in curves if points]
    name = style.safe(site.name)
    absent = [column_name(result, site) for result, points in curves if not points]
    lines = style.wrap(f"{name}: error of the worst row against epsilon")
    if drawn:
        lines += _drawn(drawn, style)
    if absent:
        why = "every row is lost or exact, or epsilon is 0"
        lines += style.wrap(f"not drawn: {', '.join(absent)}: {why}", "  ", "    ")
    return "\n".join([*lines, ""])


def _curve(result: SweptResult) -> list[tuple[float, float]]:
    """Return (epsilon, error) where both have a logarithm and no row is lost."""
    pairs = ((p.epsilon, p.error["max"]) for p in result.points if not p.nonfinite_rows)
    return [(epsilon, error) for epsilon, error in pairs if epsilon > 0 and error and math.isfinite(error)]


def _drawn(curves: Sequence[tuple[str, list[tuple[float, float]]]], style: Style) -> list[str]:
    # blocks of several curves are told apart by colour alone
    plain = style.ascii or not style.curves or (len(curves) > 1 and not style.color)
    text = _uniplot()(
        xs=[[epsilon for epsilon, _ in points] for _, points in curves],
        ys=[[error for _, error in points] for _, points in curves],
        legend_labels=[name for name, _ in curves],
        lines=[len(points) > 1 for _, points in curves],
        width=max(_NARROWEST, min(_WIDEST, style.columns - _MARGIN)),
        height=_HEIGHT,
        x_as_log=True,
        y_as_log=True,
        color=style.color and len(curves) > 1,
        character_set="ascii" if plain else "block",
        force_ascii_characters=list(MARKS),
    )
    if style.ascii or not style.curves:
        text = text.translate(_FRAME)
    return [line.rstrip() for line in text.splitlines()]


def _uniplot() -> Callable[..., str]:
    with report_extra("--plot"):
        from uniplot import plot_to_string
    return plot_to_string
