"""The stages after the variance: epsilon, the root, the normalized values, weight and bias."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import Workspace, flushed_operand, reciprocal_root_once, round_number, rounded
from ...formats import Format, wider
from ...kernels import Kernel, Stages
from .moments import Centered, Ends
from .operate import multiply_add, operate, store

Array = NDArray[Any]


def inverse(variance: Array, epsilons: tuple[float, ...], fmt: Format, kernel: Kernel) -> tuple[Array, Array]:
    """Return what is inverted and the denominator or 1/std, each of shape (len(epsilons), n).

    What is inverted is variance + epsilon; the variance where there is no epsilon; root + epsilon where it is added
    outside the root.
    """
    at = kernel.stages(fmt)
    variance = np.broadcast_to(variance, (len(epsilons), *variance.shape))
    if kernel.epsilon_place == "inside":
        w, w_format = _plus_epsilon(variance, epsilons, at.variance, at.plus_epsilon, at.epsilon), at.plus_epsilon
    else:
        w, w_format = variance, at.variance
    if kernel.inverse == "rsqrt":
        once = reciprocal_root_once(w.reshape(-1), wider(w_format, at.rstd)).reshape(w.shape)
        return w, rounded(once, at.rstd)
    root_format = wider(w_format, at.rstd)
    root = rounded(np.sqrt(flushed_operand(w, root_format), dtype=root_format.carrier), root_format, at.rstd)
    if kernel.epsilon_place == "outside":
        root = w = _plus_epsilon(root, epsilons, at.rstd, at.rstd, at.epsilon)
    if kernel.inverse == "div":
        return w, root
    return w, rounded(np.divide(root.dtype.type(1), root), at.rstd)


def _plus_epsilon(x: Array, epsilons: tuple[float, ...], own: Format, stage: Format, held_in: Format) -> Array:
    wide = wider(wider(own, held_in), stage)
    held = np.array([[round_number(e, held_in)] for e in epsilons]).astype(held_in.carrier)
    x, held = flushed_operand(x, wide), flushed_operand(held, wide)
    return rounded(np.add(x, held, dtype=wide.carrier), wide, stage)


def _normalize_format(at: Stages, rms: bool) -> Format:
    return wider(wider(at.T if rms else at.diff, at.rstd), at.normalized)


def normalize(rows: Centered, inverse_: Array, fmt: Format, kernel: Kernel, rms: bool, ws: Workspace) -> Array:
    """Return the normalized values n: the core before the final rounding to the output's dtype, shape (d, n)."""
    at = kernel.stages(fmt)
    if kernel.shifts(rms):
        return _scaled_and_shifted(rows.h, rows.mean, inverse_, at, kernel, ws)
    ufunc = np.divide if kernel.inverse == "div" else np.multiply
    return operate(ws, "step", ufunc, rows.v, inverse_, _normalize_format(at, rms), at.normalized)


def _scaled_and_shifted(h: Array, mean: Array, rstd: Array, at: Stages, kernel: Kernel, ws: Workspace) -> Array:
    """Return h * rstd + (-(mean * rstd)); the mean of the rows and 1/std have the shape of the last axes of h."""
    wide, stage = wider(wider(at.T, at.rstd), at.normalized), at.normalized
    shift = -shift_of(mean, rstd, at, ws)
    if kernel.fuses_apply:
        return multiply_add(h, rstd, shift, wide, stage, ws)
    scaled = operate(ws, "scaled", np.multiply, h, rstd, wide, stage)
    return operate(ws, "step", np.add, scaled, shift, stage, stage)


def shift_of(mean: Array, rstd: Array, at: Stages, ws: Workspace) -> Array:
    """Return the rounded mean * rstd, which a kernel that scales first takes off afterwards."""
    wide = wider(wider(at.mean, at.rstd), at.normalized)
    return operate(ws, "shift", np.multiply, mean, rstd, wide, at.normalized)


def core_maximum(ends: Ends, inverse_: Array, fmt: Format, kernel: Kernel, rms: bool) -> Array:
    """Return the largest magnitude of the core by the kernel's own last operations; decides the fate of a row.

    Not finite: NaN or Inf in the core. Zero: an all-zero core. Rounding is monotone, so the ends of a row decide.
    """
    at, ws = kernel.stages(fmt), Workspace()
    if kernel.shifts(rms):
        both = np.stack([np.broadcast_to(end, inverse_.shape) for end in (ends.h_max, ends.h_min)])
        n = _scaled_and_shifted(both.astype(at.T.carrier), ends.mean, inverse_, at, kernel, ws)
        return np.asarray(np.abs(rounded(n, at.output)).max(axis=0))
    wide = _normalize_format(at, rms)
    ufunc = np.divide if kernel.inverse == "div" else np.multiply
    diff, inverse_ = flushed_operand(ends.diff, wide), flushed_operand(inverse_, wide)
    return rounded(ufunc(diff, inverse_, dtype=wide.carrier), wide, at.normalized, at.output)


def core(n: Array, fmt: Format, kernel: Kernel, ws: Workspace) -> Array:
    """Return the output with weight 1 and bias 0."""
    at = kernel.stages(fmt)
    if at.output is at.normalized:
        return n
    out = ws.array("core", n.shape, n.dtype.name)
    np.copyto(out, n)
    return store(out, at.output, ws)


def output(
    rows: Centered,
    n: Array,
    inverse_: Array,
    weight: Array | None,
    bias: Array | None,
    fmt: Format,
    kernel: Kernel,
    rms: bool,
    ws: Workspace,
) -> Array:
    """Return the output with weight and bias, float64 of shape (d,), each rounded to the affine format.

    n: the normalized values; inverse_: 1/std or the denominator, shape (n,).
    """
    if weight is None and bias is None:
        return core(n, fmt, kernel, ws)
    at = kernel.stages(fmt)
    W = None if weight is None else rounded(weight, at.affine)[:, None]
    B = None if bias is None else rounded(bias, at.affine)[:, None]
    v_format = at.T if rms else at.diff
    order = kernel.association if W is not None or kernel.association == "folded" else "normalized_first"
    if order == "gamma_center_first":
        scaled = _times_plus(rows.v, v_format, W, at.affine, None, at, kernel, ws).copy()
        y = _times_plus(scaled, at.affine, inverse_, at.rstd, B, at, kernel, ws)
    elif order in ("gamma_rstd_first", "folded"):
        scale = _times_plus(np.broadcast_to(inverse_, n.shape), at.rstd, W, at.affine, None, at, kernel, ws).copy()
        scale_format = at.rstd if W is None else at.affine
        if order == "folded" and not rms:
            zero = np.zeros((1, 1), at.affine.carrier)
            B = _times_plus(-rows.mean, at.mean, scale, scale_format, zero if B is None else B, at, kernel, ws).copy()
            y = _times_plus(rows.h, at.T, scale, scale_format, B, at, kernel, ws)
        else:
            y = _times_plus(rows.v, v_format, scale, scale_format, B, at, kernel, ws)
    else:
        y = _times_plus(n, at.normalized, W, at.affine, B, at, kernel, ws)
    return store(y if y is not n else y.copy(), at.output, ws)


def _times_plus(
    a: Array,
    a_format: Format,
    factor: Array | None,
    factor_format: Format,
    addend: Array | None,
    at: Stages,
    kernel: Kernel,
    ws: Workspace,
) -> Array:
    """Return a * factor + addend in the affine format, what is None left out."""
    wide = wider(wider(a_format, factor_format), at.affine)
    if factor is not None and addend is not None and kernel.fuses_apply:
        return multiply_add(a, factor, addend, wide, at.affine, ws)
    product, held_in = a, a_format
    if factor is not None:
        product, held_in = operate(ws, "affine", np.multiply, a, factor, wide, at.affine), at.affine
    if addend is None:
        return product
    return operate(ws, "biased", np.add, product, addend, wider(held_in, at.affine), at.affine)
