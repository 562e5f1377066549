"""What is wrong with each row: its primary code and the first bad operation (design 5.8 and 7)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.epsilon import Response, inverse_roots, normalized_scale, respond, row_error, scale_error
from ..engine.rows import CastStatistics, InputStatistics, KernelStatistics, Plan
from ..formats import Format
from ..kernels import Kernel

Array = NDArray[Any]
# in the order in which a kernel meets them
OPERATIONS = (
    "cast",
    "sum",
    "mean",
    "diff",
    "square",
    "variance",
    "add-epsilon",
    "rstd",
    "normalize",
    "affine",
    "rounding",
)
BEFORE_EPSILON = 6  # of them
# the first that applies
PRIMARY_CODES = ("LN101", "LN203", "LN201", "LN301", "LN103", "LN108", "LN104", "LN204", "LN202")
DEVIATIONS = ("LN204", "LN202")  # codes that are an error only of many rows or far beyond the limit
# by number: 0 is a healthy row, the last one fails only in weight and bias
CODES = ("", *PRIMARY_CODES, "LN107")
_NUMBER = {code: number for number, code in enumerate(CODES)}


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Rows of one emulation at the emulated epsilon.

    error: E. limits: accepted error of each row; accepted: of the format. rho: 1/sqrt(q + epsilon), exact.
    """

    rows: InputStatistics
    cast: CastStatistics
    stats: KernelStatistics
    response: Response
    error: Array
    limits: Array
    accepted: float
    rho: Array
    plan: Plan

    def under(self, fmt: Format, plan: Plan) -> Judged:
        """Return the same rows judged under the tolerances of another plan."""
        if plan is self.plan:
            return self
        return replace(self, limits=row_limits(self.cast.error, fmt, plan), accepted=plan.limit_of(fmt), plan=plan)

    @cached_property
    def shared(self) -> Array:
        """Scale error."""
        return np.asarray(scale_error(self.rows, self.response, self.rho)[0])

    @cached_property
    def meant(self) -> Array:
        """sqrt(q/(q+eps)) at the model's epsilon."""
        if self.plan.model_epsilon == self.plan.epsilon and not self.plan.prescale:
            return self.emulated_scale
        return normalized_scale(self.rows, self.plan.model_epsilon)

    @cached_property
    def emulated_scale(self) -> Array:
        """sqrt(q/(q+eps)) at the emulated epsilon."""
        return np.asarray(np.sqrt(self.rows.variance) * self.rho)

    @cached_property
    def nonfinite(self) -> Array:
        """Rows with NaN or Inf in the core."""
        return np.asarray(self.response.nonfinite[0])

    @cached_property
    def zero(self) -> Array:
        """Rows whose core is all zero."""
        return np.asarray(self.response.zero[0])

    @property
    def w(self) -> Array:
        """Variance + epsilon as emulated."""
        return np.asarray(self.response.w[0])

    @property
    def scale(self) -> Array:
        """r_hat in units of the scaled row."""
        return np.asarray(self.response.scale[0])


@dataclass(frozen=True, kw_only=True)
class Before:
    """What is known of the rows of an emulation before epsilon enters.

    varying: rows that are not constant. suspect: rows that the cast has made constant or not finite. finite: all
    statistics are. operation: number of the first bad operation, that of "rounding" if there is none so far.
    """

    varying: Array
    suspect: Array
    finite: Array
    operation: Array


def before_epsilon(rows: InputStatistics, cast: CastStatistics, stats: KernelStatistics) -> Before:
    """Say what has gone wrong before epsilon enters."""
    varying = ~rows.constant
    values = {"sum": stats.total, "mean": stats.mean, "diff": stats.diff, "square": stats.square}
    values |= {"square_sum": stats.square_sum, "variance": stats.variance}
    finite = {name: np.isfinite(column) for name, column in values.items()}
    bad = {
        "cast": ~cast.finite | (cast.constant & varying),
        "sum": ~finite["sum"],
        "mean": ~finite["mean"],
        "diff": ~finite["diff"] | ((stats.diff == 0) & varying),
        "square": ~finite["square"] | ((stats.square == 0) & varying),
        "variance": ~finite["variance"] | (stats.variance < 0) | ((stats.variance == 0) & (stats.square != 0)),
    }
    operation = np.full(len(varying), OPERATIONS.index("rounding"), np.int8)
    for number in reversed(range(BEFORE_EPSILON)):
        if (wrong := bad[OPERATIONS[number]]).any():
            np.putmask(operation, wrong, number)
    finite.pop("square")  # that of the largest magnitude: no number that comes after depends on it
    return Before(
        varying=varying,
        suspect=cast.constant | ~cast.finite,
        finite=np.logical_and.reduce(list(finite.values())),
        operation=operation,
    )


def row_limits(cast_error: Array, fmt: Format, plan: Plan) -> Array:
    """Accepted error of each row: the tolerance, or twice what the cast alone costs (a heuristic)."""
    return np.asarray(np.fmax(plan.limit_of(fmt), 2 * cast_error))


def judge(
    rows: InputStatistics, cast: CastStatistics, stats: KernelStatistics, fmt: Format, kernel: Kernel, plan: Plan
) -> Judged:
    """Work out error and fate of rows at the emulated epsilon."""
    response = respond(rows, cast, stats, (plan.epsilon,), fmt, kernel, plan)
    error = stats.error  # of a kernel without closed form: element by element
    if kernel.has_closed_form(plan.rms):
        error = row_error(rows, response, (plan.epsilon,), fmt, plan.prescale)[0]
    return Judged(
        rows=rows,
        cast=cast,
        stats=stats,
        response=response,
        error=error,
        limits=row_limits(cast.error, fmt, plan),
        accepted=plan.limit_of(fmt),
        rho=inverse_roots(rows, (plan.epsilon,), plan.prescale)[0][0],
        plan=plan,
    )


def code_numbers(judged: Judged, before: Before) -> Array | None:
    """Return the number in CODES of each row's primary code; None if no row is unusual in any way."""
    nonfinite, zero = judged.nonfinite, judged.zero
    deviates = ~(judged.error <= judged.limits)
    unusual = nonfinite | zero
    unusual |= deviates
    unusual |= before.suspect
    affine = judged.stats.affine_overflow
    affine_overflows = bool(affine.any())
    if not (affine_overflows or unusual.any()):
        return None
    # from the last to the first that applies
    numbers = np.zeros(len(unusual), np.int8)
    if affine_overflows:
        np.putmask(numbers, affine, _NUMBER["LN107"])
    matters = judged.meant > judged.accepted
    if deviates.any():
        np.putmask(numbers, deviates, _NUMBER["LN202"])
        together = np.abs(judged.shared) * judged.meant > judged.limits
        np.putmask(numbers, deviates & together, _NUMBER["LN204"])
    if zero.any():
        np.putmask(numbers, zero & matters, _NUMBER["LN104"])
    if nonfinite.any():
        np.putmask(numbers, nonfinite, _NUMBER["LN108"])
        np.putmask(numbers, nonfinite & ~before.finite, _NUMBER["LN103"])
        np.putmask(numbers, nonfinite & (judged.w == 0), _NUMBER["LN301"])
        np.putmask(numbers, nonfinite & (judged.stats.variance < 0), _NUMBER["LN201"])
    if before.suspect.any():
        np.putmask(numbers, judged.cast.constant & before.varying & matters, _NUMBER["LN203"])
        np.putmask(numbers, ~judged.cast.finite, _NUMBER["LN101"])
    return numbers


def first_bad_operation(judged: Judged, before: Before) -> Array:
    """Return the number in OPERATIONS of the first stage that went wrong in each row."""
    inverse, core_maximum = judged.response.inverse[0], judged.response.core_maximum[0]
    bad = {
        "add-epsilon": ~np.isfinite(judged.w) | (judged.w == 0),
        "rstd": ~np.isfinite(inverse) | (inverse == 0),
        "normalize": ~np.isfinite(core_maximum) | ((core_maximum == 0) & before.varying),
        "affine": judged.stats.affine_overflow,
    }
    operation = np.full(len(before.operation), OPERATIONS.index("rounding"), np.int8)
    for name, wrong in reversed(bad.items()):
        np.putmask(operation, wrong, OPERATIONS.index(name))
    return np.minimum(operation, before.operation)


def worst_of_code(judged: Judged, code: str) -> Array:
    """Return what is worst about a row of a code; decides which row a finding names."""
    rows = judged.rows
    if code in ("LN101", "LN108"):
        return np.maximum(np.abs(rows.x_max), np.abs(rows.x_min))
    if code in DEVIATIONS:
        return judged.error / judged.limits
    if code == "LN203":
        return judged.meant
    if code == "LN201":
        return -judged.stats.raw_variance
    variance: Array = np.ldexp(rows.variance, 2 * rows.unit) if rows.scaled else rows.variance
    return -variance if code == "LN301" else variance
