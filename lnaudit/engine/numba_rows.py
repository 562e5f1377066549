"""The rows of a block as the compiled loops read them, with their reference."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic import Workspace
from ..double_double import two_sum
from . import numpy_engine
from .compiled import references
from .compiled.lanes import LANES
from .reference import EXTREME_EXPONENT, divide, inverse_root
from .rows import CastStatistics, InputStatistics, Plan, pick

Array = NDArray[Any]


@dataclass(kw_only=True)
class Rows:
    """Finite rows of a block: x of shape (n, padded), d elements each, and their reference v = (x - a) - b."""

    x: Array
    d: int
    statistics: InputStatistics
    a: Array
    b: Array
    _roots: dict[float, tuple[Array, Array]] = field(default_factory=dict)

    def empty(self, dtype: Any = np.float64) -> Array:
        """Return room for a number a row."""
        return np.empty(len(self.x), dtype)

    def root(self, epsilon: float) -> tuple[Array, Array]:
        """Return 1/sqrt(q + epsilon) as a sum of two float64."""
        if epsilon not in self._roots:
            s = self.statistics
            self._roots[epsilon] = inverse_root(s.variance, s.variance_low, s.unit, epsilon)
        return self._roots[epsilon]

    def given(self, cast: CastStatistics, epsilon: float) -> Array:
        """Return what `compiled.emulation` is told of the rows, with columns to spare."""
        columns = (self.a, self.b, self.statistics.variance, *self.root(epsilon), cast.h_max, cast.h_min)
        table = np.zeros((len(columns), len(self.x) + LANES))
        for row, column in zip(table, columns, strict=True):
            row[: len(self.x)] = column
        return table

    def some(self, chosen: Array) -> Rows:
        """Return some of the rows."""
        part = pick(self.statistics, chosen)
        return Rows(x=self.x[chosen], d=self.d, statistics=part, a=self.a[chosen], b=self.b[chosen])


def refer(block: Array, first_row: int, plan: Plan, ws: Workspace) -> Rows | None:
    """Return the rows that are finite and their reference; None if one is so large or small that it must be scaled."""
    d, precise = plan.features, plan.needs_double_double
    x = _padded(block)
    x_max, x_min, finite = np.empty(len(x)), np.empty(len(x)), np.empty(len(x), bool)
    a, b, variance = np.zeros(len(x)), np.zeros(len(x)), np.zeros(len(x))
    ends = (np.finfo(x.dtype).max, x_max, x_min, finite)
    if precise:
        references.ends(x, d, *ends)
    else:
        references.corrected_reference(x, d, plan.rms, *ends, a, b, variance)
    statistics = numpy_engine.input_statistics(x_max, x_min, finite, first_row, plan, lambda: x[~finite, :d].T)
    if not finite.all():
        x, a, b, variance = x[finite], a[finite], b[finite], variance[finite]
    exponents = np.frexp(np.maximum(np.abs(statistics.x_max), np.abs(statistics.x_min)))[1]
    if (np.abs(exponents) > EXTREME_EXPONENT).any():
        return None
    rows = Rows(x=x, d=d, statistics=statistics, a=a, b=b)
    statistics.variance = variance
    if precise:
        _refer_precisely(rows, plan, ws)
    elif not plan.rms:
        # of a constant row too: what is taken off is its mean
        statistics.mean, statistics.mean_low = two_sum(a, b)
    return rows


def _padded(block: Array) -> Array:
    """Return rows in native float32 or float64, contiguous, with zeros up to a multiple of 16 elements."""
    n, d = block.shape
    dtype = np.dtype(np.float64 if block.dtype.itemsize == 8 else np.float32)
    if d % LANES == 0:
        return np.ascontiguousarray(block, dtype)
    x = np.zeros((n, -(-d // LANES) * LANES), dtype)
    x[:, :d] = block
    return x


def _refer_precisely(rows: Rows, plan: Plan, ws: Workspace) -> None:
    s, total, low = rows.statistics, rows.empty(), rows.empty()
    room = [ws.array(name, rows.x.shape[1:], "float64") for name in ("terms", "terms_low")]
    s.precise = True
    if not plan.rms:
        references.sums_of_pairs(rows.x, rows.d, total, low, *room)
        rows.a, rows.b = divide(total, low, rows.d)
    s.mean, s.mean_low = rows.a.copy(), rows.b.copy()
    references.squares_of_pairs(rows.x, rows.d, s.constant, rows.a, rows.b, total, low, *room)
    s.variance, s.variance_low = divide(total, low, rows.d)
    # of a constant row nothing is left
    np.copyto(rows.a, s.x_max, where=s.constant)
    np.copyto(rows.b, 0.0, where=s.constant)
