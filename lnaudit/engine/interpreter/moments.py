"""The stages up to the variance: mean, centred values, sum of squares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import FUSED_REDUCTIONS, REDUCTIONS, Workspace, round_number, rounded
from ...formats import Format, wider
from ...kernels import Kernel, Stages
from .cascade import row_moments
from .operate import multiply_add, operate, store

Array = NDArray[Any]


@dataclass(kw_only=True)
class Ends:
    """What decides the largest magnitude of a core: max|v_hat|, the mean, the extremes of the cast row; shape (n,)."""

    diff: Array
    mean: Array
    h_max: Array
    h_min: Array


@dataclass(kw_only=True)
class Centered(Ends):
    """What a kernel has computed before epsilon enters; arrays of shape (n,) but h and v, of shape (d, n)."""

    h: Array
    v: Array
    total: Array
    square: Array
    square_sum: Array
    raw_variance: Array
    variance: Array


@dataclass(kw_only=True)
class _Rows:
    """Cast rows on their way: what every step needs."""

    h: Array
    d: int
    kernel: Kernel
    at: Stages
    ws: Workspace

    def reduce(self, b: Array, stage: Format, order: str) -> Array:
        return REDUCTIONS[order](b.astype(stage.carrier, copy=False), stage, self.ws)

    def averaged(self, total: Array, wide: Format, stage: Format) -> Array:
        """Make a sum of d terms a mean; terms that were scaled before are one already."""
        d = self.d
        if self.kernel.mean_scale == "divide":
            # the float64 quotient of <= 24 bits by the exact integer d is never near a tie it is not on
            return rounded(total.astype(np.float64) / d, wider(wide, stage), stage)
        if self.kernel.mean_scale == "reciprocal":
            return operate(self.ws, "mean", np.multiply, total, _reciprocal(d, wide), wider(wide, stage), stage).copy()
        return rounded(total, wider(wide, stage), stage)


def center(h: Array, h_max: Array, h_min: Array, fmt: Format, kernel: Kernel, rms: bool, ws: Workspace) -> Centered:
    """Run the stages up to the variance on cast rows h; h_max and h_min are their extremes."""
    at = kernel.stages(fmt)
    rows = _Rows(h=h, d=len(h), kernel=kernel, at=at, ws=ws)
    if rms:
        total = mean = np.zeros(h.shape[1], at.mean.carrier)
        v, square_sum = h, _sum_of_squares(rows, h, at.T)
    else:
        total, mean, running_sum = _mean(rows)
        v = operate(ws, "diff", np.subtract, h, mean, wider(wider(at.T, at.mean), at.diff), at.diff)
        squared = (h, at.T) if kernel.algorithm == "one_pass" else (v, at.diff)
        square_sum = _sum_of_squares(rows, *squared) if running_sum is None else running_sum
    return _completed(rows, v, h_max, h_min, total, mean, square_sum, rms)


def mean_of(total: Array, features: int, fmt: Format, kernel: Kernel, rms: bool) -> Array:
    """Return the mean of cast rows from their sum, by a kernel that takes one."""
    at = kernel.stages(fmt)
    if rms:
        return np.zeros(len(total), at.mean.carrier)
    return _Rows(h=total, d=features, kernel=kernel, at=at, ws=Workspace()).averaged(total, at.sum, at.mean)


def from_sums(
    features: int,
    h_max: Array,
    h_min: Array,
    total: Array,
    mean: Array,
    square_sum: Array,
    fmt: Format,
    kernel: Kernel,
    rms: bool,
) -> Centered:
    """Return what `center` does, but h and v, from sums that were taken elsewhere."""
    rows = _Rows(h=np.empty((0, 0)), d=features, kernel=kernel, at=kernel.stages(fmt), ws=Workspace())
    return _completed(rows, rows.h, h_max, h_min, total, mean, square_sum, rms)


def _completed(
    rows: _Rows, v: Array, h_max: Array, h_min: Array, total: Array, mean: Array, square_sum: Array, rms: bool
) -> Centered:
    at, kernel, ws = rows.at, rows.kernel, rows.ws
    largest = np.maximum(np.abs(h_max), np.abs(h_min))
    diff, diff_format = largest, at.T
    if not rms:
        # rounding is monotone, so the extremes of v are those of h, less the mean
        wide = wider(wider(at.T, at.mean), at.diff)
        ends = operate(ws, "ends", np.subtract, np.stack([h_max, h_min]), mean, wide, at.diff)
        diff, diff_format = np.abs(ends).max(axis=0), at.diff
    running = kernel.algorithm in _RUNNING and not rms
    raw = rows.averaged(square_sum, at.sum if running else at.square_sum, at.variance)
    if kernel.algorithm == "one_pass" and not rms:
        raw = _less_square_of_mean(rows, raw, mean)
        square = _square(rows, largest, at.T, "largest").copy()
    else:
        square = _square(rows, diff, diff_format, "largest").copy()
    return Centered(
        h=rows.h,
        h_max=h_max,
        h_min=h_min,
        v=v,
        total=total,
        mean=mean,
        diff=diff,
        square=square,
        square_sum=square_sum,
        raw_variance=raw,
        variance=_clamped(raw, kernel.clamp_negative),
    )


def _mean(rows: _Rows) -> tuple[Array, Array, Array | None]:
    """Return the sum, the mean and, of Welford's algorithm, the sum of squares; its running mean stands for its sum."""
    at = rows.at
    if rows.kernel.algorithm in _RUNNING:
        running, squares = _RUNNING[rows.kernel.algorithm](rows)
        return running, rounded(running, wider(at.sum, at.mean), at.mean), squares
    if rows.kernel.mean_scale == "terms":
        wide = wider(at.T, at.sum)
        terms = operate(rows.ws, "step", np.multiply, rows.h, _reciprocal(rows.d, at.T), wide, at.sum)
        total = rows.reduce(terms, at.sum, rows.kernel.reduction)
    else:
        total = rows.reduce(rows.h, at.sum, rows.kernel.reduction)
    return total, rows.averaged(total, at.sum, at.mean), None


def _welford(rows: _Rows) -> tuple[Array, Array]:
    """Return running mean and sum of squares: d = x - m, m += d/k, M2 += d (x - m), each operation rounded in `sum`.

    Welford, "Note on a method for calculating corrected sums of squares and products", Technometrics 4(3), 1962.
    """
    fmt, ws, n = rows.at.sum, rows.ws, rows.h.shape[1]
    wide = wider(rows.at.T, fmt)
    mean, squares = np.zeros(n, fmt.carrier), np.zeros(n, fmt.carrier)
    for k, x in enumerate(rows.h, 1):
        delta = operate(ws, "delta", np.subtract, x, mean, wide, fmt)
        if rows.kernel.mean_scale == "divide":
            part = rounded(delta.astype(np.float64) / k, fmt)
        elif rows.kernel.fuses_statistics:
            part = None
        else:
            part = operate(ws, "part", np.multiply, delta, _reciprocal(k, fmt), fmt, fmt)
        if part is None:
            mean = multiply_add(delta, np.full(n, _reciprocal(k, fmt), fmt.carrier), mean, fmt, fmt, ws)
        else:
            mean = operate(ws, "running", np.add, mean, part, fmt, fmt).copy()
        rest = operate(ws, "rest", np.subtract, x, mean, wide, fmt)
        if rows.kernel.fuses_statistics:
            squares = multiply_add(delta, rest, squares, fmt, fmt, ws)
        else:
            product = operate(ws, "part", np.multiply, delta, rest, fmt, fmt)
            squares = operate(ws, "squares", np.add, squares, product, fmt, fmt).copy()
    return mean, squares


def _cascade(rows: _Rows) -> tuple[Array, Array]:
    """Return mean and sum of squares as torch's RowwiseMoments does."""
    at, lanes = rows.at, int(rows.kernel.reduction.removeprefix("lanes").removesuffix("_fours"))
    # vectors of T hold twice as many elements as those of the sum, and are pushed in two halves
    halves = 1 if at.T.precision == at.sum.precision else 2
    h, fuses_rest = rows.h.astype(at.sum.carrier, copy=False), rows.kernel.fuses_statistics
    return row_moments(h, at.sum, lanes, halves, fuses_rest, rows.ws)


# algorithms that keep a running mean and sum of squares
_RUNNING: dict[str, Callable[[_Rows], tuple[Array, Array]]] = {"welford": _welford, "cascade": _cascade}


def _less_square_of_mean(rows: _Rows, mean_square: Array, mean: Array) -> Array:
    at = rows.at
    wide = wider(at.mean, at.variance)
    square = operate(rows.ws, "mean_square", np.multiply, mean, mean, wide, at.variance)
    return operate(rows.ws, "part", np.subtract, mean_square, square, at.variance, at.variance).copy()


def _sum_of_squares(rows: _Rows, v: Array, v_format: Format) -> Array:
    at, stage = rows.at, rows.at.square_sum
    if not rows.kernel.fuses_statistics:
        squares = store(_square(rows, v, v_format, "step"), stage, rows.ws)
        return rows.reduce(squares, stage, rows.kernel.order_of_squares)
    wide, factors = wider(v_format, stage), v
    if rows.kernel.mean_scale == "terms":
        factors = operate(
            rows.ws, "step", np.multiply, v, _reciprocal(rows.d, at.T), wider(v_format, at.square), at.square
        )
        wide = wider(wide, at.square)
    # kernels that only keep a running mean have no other order for the squares of RMSNorm
    reduce = FUSED_REDUCTIONS.get(rows.kernel.order_of_squares, FUSED_REDUCTIONS["serial"])
    return reduce(factors, v, wide, rows.ws, stage)


def _square(rows: _Rows, v: Array, v_format: Format, name: str) -> Array:
    """Return v * v, or (c * v) * v with c = 1/d where terms are scaled before they are summed."""
    stage = rows.at.square
    wide = wider(v_format, stage)
    if rows.kernel.mean_scale != "terms":
        return operate(rows.ws, name, np.multiply, v, v, wide, stage)
    factors = operate(rows.ws, f"{name} scaled", np.multiply, v, _reciprocal(rows.d, rows.at.T), wide, stage)
    return operate(rows.ws, name, np.multiply, factors, v, wide, stage)


def _reciprocal(k: int, fmt: Format) -> float:
    return round_number(1 / k, fmt)


def _clamped(variance: Array, clamp: str) -> Array:
    if clamp == "none":
        return variance
    clamped = np.where(variance < 0, variance.dtype.type(0), variance)
    return np.where(np.isnan(clamped), variance.dtype.type(0), clamped) if clamp == "zero-nan" else clamped
