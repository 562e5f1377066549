"""Folds the row statistics of a block into a Summary: counts, codes, extremes, histograms."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.epsilon import Response, normalized_scale, respond, row_error, scale_error
from ..engine.rows import CastStatistics, InputStatistics, KernelStatistics, Plan, RowStatistics
from ..formats import Format
from ..kernels import Kernel
from ..theory import collapse_ratio, gain, radial_gain
from .model import OPERATIONS, EpsilonTable, InputSummary, ResultSummary, Summary

Array = NDArray[Any]
SLICE = 2_048  # rows whose epsilon table is worked out at a time: temporaries stay in cache


def fold(statistics: RowStatistics, plan: Plan) -> Summary:
    """Return the Summary of some rows."""
    summary = Summary.empty(plan)
    _fold_input(statistics.input, plan, summary.input)
    for (fmt, kernel), stats, result in zip(plan.results, statistics.kernels, summary.results, strict=True):
        cast = statistics.casts[fmt.name]
        if len(statistics.input.index):
            _fold_result(statistics.input, cast, stats, fmt, kernel, plan, result)
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
    if rows.first_nonfinite_row >= 0:
        out.first.see("nonfinite", np.zeros(1), np.array([rows.first_nonfinite_row]))
    if not len(amax):
        return
    variance = np.ldexp(rows.variance, 2 * rows.unit)
    scale = normalized_scale(rows, plan.model_epsilon)
    out.extremes.see("max_abs", amax, rows.index)
    out.extremes.see("variance", variance, rows.index, varying)
    out.extremes.see("-variance", -variance, rows.index, varying)
    out.first.see("zero", np.zeros(len(amax)), rows.index, amax == 0)
    out.first.see("constant", np.zeros(len(amax)), rows.index, rows.constant)
    out.variance.see(variance[varying])
    out.ratio.see(scale[varying] ** 2)
    out.counts["varying_rows"] += int(varying.sum())
    out.counts["epsilon_dominated_rows"] += int((varying & (variance < plan.model_epsilon)).sum())
    largest = gain(variance, plan.model_epsilon, plan.features, rms=plan.rms)
    out.gain.see(largest[varying])
    out.extremes.see("gain", largest, rows.index, varying)
    # in prescaled units epsilon acts as epsilon * 4^-prescale
    effective = np.ldexp([plan.epsilon, *plan.epsilons], -2 * plan.prescale)
    q = variance[varying]
    meant = np.sqrt(collapse_ratio(q, plan.model_epsilon))
    for i, epsilon in enumerate(effective.tolist() if len(q) else []):
        out.distortion[i] = float(np.abs(np.sqrt(collapse_ratio(q, epsilon)) - meant).max())
    radial = radial_gain(variance, plan.model_epsilon)
    out.extremes.see("radial_gain", radial, rows.index, varying)


def _limits(cast: CastStatistics, fmt: Format, plan: Plan) -> Array:
    """Accepted error of each row: the tolerance, or twice what the cast alone costs (a heuristic)."""
    return np.asarray(np.fmax(plan.limit_of(fmt), 2 * cast.error))


def _fold_result(
    rows: InputStatistics,
    cast: CastStatistics,
    stats: KernelStatistics,
    fmt: Format,
    kernel: Kernel,
    plan: Plan,
    out: ResultSummary,
) -> None:
    index, varying = rows.index, ~rows.constant
    response = respond(rows, stats, (plan.epsilon,), fmt, kernel, plan.prescale)
    nonfinite, zero, w, scale = response.nonfinite[0], response.zero[0], response.w[0], response.scale[0]
    E = row_error(rows, stats, response, plan.epsilon, fmt)[0]
    shared = scale_error(rows, stats, response, plan.epsilon)[0]
    meant = normalized_scale(rows, plan.model_epsilon)
    limits = _limits(cast, fmt, plan)
    residual = np.sqrt(np.maximum(E**2 - (shared * normalized_scale(rows, plan.epsilon)) ** 2, 0.0))
    variance = np.ldexp(rows.variance, 2 * (rows.unit + plan.prescale))
    variance_error = np.abs(stats.variance - variance) / np.where(variance > 0, variance, np.nan)
    variance_error = np.where(np.isnan(stats.variance) | np.isinf(stats.variance), np.inf, variance_error)
    emulated_ratio = np.where(nonfinite, np.nan, scale**2 * stats.A)
    peak = _peak(cast, stats, fmt, kernel, plan)

    code = _primary_codes(cast, rows, stats, response, E, shared, meant, limits, fmt, plan)
    failing = (code != "") | stats.affine_overflow
    operation = _first_bad_operation(cast, rows, stats, response)
    measure = _code_measures(rows, stats, E, limits, meant)
    for name in np.unique(code[code != ""]).tolist():
        chosen = code == name
        out.primary[name] += int(chosen.sum())
        out.extremes.see(f"code {name}", measure[name], index, chosen)
        out.first.see(f"code {name}", np.zeros(len(index)), index, chosen)
        if name in ("LN202", "LN204"):
            out.counts[f"{name} beyond"] += int((chosen & (E > 5 * limits)).sum())
            out.extremes.see(f"{name} error", E, index, chosen)
    for number, name in enumerate(OPERATIONS):
        for key in np.unique(code[failing & (operation == number)]).tolist():
            out.operations[(key or "LN107", name)] += int((failing & (operation == number) & (code == key)).sum())

    unverified = cast.finite & (
        nonfinite | ~(stats.error <= limits + fmt.unit_roundoff * np.abs(scale) * np.sqrt(stats.A))
    )
    gradient = gain(np.ldexp(rows.variance, 2 * rows.unit), plan.model_epsilon, plan.features, rms=plan.rms)
    max_weight = 1.0 if plan.weight is None else float(np.nanmax(np.abs(plan.weight), initial=0.0))
    out.counts.update(
        finite_rows=len(index),
        overflow=cast.overflow,
        underflow=cast.underflow,
        subnormal=cast.subnormal,
        nonzero=cast.nonzero,
        overflow_rows=int((~cast.finite).sum()),
        destroyed_rows=int((cast.constant & varying).sum()),
        variance_zero_rows=int((varying & (rows.variance > 0) & (stats.variance == 0)).sum()),
        variance_nonfinite_rows=int((~np.isfinite(stats.variance)).sum()),
        variance_negative_rows=int((stats.raw_variance < 0).sum()),
        nan=int(stats.core_nan.sum()),
        inf=int(stats.core_inf.sum()),
        nonfinite_rows=int(nonfinite.sum()),
        collapsed_rows=int((varying & zero).sum()),
        affine_nan=int(stats.output_nan.sum()),
        affine_inf=int(stats.output_inf.sum()),
        affine_nonfinite_rows=int(((stats.output_nan + stats.output_inf) > 0).sum()),
        affine_overflow_rows=int(stats.affine_overflow.sum()),
        gradient_overflow_rows=int((gradient * max_weight > fmt.max).sum()),
        failing_rows=int(failing.sum()),
        finite_cast_rows=int(cast.finite.sum()),
        zero_over_zero_rows=int((cast.finite & (w == 0) & nonfinite).sum()),
        unverified_rows=int(unverified.sum()),
        costly_cast_rows=int((cast.error > plan.limit_of(fmt)).sum()),
    )
    healthy = cast.finite & ~nonfinite
    out.error.see(stats.error[healthy])
    out.variance_error.see(variance_error[varying])
    out.ratio.see(emulated_ratio[varying])
    see = out.extremes.see
    see("error", stats.error, index, healthy)
    see("arithmetic_error", E, index, healthy)
    see("scale_error", np.abs(shared), index, healthy)
    see("residual_error", residual, index, healthy)
    see("peak", peak, index)
    see("healthy_peak", peak, index, ~failing)
    see("cast_error", cast.error, index)
    see("diff", stats.diff, index, np.isfinite(stats.diff))
    see("variance", stats.variance, index, np.isfinite(stats.variance))
    see("-variance", -stats.raw_variance, index, np.isfinite(stats.raw_variance))
    out.first.see("affine", np.zeros(len(index)), index, stats.affine_overflow)
    out.first.see("zero variance", np.zeros(len(index)), index, varying & (stats.variance == 0))


def _peak(cast: CastStatistics, stats: KernelStatistics, fmt: Format, kernel: Kernel, plan: Plan) -> Array:
    """Largest magnitude that each row makes the kernel hold, as a share of the range of the dtype that holds it."""
    at = kernel.stages(fmt)
    held = [
        (np.maximum(np.abs(cast.h_max), np.abs(cast.h_min)), fmt),
        (stats.square, at.square),
        (stats.square_sum, at.square_sum),
        (stats.variance, at.variance),
    ]
    if not plan.rms:
        held += [(stats.total, at.sum), (stats.diff, at.diff)]
    peak = np.max([np.abs(values) / stage.max for values, stage in held], axis=0)
    return np.where(np.isnan(peak), np.inf, peak)


def _primary_codes(
    cast: CastStatistics,
    rows: InputStatistics,
    stats: KernelStatistics,
    response: Response,
    E: Array,
    shared: Array,
    meant: Array,
    limits: Array,
    fmt: Format,
    plan: Plan,
) -> Array:
    """Return the primary code of each row, "" where it is healthy (design 7)."""
    matters = meant > plan.limit_of(fmt)
    nonfinite = response.nonfinite[0]
    statistic = [stats.total, stats.mean, stats.diff, stats.square_sum, stats.variance]
    overflowed = ~np.isfinite(np.stack(statistic)).all(axis=0)
    deviates = ~(limits >= E)
    return np.select(
        [
            ~cast.finite,
            cast.constant & ~rows.constant & matters,
            nonfinite & (stats.variance < 0),
            nonfinite & (response.w[0] == 0),
            nonfinite & overflowed,
            nonfinite,
            response.zero[0] & matters,
            deviates & (np.abs(shared) * meant > limits),
            deviates,
        ],
        ["LN101", "LN203", "LN201", "LN301", "LN103", "LN108", "LN104", "LN204", "LN202"],
        "",
    )


def _first_bad_operation(
    cast: CastStatistics, rows: InputStatistics, stats: KernelStatistics, response: Response
) -> Array:
    """Return the number in OPERATIONS of the first stage that went wrong in each row (design 5.8)."""
    inverse = response.inverse[0].astype(np.float64)
    core_maximum = response.core_maximum[0]
    return np.select(
        [
            ~cast.finite | (cast.constant & ~rows.constant),
            ~np.isfinite(stats.total),
            ~np.isfinite(stats.mean),
            ~np.isfinite(stats.diff) | ((stats.diff == 0) & ~rows.constant),
            ~np.isfinite(stats.square) | ((stats.square == 0) & ~rows.constant),
            ~np.isfinite(stats.variance) | (stats.variance < 0) | ((stats.variance == 0) & (stats.square != 0)),
            ~np.isfinite(response.w[0]) | (response.w[0] == 0),
            ~np.isfinite(inverse) | (inverse == 0),
            ~np.isfinite(core_maximum) | ((core_maximum == 0) & ~rows.constant),
            stats.affine_overflow,
        ],
        range(len(OPERATIONS) - 1),
        len(OPERATIONS) - 1,
    )


def _code_measures(
    rows: InputStatistics, stats: KernelStatistics, E: Array, limits: Array, meant: Array
) -> dict[str, Array]:
    """What is worst about a row of each code; decides which row a finding names."""
    amax = np.maximum(np.abs(rows.x_max), np.abs(rows.x_min))
    variance = np.ldexp(rows.variance, 2 * rows.unit)
    over = E / limits
    return {
        "LN101": amax,
        "LN203": meant,
        "LN201": -stats.raw_variance,
        "LN301": -variance,
        "LN103": variance,
        "LN108": amax,
        "LN104": variance,
        "LN204": over,
        "LN202": over,
    }


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
    epsilons = (plan.epsilon, *plan.epsilons)
    limits = _limits(cast, fmt, plan)
    for start in range(0, len(rows.index), SLICE):
        part = slice(start, start + SLICE)
        judged = np.flatnonzero(cast.finite[part]) + start
        if not len(judged):
            continue
        some_rows, some_stats = _pick(rows, judged), _pick(stats, judged)
        response = respond(some_rows, some_stats, epsilons, fmt, kernel, plan.prescale)
        F = row_error(some_rows, some_stats, response, plan.model_epsilon, fmt)
        table = EpsilonTable.empty(len(epsilons))
        table.nonfinite = response.nonfinite.sum(axis=1)
        table.failing = (~(limits[judged] >= F)).sum(axis=1)
        known = np.where(np.isnan(F), -1.0, F)
        at = known.argmax(axis=1)
        table.worst = known[np.arange(len(epsilons)), at]
        table.worst_row = np.where(table.worst >= 0, some_rows.index[at], -1)
        out.table.merge(table)


def _pick(statistics: Any, chosen: Array) -> Any:
    """Return the same statistics of some rows."""
    values = {f.name: getattr(statistics, f.name) for f in fields(statistics)}
    return type(statistics)(**{k: v[chosen] if isinstance(v, np.ndarray) else v for k, v in values.items()})
