"""Fused multiply-add with one rounding, by sums that are rounded to odd.

A sum rounded to odd keeps in its last bit whether something was cut off, so that rounding it again to at least two bits
fewer equals rounding the exact sum once (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums: proved
algorithms using rounding to odd", IEEE Transactions on Computers 57(4), 2008).
"""

from __future__ import annotations

import math

import numpy as np

from ..double_double import two_product, two_sum
from ..formats import Format
from .rounding import flushed_operand, round_in_place
from .workspace import Array, Workspace

# where Dekker's product and the sums below are exact: neither the split nor a sum overflows, the error of the product
# is a multiple of the smallest subnormal number
LARGEST_FACTOR, LARGEST, SMALLEST_PRODUCT = 2.0**995, 2.0**1020, 2.0**-960


def fma(a: Array, b: Array, c: Array, fmt: Format, ws: Workspace | None = None) -> Array:
    """Return a * b + c rounded to a format once, in its carrier.

    Parameters
    ----------
    a, b, c : ndarray, shapes that broadcast
        Values of `fmt`; for a format other than float64 any of at most 24 bits and float32's range will do.
    ws : Workspace, optional
        Scratch memory.
    """
    a, b, c = (flushed_operand(x, fmt) for x in (a, b, c))
    return fused(a, b, c, fmt, Workspace() if ws is None else ws)


def fused(a: Array, b: Array, c: Array, fmt: Format, ws: Workspace) -> Array:
    """Return fma of operands that are not subnormal where the format flushes."""
    total = _of_doubles(a, b, c, ws) if fmt.precision == 53 else _of_singles(a, b, c, ws)
    round_in_place(total, fmt, ws)
    return total.astype(fmt.carrier, copy=False)


def _of_singles(a: Array, b: Array, c: Array, ws: Workspace) -> Array:
    """Return the sum rounded to odd: the product of 24 bits by 24 is exact in float64."""
    shape = np.broadcast_shapes(a.shape, b.shape, c.shape)
    product, addend = (ws.array(name, shape, "float64") for name in ("product_exact", "addend"))
    np.multiply(a, b, out=product, dtype=np.float64)
    np.copyto(addend, c)
    return sum_to_odd(product, addend, ws)


def sum_to_odd(a: Array, b: Array, ws: Workspace) -> Array:
    """Return the float64 sum of two arrays of one shape rounded to odd."""
    total = np.add(a, b, out=np.empty(a.shape))
    step = np.subtract(total, a, out=ws.array("odd_step", total.shape, "float64"))
    error = np.subtract(total, step, out=ws.array("odd_error", total.shape, "float64"))
    np.subtract(a, error, out=error)
    np.subtract(b, step, out=step)
    np.add(error, step, out=error)
    # positive where the sum was rounded toward zero, negative where away from it, 0 or NaN where it is exact
    np.sign(error, out=error)
    np.multiply(error, total, out=error)
    away = np.less(error, 0, out=ws.array("odd_away", total.shape, "bool"))
    inexact = np.greater(error, 0, out=ws.array("odd_inexact", total.shape, "bool"))
    np.logical_or(inexact, away, out=inexact)
    bits = total.view(np.int64)
    np.subtract(bits, away, out=bits)
    np.bitwise_or(bits, inexact, out=bits)
    return total


def _of_doubles(a: Array, b: Array, c: Array, ws: Workspace) -> Array:
    """Return the float64 result, by error-free transformations where they hold and by integers elsewhere."""
    a, b, c = (x.astype(np.float64, copy=False) for x in np.broadcast_arrays(a, b, c))
    product, product_low = two_product(a, b)
    small, small_low = two_sum(c, product_low)
    high, high_low = two_sum(product, small)
    result = np.asarray(high + sum_to_odd(np.asarray(small_low), np.asarray(high_low), ws))
    size = np.abs(product)
    holds = (size >= SMALLEST_PRODUCT) & (size <= LARGEST) & (np.abs(c) <= LARGEST)
    holds &= (np.abs(a) <= LARGEST_FACTOR) & (np.abs(b) <= LARGEST_FACTOR)
    if not holds.all():
        result[~holds] = _elsewhere(a[~holds], b[~holds], c[~holds])
    return result


def _elsewhere(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c of float64 vectors at the ends of the range, where two roundings are often as good as one."""
    # right where an operand is not finite or zero, where the product is too small to count and where it must overflow
    result = np.asarray(a * b + c)
    finite = np.isfinite(a) & np.isfinite(b)
    np.copyto(result, c, where=finite & np.isinf(c))
    exponent = np.frexp(a)[1] + np.frexp(b)[1]  # 2^(exponent - 2) <= |a b| < 2^exponent
    decided = ~finite | ~np.isfinite(c) | (a == 0) | (b == 0) | (exponent <= -1075) | (exponent >= 1027)
    for i in np.flatnonzero(~decided):
        result[i] = _by_integers(float(a[i]), float(b[i]), float(c[i]))
    return result


def _by_integers(a: float, b: float, c: float) -> float:
    """Round a * b + c to float64: integers over a power of two, divided with one correct rounding."""
    (ma, ka), (mb, kb), (mc, kc) = map(_significand, (a, b, c))
    k = min(ka + kb, kc)
    exact = (ma * mb << (ka + kb - k)) + (mc << (kc - k))
    try:
        return exact / (1 << -k) if k < 0 else float(exact << k)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _significand(x: float) -> tuple[int, int]:
    """Return integers m and k with x = m 2^k."""
    fraction, exponent = math.frexp(x)
    return int(math.ldexp(fraction, 53)), exponent - 53
