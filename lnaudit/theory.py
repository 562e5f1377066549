"""The mathematics of layer norm: how epsilon, variance and size decide ratio, gain and response.

A row z of d features has the mean mu, the centred row v = z - mu, the biased variance q = |v|^2/d and the core
u = v/sqrt(q + epsilon); the output is weight*u + bias. RMSNorm is the same with mu = 0. The rest are consequences:

* u(z + c) = u(z) for LayerNorm, and u(a z; a^2 epsilon) = u(z; epsilon) for a > 0: only epsilon = 0 is blind to scale.
* A constant row (RMSNorm: a zero row) has v = 0: the core is 0 for every epsilon > 0 and 0/0 = NaN at epsilon = 0.
* The Jacobian of the core is P/sqrt(q + epsilon) - v v^T / (d (q + epsilon)^(3/2)), P = I - 11^T/d (RMSNorm: P = I).
  It shrinks what is parallel to v (radial) more than the rest (tangential), and LayerNorm annihilates 11^T.

Everywhere: results are float64, scalars for scalars; array_like arguments broadcast. A negative q or epsilon is a
ValueError; NaN beside finite numbers gives NaN, Inf the limit. Nothing overflows or underflows on the way to a result
that does not.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Floats = np.float64 | Array
ASYMPTOTE = math.sqrt(3 / 2)  # of `response`, for t to infinity


def collapse_ratio(q: ArrayLike, epsilon: ArrayLike) -> Floats:
    """Return q / (q + epsilon), the mean square of the core; 1 where both are 0 and where q is Inf.

    Near 1 for q >> epsilon, 1/2 at q = epsilon, near 0 for q << epsilon. An unequal weight or bias changes the mean and
    the variance of the output, not this.

    Parameters
    ----------
    q : array_like of float
        Biased variance of a row (RMSNorm: mean square).
    epsilon : array_like of float
        What is added to it inside the root.
    """
    q, epsilon = _not_negative(q, "q"), _not_negative(epsilon, "epsilon")
    with np.errstate(all="ignore"):
        ratio = 1.0 / (1.0 + epsilon / q)  # q + epsilon could overflow
    return np.where(((q == 0) & (epsilon == 0)) | np.isinf(q), 1.0, ratio)[()]


def tangential_gain(q: ArrayLike, epsilon: ArrayLike) -> Floats:
    """Return 1/sqrt(q + epsilon): the Jacobian's eigenvalue across v, d - 2 times (RMSNorm: d - 1 times)."""
    return _tangential(np.sqrt(_not_negative(q, "q")), _not_negative(epsilon, "epsilon"))


def radial_gain(q: ArrayLike, epsilon: ArrayLike) -> Floats:
    """Return epsilon / (q + epsilon)^(3/2): the Jacobian's eigenvalue along v, once; Inf where both are 0."""
    return _radial(np.sqrt(_not_negative(q, "q")), _not_negative(epsilon, "epsilon"))


def gain(q: ArrayLike, epsilon: ArrayLike, d: int, norm: str = "layer") -> Floats:
    """Return the operator norm of the Jacobian at a row of d features and variance q: its largest eigenvalue.

    LayerNorm: 0 for d = 1, radial for d = 2, tangential from 3 on; RMSNorm: radial for d = 1, tangential from 2 on.

    Parameters
    ----------
    q, epsilon : array_like of float
        As in `collapse_ratio`.
    d : int
        Features of a row, >= 1.
    norm : str
        "layer" or "rms".
    """
    free = _free_directions(d, norm)
    if free == 0:
        return np.zeros_like(tangential_gain(q, epsilon))[()]
    return radial_gain(q, epsilon) if free == 1 else tangential_gain(q, epsilon)


def eigenvalues(q: float, epsilon: float, d: int, norm: str = "layer") -> list[tuple[float, int]]:
    """Return the eigenvalues of the Jacobian, ascending, each with its multiplicity; these add up to d.

    LayerNorm: 0 once (along 1), `radial_gain` once (along v), `tangential_gain` d - 2 times; at a constant row (q = 0)
    1/sqrt(epsilon) d - 1 times. RMSNorm: without the 0, and one time more of the last.
    """
    free = _free_directions(d, norm)
    along = min(free, 1 if q > 0 else 0)  # v = 0 singles out no direction
    found = [
        (0.0, d - free),
        (float(radial_gain(q, epsilon)), along),
        (float(tangential_gain(q, epsilon)), free - along),
    ]
    return [(value, times) for value, times in found if times]


def largest_finite(weight: ArrayLike | None) -> float:
    """Return the largest finite magnitude in a weight; 1 without one, 0 where it has no finite element."""
    if weight is None:
        return 1.0
    magnitudes = np.abs(np.asarray(weight, np.float64))
    return float(magnitudes[np.isfinite(magnitudes)].max(initial=0.0))


def lipschitz_bound(epsilon: float, weight: ArrayLike | None = None) -> float:
    """Return max|weight| / sqrt(epsilon): outputs are never further apart than that times the distance of the rows.

    Without a weight it is the Lipschitz constant of the core, attained at a constant row for d >= 2 (RMSNorm: at the
    zero row); with one it is a bound, not attained in general. Inf at epsilon = 0. Elements of the weight that are not
    finite are left out.
    """
    root = float(np.sqrt(_not_negative(epsilon, "epsilon")))
    return math.inf if root == 0 else largest_finite(weight) / root


def response(t: ArrayLike, epsilon: ArrayLike) -> Floats:
    """Return h(t) = t / sqrt(2 t^2/3 + epsilon), the last element of the core of (-t, 0, t).

    It tends to `ASYMPTOTE` with t, and to minus that with -t. NaN where t and epsilon are 0.
    """
    t, epsilon = np.asarray(t, np.float64), _not_negative(epsilon, "epsilon")
    with np.errstate(all="ignore"):
        h = ASYMPTOTE * (t / np.hypot(t, ASYMPTOTE * np.sqrt(epsilon)))
    return np.asarray(np.where(np.isinf(t), np.copysign(ASYMPTOTE, t), h))[()]


def sensitivity(t: ArrayLike, epsilon: ArrayLike) -> Floats:
    """Return h'(t) = epsilon / (2 t^2/3 + epsilon)^(3/2), the slope of `response`: the radial gain at q = 2 t^2/3."""
    return _radial(np.abs(np.asarray(t, np.float64)) / ASYMPTOTE, _not_negative(epsilon, "epsilon"))


def normalize(z: ArrayLike, epsilon: float, norm: str = "layer") -> Array:
    """Return the core u of rows z, in float64 as exactly as that goes; emulated formats are `lnaudit.layer_norm`.

    Parameters
    ----------
    z : array_like of float, shape (..., d)
        Rows along the last axis.
    epsilon : float
        What is added to the variance inside the root.
    norm : str
        "layer" or "rms".
    """
    direction, size = _direction(z, norm)
    with np.errstate(all="ignore"):
        return np.asarray(direction * (size / np.hypot(size, np.sqrt(_not_negative(epsilon, "epsilon")))))


def jacobian(z: ArrayLike, epsilon: float, norm: str = "layer") -> Array:
    """Return the Jacobian of the core at one row z of shape (d,): P/sqrt(q+eps) - v v^T / (d (q+eps)^(3/2)).

    Put together from its eigenvalues, so that rows of any size have one. NaN where the core is 0/0.
    """
    if np.ndim(z) != 1:
        raise ValueError(f"z has shape {np.shape(z)}, the Jacobian is that of one row")
    v, size = _direction(z, norm)
    epsilon = float(_not_negative(epsilon, "epsilon"))
    if size == 0 and epsilon == 0:
        return np.full((len(v), len(v)), np.nan)
    along = np.outer(v, v) / len(v)
    across = np.eye(len(v)) - along - (1 / len(v) if norm == "layer" else 0)
    return np.asarray(_tangential(size, epsilon) * across + _radial(size, epsilon) * along)


def prescale(epsilon: float, k: int) -> float:
    """Return epsilon * 4^k, the epsilon that makes LN(2^k x) equal LN(x) with `epsilon`; exact in float64's range."""
    with np.errstate(all="ignore"):
        return float(np.ldexp(_not_negative(epsilon, "epsilon"), 2 * k))


def _not_negative(value: ArrayLike, name: str) -> Array:
    values = np.asarray(value, np.float64)
    negative = values < 0
    if negative.any():
        raise ValueError(f"{name} is {values[negative][0]}, it must be >= 0")
    return values


def _free_directions(d: int, norm: str) -> int:
    """Return the rank of P: in so many directions a row can vary as far as the norm can see."""
    if d < 1:
        raise ValueError(f"d is {d}, a row has at least one feature")
    return d if _is_rms(norm) else d - 1


def _is_rms(norm: str) -> bool:
    if norm not in ("layer", "rms"):
        raise ValueError(f"norm is {norm!r}, it must be 'layer' or 'rms'")
    return norm == "rms"


def _direction(z: ArrayLike, norm: str) -> tuple[Array, Array]:
    """Return v/sqrt(q) (0 where v is), shape (..., d), and sqrt(q), shape (..., 1), for rows of any size."""
    z, rms = np.asarray(z, np.float64), _is_rms(norm)
    if z.ndim == 0 or z.shape[-1] == 0:
        raise ValueError(f"z has shape {z.shape}, a row has at least one feature")
    with np.errstate(all="ignore"):
        exponent = np.frexp(np.abs(z).max(axis=-1, keepdims=True))[1]
        v = np.ldexp(z, -exponent)
        if not rms:
            v = v - v.mean(axis=-1, keepdims=True)
            # once more for what the rounding of the mean has left: a few ulp in a constant row, whose mean is exact
            v = v - v.mean(axis=-1, keepdims=True)
        size = np.sqrt(np.square(v).mean(axis=-1, keepdims=True))
        return np.where(size == 0, 0.0, v / size), np.ldexp(size, exponent)


def _tangential(size: ArrayLike, epsilon: ArrayLike) -> Floats:
    """Return 1/sqrt(size^2 + epsilon)."""
    with np.errstate(all="ignore"):
        return np.asarray(1.0 / np.hypot(size, np.sqrt(epsilon)))[()]


def _radial(size: ArrayLike, epsilon: ArrayLike) -> Floats:
    """Return epsilon / (size^2 + epsilon)^(3/2)."""
    with np.errstate(all="ignore"):
        root = np.hypot(size, np.sqrt(epsilon))
        # three divisions: all that lies between is between epsilon and the result
        return np.where(root == 0, np.inf, np.where(np.isinf(root), 0.0, epsilon / root / root / root))[()]
