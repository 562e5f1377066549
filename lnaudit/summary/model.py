"""The fields of a Summary; rules and advice see these, never arrays of rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..engine.rows import Plan
from ..theory import collapse_ratio
from .parts import Extremes, Histogram, larger

if TYPE_CHECKING:
    from .points import PointTable

Array = NDArray[Any]
WITNESS_ROWS = 64


def _of_variances() -> Histogram:
    """Three digits instead of two; more would fill, where variances span decades, more bins than all else together."""
    return Histogram(bits=10)


def _of_ratios() -> Histogram:
    """Ratios crowd around 1, where what is missing is what matters: four digits instead of two."""
    return Histogram(bits=14)


@dataclass
class InputSummary:
    """The rows of the file.

    distortion: for each epsilon of the plan the largest |sqrt(q/(q+eps)) - sqrt(q/(q+eps0))| of a non-constant row.
    """

    distortion: Array
    counts: Counter[str] = field(default_factory=Counter)
    extremes: Extremes = field(default_factory=Extremes)
    first: Extremes = field(default_factory=Extremes)
    variance: Histogram = field(default_factory=_of_variances)
    gain: Histogram = field(default_factory=Histogram)

    def collapse_ratio(self, epsilon: float, **asked: float) -> dict[str, float | None]:
        """Return quantiles of q/(q+epsilon) over rows that are not constant: those of q, with which it grows."""
        quantiles = self.variance.quantiles(**asked)
        return {key: None if q is None else float(collapse_ratio(q, epsilon)) for key, q in quantiles.items()}

    def merge(self, other: InputSummary) -> None:
        """Take in the summary of other rows."""
        self.counts.update(other.counts)
        self.distortion = np.maximum(self.distortion, other.distortion)
        for name in ("extremes", "first", "variance", "gain"):
            getattr(self, name).merge(getattr(other, name))


@dataclass
class EpsilonTable:
    """For each epsilon of a plan (the emulated one first): what it does to rows with finite input and cast.

    failing: rows with NaN or Inf or F above their limit. nonfinite: rows with NaN or Inf. worst: largest F, -1 where
    no row has one; worst_row.
    """

    failing: Array
    nonfinite: Array
    worst: Array
    worst_row: Array

    @classmethod
    def empty(cls, n: int) -> EpsilonTable:
        """Return the table of no rows."""
        return cls(np.zeros(n, np.int64), np.zeros(n, np.int64), np.full(n, -1.0), np.full(n, -1, np.int64))

    def merge(self, other: EpsilonTable) -> None:
        """Take in the table of other rows."""
        self.failing += other.failing
        self.nonfinite += other.nonfinite
        self.worst, self.worst_row = larger(self.worst, self.worst_row, other.worst, other.worst_row)


# of points, which try no other epsilons
NO_TABLE = EpsilonTable.empty(1)


@dataclass
class ResultSummary:
    """One emulation.

    counts: rows and elements by JSON key, and rows of a code beyond five limits; primary: rows by code; operations:
    (code, first bad operation) -> rows. extremes: worst measured values, of each code too; first: first rows of a kind.
    noise: of rows that are not constant, mean((v_hat - v)^2) in units of the file's variances. moments: of a point, sum
    of all elements of the core and of their squares.
    """

    table: EpsilonTable
    counts: Counter[str] = field(default_factory=Counter)
    primary: Counter[str] = field(default_factory=Counter)
    operations: Counter[tuple[str, str]] = field(default_factory=Counter)
    extremes: Extremes = field(default_factory=Extremes)
    first: Extremes = field(default_factory=Extremes)
    error: Histogram = field(default_factory=Histogram)
    noise: Histogram = field(default_factory=Histogram)
    variance_error: Histogram = field(default_factory=Histogram)
    ratio: Histogram = field(default_factory=_of_ratios)
    moments: Array = field(default_factory=lambda: np.zeros(2))

    def merge(self, other: ResultSummary) -> None:
        """Take in the summary of other rows."""
        for name in ("counts", "primary", "operations"):
            getattr(self, name).update(getattr(other, name))
        if other.table is not NO_TABLE:
            self.table.merge(other.table)
        for name in ("extremes", "first", "error", "noise", "variance_error", "ratio"):
            getattr(self, name).merge(getattr(other, name))
        self.moments = self.moments + other.moments


@dataclass
class Summary:
    """All rows of a site under a plan.

    points: for each point of the plan the results as far as they depend on its epsilon, none if none was judged by
    itself; tables: by number those results that all points were judged of at once; fixed: what does not depend on
    epsilon, None if there are no points. variants: the results under each further tolerance of the plan; of their
    input only what depends on it.
    """

    plan: Plan
    input: InputSummary
    results: list[ResultSummary]
    points: list[Summary] = field(default_factory=list)
    tables: dict[int, PointTable] = field(default_factory=dict)
    fixed: Summary | None = None
    variants: list[Summary] = field(default_factory=list)

    @classmethod
    def empty(cls, plan: Plan) -> Summary:
        """Return the summary of no rows."""
        size = len(plan.tried)
        results = [ResultSummary(EpsilonTable.empty(size)) for _ in plan.results]
        fixed = cls.empty(replace(plan, points=(), variants=())) if plan.points else None
        variants = [cls.empty(plan.under(tolerance)) for tolerance in plan.variants]
        return cls(plan, InputSummary(np.zeros(size)), results, fixed=fixed, variants=variants)

    def add_points(self) -> None:
        """Make room for what becomes of single points, if there is none."""
        if not self.points:
            no_input, plans = InputSummary(np.zeros(1)), map(self.plan.at, self.plan.points)
            self.points = [Summary(plan, no_input, [ResultSummary(NO_TABLE) for _ in plan.results]) for plan in plans]

    def merge(self, other: Summary) -> None:
        """Take in the summary of other rows under the same plan."""
        self.input.merge(other.input)
        if other.points:
            self.add_points()
            for point, same in zip(self.points, other.points, strict=True):
                point._merge_results(same)
        for number, table in other.tables.items():
            if number not in self.tables:
                self.tables[number] = table.emptied()
            self.tables[number].merge(table)
        self._merge_results(other)
        for variant, same in zip(self.variants, other.variants, strict=True):
            variant.merge(same)
        if self.fixed is not None and other.fixed is not None:
            self.fixed.merge(other.fixed)

    def _merge_results(self, other: Summary) -> None:
        for mine, theirs in zip(self.results, other.results, strict=True):
            mine.merge(theirs)

    def at_point(self, number: int) -> Summary:
        """Return the summary of a scan at the epsilon of a point, but for rows and figures that only findings name."""
        assert self.fixed is not None
        plan = self.plan.at(self.plan.points[number])
        whole = Summary(plan, self.fixed.input, [])
        for i, fixed in enumerate(self.fixed.results):
            result = ResultSummary(NO_TABLE)
            result.merge(replace(fixed, table=NO_TABLE))
            if self.points:
                result.merge(self.points[number].results[i])
            if i in self.tables:
                result.merge(self.tables[i].at(number))
            whole.results.append(result)
        return whole

    def under(self, plan: Plan) -> Summary:
        """Return the summary of the same rows under the tolerances of another plan.

        Raises
        ------
        KeyError
            If they were not judged under one of them: the accepted error of a format, or the tolerance.
        """
        known = {variant.plan.tolerance: variant for variant in (*self.variants, self)}
        whole = Summary(plan, replace(self.input, counts=Counter(self.input.counts)), [])
        whole.input.counts["mismatch_rows"] = known[plan.tolerance].input.counts["mismatch_rows"]
        for i, (fmt, _) in enumerate(self.plan.results):
            limits = {variant.plan.limit_of(fmt): variant.results[i] for variant in (*self.variants, self)}
            whole.results.append(limits[plan.limit_of(fmt)])
        return whole

    def only(self, result: int) -> Summary:
        """Return the same summary with one of its results."""
        plan = replace(self.plan, results=(self.plan.results[result],))
        variants = [variant.only(result) for variant in self.variants]
        return Summary(plan, self.input, [self.results[result]], variants=variants)

    def witness_rows(self) -> Array:
        """Return the rows worth running again: extremes and first failures, at most 64, ascending."""
        sources = [self.input.first, self.input.extremes]
        sources += [e for result in self.results for e in (result.first, result.extremes)]
        found: dict[int, None] = {}
        # one name of every source at a time, so that no result crowds out another
        for names in zip_longest(*([(e, name) for name in e.names()] for e in sources)):
            for entry in filter(None, names):
                extremes, name = entry
                row = extremes.row(name)
                if row is not None:
                    found.setdefault(row)
        return np.array(sorted(list(found)[:WITNESS_ROWS]), np.int64)
