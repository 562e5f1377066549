"""Folds the row statistics of a block into a Summary: counts, codes, extremes, histograms."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.epsilon import gains, normalized_scale, respond, row_error
from ..engine.rows import CastStatistics, InputStatistics, KernelStatistics, Plan, RowStatistics
from ..formats import Format
from ..kernels import Kernel
from ..theory import collapse_ratio, largest_finite
from .codes import OPERATIONS, Judged, first_bad_operation, judge, primary_codes, row_limits, worst_of_code
from .model import EpsilonTable, InputSummary, ResultSummary, Summary

Array = NDArray[Any]
# a row counts as already normalized within these of mean 0 and variance 1
ALREADY_MEAN, ALREADY_VARIANCE = 1e-3, 1e-2
SLICE = 2_048  # rows whose epsilon table is worked out at a time: temporaries stay in cache


def fold(statistics: RowStatistics, plan: Plan) -> Summary:
    """Return the Summary of some rows."""
    summary = Summary.empty(plan)
    _fold_input(statistics.input, plan, summary.input)
    for (fmt, kernel), stats, result in zip(plan.results, statistics.kernels, summary.results, strict=True):
        cast = statistics.casts[fmt.name]
        if len(statistics.input.index):
            _fold_result(judge(statistics.input, cast, stats, fmt, kernel, plan), fmt, kernel, plan, result)
            _fold_table(statistics.input, cast, stats, fmt, kernel, plan, result)
    return summary


def _fold_input(rows: InputStatistics, plan: Plan, out: InputSummary) -> None:
    amax = np.maximum(np.abs(rows.x_max), np.abs(rows.x_min))
    varying = ~rows.constant
    out.counts.update(
        nan=rows.elements_nan,
        inf=rows.elements_inf,
        nan_rows=rows.nan_rows,
        partly_nan_rows=rows.partly_nan_rows,
        inf_rows=rows.inf_rows,
        finite_rows=len(amax),
        zero_rows=int((amax == 0).sum()),
        constant_rows=int(rows.constant.sum()),
    )
    for name, row in (("nan", rows.first_nan_row), ("nonfinite", rows.first_nonfinite_row)):
        if row >= 0:
            out.first.see_first(name, np.array([row]))
    if not len(amax):
        return
    variance = np.ldexp(rows.variance, 2 * rows.unit)
    scale = normalized_scale(rows, plan.model_epsilon)
    out.extremes.see("max_abs", amax, rows.index)
    out.extremes.see("variance", variance, rows.index, varying)
    out.extremes.see("-variance", -variance, rows.index, varying)
    out.first.see_first("zero", rows.index, amax == 0)
    out.first.see_first("constant", rows.index, rows.constant)
    out.variance.see(variance[varying])
    out.ratio.see(scale[varying] ** 2)
    out.counts["varying_rows"] += int(varying.sum())
    out.counts["epsilon_dominated_rows"] += int((varying & (variance < plan.model_epsilon)).sum())
    mean = np.ldexp(rows.mean, rows.unit)
    normalized = varying & (np.abs(mean) <= ALREADY_MEAN) & (np.abs(variance - 1) <= ALREADY_VARIANCE)
    out.counts["normalized_rows"] += int(normalized.sum())
    if plan.compare_epsilon is not None:
        drift = np.abs(normalized_scale(rows, plan.compare_epsilon) - scale)
        out.counts["mismatch_rows"] += int((varying & (drift > plan.tolerance)).sum())
        out.extremes.see("drift", drift, rows.index, varying)
    largest, radial = gains(rows, plan.model_epsilon, plan.features, plan.rms)
    out.gain.see(largest[varying])
    out.extremes.see("gain", largest, rows.index, varying)
    q = variance[varying]
    meant = np.sqrt(collapse_ratio(q, plan.model_epsilon))
    for i, epsilon in enumerate(plan.tried if len(q) else ()):
        out.distortion[i] = float(np.abs(np.sqrt(collapse_ratio(q, plan.effective(epsilon))) - meant).max())
    out.extremes.see("radial_gain", radial, rows.index, varying)


def _fold_result(judged: Judged, fmt: Format, kernel: Kernel, plan: Plan, out: ResultSummary) -> None:
    rows, cast, stats, varying = judged.rows, judged.cast, judged.stats, judged.varying
    code, failing = primary_codes(judged), judged.stats.affine_overflow.copy()
    failing |= code != ""
    _fold_codes(judged, code, failing, out)
    _count(judged, fmt, plan, failing, out)

    emulated = np.ldexp(stats.variance, -2 * (rows.unit + plan.prescale))
    variance_error = np.abs(emulated - rows.variance) / np.where(rows.variance > 0, rows.variance, np.nan)
    variance_error = np.where(np.isfinite(stats.variance), variance_error, np.inf)
    residual = np.sqrt(np.maximum(judged.error**2 - (judged.shared * judged.emulated_scale) ** 2, 0.0))
    shares = _shares(cast, stats, fmt, kernel, plan)
    peak = np.max(list(shares.values()), axis=0)
    healthy = cast.finite & ~judged.nonfinite
    out.error.see(stats.error[healthy])
    out.variance_error.see(variance_error[varying])
    out.ratio.see(np.where(judged.nonfinite, np.nan, judged.scale**2 * stats.A)[varying])
    for name, values, where in (
        ("error", stats.error, healthy),
        ("arithmetic_error", judged.error, healthy),
        ("scale_error", np.abs(judged.shared), healthy),
        ("residual_error", residual, healthy),
        ("peak", peak, None),
        *((f"healthy peak: {stage}", share, ~failing) for stage, share in shares.items()),
        ("cast_error", cast.error, None),
        ("diff", stats.diff, np.isfinite(stats.diff)),
        ("variance", stats.variance, np.isfinite(stats.variance)),
        ("-variance of the cast", -stats.variance, np.isfinite(stats.variance) & ~cast.constant & varying),
        ("-variance", -stats.raw_variance, np.isfinite(stats.raw_variance)),
    ):
        out.extremes.see(name, values, rows.index, where)
    out.first.see_first("affine", rows.index, stats.affine_overflow)
    out.first.see_first("zero variance", rows.index, varying & (stats.variance == 0))


def _fold_codes(judged: Judged, code: Array, failing: Array, out: ResultSummary) -> None:
    index, operation = judged.rows.index, first_bad_operation(judged)
    for name in np.unique(code[code != ""]).tolist():
        chosen = code == name
        out.primary[name] += int(chosen.sum())
        deviates = name in ("LN202", "LN204")
        beside = judged.error if deviates else None
        out.extremes.see(f"code {name}", worst_of_code(judged, name), index, chosen, beside)
        out.first.see_first(f"code {name}", index, chosen)
        if deviates:
            out.counts[f"{name} beyond"] += int((chosen & (judged.error > 5 * judged.limits)).sum())
    for key, number in {(str(code[i]), int(operation[i])) for i in np.flatnonzero(failing)}:
        rows = failing & (code == key) & (operation == number)
        out.operations[(key or "LN107", OPERATIONS[number])] += int(rows.sum())


def _count(judged: Judged, fmt: Format, plan: Plan, failing: Array, out: ResultSummary) -> None:
    rows, cast, stats, varying = judged.rows, judged.cast, judged.stats, judged.varying
    rounding = np.where(stats.A > 0, fmt.unit_roundoff * np.abs(judged.scale) * np.sqrt(stats.A), 0.0)
    unverified = cast.finite & (judged.nonfinite | ~(stats.error <= judged.limits + rounding))
    gradient, _ = gains(rows, plan.epsilon, plan.features, plan.rms, plan.prescale)
    overflows = gradient * largest_finite(plan.weight) * plan.loss_scale > fmt.max
    out.counts.update(
        finite_rows=len(rows.index),
        overflow=cast.overflow,
        underflow=cast.underflow,
        subnormal=cast.subnormal,
        nonzero=cast.nonzero,
        overflow_rows=int((~cast.finite).sum()),
        destroyed_rows=int((cast.constant & varying).sum()),
        variance_zero_rows=int((varying & (rows.variance > 0) & (stats.variance == 0)).sum()),
        variance_nonfinite_rows=int((~np.isfinite(stats.variance) | ~cast.finite).sum()),
        variance_negative_rows=int((stats.raw_variance < 0).sum()),
        nan=int(stats.core_nan.sum()),
        inf=int(stats.core_inf.sum()),
        nonfinite_rows=int(judged.nonfinite.sum()),
        collapsed_rows=int((varying & judged.zero).sum()),
        affine_nan=int(stats.output_nan.sum()),
        affine_inf=int(stats.output_inf.sum()),
        affine_nonfinite_rows=int(((stats.output_nan + stats.output_inf) > 0).sum()),
        affine_overflow_rows=int(stats.affine_overflow.sum()),
        gradient_overflow_rows=int((varying & overflows).sum()),
        gradient_overflow_constant_rows=int((~varying & overflows).sum()),
        failing_rows=int(failing.sum()),
        finite_cast_rows=int(cast.finite.sum()),
        zero_over_zero_rows=int((cast.finite & (judged.w == 0) & judged.nonfinite).sum()),
        unverified_rows=int(unverified.sum()),
        costly_cast_rows=int((cast.error > plan.limit_of(fmt)).sum()),
    )


def _shares(cast: CastStatistics, stats: KernelStatistics, fmt: Format, kernel: Kernel, plan: Plan) -> dict[str, Array]:
    """Largest magnitude of each stage in each row, as a share of its dtype's range; NaN counts as Inf."""
    at = kernel.stages(fmt)
    centred = "x" if plan.rms else "x-mean"
    held = {
        "|x|": (np.maximum(np.abs(cast.h_max), np.abs(cast.h_min)), fmt),
        "the sum": (stats.total, at.sum),
        f"|{centred}|": (stats.diff, at.diff),
        f"({centred})^2": (stats.square, at.square),
        "the sum of squares": (stats.square_sum, at.square_sum),
        "the variance": (stats.variance, at.variance),
    }
    shares = {stage: np.abs(values) / where.max for stage, (values, where) in held.items()}
    return {stage: np.where(np.isnan(share), np.inf, share) for stage, share in shares.items()}


def _fold_table(
    rows: InputStatistics,
    cast: CastStatistics,
    stats: KernelStatistics,
    fmt: Format,
    kernel: Kernel,
    plan: Plan,
    out: ResultSummary,
) -> None:
    """Judge every epsilon of the plan on rows with finite input and cast, against the model's epsilon (design 6)."""
    limits = row_limits(cast, fmt, plan)
    for start in range(0, len(rows.index), SLICE):
        part = slice(start, start + SLICE)
        judged = np.flatnonzero(cast.finite[part]) + start
        if not len(judged):
            continue
        some_rows, some_stats = _pick(rows, judged), _pick(stats, judged)
        response = respond(some_rows, some_stats, plan.tried, fmt, kernel, plan.prescale)
        F = row_error(some_rows, some_stats, response, plan.model_epsilon, fmt)
        table = EpsilonTable.empty(len(plan.tried))
        table.nonfinite = response.nonfinite.sum(axis=1)
        table.failing = (~(limits[judged] >= F)).sum(axis=1)
        known = np.where(np.isnan(F), -1.0, F)
        at = known.argmax(axis=1)
        table.worst = known[np.arange(len(plan.tried)), at]
        table.worst_row = np.where(table.worst >= 0, some_rows.index[at], -1)
        out.table.merge(table)


def _pick(statistics: Any, chosen: Array) -> Any:
    """Return the same statistics of some rows."""
    values = {f.name: getattr(statistics, f.name) for f in fields(statistics)}
    return type(statistics)(**{k: v[chosen] if isinstance(v, np.ndarray) else v for k, v in values.items()})
