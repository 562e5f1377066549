"""Log axes on which 0 and what is not finite have places of their own, labelled, beside the numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .. import wording

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAST, _MOST = -270, 270  # decades that float64 holds, with room for the places beside them
_STEPS = (1, 2, 3, 5, 10, 20, 50, 100)


@dataclass(frozen=True, slots=True)
class LogScale:
    """Decades from `low` to `high`, below them a place for 0, above them one for NaN and Inf, if they are needed."""

    low: int
    high: int
    zero: bool = False
    lost: bool = False

    @classmethod
    def over(cls, values: Iterable[float | None], *, zero: bool = False, lost: bool = False) -> LogScale:
        """Return the scale that holds values; those that are not finite, and None, need the place for what is lost."""
        given = list(values)
        exponents = [math.log10(v) for v in given if v is not None and 0 < v < math.inf] or [0.0]
        low, high = math.floor(min(exponents) + 1e-9), math.ceil(max(exponents) - 1e-9)
        low = min(low, high - 1)
        return cls(
            min(max(low, _LEAST), _MOST - 1),
            max(min(high, _MOST), _LEAST + 1),
            zero or any(v == 0 for v in given),
            lost or any(v is None or not math.isfinite(v) for v in given),
        )

    @property
    def _slot(self) -> float:
        """Decades from the last number to the place of 0."""
        return min(max(0.45, 0.09 * (self.high - self.low)), 20.0)

    @property
    def limits(self) -> tuple[float, float]:
        """The ends of the axis."""
        margin = 0.25 * self._slot
        low = self.low - (1.5 * self._slot if self.zero else margin)
        high = self.high + (1.5 * self._slot if self.lost else margin)
        return float(10.0**low), float(10.0**high)

    @property
    def least(self) -> float:
        """Where the numbers begin: right of the place of 0, if that is there, else the end of the axis."""
        return float(10.0**self.low) if self.zero else self.limits[0]

    def share(self, part: float) -> float:
        """Return what stands at a part of the way from the left end of the axis to the right one."""
        low, high = map(math.log10, self.limits)
        return float(10.0 ** (low + part * (high - low)))

    def at(self, value: float | None) -> float:
        """Return where a value stands on the axis: what the scale does not reach, at its end."""
        if value is None or not math.isfinite(value):
            return float(10.0 ** (self.high + self._slot))
        if value <= 0:
            return float(10.0 ** (self.low - self._slot))
        return min(max(value, 10.0**self.low), 10.0**self.high)

    def ticks(self, most: int) -> tuple[list[float], list[str]]:
        """Return at most so many decades, and the places of their own, with their labels."""
        decades = range(self.low, self.high + 1)
        step = next((s for s in _STEPS if len(range(-(-self.low // s) * s, self.high + 1, s)) <= most), _STEPS[-1])
        marked = [k for k in decades if k % step == 0] or [self.low]
        positions, labels = [10.0**k for k in marked], [wording.epsilon(10.0**k) for k in marked]
        if self.zero:
            positions, labels = [self.at(0.0), *positions], ["0", *labels]
        if self.lost:
            positions, labels = [*positions, self.at(None)], [*labels, "NaN/Inf"]
        return positions, labels

    def on(self, axes: Axes, axis: str, most: int = 9, *, labelled: bool = True) -> None:
        """Make it the x or the y axis of axes."""
        positions, labels = self.ticks(most)
        if axis == "x":
            axes.set_xscale("log")
            axes.set_xlim(*self.limits)
            axes.set_xticks(positions, labels if labelled else [""] * len(labels))
            axes.set_xticks([], minor=True)
        else:
            axes.set_yscale("log")
            axes.set_ylim(*self.limits)
            axes.set_yticks(positions, labels)
            axes.set_yticks([], minor=True)
        self._breaks(axes, axis)

    def _breaks(self, axes: Axes, axis: str) -> None:
        """Mark where the axis stops to be one."""
        line = axes.axvline if axis == "x" else axes.axhline
        places = [self.low - self._slot / 2] * self.zero + [self.high + self._slot / 2] * self.lost
        for place in places:
            line(10.0**place, linewidth=0.6, linestyle=(0, (1, 2)), color=axes.spines["left"].get_edgecolor())
