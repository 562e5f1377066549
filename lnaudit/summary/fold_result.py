"""Folds what became of the rows in one emulation: first what epsilon has no part in, then the rest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.epsilon import gains
from ..engine.rows import CastStatistics, InputStatistics, KernelStatistics, Plan
from ..formats import Format
from ..kernels import Kernel
from ..theory import largest_finite
from .codes import CODES, DEVIATIONS, OPERATIONS, Before, Judged, code_numbers, first_bad_operation, worst_of_code
from .model import ResultSummary
from .parts import chosen

Array = NDArray[Any]
NEARLY = 0.99  # of the range: what stays below cannot pass it by rounding
# JSON keys of counts
GRADIENT_OVERFLOWS = ("gradient_overflow_rows", "gradient_overflow_constant_rows")
HALF_RANGE = 0.5  # a row that comes so far is worth a word (design 7: LN106)


@dataclass(kw_only=True)
class Peaks:
    """What every point asks of the rows again.

    large: rows in which a stage comes far in its dtype's range; shares: shape (stages, large rows), their largest
    magnitudes as shares of the range; named: what the largest are called. reach: largest finite weight times the loss
    scale.
    """

    large: Array
    named: tuple[str, ...]
    shares: Array
    smallest_variance: float
    reach: float


def fold_statistics(
    rows: InputStatistics,
    cast: CastStatistics,
    stats: KernelStatistics,
    fmt: Format,
    kernel: Kernel,
    plan: Plan,
    out: ResultSummary,
) -> Peaks:
    """Fold what does not depend on epsilon."""
    varying = ~rows.constant
    out.variance_error.see(chosen(_variance_error(rows, stats, plan), varying))
    shares = _shares(cast, stats, fmt, kernel, plan)
    largest = np.maximum.reduce(list(shares.values()))
    if np.isnan(largest).any():
        shares = {stage: np.where(np.isnan(share), np.inf, share) for stage, share in shares.items()}
        largest = np.maximum.reduce(list(shares.values()))
    for name, values, where in (
        ("peak", largest, None),
        ("diff", stats.diff, np.isfinite(stats.diff)),
        ("variance", stats.variance, np.isfinite(stats.variance)),
        ("-variance of the cast", -stats.variance, np.isfinite(stats.variance) & ~cast.constant & varying),
        ("-variance", -stats.raw_variance, np.isfinite(stats.raw_variance)),
    ):
        out.extremes.see(name, values, rows.index, where)
    out.first.see_first("zero variance", rows.index, varying & (stats.variance == 0))
    out.counts.update(
        finite_rows=len(rows.index),
        overflow=cast.overflow,
        underflow=cast.underflow,
        subnormal=cast.subnormal,
        nonzero=cast.nonzero,
        overflow_rows=int((~cast.finite).sum()),
        finite_cast_rows=int(cast.finite.sum()),
        destroyed_rows=int((cast.constant & varying).sum()),
        variance_zero_rows=int((varying & (rows.variance > 0) & (stats.variance == 0)).sum()),
        variance_nonfinite_rows=int((~np.isfinite(stats.variance) | ~cast.finite).sum()),
        variance_negative_rows=int((stats.raw_variance < 0).sum()),
    )
    smallest = float((np.ldexp(rows.variance, 2 * rows.unit) if rows.scaled else rows.variance).min())
    large = np.flatnonzero(largest > HALF_RANGE)
    return Peaks(
        large=large,
        named=tuple(f"healthy peak: {stage}" for stage in shares),
        shares=np.stack([share[large] for share in shares.values()]),
        smallest_variance=smallest,
        reach=largest_finite(plan.weight) * plan.loss_scale,
    )


def _variance_error(rows: InputStatistics, stats: KernelStatistics, plan: Plan) -> Array:
    """Return the relative error of the emulated variance, NaN of a variance 0, Inf where it is not finite."""
    emulated = stats.variance
    if rows.scaled or plan.prescale:
        emulated = np.ldexp(emulated, -2 * (rows.unit + plan.prescale))
    error = np.abs(emulated - rows.variance)
    error /= rows.variance if rows.variance.all() else np.where(rows.variance > 0, rows.variance, np.nan)
    finite = np.isfinite(stats.variance)
    return error if finite.all() else np.where(finite, error, np.inf)


def _shares(cast: CastStatistics, stats: KernelStatistics, fmt: Format, kernel: Kernel, plan: Plan) -> dict[str, Array]:
    """Return by stage the magnitudes as shares of the range of what holds them."""
    at = kernel.stages(fmt)
    centred = "x" if plan.rms else "x-mean"
    held = {
        "the sum": (stats.total, at.sum),
        f"|{centred}|": (stats.diff, at.diff),
        # of RMSNorm the same, for nothing is taken off, but held in the format that is cast to
        "|x|": (np.maximum(np.abs(cast.h_max), np.abs(cast.h_min)), fmt),
        f"({centred})^2": (stats.square, at.square),
        "the sum of squares": (stats.square_sum, at.square_sum),
        "the variance": (stats.variance, at.variance),
    }
    return {stage: np.abs(values) / where.max for stage, (values, where) in held.items()}


def fold_judged(judged: Judged, before: Before, peaks: Peaks, fmt: Format, out: ResultSummary) -> Array | None:
    """Fold what a verdict at the emulated epsilon depends on; return the code numbers of the rows, as far as needed."""
    rows, cast, stats = judged.rows, judged.cast, judged.stats
    numbers, healthy = code_numbers(judged, before), None
    if numbers is not None:
        healthy = cast.finite & ~judged.nonfinite
        _count_codes(judged, before, numbers, out)
    if len(peaks.large):
        out.extremes.take(peaks.named, *peaks_of(peaks, None if numbers is None else numbers == 0, rows))
    out.error.see(stats.error if healthy is None else stats.error[healthy])
    out.extremes.see("error", stats.error, rows.index, healthy)
    out.extremes.see("cast_error", cast.error, rows.index)
    out.counts["costly_cast_rows"] += int(np.count_nonzero(cast.error > judged.accepted))
    overflows = gradient_overflows(rows, judged.plan, judged.plan.epsilon, peaks, fmt)
    out.counts.update(dict(zip(GRADIENT_OVERFLOWS, overflows, strict=True)))
    return numbers


def peaks_of(peaks: Peaks, sound: Array | None, rows: InputStatistics) -> tuple[Array, Array]:
    """Return the peaks by stage of rows without a code, and their rows, -1 where there are none.

    sound: which rows these are, None where all are.
    """
    large, shares = peaks.large, peaks.shares
    if sound is not None:
        here = sound[large]
        large, shares = large[here], shares[:, here]
    if not len(large):
        return np.zeros(len(shares)), np.full(len(shares), -1)
    at = shares.argmax(axis=1)  # the first of the largest, as `Extremes` has it
    return shares[np.arange(len(shares)), at], rows.index[large[at]]


def _count_codes(judged: Judged, before: Before, numbers: Array, out: ResultSummary) -> None:
    nonfinite, zero = judged.nonfinite, judged.zero
    amounts = np.bincount(numbers, minlength=len(CODES)).tolist()
    out.counts["failing_rows"] += sum(amounts[1:])
    for code, amount in zip(CODES[1:-1], amounts[1:-1], strict=True):
        if amount:
            out.primary[code] += amount
            if code in DEVIATIONS:
                beyond = (numbers == CODES.index(code)) & ~(judged.error <= 5 * judged.limits)
                out.counts[f"{code} beyond"] += int(np.count_nonzero(beyond))
    if nonfinite.any():
        out.counts["nonfinite_rows"] += int(np.count_nonzero(nonfinite))
        zero_over_zero = judged.cast.finite & (judged.w == 0) & nonfinite
        out.counts["zero_over_zero_rows"] += int(np.count_nonzero(zero_over_zero))
    if zero.any():
        out.counts["collapsed_rows"] += int(np.count_nonzero(before.varying & zero))
    out.counts["affine_overflow_rows"] += int(np.count_nonzero(judged.stats.affine_overflow))


def fold_details(
    judged: Judged, before: Before, numbers: Array | None, fmt: Format, kernel: Kernel, out: ResultSummary
) -> None:
    """Fold what is reported of the emulated epsilon beside the verdict, and the rows that findings name."""
    rows, stats = judged.rows, judged.stats
    healthy = judged.cast.finite & ~judged.nonfinite
    residual = np.sqrt(np.maximum(judged.error**2 - (judged.shared * judged.emulated_scale) ** 2, 0.0))
    out.extremes.see("arithmetic_error", judged.error, rows.index, healthy)
    out.extremes.see("scale_error", np.abs(judged.shared), rows.index, healthy)
    out.extremes.see("residual_error", residual, rows.index, healthy)
    ratio = np.where(judged.nonfinite, np.nan, judged.scale**2 * judged.response.A.reshape(-1))
    out.ratio.see(chosen(ratio, before.varying))
    if kernel.has_closed_form(judged.plan.rms):
        noise = np.broadcast_to(judged.response.D, (1, len(rows.index)))[0]
        out.noise.see(chosen(np.ldexp(noise, 2 * rows.unit) if rows.scaled else noise, before.varying))
    out.counts.update(
        unverified_rows=int(np.count_nonzero(_unverified(judged, fmt))),
        nan=int(stats.core_nan.sum()),
        inf=int(stats.core_inf.sum()),
        affine_nan=int(stats.output_nan.sum()),
        affine_inf=int(stats.output_inf.sum()),
        affine_nonfinite_rows=int(((stats.output_nan + stats.output_inf) > 0).sum()),
    )
    if numbers is not None:
        _fold_rows_of_codes(judged, before, numbers, out)


def _fold_rows_of_codes(judged: Judged, before: Before, numbers: Array, out: ResultSummary) -> None:
    index, failing = judged.rows.index, numbers > 0
    for code in (CODES[number] for number in np.unique(numbers[failing])):
        if code != CODES[-1]:
            with_code = numbers == CODES.index(code)
            beside = judged.error if code in DEVIATIONS else None
            out.extremes.see(f"code {code}", worst_of_code(judged, code), index, with_code, beside)
            out.first.see_first(f"code {code}", index, with_code)
    out.first.see_first("affine", index, judged.stats.affine_overflow)
    pairs = numbers[failing] * np.int16(len(OPERATIONS)) + first_bad_operation(judged, before)[failing]
    for pair, amount in enumerate(np.bincount(pairs).tolist() if failing.any() else ()):
        if amount:
            number, operation = divmod(pair, len(OPERATIONS))
            out.operations[(CODES[number], OPERATIONS[operation])] += amount


def gradient_overflows(rows: InputStatistics, plan: Plan, epsilon: float, peaks: Peaks, fmt: Format) -> tuple[int, int]:
    """Return in how many rows an upstream gradient overflows at an epsilon: in others and in constant ones."""
    # no gain is larger than that of the smallest variance
    smallest = peaks.smallest_variance + plan.effective(epsilon)
    if smallest > 0 and peaks.reach / math.sqrt(smallest) < NEARLY * fmt.max:
        return 0, 0
    gradient, _ = gains(rows, epsilon, plan.features, plan.rms, plan.prescale)
    overflows = gradient * peaks.reach > fmt.max
    return int(np.count_nonzero(~rows.constant & overflows)), int(np.count_nonzero(rows.constant & overflows))


def _unverified(judged: Judged, fmt: Format) -> Array:
    """Rows that are not finite or whose error, less one rounding of the output, passes their limit."""
    stats, A = judged.stats, judged.response.A.reshape(-1)
    beyond = ~(stats.error <= judged.limits)
    if not beyond.any():
        return judged.cast.finite & judged.nonfinite
    rounding = np.where(A > 0, fmt.unit_roundoff * np.abs(judged.scale) * np.sqrt(A), 0.0)
    return np.asarray(judged.cast.finite & (judged.nonfinite | ~(stats.error <= judged.limits + rounding)))
