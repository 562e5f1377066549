"""Sums and products of float64 without error, and 1/sqrt to about 100 bits: a number is a sum of two doubles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return s and e with s = fl(a + b) and s + e = a + b exactly (Knuth, TAOCP 2, 4.2.2)."""
    s: Array = a + b
    bb = s - a
    return s, (a - (s - bb)) + (b - bb)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return p and e with p = fl(a * b) and p + e = a * b exactly, absent over- and underflow (Dekker 1971)."""
    p = a * b
    split = 134217729.0  # 2^27 + 1
    ta, tb = split * a, split * b
    ah, bh = ta - (ta - a), tb - (tb - b)
    al, bl = a - ah, b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def reciprocal_root(w: Array, w_low: Array | float = 0.0) -> tuple[Array, Array]:
    """Return 1/sqrt(w + w_low) of float64 as a sum of two doubles, to about 100 bits (one Newton step)."""
    y: Array = 1.0 / np.sqrt(w)
    # Newton's residual 1 - w y^2 with w scaled by its own root, so that nothing over- or underflows
    square, square_low = two_product(y, y)
    product, product_low = two_product(w, square)
    residual = (1.0 - product) - product_low - w * square_low - w_low * square
    return y, 0.5 * y * residual
