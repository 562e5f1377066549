"""The reference: exact layer norm of the values in the file, in float64 with 16-lane sums or in double-double.

Layout: features first, shape (d, n), so that sums and row constants run along contiguous memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic import lane_sum
from ..double_double import reciprocal_root, two_product, two_sum
from .exact_sums import Sums, centred, exact_sums, no_sums

Array = NDArray[Any]
# squares, their double-double tails and sums of 2^50 terms stay normal within 2^+-300
EXTREME_EXPONENT = 300


@dataclass(kw_only=True)
class Reference:
    """Exact centred rows: v of shape (d, n), mean (0 for RMSNorm) and q of shape (n,), with low parts in double-double.

    `unit` holds the exponent by which a row was scaled, x * 2^-unit. The mean has a low part in any case.
    """

    v: Array
    mean: Array
    mean_low: Array
    variance: Array
    unit: Array
    v_low: Array | None = None
    variance_low: Array | None = None

    def inverse_root(self, epsilon: float) -> tuple[Array, Array]:
        """Return 1/sqrt(q + epsilon) in units of the scaled row, as a sum of two doubles of shape (n,)."""
        low = np.zeros_like(self.variance) if self.variance_low is None else self.variance_low
        return inverse_root(self.variance, low, self.unit, epsilon)


@dataclass(kw_only=True)
class ExactCore:
    """The exact core of rows, shape (d, n), with low parts in double-double."""

    high: Array
    low: Array | None = None

    def subtract_from(self, core: Array, *, precise: bool) -> None:
        """Subtract it from a float64 array where that stands, the low parts too if `precise`."""
        np.subtract(core, self.high, out=core)
        if self.low is not None and precise:
            np.subtract(core, self.low, out=core)


def exact_core(reference: Reference, epsilon: float, out: Array) -> ExactCore:
    """Return v / sqrt(q + epsilon); `out` is memory for it, of the shape of the rows."""
    rho, rho_low = reference.inverse_root(epsilon)
    high = np.multiply(reference.v, rho, out=out)
    if reference.v_low is None:
        return ExactCore(high=high)
    _, error = two_product(reference.v, rho)
    return ExactCore(high=high, low=error + reference.v_low * rho + reference.v * rho_low)


def inverse_root(variance: Array, variance_low: Array, unit: Array, epsilon: float) -> tuple[Array, Array]:
    """Return rho = 1/sqrt(q + epsilon * 4^-unit) as a sum of two doubles; 0 where both are 0, for u = 0 there."""
    scaled = np.ldexp(epsilon, -2 * unit)
    w, low = two_sum(variance, scaled)
    low = np.where(np.isfinite(w), low, 0.0) + variance_low
    # four to a power brings w near 1, where the Newton step is safe
    half = np.frexp(w)[1] // 2
    root, root_low = reciprocal_root(np.ldexp(w, -2 * half), np.ldexp(low, -2 * half))
    usable = np.isfinite(w) & (w > 0)
    # in units of a tiny row epsilon may pass the range: then it is all that counts
    otherwise = np.ldexp(1.0 / math.sqrt(epsilon), unit) if epsilon > 0 else 0.0
    return (
        np.where(usable, np.ldexp(root, -half), np.where(np.isinf(w), otherwise, 0.0)),
        np.where(usable, np.ldexp(root_low, -half), 0.0),
    )


def center(
    x: Array,
    *,
    rms: bool,
    constant: Array,
    amax: Array,
    double_double: bool,
    narrow: bool = False,
    spare: Array | None = None,
) -> Reference:
    """Centre finite rows exactly and take their variance.

    Parameters
    ----------
    x : ndarray of float64, shape (d, n)
        Used as working memory.
    rms : bool
        Leave out the centring.
    constant : ndarray of bool, shape (n,)
        Rows whose elements are all equal (RMSNorm: zero): v and q become exactly 0.
    amax : ndarray of float64, shape (n,)
        max|x| of each row.
    double_double : bool
        Carry about 100 bits instead of a corrected two-pass in 53.
    narrow : bool
        The numbers are those of a float32 or a shorter format: of most rows double-double sums are exact at once.
    spare : ndarray of float64, shape (d, n), optional
        Memory for the squares.
    """
    exponent = np.frexp(amax)[1]
    unit = np.where((np.abs(exponent) > EXTREME_EXPONENT) & (amax > 0), exponent, 0)
    if unit.any():
        x = np.ldexp(x, -unit)
    if double_double:
        sums = exact_sums(x, amax) if narrow else no_sums(x)
        result = _center_double_double(x, rms, unit, sums)
    else:
        result = _center_corrected(x, rms, unit, spare)
    if constant.any():
        result.v[:, constant] = 0.0
        result.variance[constant] = 0.0
        if result.v_low is not None and result.variance_low is not None:
            result.v_low[:, constant] = 0.0
            result.variance_low[constant] = 0.0
    return result


def _center_corrected(x: Array, rms: bool, unit: Array, spare: Array | None) -> Reference:
    """Corrected two-pass: centre, then take the mean of the residual off (Chan, Golub, LeVeque 1983)."""
    d = len(x)
    mean = mean_low = np.zeros(x.shape[1])
    if not rms:
        for _ in range(2):
            part = lane_sum(x) / d
            np.subtract(x, part, out=x)
            mean, mean_low = two_sum(mean, part)
    variance = lane_sum(np.multiply(x, x, out=spare)) / d
    return Reference(v=x, mean=mean, mean_low=mean_low, variance=variance, unit=unit)


def _center_double_double(x: Array, rms: bool, unit: Array, sums: Sums) -> Reference:
    d, left = len(x), ~sums.fits
    if rms:
        mean = mean_low = np.zeros(x.shape[1])
        v, v_low = x, np.zeros_like(x)
        high, low = two_sum(sums.high, sums.low)
    else:
        total, total_low = sums.total.copy(), np.zeros_like(sums.total)
        if left.any():
            total[left], total_low[left] = _tree_sum(x[:, left], np.zeros_like(x[:, left]))
        mean, mean_low = divide(total, total_low, d)
        v, error = two_sum(x, -mean)
        v, v_low = two_sum(v, -mean_low)
        v_low += error
        high, low = divide(*centred(sums, d), d)
    if left.any():
        high[left], low[left] = _tree_sum_of_squares(v[:, left], v_low[:, left])
    variance, variance_low = divide(high, low, d)
    return Reference(
        v=v,
        mean=mean,
        mean_low=mean_low,
        variance=variance,
        unit=unit,
        v_low=v_low,
        variance_low=variance_low,
    )


def _renormalize(high: Array, low: Array) -> tuple[Array, Array]:
    total = high + low
    return total, low - (total - high)


def divide(high: Array, low: Array, d: int) -> tuple[Array, Array]:
    """Divide a double-double by a whole number."""
    quotient = high / d
    product, error = two_product(quotient, np.full_like(quotient, float(d)))
    return _renormalize(quotient, (((high - product) - error) + low) / d)


def _tree_sum_of_squares(v: Array, v_low: Array) -> tuple[Array, Array]:
    square, square_low = two_product(v, v)
    square_low += 2.0 * v * v_low
    return _tree_sum(square, square_low)


def _tree_sum(high: Array, low: Array) -> tuple[Array, Array]:
    """Sum double-doubles over the first axis by halves."""
    while len(high) > 1:
        half = 1 << ((len(high) - 1).bit_length() - 1)
        rest = len(high) - half
        total, error = two_sum(high[:rest], high[half:])
        error += low[:rest] + low[half:]
        total, error = _renormalize(total, error)
        high = np.concatenate([total, high[rest:half]])
        low = np.concatenate([error, low[rest:half]])
    return high[0], low[0]
