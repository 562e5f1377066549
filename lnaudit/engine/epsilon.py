"""What epsilon does to rows whose statistics are known: their fate, and the error in closed form (design 4).

Nothing here looks at elements: one number a row, kernel and epsilon.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic import Workspace
from ..double_double import two_product, two_sum
from ..formats import Format
from ..kernels import Kernel, Stages
from . import interpreter
from .reference import inverse_root
from .rows import CastStatistics, InputStatistics, KernelStatistics, Plan

Array = NDArray[Any]
SMALLEST_SAFE = 2.0**-900  # above it a float64 has lost nothing to underflow


@dataclass(kw_only=True)
class Response:
    """How rows respond to epsilons; every array has shape (epsilons, rows).

    w: emulated variance + epsilon. inverse: the kernel's own denominator or 1/std. scale: r_hat, its 1/std in units
    of the scaled row, as a sum of two doubles (low only for float64). core_maximum: largest magnitude of the core.
    D, S, A, v_mean: as in KernelStatistics; of shape (epsilons, rows) where a kernel takes the mean off after the
    scaling, which makes v_hat depend on epsilon.
    """

    w: Array
    inverse: Array
    scale: Array
    scale_low: Array | float
    core_maximum: Array
    D: Array
    S: Array
    A: Array
    v_mean: Array

    def at(self, number: int) -> Response:
        """Return the same of one epsilon."""
        part = slice(number, number + 1)
        one = copy(self)  # with nonfinite and zero, if they are known
        vars(one).update({name: value[part] for name, value in vars(self).items() if np.ndim(value) == 2})
        return one

    @cached_property
    def nonfinite(self) -> Array:
        """Rows with NaN or Inf in the core."""
        return ~np.isfinite(self.core_maximum)

    @cached_property
    def zero(self) -> Array:
        """Rows whose core is all zero."""
        return np.asarray(self.core_maximum == 0)


def respond(
    rows: InputStatistics,
    cast: CastStatistics,
    stats: KernelStatistics,
    epsilons: tuple[float, ...],
    fmt: Format,
    kernel: Kernel,
    plan: Plan,
) -> Response:
    """Emulate what follows the variance, one number a row, for each epsilon as the kernel holds it."""
    at = kernel.stages(fmt)
    w, inverse = interpreter.inverse(stats.variance.astype(at.variance.carrier), epsilons, fmt, kernel)
    held = inverse.astype(np.float64)
    scale_low: Array | float = 0.0
    if kernel.inverse != "div":
        scale = held
    elif fmt.precision == 53:
        scale, scale_low = _quotient(1.0, held)
    else:
        scale = 1.0 / held
    ends = interpreter.Ends(
        diff=stats.diff.astype(at.diff.carrier),
        mean=stats.mean.astype(at.mean.carrier),
        h_max=cast.h_max,
        h_min=cast.h_min,
    )
    response = Response(
        w=w,
        inverse=inverse,
        scale=scale,
        scale_low=scale_low,
        core_maximum=interpreter.core_maximum(ends, inverse, fmt, kernel, plan.rms),
        D=stats.D,
        S=stats.S,
        A=stats.A,
        v_mean=stats.v_mean,
    )
    if kernel.shifts(plan.rms):
        _shift(response, ends, rows, cast, at, plan.prescale)
    if rows.scaled or plan.prescale:
        shift = rows.unit + plan.prescale
        response.scale, response.scale_low = np.ldexp(scale, shift), np.ldexp(scale_low, shift)
    return response


def _shift(
    response: Response, ends: interpreter.Ends, rows: InputStatistics, cast: CastStatistics, at: Stages, prescale: int
) -> None:
    """Set D, S and A of a kernel that takes off the rounded mean * rstd: v_hat = h - that / rstd (design 4).

    With c = h - x and t = mean(x) - mean_hat: D = mean((c + t)^2), S = mean(c v), A = q + 2S + D, in units of the
    scaled row. Of a constant cast row A is the mean of v_hat squared, to which the sum would cancel.
    """
    shift = interpreter.shift_of(ends.mean, response.inverse, at, Workspace()).astype(np.float64)
    taken, taken_low = _quotient(shift, response.scale)
    # 1/std = 0 leaves nothing of the row, whatever is taken off
    taken = np.where(response.scale == 0, ends.mean, taken)
    unscale = -(rows.unit + prescale)
    mean, mean_low = two_sum(rows.mean, cast.shift)
    response.v_mean = (mean - np.ldexp(taken, unscale)) + (mean_low + rows.mean_low - np.ldexp(taken_low, unscale))
    S = np.where(cast.constant, -rows.variance, cast.S)
    response.D = cast.D + response.v_mean**2
    response.S = np.broadcast_to(S, response.D.shape)
    response.A = np.where(cast.constant, 0.0, rows.variance + 2 * S + cast.D) + response.v_mean**2


def _quotient(a: Array | float, b: Array) -> tuple[Array, Array]:
    """Return a/b as a sum of two doubles, the second 0 where the first is not finite."""
    (a, k), (b, n) = np.frexp(a), np.frexp(b)
    high = np.asarray(a / b)
    product, error = two_product(high, b)
    low = ((a - product) - error) / b
    return np.ldexp(high, k - n), np.ldexp(np.where(np.isfinite(low), low, 0.0), k - n)


def inverse_roots(rows: InputStatistics, epsilons: tuple[float, ...], prescale: int) -> tuple[Array, Array]:
    """Return rho = 1/sqrt(q + epsilon * 4^-prescale) in units of the scaled row, as a sum of two doubles.

    Shape (epsilons, rows); the low part is a number where no format needs it.
    """
    key = (epsilons, prescale)
    if key not in rows.roots:
        if rows.precise or rows.scaled or prescale:
            roots = [inverse_root(rows.variance, rows.variance_low, rows.unit + prescale, e) for e in epsilons]
            rows.roots[key] = np.stack([root for root, _ in roots]), np.stack([low for _, low in roots])
        else:
            w = rows.variance + np.array([[epsilon] for epsilon in epsilons])
            root = np.divide(1.0, np.sqrt(w, out=w), out=w)
            if not np.isfinite(root.max(initial=0.0)):
                root[np.isinf(root)] = 0.0
            rows.roots[key] = root, np.zeros(())
    return rows.roots[key]


def row_error(
    rows: InputStatistics,
    response: Response,
    against: tuple[float, ...],
    fmt: Format,
    prescale: int = 0,
) -> Array:
    """Return E (or F): the RMS of r_hat v_hat - rho v, with rho = 1/sqrt(q + against), before the final rounding.

    Shape (epsilons, rows), in units of the normalized output; NaN where the core is not finite. With the emulated
    epsilons as `against` (and their prescale) this is the arithmetic error E, with the model's alone the total
    deviation F (design 4).
    """
    rho, rho_low = inverse_roots(rows, against, prescale)
    q, r = rows.variance, response.scale
    difference = r - rho
    if fmt.precision == 53:
        difference += response.scale_low - rho_low
    squared = _squared(difference, q, r, response.S, response.D)
    # that cancels when the kernel has emptied the row
    emptied = ~(response.A >= q / 4)
    emptied |= response.A == 0
    if emptied.any():
        emptied = np.broadcast_to(emptied, r.shape)
        q, S, A, rho, r = (np.broadcast_to(part, r.shape)[emptied] for part in (q, response.S, response.A, rho, r))
        # where nothing is left the scale does not count; rho^2 alone may overflow
        squared[emptied] = np.where(A == 0, (rho * np.sqrt(q)) ** 2, r**2 * A - 2 * r * rho * (q + S) + rho**2 * q)
    error = np.sqrt(np.maximum(squared, 0.0, out=squared), out=squared)
    lost = ~(np.isfinite(error) | response.nonfinite)
    if lost.any():
        # beside a square that overflows rho v does not count
        np.copyto(error, response.scale * np.sqrt(response.A), where=lost)
    error[response.nonfinite] = np.nan
    return error


def _squared(difference: Array, q: Array, r: Array, S: Array, D: Array) -> Array:
    """Return difference^2 q + 2 difference r S + r^2 D, in the order of Horner."""
    squared: Array = difference * q
    step = (2 * S) * r
    squared += step
    squared *= difference
    np.multiply(r, r, out=step)
    step *= D
    squared += step
    return squared


def cast_error(rows: InputStatistics, cast: CastStatistics, epsilons: tuple[float, ...]) -> Array:
    """Return G: the RMS of exact LN of the cast row minus exact LN of the row, both at an epsilon (design 4).

    Shape (epsilons, rows).
    """
    q, D, S = rows.variance, cast.D, cast.S
    if not D.any():  # the cast changes nothing
        return np.where(cast.finite, 0.0, np.full((len(epsilons), 1), np.nan))
    rho, _ = inverse_roots(rows, epsilons, 0)
    added = np.array([[epsilon] for epsilon in epsilons])
    w = np.maximum(q + 2 * S + D, 0.0) + (np.ldexp(added, -2 * rows.unit) if rows.scaled else added)
    rho_h = np.divide(1.0, np.sqrt(w, out=w), out=w)
    rho_h[~np.isfinite(rho_h)] = 0.0
    squared = _squared(rho_h - rho, q, rho_h, S, D)
    error = np.sqrt(np.maximum(squared, 0.0, out=squared), out=squared)
    for where, value in ((D == 0, 0.0), (cast.constant, np.sqrt(q) * rho), (~cast.finite, np.nan)):
        if where.any():
            error = np.where(where, value, error)
    return error


def scale_error(rows: InputStatistics, response: Response, rho: Array) -> Array:
    """Return r_hat (q + S) / (rho q) - 1, the error that all elements of a row share; 0 for q = 0.

    Shape (epsilons, rows); rho as `inverse_roots` gives it for the emulated epsilons.
    """
    some = rows.variance > 0
    q = np.where(some, rows.variance, 1.0)
    ratio = np.where(some, response.scale * (q + response.S) / (rho * q) - 1.0, 0.0)
    return np.where(response.nonfinite, np.nan, ratio)


def normalized_scale(rows: InputStatistics, epsilon: float, prescale: int = 0) -> Array:
    """Return sqrt(q / (q + epsilon)) of each row: the exact output's RMS, the root of the collapse ratio."""
    rho = inverse_roots(rows, (epsilon,), prescale)[0][0]
    return np.asarray(np.sqrt(rows.variance) * rho)


def gains(rows: InputStatistics, epsilon: float, features: int, rms: bool, prescale: int = 0) -> tuple[Array, Array]:
    """Return the gain of each row (operator norm of the core's Jacobian) and its radial gain (design 1).

    LayerNorm: 0 for one feature, radial for two, tangential from three on; RMSNorm: radial for one, then tangential.
    Worked out in units of the scaled row, so that rows near the ends of float64 have one too.
    """
    rho = inverse_roots(rows, (epsilon,), prescale)[0][0]
    dead = (rows.variance == 0) & (epsilon == 0)
    tangential = np.ldexp(rho, -rows.unit) if rows.scaled else rho
    if rows.scaled:
        # in units of a row near an end of float64 the root may be subnormal or epsilon 0, in its own they are not
        w = np.ldexp(rows.variance, 2 * rows.unit) + np.ldexp(epsilon, -2 * prescale)
        tangential = np.where((w > SMALLEST_SAFE) & np.isfinite(w), 1.0 / np.sqrt(w), tangential)
    tangential = np.where(dead, np.inf, tangential)
    share = 1.0 - np.minimum(rows.variance * rho * rho, 1.0)  # epsilon / (q + epsilon), when it is not small
    exact = np.ldexp(epsilon, -2 * (rows.unit + prescale)) * rho * rho
    radial = tangential * np.where(np.isfinite(exact), exact, share) if epsilon > 0 else np.zeros_like(rho)
    radial = np.where(dead, np.inf, radial)
    free = features if rms else features - 1
    if free == 0:
        return np.zeros_like(radial), radial
    return (radial if free == 1 else tangential), radial
