"""What epsilon does to rows whose statistics are known: their fate, and the error in closed form (design 4).

Nothing here looks at elements: one number a row, kernel and epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic import Workspace
from ..double_double import two_product
from ..formats import Format
from ..kernels import Kernel, Stages
from . import interpreter
from .reference import inverse_root
from .rows import CastStatistics, InputStatistics, KernelStatistics, Plan

Array = NDArray[Any]


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

    def only(self, chosen: Array) -> Response:
        """Return the same of some rows."""
        return Response(**{f.name: _columns(getattr(self, f.name), chosen) for f in fields(self)})

    @property
    def nonfinite(self) -> Array:
        """Rows with NaN or Inf in the core."""
        return ~np.isfinite(self.core_maximum)

    @property
    def zero(self) -> Array:
        """Rows whose core is all zero."""
        return np.asarray(self.core_maximum == 0)


def _columns(values: Any, chosen: Array) -> Any:
    return values[..., chosen] if isinstance(values, np.ndarray) else values


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
        scale, scale_low = _reciprocal(held)
    else:
        scale = 1.0 / held
    ends = interpreter.Ends(
        diff=stats.diff.astype(at.diff.carrier),
        mean=stats.mean.astype(at.mean.carrier),
        h_max=cast.h_max,
        h_min=cast.h_min,
    )
    response = Response(
        w=w.astype(np.float64),
        inverse=inverse,
        scale=scale,
        scale_low=scale_low,
        core_maximum=interpreter.core_maximum(ends, inverse, fmt, kernel, plan.rms).astype(np.float64),
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
    scaled row.
    """
    taken = interpreter.shift_of(ends.mean, response.inverse, at, Workspace()).astype(np.float64) / response.scale
    t = rows.mean - np.ldexp(taken, -(rows.unit + prescale))
    response.v_mean = cast.shift + t
    response.D = cast.D + response.v_mean**2
    response.S = np.broadcast_to(cast.S, response.D.shape)
    response.A = rows.variance + 2 * response.S + response.D


def _reciprocal(den: Array) -> tuple[Array, Array]:
    """Return 1/den as a sum of two doubles; den = 0 gives Inf, Inf gives 0."""
    high = 1.0 / den
    product, error = two_product(high, den)
    low = high * ((1.0 - product) - error)
    return high, np.where(np.isfinite(low), low, 0.0)


def _rho(rows: InputStatistics, epsilon: float, prescale: int) -> tuple[Array, Array]:
    """Return 1/sqrt(q + epsilon * 4^-prescale) in units of the scaled row, as a sum of two doubles."""
    key = (epsilon, prescale)
    if key not in rows.roots:
        rows.roots[key] = inverse_root(rows.variance, rows.variance_low, rows.unit + prescale, epsilon)
    return rows.roots[key]


def row_error(
    rows: InputStatistics,
    response: Response,
    against: float,
    fmt: Format,
    prescale: int = 0,
) -> Array:
    """Return E (or F): the RMS of r_hat v_hat - rho v, with rho = 1/sqrt(q + against), before the final rounding.

    Shape (epsilons, rows), in units of the normalized output; NaN where the core is not finite. With the emulated
    epsilon as `against` (and its prescale) this is the arithmetic error E, with the model's the total deviation F
    (design 4).
    """
    rho, rho_low = _rho(rows, against, prescale)
    q, r = rows.variance, response.scale
    difference = r - rho
    if fmt.precision == 53:
        difference += response.scale_low - rho_low
    # difference^2 q + 2 difference r S + r^2 D, in the order of Horner
    squared: Array = difference * q
    squared += (2 * response.S) * r
    squared *= difference
    squared += r * r * response.D
    # the first form cancels when the kernel has emptied the row
    emptied = np.broadcast_to(~(response.A >= q / 4) | (response.A == 0), r.shape)
    if emptied.any():
        q, S, A, rho, r = (np.broadcast_to(part, r.shape)[emptied] for part in (q, response.S, response.A, rho, r))
        # where nothing is left the scale does not count; rho^2 alone may overflow
        squared[emptied] = np.where(A == 0, (rho * np.sqrt(q)) ** 2, r**2 * A - 2 * r * rho * (q + S) + rho**2 * q)
    error = np.sqrt(np.maximum(squared, 0.0, out=squared), out=squared)
    error[response.nonfinite] = np.nan
    return error


def cast_error(rows: InputStatistics, cast: CastStatistics, epsilon: float) -> Array:
    """Return G: the RMS of exact LN of the cast row minus exact LN of the row, both at an epsilon (design 4)."""
    q, D, S = rows.variance, cast.D, cast.S
    rho, _ = _rho(rows, epsilon, 0)
    w = q + 2 * S
    w += D
    np.maximum(w, 0.0, out=w)
    w += np.ldexp(epsilon, -2 * rows.unit) if rows.scaled else epsilon
    rho_h = 1.0 / np.sqrt(w)
    rho_h[~np.isfinite(rho_h)] = 0.0
    difference = rho_h - rho
    squared = difference * q
    squared += 2 * S * rho_h
    squared *= difference
    squared += rho_h * rho_h * D
    error = np.sqrt(np.maximum(squared, 0.0, out=squared), out=squared)
    error[D == 0] = 0.0
    if cast.constant.any():
        error[cast.constant] = (np.sqrt(q) * rho)[cast.constant]
    error[~cast.finite] = np.nan
    return np.asarray(error)


def scale_error(rows: InputStatistics, response: Response, against: float, prescale: int = 0) -> Array:
    """Return r_hat (q + S) / (rho q) - 1, the error that all elements of a row share; 0 for q = 0."""
    rho, _ = _rho(rows, against, prescale)
    q = rows.variance
    ratio = np.where(q > 0, response.scale * (q + response.S) / (rho * np.where(q > 0, q, 1.0)) - 1.0, 0.0)
    return np.where(response.nonfinite, np.nan, ratio)


def normalized_scale(rows: InputStatistics, epsilon: float, prescale: int = 0) -> Array:
    """Return sqrt(q / (q + epsilon)) of each row: the exact output's RMS, the root of the collapse ratio."""
    rho, _ = _rho(rows, epsilon, prescale)
    return np.asarray(np.sqrt(rows.variance) * rho)


def gains(rows: InputStatistics, epsilon: float, features: int, rms: bool, prescale: int = 0) -> tuple[Array, Array]:
    """Return the gain of each row (operator norm of the core's Jacobian) and its radial gain (design 1).

    LayerNorm: 0 for one feature, radial for two, tangential from three on; RMSNorm: radial for one, then tangential.
    Worked out in units of the scaled row, so that rows near the ends of float64 have one too.
    """
    rho, _ = _rho(rows, epsilon, prescale)
    dead = (rows.variance == 0) & (epsilon == 0)
    tangential = np.where(dead, np.inf, np.ldexp(rho, -rows.unit))
    share = 1.0 - np.minimum(rows.variance * rho * rho, 1.0)  # epsilon / (q + epsilon), when it is not small
    exact = np.ldexp(epsilon, -2 * (rows.unit + prescale)) * rho * rho
    radial = np.where(dead, np.inf, tangential * np.where(np.isfinite(exact), exact, share))
    free = features if rms else features - 1
    if free == 0:
        return np.zeros_like(radial), radial
    return (radial if free == 1 else tangential), radial
