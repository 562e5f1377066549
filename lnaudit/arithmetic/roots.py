"""The reciprocal square root, rounded once."""

from __future__ import annotations

import math

import numpy as np

from ..double_double import reciprocal_root
from ..formats import Format
from .rounding import flushed_operand, rounded
from .workspace import Array


def reciprocal_root_once(w: Array, fmt: Format) -> Array:
    """Return 1/sqrt(w) rounded to `fmt` once, in its carrier; a flushing format reads a subnormal w as zero.

    Up to 24 bits float64 is enough (no significand of float32 comes near a tie); float64 itself is corrected by a
    Newton step in double-double and, within 2^-40 of a tie, by integers.
    """
    exact = flushed_operand(w.astype(np.float64), fmt)
    return rounded(1.0 / np.sqrt(exact) if fmt.precision < 53 else _corrected(exact), fmt)


def _corrected(w: Array) -> Array:
    """Return 1/sqrt(w) of float64 rounded to nearest even."""
    # an exact even power of two brings w into [1/4, 1), where the Newton step cannot over- or underflow
    fraction, exponent = np.frexp(w)
    odd = exponent & 1
    fraction, exponent = np.ldexp(fraction, -odd), exponent + odd
    y, low = reciprocal_root(fraction)
    ok = np.isfinite(w) & (w > 0)
    low = np.where(ok, low, 0.0)
    result = np.where(ok, np.ldexp(y + low, -(exponent // 2)), 1.0 / np.sqrt(w))
    # distance of y + low from the midpoint between two doubles, in units of the spacing
    remainder = np.abs(low - ((y + low) - y)) / np.spacing(y)
    for i in np.flatnonzero(ok & (np.abs(remainder - 0.5) < 2.0**-40)):
        result[i] = _exact_reciprocal_root(float(w[i]))
    return np.asarray(result)


def _exact_reciprocal_root(w: float) -> float:
    """Round 1/sqrt(w) to float64 with integers: floor(2^k / sqrt(w)) and whether something was cut off."""
    numerator, denominator = w.as_integer_ratio()
    k = 120 + max(0, numerator.bit_length() - denominator.bit_length()) // 2
    square = (denominator << (2 * k)) // numerator
    root = math.isqrt(square)
    # a sticky bit below decides between tie and not a tie; int / int divides with one correct rounding
    sticky = 2 * root + (root * root * numerator != denominator << (2 * k))
    return sticky / (1 << (k + 1))
