"""The mathematics of layer norm: how epsilon, variance and size decide ratio, gain and response (design 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]


def collapse_ratio(q: ArrayLike, epsilon: float) -> Array:
    """Return q / (q + epsilon), the mean square of the normalized row; 1 where both are 0.

    Parameters
    ----------
    q : array_like of float
        Variance of a row (RMSNorm: mean square), biased.
    epsilon : float
        Added to the variance inside the root.
    """
    q = np.asarray(q, np.float64)
    with np.errstate(all="ignore"):
        return np.where(((q == 0) & (epsilon == 0)) | np.isposinf(q), 1.0, q / (q + epsilon))


def tangential_gain(q: ArrayLike, epsilon: float) -> Array:
    """Return 1/sqrt(q + epsilon): the gain across the centred row, d - 2 times an eigenvalue of the Jacobian."""
    with np.errstate(all="ignore"):
        return 1.0 / np.sqrt(np.asarray(q, np.float64) + epsilon)


def radial_gain(q: ArrayLike, epsilon: float) -> Array:
    """Return epsilon / (q + epsilon)^(3/2): the gain along the centred row, once an eigenvalue of the Jacobian."""
    w = np.asarray(q, np.float64) + epsilon
    with np.errstate(all="ignore"):
        return np.where(w == 0, np.inf, (epsilon / w) / np.sqrt(w))


def largest_finite(weight: ArrayLike | None) -> float:
    """Return the largest finite magnitude in a weight; 1 without one, 0 where it has no finite element."""
    if weight is None:
        return 1.0
    magnitudes = np.abs(np.asarray(weight, np.float64))
    return float(magnitudes[np.isfinite(magnitudes)].max(initial=0.0))


def lipschitz_bound(epsilon: float, weight: ArrayLike | None = None) -> float:
    """Return max|weight| / sqrt(epsilon), which bounds the norm's Lipschitz constant (attained with weight 1)."""
    return float("inf") if epsilon == 0 else largest_finite(weight) / float(np.sqrt(epsilon))


def response(t: ArrayLike, epsilon: float) -> Array:
    """Return h(t) = t / sqrt(2 t^2/3 + epsilon), the last element of LN(-t, 0, t); it tends to sqrt(3/2)."""
    t = np.asarray(t, np.float64)
    with np.errstate(all="ignore"):
        # divided through by |t|, so that t^2 cannot overflow
        return np.where(t == 0, np.where(epsilon == 0, np.nan, 0.0), np.sign(t) / np.sqrt(2 / 3 + epsilon / t / t))


def sensitivity(t: ArrayLike, epsilon: float) -> Array:
    """Return h'(t) = epsilon / (2 t^2/3 + epsilon)^(3/2), the slope of `response`: the radial gain at q = 2 t^2/3."""
    with np.errstate(all="ignore"):
        return radial_gain(2 * np.asarray(t, np.float64) ** 2 / 3, epsilon)


def jacobian(z: ArrayLike, epsilon: float) -> Array:
    """Return the Jacobian of the core at a row z of shape (d,): P/sqrt(q+eps) - v v^T / (d (q+eps)^(3/2))."""
    z = np.asarray(z, np.float64)
    d = len(z)
    v = z - z.mean()
    w = v @ v / d + epsilon
    with np.errstate(all="ignore"):
        return np.asarray((np.eye(d) - 1.0 / d) / np.sqrt(w) - np.outer(v, v) / (d * w**1.5))


def prescale(epsilon: float, k: int) -> float:
    """Return the epsilon that makes LN(2^k x) equal LN(x) with `epsilon`: epsilon * 4^k."""
    return float(np.ldexp(epsilon, 2 * k))
