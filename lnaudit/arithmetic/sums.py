"""Sums over the first axis, in the orders in which programs add."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from ..formats import FORMATS, Format
from .fma import fused
from .rounding import flushed_operand, round_in_place, rounded, rounding_of
from .workspace import Array, Workspace

FEW = 1 << 11  # elements


@cache
def _own_dtype(fmt: Format) -> np.dtype[Any] | None:
    """Return the dtype of numpy or ml_dtypes that adds as the format does, where there is one."""
    try:
        return None if fmt.flushes else np.dtype(fmt.name)
    except TypeError:
        return None


def tree_sum(b: Array, fmt: Format, ws: Workspace) -> Array:
    """Sum over the first axis by halves: while P > 1, P /= 2 and b[i] = b[i] + b[i+P], b padded to a power of two.

    Parameters
    ----------
    b : ndarray, shape (d, n)
        In the carrier of `fmt`, left unchanged.
    """
    b = flushed_operand(b, fmt)
    d = len(b)
    if d == 1:
        return np.array(b[0])
    half = 1 << ((d - 1).bit_length() - 1)
    acc = ws.array("tree", (half, *b.shape[1:]), fmt.carrier)
    paired = d - half
    np.add(b[:paired], b[half:], out=acc[:paired])
    round_in_place(acc[:paired], fmt, ws)
    acc[paired:] = b[paired:half]
    dtype = _own_dtype(fmt)
    by_hand = dtype is None or rounding_of(fmt, acc.itemsize) is None
    while half > 1 and (by_hand or half * acc[0].size > FEW):
        half //= 2
        head = acc[:half]
        np.add(head, acc[half : 2 * half], out=head)
        round_in_place(head, fmt, ws)
    # numpy's and ml_dtypes' own addition is slow but rounds in one call, which counts for the last few
    rest = acc[:half].astype(dtype or fmt.carrier, copy=False)
    while half > 1:
        half //= 2
        rest = rest[:half] + rest[half : 2 * half]
    return np.array(rest[0], fmt.carrier)


def serial_sum(b: Array, fmt: Format, ws: Workspace) -> Array:
    """Sum over the first axis from left to right: acc = b[0], acc = acc + b[i]; b as in `tree_sum`.

    Accumulation, unlike a reduction, is sequential by definition, and numpy and ml_dtypes store each partial sum in
    the format.
    """
    dtype = _own_dtype(fmt)
    if dtype is not None:
        partial = np.add.accumulate(b.astype(dtype, copy=False), axis=0)
        return np.array(partial[-1], fmt.carrier)
    b = flushed_operand(b, fmt)
    total = np.array(b[0])
    for term in b[1:]:
        np.add(total, term, out=total)
        round_in_place(total, fmt, ws)
    return total


def serial_fma_sum(a: Array, b: Array, fmt: Format, ws: Workspace, stored: Format | None = None) -> Array:
    """Sum products over the first axis from left to right, fused: acc = a[0]*b[0], acc = fma(a[i], b[i], acc).

    Parameters
    ----------
    a, b : ndarray, shapes (d, n)
        Values of `fmt` in its carrier, left unchanged.
    stored : Format, optional
        Each partial sum is stored in this format, if it is another one.
    """
    a, b = flushed_operand(a, fmt), flushed_operand(b, fmt)
    total = np.zeros(np.broadcast_shapes(a.shape[1:], b.shape[1:]), fmt.carrier)
    for x, y in zip(a, b, strict=True):
        total = _stored(fused(x, y, total, fmt, ws), fmt, stored)
    return total


def sum_in_lanes(b: Array, fmt: Format, ws: Workspace, *, lanes: int) -> Array:
    """Sum over the first axis as vector units do: lane l adds b[l], b[l + lanes], ...; the lanes are added by halves.

    What does not fill all lanes is added to that from left to right. b as in `tree_sum`.
    """
    b = flushed_operand(b, fmt)
    whole = len(b) // lanes * lanes
    acc = np.zeros((lanes, *b.shape[1:]), fmt.carrier)
    for i in range(0, whole, lanes):
        np.add(acc, b[i : i + lanes], out=acc)
        round_in_place(acc, fmt, ws)
    return _with_tail(_by_halves(acc, fmt, ws), b[whole:], fmt, ws)


def _by_halves(acc: Array, fmt: Format, ws: Workspace) -> Array:
    while len(acc) > 1:
        acc = acc[: len(acc) // 2] + acc[len(acc) // 2 :]
        round_in_place(acc, fmt, ws)
    return np.array(acc[0])


def _with_tail(total: Array, tail: Array, fmt: Format, ws: Workspace) -> Array:
    for term in tail:
        np.add(total, term, out=total)
        round_in_place(total, fmt, ws)
    return total


def fma_sum_in_lanes(
    a: Array, b: Array, fmt: Format, ws: Workspace, stored: Format | None = None, *, lanes: int, together: int = 1
) -> Array:
    """Sum products in lanes, fused, then what does not fill the lanes from left to right.

    Of that, compilers multiply as many as go `together` into a vector and add these products, rounded; the others are
    fused. a, b, stored as in `serial_fma_sum`.
    """
    a, b = flushed_operand(a, fmt), flushed_operand(b, fmt)
    whole = len(b) // lanes * lanes
    acc = np.zeros((lanes, *np.broadcast_shapes(a.shape[1:], b.shape[1:])), fmt.carrier)
    for i in range(0, whole, lanes):
        acc = _stored(fused(a[i : i + lanes], b[i : i + lanes], acc, fmt, ws), fmt, stored)
    stage = stored or fmt
    total = _by_halves(acc, stage, ws)
    fused_from = whole + (len(b) - whole) // together * together if together > 1 else whole
    products = np.multiply(a[whole:fused_from], b[whole:fused_from])
    round_in_place(products, fmt, ws)
    total = _with_tail(total, _stored(products, fmt, stored), stage, ws)
    for x, y in zip(a[fused_from:], b[fused_from:], strict=True):
        total = _stored(fused(x, y, total, fmt, ws), fmt, stored)
    return total


def _stored(x: Array, fmt: Format, stored: Format | None) -> Array:
    return x if stored is None or stored is fmt else rounded(x, stored)


def cascade_sum(b: Array, fmt: Format, ws: Workspace, *, lanes: int) -> Array:
    """Sum over the first axis as torch sums a contiguous row: four vectors at a time, in levels; b as in `tree_sum`.

    Source: torch 2.13, aten/src/ATen/native/cpu/SumKernel.cpp, cascade_sum and row_sum.
    """
    b = flushed_operand(b, fmt)
    if len(b) < lanes:
        lanes = 1  # elements are what vectors are otherwise
    vectors = len(b) // lanes
    rows = vectors // ROWS
    grouped = b[: rows * ROWS * lanes].reshape(rows, ROWS, lanes, *b.shape[1:])
    parts = list(_in_levels(grouped, fmt, ws))
    left = vectors - rows * ROWS
    for vector in b[rows * ROWS * lanes : vectors * lanes].reshape(left, lanes, *b.shape[1:]):
        parts[0] = _added(parts[0], vector, fmt, ws)
    for part in parts[1:]:
        parts[0] = _added(parts[0], part, fmt, ws)
    total = np.zeros(b.shape[1:], fmt.carrier)
    return _with_tail(_with_tail(total, b[vectors * lanes :], fmt, ws), parts[0], fmt, ws)


ROWS, LEVELS = 4, 4


def _in_levels(b: Array, fmt: Format, ws: Workspace) -> Array:
    """Add up over the first axis: after every 2^power terms a level is added to the next and starts anew."""
    power = max(4, (len(b) - 1).bit_length() // LEVELS if len(b) > 1 else 0)
    step = 1 << power
    levels = [np.zeros(b.shape[1:], fmt.carrier) for _ in range(LEVELS)]
    done = 0
    while done + step <= len(b):
        levels[0] = _with_tail(levels[0], b[done : done + step], fmt, ws)
        done += step
        for level in range(1, LEVELS):
            levels[level] = _added(levels[level], levels[level - 1], fmt, ws)
            levels[level - 1] = np.zeros_like(levels[0])
            if done & (step - 1 << level * power):
                break
    total = _with_tail(levels[0], b[done:], fmt, ws)
    return _with_tail(total, np.stack(levels[1:]), fmt, ws)


def pairwise_sum(b: Array, fmt: Format, ws: Workspace) -> Array:
    """Sum over the first axis as numpy sums a contiguous row: by halves down to 128 terms, these in eight lanes.

    float16 is accumulated in float32 and rounded at the end. b as in `tree_sum`. Source: numpy, loops_utils.h.src.
    """
    b = flushed_operand(b, fmt)
    if fmt.name == "float16":
        return rounded(pairwise_sum(b.astype(np.float32, copy=False), FORMATS["float32"], ws), fmt)
    if len(b) > PAIRWISE_BLOCK:
        half = len(b) // 2 // 8 * 8
        return _added(pairwise_sum(b[:half], fmt, ws), pairwise_sum(b[half:], fmt, ws), fmt, ws)
    if len(b) < 8:
        return _with_tail(np.zeros(b.shape[1:], fmt.carrier), b, fmt, ws)
    whole = len(b) // 8 * 8
    acc = np.array(b[:8])
    for i in range(8, whole, 8):
        acc = _added(acc, b[i : i + 8], fmt, ws)
    while len(acc) > 1:
        acc = _added(acc[::2], acc[1::2], fmt, ws)
    return _with_tail(np.array(acc[0]), b[whole:], fmt, ws)


PAIRWISE_BLOCK = 128


def _added(a: Array, b: Array, fmt: Format, ws: Workspace) -> Array:
    total: Array = a + b
    round_in_place(total, fmt, ws)
    return total


LANES = (4, 8)
REDUCTIONS: dict[str, Callable[[Array, Format, Workspace], Array]] = {
    "tree": tree_sum,
    "serial": serial_sum,
    **{f"lanes{n}": partial(sum_in_lanes, lanes=n) for n in LANES},
    "lanes8_fours": partial(sum_in_lanes, lanes=8),
    **{f"cascade{n}": partial(cascade_sum, lanes=n) for n in LANES},
    "pairwise": pairwise_sum,
}
# with products that are not rounded before they are added
FUSED_REDUCTIONS: dict[str, Callable[[Array, Array, Format, Workspace, Format | None], Array]] = {
    "serial": serial_fma_sum,
    **{f"lanes{n}": partial(fma_sum_in_lanes, lanes=n) for n in LANES},
    "lanes8_fours": partial(fma_sum_in_lanes, lanes=8, together=4),
}


def lane_sum(b: Array) -> Array:
    """Sum float64 over the first axis in 16 lanes: lane l adds b[l], b[l+16], ... in order; then 16, 8, 4, 2, 1."""
    lanes = _in_lanes(b, np.add, 0.0)
    for half in (8, 4, 2, 1):
        lanes = lanes[:half] + lanes[half : 2 * half]
    return np.asarray(lanes[0])


def lane_extremes(x: Array) -> tuple[Array, Array]:
    """Return maximum and minimum over the first axis; NaN where there is one."""
    ends = (_in_lanes(x, np.maximum, -np.inf), _in_lanes(x, np.minimum, np.inf))
    return np.maximum.reduce(ends[0], axis=0), np.minimum.reduce(ends[1], axis=0)


def _in_lanes(b: Array, ufunc: np.ufunc, neutral: float) -> Array:
    """Reduce (d, n) to 16 lanes of shape (16, n): lane l takes b[l], b[l+16], ... in order."""
    d, n = b.shape
    whole = d // 16 * 16
    if whole:
        # a reduction over the first axis of C order takes one slab after the other, never in pairs
        lanes = ufunc.reduce(b[:whole].reshape(whole // 16, 16 * n), axis=0).reshape(16, n)
    else:
        lanes = np.full((16, n), neutral, b.dtype)
    head = lanes[: d - whole]
    ufunc(head, b[whole:], out=head)
    return np.asarray(lanes)
