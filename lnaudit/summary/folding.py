"""Folds the row statistics of a block into a Summary."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..engine.epsilon import cast_error, inverse_roots, respond, row_error
from ..engine.rows import CastStatistics, InputStatistics, KernelStatistics, Plan, RowStatistics, pick
from ..formats import Format
from ..kernels import Kernel
from .codes import Before, Judged, before_epsilon, judge, row_limits
from .fold_result import Peaks, fold_details, fold_judged, fold_statistics
from .fold_rows import fold_drift, fold_gain, fold_mismatch, fold_rows
from .model import EpsilonTable, ResultSummary, Summary
from .points import point_table

if TYPE_CHECKING:
    from ..engine.numba_epsilon import Emulation

Array = NDArray[Any]
SLICE = 2_048  # rows whose epsilon table is worked out at a time: temporaries stay in cache
AT_ONCE = 8  # points


def fold(statistics: RowStatistics, plan: Plan, engine: str = "numpy") -> Summary:
    """Return the Summary of some rows; engine: what works out many epsilons, "numpy" or "numba", bit by bit alike."""
    summary = Summary.empty(plan)
    rows = statistics.input
    fold_rows(rows, plan, summary.input)
    fixed = summary.fixed
    if fixed is not None:
        fixed.input.merge(summary.input)
    fold_gain(rows, plan, summary.input)
    fold_drift(rows, plan, summary.input)
    for under in (summary, *summary.variants):
        fold_mismatch(rows, under.plan, under.input)
    if not len(rows.index):
        return summary
    at_points: list[tuple[int, Peaks, Emulation, Array]] = []
    for i, ((fmt, kernel), stats) in enumerate(zip(plan.results, statistics.kernels, strict=True)):
        cast, result = statistics.casts[kernel.stages(fmt).T], summary.results[i]
        peaks = fold_statistics(rows, cast, stats, fmt, kernel, plan, result)
        if fixed is not None:
            fixed.results[i].merge(result)
        for variant in summary.variants:
            variant.results[i].merge(result)
        before = before_epsilon(rows, cast, stats)
        compiled = _compiled(rows, cast, stats, before, fmt, kernel, plan) if engine == "numba" else None
        judged = judge(rows, cast, stats, fmt, kernel, plan)
        for under in (summary, *summary.variants):
            judged = judged.under(fmt, under.plan)
            numbers = fold_judged(judged, before, peaks, fmt, under.results[i])
            fold_details(judged, before, numbers, fmt, kernel, under.results[i])
            if compiled is None:
                _fold_table(rows, cast, stats, fmt, kernel, under.plan, under.results[i])
            elif plan.epsilons:
                under.results[i].table = EpsilonTable(*compiled.deviations(judged.limits))
        if compiled is not None and not stats.point_error.shape[1]:
            if plan.points:
                at_points.append((i, peaks, compiled, _affine(stats)))
            continue
        summary.add_points()
        for start in range(0, len(summary.points), AT_ONCE):
            _fold_points(rows, cast, stats, before, peaks, i, start, summary.points[start : start + AT_ONCE])
    if at_points:
        _fold_verdicts(rows, plan, at_points, summary)
    return summary


def _fold_verdicts(
    rows: InputStatistics, plan: Plan, compiled: list[tuple[int, Peaks, Emulation, Array]], summary: Summary
) -> None:
    """Judge the rows at all points by the compiled loops, in the results of these numbers."""
    from ..engine.numba_epsilon import verdicts

    found = verdicts([(emulation, affine) for _, _, emulation, affine in compiled], plan.points)
    for (i, peaks, _, _), of_points in zip(compiled, found, strict=True):
        summary.tables[i] = point_table(of_points, rows, plan, peaks, plan.results[i][0])


def _compiled(
    rows: InputStatistics,
    cast: CastStatistics,
    stats: KernelStatistics,
    before: Before,
    fmt: Format,
    kernel: Kernel,
    plan: Plan,
) -> Emulation | None:
    """Return an emulation as the compiled loops read it; None if they do not cover it or there is nothing to do."""
    from ..engine import numba_epsilon

    if not (plan.epsilons or plan.points) or not numba_epsilon.covers(rows, fmt, kernel, plan):
        return None
    return numba_epsilon.Emulation(rows, cast, stats, before.finite, fmt, kernel, plan)


def _affine(stats: KernelStatistics) -> Array:
    """Return which rows weight and bias take out of the range, shape (points, rows), or (1, rows) if all are alike."""
    if stats.point_overflow.any():
        return stats.point_overflow.T
    # a point at which no row was run has none
    return np.zeros((1, len(stats.D)), bool) if stats.point_overflow.shape[1] else stats.affine_overflow[None]


def _fold_points(
    rows: InputStatistics,
    cast: CastStatistics,
    stats: KernelStatistics,
    before: Before,
    peaks: Peaks,
    i: int,
    start: int,
    points: list[Summary],
) -> None:
    """Judge the rows at some points, as if the epsilon of each were the model's; `start` is the number of the first."""
    plan = points[0].plan
    fmt, kernel = plan.results[i]
    epsilons = tuple(point.plan.epsilon for point in points)
    response = respond(rows, cast, stats, epsilons, fmt, kernel, plan)
    errors, costs = row_error(rows, response, epsilons, fmt), cast_error(rows, cast, epsilons)
    limits, (rho, _) = row_limits(costs, fmt, plan), inverse_roots(rows, epsilons, 0)
    by_elements = stats.point_error.shape[1] > 0
    for k, point in enumerate(points):
        at, here = start + k, response.at(k)
        here_cast, here_stats = copy(cast), copy(stats)
        here_cast.error = costs[k]
        if by_elements:
            here_stats.error = stats.point_error[:, at]
            total, squares = stats.point_sum[:, at], stats.point_square[:, at]
        else:
            here_stats.error = errors[k]
            # of the whole row, from its mean and its mean square
            scale = here.scale * plan.features
            total, squares = scale * here.v_mean, here.scale * scale * here.A
        if stats.point_overflow.shape[1]:
            here_stats.affine_overflow = stats.point_overflow[:, at]
        judged = Judged(
            rows=rows,
            cast=here_cast,
            stats=here_stats,
            response=here,
            error=errors[k] if kernel.has_closed_form(plan.rms) else here_stats.error,
            limits=limits[k],
            accepted=plan.limit_of(fmt),
            rho=rho[k],
            plan=point.plan,
        )
        point.results[i].moments += [total.sum(), squares.sum()]
        fold_judged(judged, before, peaks, fmt, point.results[i])


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
    if not plan.epsilons:
        return
    limits = row_limits(cast.error, fmt, plan)
    for start in range(0, len(rows.index), SLICE):
        part = slice(start, start + SLICE)
        judged = np.flatnonzero(cast.finite[part]) + start
        if not len(judged):
            continue
        some = pick(rows, judged)
        response = respond(some, pick(cast, judged), pick(stats, judged), plan.tried, fmt, kernel, plan)
        F = row_error(some, response, (plan.model_epsilon,), fmt)
        table = EpsilonTable.empty(len(plan.tried))
        table.nonfinite = response.nonfinite.sum(axis=1)
        table.failing = (~(limits[judged] >= F)).sum(axis=1)
        known = np.where(np.isnan(F), -1.0, F)
        at = known.argmax(axis=1)
        table.worst = known[np.arange(len(plan.tried)), at]
        table.worst_row = np.where(table.worst >= 0, some.index[at], -1)
        out.table.merge(table)
