"""The cast: rows rounded to a format once, and what that alone costs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic import Workspace, lane_sum, round_in_place, rounded
from ..formats import Format
from .epsilon import cast_error
from .reference import Reference
from .rows import CastStatistics, InputStatistics, Plan

Array = NDArray[Any]


def cast_rows(x: Array, fmt: Format, prescale: int, ws: Workspace) -> Array:
    """Round rows to a format once, from the file's own dtype; shape (d, n), in the format's carrier."""
    if prescale:
        x = np.ldexp(x.astype(np.float64), prescale)
    if x.dtype == fmt.carrier and fmt.precision in (24, 53) and not fmt.flushes:
        return x
    h = ws.array("wide_cast", x.shape, x.dtype.name)
    np.copyto(h, x)
    round_in_place(h, fmt, ws)
    if h.dtype != fmt.carrier:
        narrow = ws.array("cast", x.shape, fmt.carrier)
        np.copyto(narrow, h, casting="same_kind")
        return narrow
    return h


def analyse_cast(
    x: Array, fmt: Format, rows: InputStatistics, reference: Reference, plan: Plan, ws: Workspace
) -> tuple[Array, CastStatistics]:
    """Return the cast rows, shape (d, n), and their statistics."""
    h = cast_rows(x, fmt, plan.prescale, ws)
    cast = cast_of_ends(rows, fmt, plan)
    # finite numbers that are no longer: Inf, or NaN in a format without it
    cast.overflow = 0 if cast.finite.all() else int((~np.isfinite(h[:, ~cast.finite])).sum())
    zeros, cast.subnormal = _count_small(h, fmt, ws)
    cast.nonzero = x.size - (zeros if h is x or not zeros else int(np.count_nonzero(x == 0)))
    if h is not x:
        cast.underflow = zeros - (x.size - cast.nonzero)
        cast.shift, cast.D, cast.S = _deviation(h, x, reference, plan, ws)
    cast.error = cast_error(rows, cast, (plan.model_epsilon,))[0]
    return h, cast


def cast_of_ends(rows: InputStatistics, fmt: Format, plan: Plan) -> CastStatistics:
    """Return what follows from the extremes of the rows: rounding is monotone, so those of h are theirs, rounded."""
    ends = rounded(np.ldexp(np.stack([rows.x_max, rows.x_min]), plan.prescale), fmt).astype(np.float64)
    finite = np.isfinite(ends[0]) & np.isfinite(ends[1])
    constant = (ends == 0).all(axis=0) if plan.rms else ends[0] == ends[1]
    nothing = np.zeros(len(finite))
    return CastStatistics(
        h_max=ends[0],
        h_min=ends[1],
        finite=finite,
        constant=constant & finite,
        shift=nothing,
        D=nothing,
        S=nothing,
        error=nothing,
    )


def _count_small(h: Array, fmt: Format, ws: Workspace) -> tuple[int, int]:
    """Count zeros and subnormal numbers; the bits of magnitudes are ordered as the magnitudes are."""
    integer = f"int{8 * h.itemsize}"
    smallest_normal = np.array(fmt.smallest_normal, h.dtype).view(integer)
    bits = ws.array("bits", h.shape, integer)
    np.bitwise_and(h.view(integer), np.iinfo(integer).max, out=bits)
    small = int(np.count_nonzero(np.less(bits, smallest_normal, out=ws.array("small", h.shape, "bool"))))
    zeros = int(np.count_nonzero(bits == 0)) if small else 0
    return zeros, small - zeros


def _deviation(h: Array, x: Array, reference: Reference, plan: Plan, ws: Workspace) -> tuple[Array, Array, Array]:
    """Return mean(c) of c = h - x, and D and S of the rest, v_h - v = c - mean(c), in units of the scaled row."""
    d = plan.features
    c = ws.array("wide", x.shape, "float64")
    unscale = plan.prescale + reference.unit
    if unscale.any():
        np.subtract(np.ldexp(h.astype(np.float64), -unscale), np.ldexp(x.astype(np.float64), -reference.unit), out=c)
    elif h.dtype == x.dtype:
        # the rounding error of a shorter significand is itself a number of the carrier
        np.copyto(c, np.subtract(h, x, out=ws.array("step", x.shape, x.dtype.name)))
    else:
        np.subtract(h, x, out=c, dtype=np.float64)
    mean = np.zeros(x.shape[1])
    if not plan.rms:
        mean = lane_sum(c) / d
        np.subtract(c, mean, out=c)
    product = ws.array("product", x.shape, "float64")
    D = lane_sum(np.multiply(c, c, out=product)) / d
    S = lane_sum(np.multiply(c, reference.v, out=product)) / d
    return mean, D, S
