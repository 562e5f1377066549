"""What the points of a sweep make of the rows in one emulation: one table for all of them, added up at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..engine.rows import InputStatistics, Plan
from ..formats import Format
from .codes import CODES, DEVIATIONS
from .fold_result import GRADIENT_OVERFLOWS, Peaks, gradient_overflows, peaks_of
from .model import NO_TABLE, ResultSummary
from .parts import Histogram, larger

if TYPE_CHECKING:
    from ..engine.numba_epsilon import Verdicts

Array = NDArray[Any]
WORST = ("error", "cast_error")


@dataclass(kw_only=True)
class PointTable:
    """The rows at each point.

    Attributes
    ----------
    counted : tuple of str
        JSON keys of counts, and codes.
    counts : array, (points, keys)
    named : tuple of str
        Extremes by name.
    values, rows : arrays, (points, extremes)
        The largest and its row, -1 where there is none.
    moments : array, (points, 2)
        Sums of all elements of the core and of their squares.
    errors : list of Histogram
        Of the rows' errors.
    """

    counted: tuple[str, ...]
    counts: Array
    named: tuple[str, ...]
    values: Array
    rows: Array
    moments: Array
    errors: list[Histogram]

    def merge(self, other: PointTable) -> None:
        """Take in what the points make of other rows."""
        self.counts += other.counts
        self.values, self.rows = larger(self.values, self.rows, other.values, other.rows)
        self.moments += other.moments
        for mine, theirs in zip(self.errors, other.errors, strict=True):
            mine.merge(theirs)

    def emptied(self) -> PointTable:
        """Return the same table of no rows."""
        return replace(
            self,
            counts=np.zeros_like(self.counts),
            rows=np.full_like(self.rows, -1),
            moments=np.zeros_like(self.moments),
            errors=[Histogram() for _ in self.errors],
        )

    def at(self, number: int) -> ResultSummary:
        """Return the result of one point, as far as it depends on epsilon."""
        result = ResultSummary(NO_TABLE, error=self.errors[number], moments=self.moments[number])
        for key, amount in zip(self.counted, self.counts[number].tolist(), strict=True):
            (result.primary if key in CODES else result.counts)[key] += amount
        result.extremes.take(self.named, self.values[number], self.rows[number])
        return result


def point_table(verdicts: Verdicts, rows: InputStatistics, plan: Plan, peaks: Peaks, fmt: Format) -> PointTable:
    """Fold what the compiled loops found at the points of a plan, as `fold_judged` does with the rows themselves."""
    from ..engine.numba_epsilon import COUNTED

    beyond = tuple(f"{code} beyond" for code in DEVIATIONS)
    gradients = np.array([gradient_overflows(rows, plan, epsilon, peaks, fmt) for epsilon in plan.points])
    failing = verdicts.codes.sum(axis=1, keepdims=True)
    values, found = _peaks(verdicts, rows, peaks)
    return PointTable(
        counted=("failing_rows", *CODES[1:-1], *beyond, *COUNTED, *GRADIENT_OVERFLOWS),
        # what fails only in weight and bias has no primary code
        counts=np.hstack((failing, verdicts.codes[:, :-1], verdicts.far, verdicts.others, gradients)),
        named=(*WORST, *peaks.named),
        values=np.hstack((verdicts.worst.T, values)),
        rows=np.hstack((verdicts.worst_row.T, found)),
        moments=verdicts.moments,
        errors=_histograms(verdicts),
    )


def _histograms(verdicts: Verdicts) -> list[Histogram]:
    histograms = [Histogram() for _ in verdicts.keys]
    columns = (verdicts.keys, verdicts.amounts, verdicts.smallest.tolist(), verdicts.worst[0].tolist())
    for histogram, keys, amounts, smallest, largest in zip(histograms, *columns, strict=True):
        histogram.add(keys, amounts, smallest, largest)
    return histograms


def _peaks(verdicts: Verdicts, rows: InputStatistics, peaks: Peaks) -> tuple[Array, Array]:
    """Return the peaks of rows without a code, shape (points, stages): how large and in which row, -1 without one."""
    shape = (len(verdicts.keys), len(peaks.named))
    values, found = np.zeros(shape), np.full(shape, -1)
    if len(peaks.large):
        values[:], found[:] = peaks_of(peaks, None, rows)
        for point in np.flatnonzero(verdicts.unusual).tolist():
            values[point], found[point] = peaks_of(peaks, ~verdicts.has_code(point, len(rows.index)), rows)
    return values, found
