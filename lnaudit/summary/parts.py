"""The mergeable parts of a Summary: extremes with their rows, log histograms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
DENSE = 4  # a histogram with fewer bins than this times its numbers is counted in an array of all its bins
MOST_WAITING = 1 << 14  # bins of parts that wait to be added up


def chosen(values: Array, where: Array) -> Array:
    """Return the values of some rows; where they are all, the same array."""
    return values if where.all() else values[where]


def larger(values: Array, rows: Array, others: Array, other_rows: Array) -> tuple[Array, Array]:
    """Return the larger of two values each, with its row; ties go to the smaller row, a row -1 is none."""
    better = (other_rows >= 0) & ((rows < 0) | (others > values) | ((others == values) & (other_rows < rows)))
    return np.where(better, others, values), np.where(better, other_rows, rows)


class Extremes:
    """Largest values by name, each with the row that attains it; ties go to the smallest row, NaN never counts."""

    def __init__(self) -> None:
        self._best: dict[str, tuple[float, int, float]] = {}

    def see(
        self, name: str, values: Array, index: Array, where: Array | None = None, beside: Array | None = None
    ) -> None:
        """Take in the values of rows, those of the mask `where` if given; `beside` is kept of the row that wins."""
        if where is not None and where.all():
            where = None
        if where is None and len(values):
            at = int(values.argmax())
            if not np.isnan(values[at]):  # a NaN would have come first
                self._put(name, (float(values[at]), int(index[at]), 0.0 if beside is None else float(beside[at])))
                return
        valid = ~np.isnan(values) if where is None else where & ~np.isnan(values)
        if not valid.any():
            return
        chosen = np.where(valid, values, -np.inf)
        at = int(chosen.argmax())
        if not valid[at]:  # only -inf values: argmax may have met a masked row first
            at = int(np.flatnonzero(valid)[0])
        self._put(name, (float(values[at]), int(index[at]), 0.0 if beside is None else float(beside[at])))

    def see_first(self, name: str, index: Array, where: Array | None = None) -> None:
        """Note the first of some rows, whose indices ascend."""
        at = 0 if where is None else int(where.argmax()) if len(where) else -1
        if len(index) and (where is None or where[at]):
            self._put(name, (0.0, int(index[at]), 0.0))

    def take(self, names: tuple[str, ...], values: Array, rows: Array) -> None:
        """Take in the largest values by name, with their rows; a row -1 is none."""
        for name, value, row in zip(names, values.tolist(), rows.tolist(), strict=True):
            if row >= 0:
                self._put(name, (value, row, 0.0))

    def _put(self, name: str, seen: tuple[float, int, float]) -> None:
        best = self._best.get(name)
        if best is None or seen[0] > best[0] or (seen[0] == best[0] and seen[1] < best[1]):
            self._best[name] = seen

    def merge(self, other: Extremes) -> None:
        """Take in the extremes of other rows."""
        for name, seen in other._best.items():
            self._put(name, seen)

    def state(self) -> dict[str, tuple[float, int, float]]:
        """Return by name the value, its row and what was kept beside it."""
        return dict(self._best)

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Extremes:
        """Return the extremes of a state."""
        extremes = cls()
        extremes._best = {name: (float(value), int(row), float(aside)) for name, (value, row, aside) in state.items()}
        return extremes

    def value(self, name: str) -> float | None:
        """Return the largest value, None where no row had one."""
        return self._best[name][0] if name in self._best else None

    def row(self, name: str) -> int | None:
        """Return the row that attains it."""
        return self._best[name][1] if name in self._best else None

    def beside(self, name: str) -> float | None:
        """Return what was kept beside the largest value."""
        return self._best[name][2] if name in self._best else None

    def names(self, prefix: str = "") -> list[str]:
        """Return the names that begin with a prefix, sorted."""
        return sorted(name for name in self._best if name.startswith(prefix))


class Histogram:
    """A log histogram of non-negative numbers with exact extremes: 2^bits bins for each power of two.

    The quantile p of n numbers is the ceil(p n)-th smallest, read as its bin's centre clipped to [min, max].
    """

    def __init__(self, bits: int = 6) -> None:
        self._shift = 52 - bits
        # (keys of bins, ascending; how many numbers are in each), to be added up when they are asked for
        self._parts: list[tuple[Array, Array]] = []
        self._waiting = 0
        self.min = math.inf
        self.max = -math.inf

    def see(self, values: Array) -> None:
        """Take in numbers; NaN never counts."""
        if not len(values):
            return
        low, high = float(values.min()), float(values.max())
        if not low > 0 or math.isnan(high):
            values = np.abs(values[~np.isnan(values)])
            if not len(values):
                return
            low, high = float(values.min()), float(values.max())
        self.min, self.max = min(self.min, low), max(self.max, high)
        keys = values.view(np.int64) >> self._shift
        first = np.array(low).view(np.int64) >> self._shift
        spread = int(np.array(high).view(np.int64) >> self._shift) - int(first) + 1
        if spread <= DENSE * len(keys):
            counts = np.bincount(keys - first)
            filled = np.flatnonzero(counts)
            self._add(filled + first, counts[filled])
        else:
            self._add(*np.unique(keys, return_counts=True))

    def merge(self, other: Histogram) -> None:
        """Take in the numbers of another histogram."""
        for part in other._parts:
            self._add(*part)
        self.min, self.max = min(self.min, other.min), max(self.max, other.max)

    def add(self, keys: Array, counts: Array, smallest: float, largest: float) -> None:
        """Take in numbers that are counted by bin: numbers of bins, ascending, and how many are in each."""
        if len(keys):
            self._add(keys, counts)
            self.min, self.max = min(self.min, smallest), max(self.max, largest)

    def _add(self, keys: Array, counts: Array) -> None:
        self._parts.append((keys, counts))
        self._waiting += len(keys)
        if self._waiting > len(self._parts[0][0]) + MOST_WAITING:
            self._bins()

    def _bins(self) -> tuple[Array, Array]:
        """Add up the parts; keys ascending."""
        if not self._parts:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        if len(self._parts) > 1:
            self._parts = [self._added_up()]
            self._waiting = len(self._parts[0][0])
        return self._parts[0]

    def _added_up(self) -> tuple[Array, Array]:
        first, last = (int(end(part[0][at] for part in self._parts)) for end, at in ((min, 0), (max, -1)))
        if last - first < DENSE * self._waiting:
            dense = np.zeros(last - first + 1, np.int64)
            for keys, counts in self._parts:
                dense[keys - first] += counts
            filled = np.flatnonzero(dense)
            return filled + first, dense[filled]
        keys, where = np.unique(np.concatenate([part[0] for part in self._parts]), return_inverse=True)
        counts = np.zeros(len(keys), np.int64)
        np.add.at(counts, where, np.concatenate([part[1] for part in self._parts]))
        return keys, counts

    def state(self) -> dict[str, Any]:
        """Return the bins with what is in them, and the extremes."""
        keys, counts = self._bins()
        return {"bits": 52 - self._shift, "min": self.min, "max": self.max, "keys": keys, "counts": counts}

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Histogram:
        """Return the histogram of a state."""
        histogram = cls(state["bits"])
        histogram.min, histogram.max = float(state["min"]), float(state["max"])
        if state["keys"]:
            histogram._add(np.array(state["keys"], np.int64), np.array(state["counts"], np.int64))
        return histogram

    @property
    def count(self) -> int:
        """How many numbers were taken in."""
        return int(self._bins()[1].sum())

    def centres(self) -> tuple[Array, Array]:
        """Return the centres of the bins, ascending and clipped to [min, max], and how many numbers are in each."""
        keys, counts = self._bins()
        return self._centres(keys), counts

    def bins(self, bits: int) -> dict[str, list[Any]]:
        """Return the bins that are not empty, of fewer bits: their lower and upper ends, and how many are in each."""
        keys, counts = self._bins()
        coarse, first = np.unique(keys >> (52 - self._shift - bits), return_index=True)
        amounts = np.add.reduceat(counts, first) if len(first) else counts
        lower, upper = ((coarse + i << (52 - bits)).view(np.float64) for i in (0, 1))
        ends = lower.tolist(), np.where(np.isnan(upper), np.inf, upper).tolist()  # of the bin of Inf there is no end
        return dict(zip(("lower", "upper", "rows"), (*ends, amounts.tolist()), strict=True))

    def _centres(self, keys: Array) -> Array:
        low, high = (keys << self._shift).view(np.float64), ((keys + 1) << self._shift).view(np.float64)
        with np.errstate(all="ignore"):
            high -= low
            high /= 2
            high += low
        # the first bin holds 0, the last one Inf
        centre = np.where(np.isfinite(high) & (keys > 0), high, low)
        return np.asarray(np.clip(centre, self.min, self.max, out=centre))

    def quantile(self, p: float) -> float | None:
        """Return the quantile p, None of no numbers."""
        if not self._parts:
            return None
        keys, counts = self._bins()
        upto = np.cumsum(counts)
        at = np.searchsorted(upto, _rank(p, int(upto[-1])))
        return float(self._centres(keys[at : at + 1])[0])

    def quantiles(self, **asked: float) -> dict[str, float | None]:
        """Return quantiles by key; 0 and 1 are the exact extremes."""
        return {key: self._exact(p) if self._parts else None for key, p in asked.items()}

    def _exact(self, p: float) -> float | None:
        return self.min if p == 0 else self.max if p == 1 else self.quantile(p)


def weighted_quantile(values: Array, counts: Array, p: float) -> float:
    """Return the ceil(p n)-th smallest of values that occur `counts` times each."""
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(counts[order])
    return float(values[order][np.searchsorted(upto, _rank(p, int(upto[-1])))])


def _rank(p: float, n: int) -> int:
    return max(1, math.ceil(p * n))
