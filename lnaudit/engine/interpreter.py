"""Runs a kernel row on numbers: one small function a stage, each operation rounded once (design 3).

Layout: features first, shape (d, n). Values stand in the carrier of their format.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic import REDUCTIONS, Workspace, reciprocal_root_once, round_in_place, round_number, rounded
from ..formats import Format, wider
from ..kernels import Kernel, Stages

Array = NDArray[Any]


def operate(
    ws: Workspace, name: str, ufunc: np.ufunc, a: Array, b: Array | float, wide: Format, stage: Format
) -> Array:
    """Apply an operation in the widest format that takes part and store it in its stage's."""
    shape = np.broadcast_shapes(a.shape, np.shape(b))
    out = ws.array(name, shape, wide.carrier)
    ufunc(a, b, out=out, dtype=wide.carrier)
    round_in_place(out, wide, ws)
    return store(out, stage, ws)


def store(x: Array, stage: Format, ws: Workspace) -> Array:
    """Round an array to a stage's format where it stands, and give it that format's carrier."""
    round_in_place(x, stage, ws)
    return x.astype(stage.carrier, copy=False)


@dataclass(kw_only=True)
class Centered:
    """What a kernel has computed before epsilon enters; arrays of shape (n,) but v of shape (d, n)."""

    v: Array
    total: Array
    mean: Array
    diff: Array
    square: Array
    square_sum: Array
    raw_variance: Array
    variance: Array


def center(h: Array, h_max: Array, h_min: Array, fmt: Format, kernel: Kernel, rms: bool, ws: Workspace) -> Centered:
    """Run the stages up to the variance on cast rows h; h_max and h_min are their extremes."""
    at = kernel.stages(fmt)
    d, n = h.shape
    reduce = REDUCTIONS[kernel.reduction]
    if rms:
        v = h
        total = mean = np.zeros(n, at.mean.carrier)
        diff = np.maximum(np.abs(h_max), np.abs(h_min))
    else:
        total = reduce(h.astype(at.sum.carrier, copy=False), at.sum, ws)
        mean = _divided(total, d, at.sum, at.mean)
        wide = wider(wider(fmt, at.mean), at.diff)
        v = operate(ws, "diff", np.subtract, h, mean, wide, at.diff)
        # rounding is monotone, so the extremes of v are those of h, less the mean
        ends = operate(ws, "ends", np.subtract, np.stack([h_max, h_min]), mean, wide, at.diff)
        diff = np.abs(ends).max(axis=0)
    one_pass = kernel.algorithm == "one_pass" and not rms
    squared, squared_format = (h, fmt) if one_pass else (v, fmt if rms else at.diff)
    largest = np.maximum(np.abs(h_max), np.abs(h_min)) if one_pass else diff
    wide = wider(squared_format, at.square)
    p = operate(ws, "step", np.multiply, squared, squared, wide, at.square)
    square = operate(ws, "largest", np.multiply, largest, largest, wide, at.square).copy()
    square_sum = reduce(store(p, at.square_sum, ws), at.square_sum, ws)
    raw = _divided(square_sum, d, at.square_sum, at.variance)
    if one_pass:
        mean_square = operate(ws, "mean_square", np.multiply, mean, mean, wider(at.mean, at.variance), at.variance)
        raw = operate(ws, "one_pass", np.subtract, raw, mean_square, at.variance, at.variance).copy()
    return Centered(
        v=v,
        total=total,
        mean=mean,
        diff=diff,
        square=square,
        square_sum=square_sum,
        raw_variance=raw,
        variance=_clamped(raw, kernel.clamp_negative),
    )


def _divided(total: Array, d: int, wide: Format, stage: Format) -> Array:
    """Divide by the exact integer d: the float64 quotient of <= 24 bits by d is never near a tie it is not on."""
    return rounded(total.astype(np.float64) / d, wider(wide, stage), stage)


def _clamped(variance: Array, clamp: str) -> Array:
    if clamp == "none":
        return variance
    clamped = np.where(variance < 0, variance.dtype.type(0), variance)
    return np.where(np.isnan(clamped), variance.dtype.type(0), clamped) if clamp == "zero-nan" else clamped


def inverse(variance: Array, epsilons: tuple[float, ...], fmt: Format, kernel: Kernel) -> tuple[Array, Array]:
    """Return w = variance + epsilon and the denominator or 1/std, each of shape (len(epsilons), n)."""
    at = kernel.stages(fmt)
    wide = wider(at.variance, at.epsilon)
    held = np.array([[round_number(e, at.epsilon)] for e in epsilons]).astype(at.epsilon.carrier)
    w = rounded(np.add(variance, held, dtype=wide.carrier), wide, at.variance)
    if kernel.inverse == "rsqrt":
        once = reciprocal_root_once(w.reshape(-1), wider(at.variance, at.rstd)).reshape(w.shape)
        return w, rounded(once, at.rstd)
    root_format = wider(at.variance, at.rstd)
    root = rounded(np.sqrt(w, dtype=root_format.carrier), root_format, at.rstd)
    if kernel.inverse == "div":
        return w, root
    return w, rounded(np.divide(root.dtype.type(1), root), at.rstd)


def _normalize_wide(at: Stages) -> Format:
    return wider(wider(at.diff, at.rstd), at.normalized)


def normalize(v: Array, inverse_: Array, fmt: Format, kernel: Kernel, ws: Workspace) -> Array:
    """Return the normalized values n = v / den or v * rstd, before weight and bias and the final rounding."""
    at = kernel.stages(fmt)
    ufunc = np.divide if kernel.inverse == "div" else np.multiply
    return operate(ws, "step", ufunc, v, inverse_, _normalize_wide(at), at.normalized)


def core_maximum(diff: Array, inverse_: Array, fmt: Format, kernel: Kernel) -> Array:
    """Return the largest magnitude of the core by the kernel's own last operation; decides the fate of a row.

    Not finite: NaN or Inf in the core. Zero: an all-zero core.
    """
    at = kernel.stages(fmt)
    wide = _normalize_wide(at)
    ufunc = np.divide if kernel.inverse == "div" else np.multiply
    return rounded(ufunc(diff, inverse_, dtype=wide.carrier), wide, at.normalized, at.output)


def core(n: Array, fmt: Format, kernel: Kernel, ws: Workspace) -> Array:
    """Return the output with weight 1 and bias 0."""
    at = kernel.stages(fmt)
    if at.output is at.normalized:
        return n
    out = ws.array("core", n.shape, n.dtype.name)
    np.copyto(out, n)
    return store(out, at.output, ws)


def output(n: Array, weight: Array | None, bias: Array | None, fmt: Format, kernel: Kernel, ws: Workspace) -> Array:
    """Return rd(rd(n * weight) + bias); weight and bias are float64 of shape (d,), rounded to the affine format."""
    at = kernel.stages(fmt)
    wide = wider(at.normalized, at.affine)
    y = n
    if weight is not None:
        y = operate(ws, "affine", np.multiply, y, rounded(weight, at.affine)[:, None], wide, at.affine)
    if bias is not None:
        y = operate(ws, "biased", np.add, y, rounded(bias, at.affine)[:, None], wider(wide, at.affine), at.affine)
    return core(y, fmt, kernel, ws) if y is n else store(y, at.output, ws)
