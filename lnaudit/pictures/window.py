"""The window of a site: the variances of its rows, and below them where each emulation lets epsilon be.

A histogram of the variances q on a log axis. Under it, on the same axis, a lane for each format and kernel: what the
kernel can hold, the noise that rounding adds to the rows, the epsilons that are safe, the one to use. The epsilon of
the model goes through all of them.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from .. import wording
from ..report import Result, SiteReport
from .lane import HIGH, Lane, Legend, draw_lane, lanes_of
from .picture import Picture, Table
from .scale import LogScale
from .style import BLUE, INK, SMALL, VERDICTS, axes_at, emulation_labels
from .text import site_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .picture import Canvas

_WIDTH, _LEFT, _PLOT = 8.8, 1.62, 5.3  # inches: all, the names of the lanes, what is plotted
_TOP, _HISTOGRAM, _GAP, _BOTTOM = 0.5, 1.15, 0.08, 1.1
_REACH = 1e8  # ends of ranges and noise so far from the rows and the epsilons are not worth decades of empty axis
_Octave = tuple[int, int]  # the power of two that it begins with, rows
_LARGEST = sys.float_info.max


def window_picture(site: SiteReport) -> Picture | None:
    """Return the picture of a site; None where no row has a variance above 0 that float64 holds."""
    octaves = _octaves(site)
    if not octaves:
        return None
    lanes = lanes_of(site)
    height = _TOP + _HISTOGRAM + _GAP + max(1, len(lanes)) * HIGH + _BOTTOM
    plot = _Plot(site, octaves, lanes, _scale(site, octaves), (_WIDTH, height))
    return Picture(
        name="window",
        title=f"{site_title(site)}: where epsilon belongs",
        description=_description(site),
        table=_table(site, octaves),
        draw=partial(_draw, plot),
        size=plot.size,
    )


@dataclass(frozen=True, slots=True)
class _Plot:
    site: SiteReport
    octaves: list[_Octave]
    lanes: list[Lane]
    scale: LogScale
    size: tuple[float, float]


def _octaves(site: SiteReport) -> list[_Octave]:
    """Return the bins of variances put together to powers of two."""
    rows: dict[int, int] = {}
    for lower, count in zip(site.variance_bins["lower"], site.variance_bins["rows"], strict=True):
        if 0 < lower < math.inf:
            octave = math.frexp(lower)[1] - 1
            rows[octave] = rows.get(octave, 0) + count
    return sorted(rows.items())


def _ends_of(octaves: list[_Octave]) -> tuple[float, float]:
    """Return the lower end of the first and the upper end of the last; 2^1024 is no float64."""
    last = octaves[-1][0] + 1
    return math.ldexp(1.0, octaves[0][0]), math.ldexp(1.0, last) if last < sys.float_info.max_exp else _LARGEST


@dataclass(frozen=True, slots=True)
class _LeftOut:
    """Rows that have no place on the axis: from and to which variance, what to say of it, how many."""

    lower: str
    upper: str
    words: str
    rows: int


def _left_out(site: SiteReport) -> list[_LeftOut]:
    """Return the finite rows that have no place on a log axis, by what their variance is."""
    bins = site.variance_bins
    found = [_LeftOut("0", "0", "q = 0", int(site.input.get("constant_rows") or 0))]
    for lower, upper, rows in zip(bins["lower"], bins["upper"], bins["rows"], strict=True):
        if lower == 0:
            found.append(_LeftOut("0", wording.magnitude(upper), f"q < {wording.magnitude(upper)}", rows))
        elif not lower < math.inf:
            most = wording.magnitude(_LARGEST)
            found.append(_LeftOut(most, "inf", f"q > {most}", rows))
    return [entry for entry in found if entry.rows]


def _scale(site: SiteReport, octaves: list[_Octave]) -> LogScale:
    """Return the axis: the rows and all epsilons are on it, ends of ranges and noise where they are not far away."""
    recommended = [result.recommendation for result in site.results]
    core = [*_ends_of(octaves), site.epsilon, *(r.epsilon for r in recommended if r.epsilon is not None)]
    positive = [value for value in core if 0 < value < math.inf]
    low, high = min(positive), max(positive)
    for recommendation in recommended:
        ends = (recommendation.lower, recommendation.upper)
        positive += [end for end in ends if end is not None and low / 1e3 <= end <= high * 1e3]
    for result in site.results:
        marks = (*result.range.values(), *result.noise.values())
        positive += [mark for mark in marks if mark is not None and low / _REACH <= mark <= high * _REACH and mark > 0]
    # half a decade of air, so that nothing ends at the edge as if it were cut
    lost = any(r.epsilon_class == "zero" for r in site.results) or site.epsilon == 0
    return LogScale.over([min(positive) / 2 or min(positive), min(max(positive) * 2, _LARGEST)], zero=lost)


def _draw(plot: _Plot, figure: Canvas) -> None:
    size, lanes = plot.size, max(1, len(plot.lanes))
    histogram = axes_at(figure, size, (_LEFT, size[1] - _TOP - _HISTOGRAM, _PLOT, _HISTOGRAM))
    below = axes_at(figure, size, (_LEFT, _BOTTOM, _PLOT, lanes * HIGH))
    _draw_histogram(plot, histogram)
    below.set_ylim(lanes, 0)
    plot.scale.on(below, "x", 10)
    below.set_yticks([])
    below.spines["left"].set_visible(False)
    below.set_xlabel("variance q of a row, and what is added to it: noise, epsilon")
    below.axvspan(*map(plot.scale.at, _ends_of(plot.octaves)), color=BLUE, alpha=0.2, linewidth=0, label="variances")
    for number, lane in enumerate(plot.lanes):
        draw_lane(below, lane, number, plot.scale)
    for axes in (histogram, below):
        axes.axvline(plot.scale.at(plot.site.epsilon), color=INK, linewidth=1.6, label="epsilon", zorder=4)
    Legend(figure, size).draw()


def _draw_histogram(plot: _Plot, axes: Axes) -> None:
    edges, counts = [plot.octaves[0][0]], []
    for octave, rows in plot.octaves:
        if octave > edges[-1]:
            counts.append(0)
            edges.append(octave)
        counts.append(rows)
        edges.append(octave + 1)
    places = [octave * math.log10(2) for octave in edges]
    axes.stairs(counts, places, baseline=0.6, fill=True, color=BLUE, label="rows")
    plot.scale.on(axes, "x")
    axes.set_xticks([])
    axes.set_yscale("log")
    axes.set_ylim(0.6, max(2, max(counts)) * 1.6)
    decades = range(0, len(str(max(counts))), max(1, len(str(max(counts))) // 3))
    axes.set_yticks([10**k for k in decades], [wording.count(10**k) for k in decades])
    axes.set_yticks([], minor=True)
    axes.set_ylabel("rows")
    above = axes.get_xaxis_transform()
    epsilon = plot.scale.at(plot.site.epsilon)
    text = f"epsilon {wording.epsilon(plot.site.epsilon)}"
    axes.text(epsilon, 1.03, text, transform=above, ha="center", va="bottom", fontweight="bold")
    variance = f"q of {wording.counted(sum(counts), 'row')}: {_ends(plot.site)}"
    axes.text((places[0] + places[-1]) / 2, 1.22, variance, transform=above, ha="center", va="bottom", fontsize=SMALL)
    for number, entry in enumerate(_left_out(plot.site)):
        note = f"{wording.counted(entry.rows, 'row')}: {entry.words}"
        axes.text(1.02, 0.85 - 0.2 * number, note, transform=axes.transAxes, fontsize=SMALL, va="center")


def _ends(site: SiteReport) -> str:
    """Write the least and the largest variance on the axis: exactly, or as ends of bins where others are off it."""
    bins = site.variance_bins
    drawn = [ends for ends in zip(bins["lower"], bins["upper"], strict=True) if 0 < ends[0] < math.inf]
    least = site.variance["min"] if bins["lower"][0] > 0 else drawn[0][0]
    most = site.variance["max"] if bins["lower"][-1] < math.inf else min(drawn[-1][1], _LARGEST)
    return f"{wording.magnitude(least)} to {wording.magnitude(most)}"


def _description(site: SiteReport) -> str:
    epsilon = wording.epsilon(site.epsilon)
    said, labels = [], emulation_labels((r.format, r.kernel) for r in site.results)
    for verdict, paint in VERDICTS.items():
        names = [labels[r.format, r.kernel] for r in site.results if r.verdict == verdict]
        if names:
            said.append(f"{paint.word} in {wording.joined(names)}")
    return (
        f"Variances q of the rows, {_ends(site)}, and for each format and kernel the noise of rounding, the safe "
        f"epsilons and what it can hold. The model's epsilon is {epsilon}: {'; '.join(said) or 'nothing was judged'}."
    )


def _table(site: SiteReport, octaves: list[_Octave]) -> Table:
    """A row for each bar and band, each named by what it is."""
    rows = [("rows", "", *map(wording.six, _ends_of([octave])), wording.count(octave[1])) for octave in octaves]
    rows += [("rows off the axis", "", off.lower, off.upper, wording.count(off.rows)) for off in _left_out(site)]
    own = wording.epsilon(site.epsilon)
    rows.append(("model's epsilon", "", own, own, site.epsilon_source))
    for result in site.results:
        rows += _lane_rows(result)
    return Table(headings=("what", "format and kernel", "from", "to", "rows, or more"), rows=tuple(rows))


def _lane_rows(result: Result) -> list[tuple[str, str, str, str, str]]:
    name = wording.printable(f"{result.format} {result.kernel}")
    held, noise, advice = result.range, result.noise, result.recommendation
    stored = wording.epsilon(result.epsilon_stored)
    normal = f"normal from {wording.magnitude(held['normal'])}"
    lower, upper = wording.epsilon(advice.lower), wording.epsilon(advice.upper)
    use = f"use: {advice.use}; window: {wording.epsilon_range(advice.lower, advice.upper)}"
    return [
        ("verdict", name, "", "", VERDICTS[result.verdict].word),
        ("can be held", name, wording.magnitude(held["smallest"]), wording.magnitude(held["max"]), normal),
        ("noise, median to worst row", name, wording.magnitude(noise["p50"]), wording.magnitude(noise["max"]), ""),
        ("safe epsilons", name, lower, upper, use),
        ("epsilon as held", name, stored, stored, result.epsilon_class),
    ]
