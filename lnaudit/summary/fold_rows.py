"""Folds what is known of the rows of the file, whatever emulates them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine.epsilon import gains, normalized_scale
from ..engine.rows import InputStatistics, Plan
from ..theory import collapse_ratio
from .model import InputSummary
from .parts import chosen

Array = NDArray[Any]


def fold_rows(rows: InputStatistics, plan: Plan, out: InputSummary) -> None:
    """Fold what does not depend on epsilon."""
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
        varying_rows=int(varying.sum()),
    )
    for name, row in (("nan", rows.first_nan_row), ("nonfinite", rows.first_nonfinite_row)):
        if row >= 0:
            out.first.see_first(name, np.array([row]))
    if not len(amax):
        return
    variance = _variance(rows)
    out.extremes.see("max_abs", amax, rows.index)
    out.extremes.see("variance", variance, rows.index, varying)
    out.extremes.see("-variance", -variance, rows.index, varying)
    out.first.see_first("zero", rows.index, amax == 0)
    out.first.see_first("constant", rows.index, rows.constant)
    out.variance.see(chosen(variance, varying))
    mean = np.ldexp(rows.mean, rows.unit) if rows.scaled else rows.mean
    of_mean, of_variance = plan.already
    normalized = varying & (np.abs(mean) <= of_mean) & (np.abs(variance - 1) <= of_variance)
    out.counts["normalized_rows"] += int(normalized.sum())


def fold_gain(rows: InputStatistics, plan: Plan, out: InputSummary) -> None:
    """Fold what the norm does to gradients at the model's epsilon, and where epsilon sets the scale."""
    if len(rows.index):
        varying = ~rows.constant
        dominated = varying & (_variance(rows) < plan.model_epsilon)
        out.counts["epsilon_dominated_rows"] += int(np.count_nonzero(dominated))
        largest, radial = gains(rows, plan.model_epsilon, plan.features, plan.rms)
        out.gain.see(chosen(largest, varying))
        out.extremes.see("gain", largest, rows.index, varying)
        out.extremes.see("radial_gain", radial, rows.index, varying)


def fold_mismatch(rows: InputStatistics, plan: Plan, out: InputSummary) -> None:
    """Fold how far the epsilon of another program moves the rows from the model's."""
    varying = ~rows.constant
    if plan.compare_epsilon is not None and len(rows.index):
        scale = normalized_scale(rows, plan.model_epsilon)
        drift = np.abs(normalized_scale(rows, plan.compare_epsilon) - scale)
        out.counts["mismatch_rows"] += int((varying & (drift > plan.tolerance)).sum())
        out.extremes.see("drift", drift, rows.index, varying)


def fold_drift(rows: InputStatistics, plan: Plan, out: InputSummary) -> None:
    """Fold how far the epsilons that are tried move the rows from the model's."""
    q = np.sort(chosen(_variance(rows), ~rows.constant))
    if len(q):
        tried = np.array([plan.effective(epsilon) for epsilon in plan.tried])
        out.distortion[:] = _largest_drifts(q, tried, plan.model_epsilon)


def _largest_drifts(q: Array, epsilons: Array, model_epsilon: float) -> Array:
    """Return for each epsilon the largest |sqrt(q/(q+epsilon)) - sqrt(q/(q+model_epsilon))|; q: ascending.

    The difference has one extreme in q, where its derivative is 0: at a^2 b^2/(a+b) with a and b the cube roots of the
    epsilons. So the largest is that of the row below it or of the row above.
    """
    a, b = np.cbrt(epsilons), np.cbrt(model_epsilon)
    above = np.searchsorted(q, (a * b) ** 2 / np.where(a + b > 0, a + b, 1.0))
    beside = q[np.clip([above - 1, above], 0, len(q) - 1)]
    drifts = np.abs(np.sqrt(collapse_ratio(beside, epsilons)) - np.sqrt(collapse_ratio(beside, model_epsilon)))
    return np.asarray(drifts.max(axis=0))


def _variance(rows: InputStatistics) -> Array:
    return np.ldexp(rows.variance, 2 * rows.unit) if rows.scaled else rows.variance
