"""Sums of numbers of at most 24 bits and of their squares without any error, where float64 has room for them.

All numbers of a row are multiples of a unit u, the last place of the smallest that is not 0. As long as the sum of
their magnitudes stays below 2^53 u, every float64 sum of them is exact, in any order. A square has 48 bits: it is cut
in two, and the sums of the high and of the low parts are exact likewise. `fits` says of which rows the numbers are not
too far apart for this. What their variance is follows from three numbers a row, by the textbook formula (Chan, Golub,
LeVeque 1983), with which nothing is wrong in exact arithmetic.

Layout: features first, shape (d, n). The compiled twin is `compiled.references`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..double_double import two_product, two_sum

Array = NDArray[Any]
# bits from the smallest number to the sum of all; with the 24 of a number itself one less than a double holds, so that
# the parts of the variance can be added too
ROOM = 28


@dataclass(kw_only=True)
class Sums:
    """The sum of a row, and that of its squares in two parts; exact where `fits`, shape (n,)."""

    fits: Array
    total: Array
    high: Array
    low: Array


def width(d: int) -> float:
    """Return a power of two that is not below d, at least 4."""
    return math.ldexp(1.0, max(2, (d - 1).bit_length()))


def _power(x: Array) -> Array:
    """Return the largest powers of two that are not above x, 0 of 0."""
    return np.where(x > 0, np.ldexp(0.5, np.frexp(x)[1]), 0.0)


def exact_sums(x: Array, amax: Array) -> Sums:
    """Return sums of rows of float32 numbers; x: in float64, amax: their largest magnitudes."""
    size = np.abs(x)
    least = np.where(size > 0, size, np.inf).min(axis=0)
    P, top = width(len(x)), _power(amax)
    square = np.multiply(x, x, out=size)
    # its last place is that of what is cut off: squares are below 2^51 of it
    magic = 3 * P * top * top
    high = square + magic
    high -= magic
    square -= high
    fits = (top == 0) | (top * P <= 2.0**ROOM * _power(least))
    return Sums(fits=fits, total=x.sum(axis=0), high=high.sum(axis=0), low=square.sum(axis=0))


def no_sums(x: Array) -> Sums:
    """Return the sums of rows of longer numbers: none fits."""
    nothing = np.zeros(x.shape[1])
    return Sums(fits=np.zeros(x.shape[1], bool), total=nothing, high=nothing, low=nothing)


def centred(sums: Sums, d: int) -> tuple[Array, Array]:
    """Return d times the sum of squares about the mean, d * sum(x^2) - sum(x)^2, exactly, as a sum of two float64.

    In units of u^2 it is a whole number below 2^104; products of two doubles are a sum of two, whose second parts are
    below 2^51, so that these can be added up.
    """
    scale = np.full_like(sums.total, float(d))
    a, a_low = two_product(scale, sums.high)
    b, b_low = two_product(scale, sums.low)
    c, c_low = two_product(sums.total, sums.total)
    left, error = two_sum(a, -c)
    left, rest = two_sum(left, b)
    return two_sum(left, rest + (((error + a_low) - c_low) + b_low))
