"""Log axes on which 0 and what is not finite have places of their own, labelled, beside the numbers.

A place on such an axis is a decade, the logarithm to the base 10: the axes themselves are linear in it, so that every
number of float64, the smallest subnormal as the largest, can be drawn with air and places beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import wording

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STEPS = (1, 2, 3, 5, 10, 20, 50, 100)


@dataclass(frozen=True, slots=True)
class LogScale:
    """Decades from `low` to `high`, below them a place for 0, above them one for NaN and Inf, if they are needed."""

    low: int
    high: int
    zero: bool = False
    lost: bool = False

    @classmethod
    def over(cls, values: Iterable[float], *, zero: bool = False, lost: bool = False) -> LogScale:
        """Return the scale that holds values; those that are not finite need the place for what is lost."""
        given = list(values)
        exponents = [math.log10(value) for value in given if 0 < value < math.inf] or [0.0]
        low, high = math.floor(min(exponents) + 1e-9), math.ceil(max(exponents) - 1e-9)
        return cls(
            min(low, high - 1),
            high,
            zero or any(value == 0 for value in given),
            lost or not all(map(math.isfinite, given)),
        )

    @property
    def _slot(self) -> float:
        """Decades from the last number to the place of 0."""
        return max(0.45, 0.09 * (self.high - self.low))

    @property
    def limits(self) -> tuple[float, float]:
        """The ends of the axis."""
        margin = 0.25 * self._slot
        low = self.low - (1.5 * self._slot if self.zero else margin)
        high = self.high + (1.5 * self._slot if self.lost else margin)
        return low, high

    @property
    def least(self) -> float:
        """Where the numbers begin: right of the place of 0, if that is there, else the end of the axis."""
        return float(self.low) if self.zero else self.limits[0]

    def share(self, part: float) -> float:
        """Return what stands at a part of the way from the left end of the axis to the right one."""
        low, high = self.limits
        return low + part * (high - low)

    def at(self, value: float) -> float:
        """Return where a value stands on the axis: what the scale does not reach, at its end."""
        if not math.isfinite(value):
            return self.high + self._slot
        return self.low - self._slot if value <= 0 else min(max(math.log10(value), self.low), self.high)

    def within(self, value: float) -> float:
        """Return where an end of a band stands: what the axis does not reach, at its end."""
        low, high = self.least, self.limits[1]
        if value <= 0:
            return low
        return high if not math.isfinite(value) else min(max(math.log10(value), low), high)

    def ticks(self, most: int) -> tuple[list[float], list[str]]:
        """Return at most so many decades, and the places of their own, with their labels."""
        step = next((s for s in _STEPS if len(range(-(-self.low // s) * s, self.high + 1, s)) <= most), _STEPS[-1])
        marked = [k for k in range(self.low, self.high + 1) if k % step == 0] or [self.low]
        # 1e309 is no float64, nor is 1e-324
        labels = [wording.epsilon(10.0**k) if -307 <= k <= 308 else f"1e{k}" for k in marked]
        positions = list(map(float, marked))
        if self.zero:
            positions, labels = [self.at(0.0), *positions], ["0", *labels]
        if self.lost:
            positions, labels = [*positions, self.at(math.inf)], [*labels, "NaN/Inf"]
        return positions, labels

    def on(self, axes: Axes, axis: str, most: int = 9, *, labelled: bool = True) -> None:
        """Make it the x or the y axis of axes."""
        positions, labels = self.ticks(most)
        if axis == "x":
            axes.set_xlim(*self.limits)
            axes.set_xticks(positions, labels if labelled else [""] * len(labels))
        else:
            axes.set_ylim(*self.limits)
            axes.set_yticks(positions, labels)
        self._breaks(axes, axis)

    def _breaks(self, axes: Axes, axis: str) -> None:
        """Mark where the axis stops to be one."""
        line = axes.axvline if axis == "x" else axes.axhline
        places = [self.low - self._slot / 2] * self.zero + [self.high + self._slot / 2] * self.lost
        for place in places:
            line(place, linewidth=0.6, linestyle=(0, (1, 2)), color=axes.spines["left"].get_edgecolor())
