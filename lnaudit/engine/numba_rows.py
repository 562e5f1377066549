"""The rows of a block as the compiled loops read them, with their reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic import Workspace
from ..double_double import two_sum
from . import numpy_engine
from .compiled import exact, references
from .compiled.lanes import LANES
from .compiled.steps import flag
from .exact_sums import width
from .reference import EXTREME_EXPONENT, inverse_root
from .rows import InputStatistics, Plan, held_in, pick

Array = NDArray[Any]


@dataclass(kw_only=True)
class Rows:
    """Finite rows of a block: x of shape (n, padded), d elements each.

    given: by `references`, a column a row, with columns to spare: the row is v = (x - a) - b, and so on.
    """

    x: Array
    d: int
    statistics: InputStatistics
    given: Array

    def column(self, number: int) -> Array:
        """Return a number a row of what is given."""
        column: Array = self.given[number, : len(self.x)]
        return column

    def empty(self, dtype: Any = np.float64) -> Array:
        """Return room for a number a row."""
        return np.empty(len(self.x), dtype)

    def root(self, epsilon: float) -> tuple[Array, Array]:
        """Return 1/sqrt(q + epsilon) as a sum of two float64."""
        s = self.statistics
        return inverse_root(s.variance, s.variance_low, s.unit, epsilon)

    def some(self, chosen: Array) -> Rows:
        """Return some of the rows."""
        given = _columns(self.given, chosen)
        return Rows(x=self.x[chosen], d=self.d, statistics=pick(self.statistics, chosen), given=given)


def _columns(given: Array, chosen: Array) -> Array:
    some = np.zeros((len(given), _room(int(chosen.sum()))))
    some[:, : int(chosen.sum())] = given[:, : len(chosen)][:, chosen]
    return some


def refer(block: Array, first_row: int, plan: Plan, ws: Workspace) -> Rows | None:
    """Return the rows that are finite and their reference; None if one is so large or small that it must be scaled."""
    d, precise = plan.features, plan.needs_double_double
    x = _padded(block)
    given, finite = np.zeros((references.GIVEN, _room(len(x)))), np.empty(len(x), bool)
    largest = np.finfo(x.dtype).max
    if precise:
        room = [ws.array(name, x.shape[1:], "float64") for name in ("terms", "terms_low")]
        narrow = flag(x.itemsize < 8)
        references.precise_reference(x, d, plan.rms, largest, width(d), narrow, given, finite, *room)
    else:
        references.corrected_reference(x, d, plan.rms, largest, given, finite)
    ends = given[references.X_MAX, : len(x)], given[references.X_MIN, : len(x)]
    statistics = numpy_engine.input_statistics(*ends, finite, first_row, plan, lambda: x[~finite, :d].T)
    if not finite.all():
        x, given = x[finite], _columns(given, finite)
    rows = Rows(x=x, d=d, statistics=statistics, given=given)
    if x.itemsize == 8 and _must_be_scaled(statistics):
        return None
    if precise:
        statistics.mean, statistics.mean_low = rows.column(references.MEAN), rows.column(references.MEAN_LOW)
        statistics.precise, statistics.variance_low = True, rows.column(references.Q_LOW)
    elif not plan.rms:
        # of a constant row too: what is taken off is its mean
        statistics.mean, statistics.mean_low = two_sum(rows.column(references.A), rows.column(references.B))
    statistics.variance = rows.column(references.Q)
    if plan.model_epsilon <= exact.LARGEST_EPSILON:
        exact.roots(given, plan.model_epsilon, precise)
    else:
        rows.column(references.ROOT)[:], rows.column(references.ROOT_LOW)[:] = rows.root(plan.model_epsilon)
    return rows


def unreferred(row: Array, plan: Plan) -> Rows:
    """Return a block of one finite row with zeros for a reference, to try the loops on."""
    x = _padded(row)
    statistics = numpy_engine.input_statistics(row.max(axis=1), row.min(axis=1), np.ones(1, bool), 0, plan, row.T.copy)
    return Rows(x=x, d=plan.features, statistics=statistics, given=np.zeros((references.GIVEN, _room(1))))


def _must_be_scaled(s: InputStatistics) -> bool:
    exponents = np.frexp(np.maximum(np.abs(s.x_max), np.abs(s.x_min)))[1]
    return bool((np.abs(exponents) > EXTREME_EXPONENT).any())


def _room(rows: int) -> int:
    """Return a multiple of 16 with at least 32 to spare."""
    return (rows // LANES + 3) * LANES


def _padded(block: Array) -> Array:
    """Return rows in native float32 or float64, contiguous, with zeros up to a multiple of 16 elements."""
    n, d = block.shape
    dtype = np.dtype(held_in(block.dtype))
    if d % LANES == 0:
        return np.ascontiguousarray(block, dtype)
    x = np.zeros((n, -(-d // LANES) * LANES), dtype)
    x[:, :d] = block
    return x
