"""What is wrong with each row: its primary code and the first bad operation (design 5.8 and 7)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.epsilon import Response, normalized_scale, respond, row_error, scale_error
from ..engine.rows import CastStatistics, InputStatistics, KernelStatistics, Plan, pick
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
# the first that applies
PRIMARY_CODES = ("LN101", "LN203", "LN201", "LN301", "LN103", "LN108", "LN104", "LN204", "LN202")


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Rows of one emulation at the emulated epsilon.

    error: E. limits: accepted error of each row; accepted: of the format.
    """

    rows: InputStatistics
    cast: CastStatistics
    stats: KernelStatistics
    response: Response
    error: Array
    limits: Array
    accepted: float
    plan: Plan

    def only(self, chosen: Array) -> Judged:
        """Return the same of some rows."""
        return replace(
            self,
            rows=pick(self.rows, chosen),
            cast=pick(self.cast, chosen),
            stats=pick(self.stats, chosen),
            response=self.response.only(chosen),
            error=self.error[chosen],
            limits=self.limits[chosen],
        )

    @cached_property
    def shared(self) -> Array:
        """Scale error."""
        return np.asarray(scale_error(self.rows, self.response, self.plan.epsilon, self.plan.prescale)[0])

    @cached_property
    def meant(self) -> Array:
        """sqrt(q/(q+eps)) at the model's epsilon."""
        return normalized_scale(self.rows, self.plan.model_epsilon)

    @property
    def emulated_scale(self) -> Array:
        """sqrt(q/(q+eps)) at the emulated epsilon."""
        return normalized_scale(self.rows, self.plan.epsilon, self.plan.prescale)

    @property
    def varying(self) -> Array:
        """Rows that are not constant."""
        return ~self.rows.constant

    @cached_property
    def nonfinite(self) -> Array:
        """Rows with NaN or Inf in the core."""
        return np.asarray(self.response.nonfinite[0])

    @property
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


def row_limits(cast: CastStatistics, fmt: Format, plan: Plan) -> Array:
    """Accepted error of each row: the tolerance, or twice what the cast alone costs (a heuristic)."""
    return np.asarray(np.fmax(plan.limit_of(fmt), 2 * cast.error))


def judge(
    rows: InputStatistics, cast: CastStatistics, stats: KernelStatistics, fmt: Format, kernel: Kernel, plan: Plan
) -> Judged:
    """Work out error and fate of rows at the emulated epsilon."""
    response = respond(rows, cast, stats, (plan.epsilon,), fmt, kernel, plan)
    error = row_error(rows, response, (plan.epsilon,), fmt, plan.prescale)[0]
    return judged_at(rows, cast, stats, response, error, fmt, kernel, plan)


def judged_at(
    rows: InputStatistics,
    cast: CastStatistics,
    stats: KernelStatistics,
    response: Response,
    error: Array,
    fmt: Format,
    kernel: Kernel,
    plan: Plan,
) -> Judged:
    """Judge rows whose response to an epsilon is known; `error` is E by the closed form, if the kernel has one."""
    return Judged(
        rows=rows,
        cast=cast,
        stats=stats,
        response=response,
        # else element by element, against the model's epsilon, which a sweep and a scan emulate
        error=error if kernel.has_closed_form(plan.rms) else stats.error,
        limits=row_limits(cast, fmt, plan),
        accepted=plan.limit_of(fmt),
        plan=plan,
    )


def coded_rows(judged: Judged) -> tuple[bool, Array, Array]:
    """Say whether any row is unusual, and return those that are not healthy, by position, with their primary codes."""
    unusual = judged.nonfinite | judged.zero
    unusual |= ~(judged.error <= judged.limits)
    unusual |= judged.cast.constant
    unusual |= ~judged.cast.finite
    positions = np.flatnonzero(unusual)
    if not len(positions):
        return False, positions, np.zeros(0, "U5")
    codes = primary_codes(judged.only(positions))
    return True, positions[codes != ""], codes[codes != ""]


def primary_codes(judged: Judged) -> Array:
    """Return the primary code of each row, "" where it is healthy."""
    cast, stats, nonfinite = judged.cast, judged.stats, judged.nonfinite
    matters = judged.meant > judged.accepted
    statistics = np.stack([stats.total, stats.mean, stats.diff, stats.square_sum, stats.variance])
    deviates = ~(judged.error <= judged.limits)
    applies = {
        "LN101": ~cast.finite,
        "LN203": cast.constant & judged.varying & matters,
        "LN201": nonfinite & (stats.variance < 0),
        "LN301": nonfinite & (judged.w == 0),
        "LN103": nonfinite & ~np.isfinite(statistics).all(axis=0),
        "LN108": nonfinite,
        "LN104": judged.zero & matters,
        "LN204": deviates & (np.abs(judged.shared) * judged.meant > judged.limits),
        "LN202": deviates,
    }
    return np.select([applies[code] for code in PRIMARY_CODES], PRIMARY_CODES, "")


def first_bad_operation(judged: Judged) -> Array:
    """Return the number in OPERATIONS of the first stage that went wrong in each row."""
    stats, varying = judged.stats, judged.varying
    inverse = judged.response.inverse[0].astype(np.float64)
    core_maximum = judged.response.core_maximum[0]
    bad = {
        "cast": ~judged.cast.finite | (judged.cast.constant & varying),
        "sum": ~np.isfinite(stats.total),
        "mean": ~np.isfinite(stats.mean),
        "diff": ~np.isfinite(stats.diff) | ((stats.diff == 0) & varying),
        "square": ~np.isfinite(stats.square) | ((stats.square == 0) & varying),
        "variance": ~np.isfinite(stats.variance) | (stats.variance < 0) | ((stats.variance == 0) & (stats.square != 0)),
        "add-epsilon": ~np.isfinite(judged.w) | (judged.w == 0),
        "rstd": ~np.isfinite(inverse) | (inverse == 0),
        "normalize": ~np.isfinite(core_maximum) | ((core_maximum == 0) & varying),
        "affine": stats.affine_overflow,
    }
    return np.select([bad[name] for name in OPERATIONS[:-1]], range(len(bad)), len(bad))


def worst_of_code(judged: Judged, code: str) -> Array:
    """Return what is worst about a row of a code; decides which row a finding names."""
    rows = judged.rows
    if code in ("LN101", "LN108"):
        return np.maximum(np.abs(rows.x_max), np.abs(rows.x_min))
    if code in ("LN202", "LN204"):
        return judged.error / judged.limits
    if code == "LN203":
        return judged.meant
    if code == "LN201":
        return -judged.stats.raw_variance
    variance: Array = np.ldexp(rows.variance, 2 * rows.unit)
    return -variance if code == "LN301" else variance
