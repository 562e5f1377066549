"""A kernel on rows, from the cast to the core, a few rows at a time: what their elements need stays in the cache.

Between passes over the elements of a row stand stages of one number a row, which run for sixteen rows at once
(`stages`). Rows, flags and rounding constants are as in `references` and `rounding`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..numpy_engine import FAR
from . import casts, references
from .compiling import compiled, inlined
from .lanes import LANES, blank, like, load, magnitude, splat, square_added, store, widened
from .masks import chosen, count, is_finite, lanes_below, packed
from .references import SPLIT, kept, pair
from .rounding import How, rounded
from .stages import averaged, clamped, inverted, largest_difference
from .sums import lane_total, ratio_to_itself, serial_sums, tree_sum, two_product

# columns of what is found of each row
FOUND = ("total", "mean", "diff", "square", "square_sum", "raw_variance", "variance", "D", "S", "A", "v_mean", "error")
TOTAL, MEAN, DIFF, SQUARE, SQUARE_SUM, RAW, VARIANCE, D, S, A, V_MEAN, ERROR = range(len(FOUND))


class Steps(NamedTuple):
    """How a kernel rounds at each stage, in its carrier (`wide`: in float64), and flags.

    () leaves out what (0,) asks for, so that less is compiled. serial, square_serial: sums from left to right, else by
    halves. reciprocals: as in `stages.averaged`; clamp, inverse: as in `stages`. of_h: squares are of h, and that of
    the mean is taken off (one pass). rms: no mean. low: v has a low part that counts. means: v_mean is wanted. finish:
    the core is wanted.
    """

    cast: How
    sum: How
    mean_wide: How
    mean: How
    diff: How
    square: How
    term: How
    square_sum: How
    variance_wide: How
    variance: How
    w: How
    once: How
    root: How
    rstd: How
    normalized: How
    output: How
    serial: tuple[Any, ...]
    square_serial: tuple[Any, ...]
    mean_reciprocal: tuple[Any, ...]
    variance_reciprocal: tuple[Any, ...]
    clamp: tuple[Any, ...]
    inverse: tuple[Any, ...]
    of_h: tuple[Any, ...]
    rms: tuple[Any, ...]
    low: tuple[Any, ...]
    means: tuple[Any, ...]
    finish: tuple[Any, ...]


class Room(NamedTuple):
    """Memory for the rows that are worked on at once: h; v_hat; v and its low part; terms of a sum.

    h: all rows of the file, where `in_place` says that they are h already. sums, means, inverses: a number a row.
    """

    h: Any
    v_hat: Any
    v: Any
    v_low: Any
    terms: Any
    sums: Any
    means: Any
    inverses: Any


@inlined
def in_place(steps):
    """Whether rows are read where they are: the cast changes nothing, and no sixteen of them are read at once."""
    return len(steps.cast) == 0 and len(steps.serial) == 0


@compiled
def emulate(x, d, rows_at_once, steps, epsilon, normal, given, room, found, failed, cast, counts):
    """Write what a kernel makes of rows; x: flat, rows of d elements and zeros to a multiple of 16.

    epsilon: as the kernel holds it. normal: smallest of the cast, in the dtype of x. given: by `references`, found: by
    `FOUND`, a column a row, with 32 columns to spare. failed: rows with NaN or Inf in the core. cast: None, or what it
    does to the rows, by `casts`; counts: its numbers that are not finite any more, subnormal ones, zeros, zeros of the
    file.
    """
    padded, n, carrier = len(room.v_hat) // rows_at_once, len(failed), splat(room.v_hat[0])
    sums, before, lost = room.sums, 0, 0
    # the core of rows is taken after the cast of the next ones: what it needs is known by then
    for start in range(0, n + rows_at_once, rows_at_once):
        rows = max(0, min(rows_at_once, n - start))
        h_max = like(rounded(like(load(given[references.X_MAX], start), splat(normal)), steps.cast), carrier)
        h_min = like(rounded(like(load(given[references.X_MIN], start), splat(normal)), steps.cast), carrier)
        infinite = packed(is_finite(h_max - h_min)) ^ 0xFFFF
        if cast is not None:
            store(cast[casts.H_MAX], start, widened(h_max))
            store(cast[casts.H_MIN], start, widened(h_min))
        for k in range(rows):
            row = start + k
            at = (row if in_place(steps) else k) * padded
            unusual = _cast_row(x, row * padded, d, steps, normal, room, at, row, cast)
            if cast is not None and (infinite >> k & 1 or unusual):
                _count_unusual(x, row * padded, d, steps.cast, normal, counts)
            if len(steps.rms) == 0 and len(steps.serial) == 0:
                sums[k] = tree_sum(room.h, at, room.terms, padded, steps.sum)
        mean = blank(h_max)
        if len(steps.rms) == 0:
            if len(steps.serial) and rows > 0:
                store(sums, 0, like(serial_sums(room.h, padded, d, steps.sum), carrier))
            mean = averaged(load(sums, 0), d, steps.mean_reciprocal, steps.mean_wide, steps.mean)
            store(found[TOTAL], start, widened(load(sums, 0)))
        else:
            store(found[TOTAL], start, splat(0.0))
        store(room.means, 0, mean)
        for k in range(before):
            row = start - rows_at_once + k
            _core_row(d, steps, room, k, padded, row, given, found)
            failed[row] = lost >> k & 1
        for k in range(rows):
            _square_row(x, start + k, k, padded, d, steps, room, given, found, cast)
            if len(steps.square_serial) == 0:
                sums[k] = tree_sum(room.terms, 0, room.terms, padded, steps.square_sum)
        if len(steps.square_serial) and rows > 0:
            store(sums, 0, serial_sums(room.terms, padded, d, steps.square_sum))
        variance, diff = _of_sums(load(sums, 0), mean, h_max, h_min, d, steps, start, found)
        if len(steps.finish):
            _, inverse = inverted(variance, splat(epsilon), steps.inverse, steps.w, steps.once, steps.root, steps.rstd)
            store(room.inverses, 0, inverse)
            lost = packed(is_finite(rounded(_normalized(diff, inverse, steps), steps.output))) ^ 0xFFFF
            before = rows


@inlined
def _cast_row(x, base, d, steps, normal, room, at, row, cast):
    """Write the cast row to h, what the cast adds on average; return how many lanes hold zeros or subnormal numbers."""
    total, kind = splat(0.0), splat(room.h[0])
    least = like(splat(np.inf), splat(normal))
    for i in range(0, d, LANES):
        values = load(x, base + i)
        h = rounded(values, steps.cast)
        if not in_place(steps):
            store(room.h, at + i, like(h, kind))
        if cast is not None:
            size = magnitude(h) if i + LANES <= d else chosen(lanes_below(d - i), magnitude(h), least)
            least = chosen(size < least, size, least)
            if len(steps.cast):
                total = total + widened(h - values)
    if cast is not None:
        cast[casts.SHIFT, row] = lane_total(total) / d if len(steps.cast) and len(steps.rms) == 0 else 0.0
    return count((least < splat(normal)) | (least == blank(least)))


@inlined
def _count_unusual(x, base, d, how, normal, counts):
    smallest = splat(normal)
    nothing = blank(smallest)
    for i in range(0, d, LANES):
        values, inside = load(x, base + i), lanes_below(d - i)
        h = rounded(values, how)
        size = magnitude(h)
        counts[0] += count(inside) - count(inside & is_finite(h))
        counts[1] += count(inside & (nothing < size) & (size < smallest))
        counts[2] += count(inside & (h == nothing))
        counts[3] += count(inside & (values == nothing))


@inlined
def _square_row(x, row, k, padded, d, steps, room, given, found, cast):
    """Write v_hat, v, and the terms of the sum of squares; compare v_hat and the cast row with v.

    k: number of the row in the room.
    """
    zero, base, at = splat(0.0), row * padded, k * padded
    at_h, at_terms = base if in_place(steps) else at, at if len(steps.square_serial) else 0
    middle, center, rest = splat(room.means[k]), splat(given[references.A, row]), splat(given[references.B, row])
    D_lanes = S_lanes = A_lanes = M_lanes = cast_D = cast_S = zero
    one = splat(ratio_to_itself(d))
    shift = zero if cast is None else splat(cast[casts.SHIFT, row])
    for i in range(0, d, LANES):
        values, h = load(x, base + i), like(load(room.h, at_h + i), middle)
        v_hat = kept(rounded(h - middle, steps.diff), i, d)
        term = h if len(steps.of_h) else v_hat
        store(room.terms, at_terms + i, rounded(term * term, steps.term))
        if len(steps.low):
            v, v_low = pair(widened(values), center, rest, one)
            v, v_low = kept(v, i, d), kept(v_low, i, d)
            store(room.v_low, at + i, v_low)
            deviation = (widened(v_hat) - v) - v_low
            S_lanes = S_lanes + deviation * v
        else:
            v = kept((widened(values) - center) - rest, i, d)
            deviation = widened(v_hat) - v
        D_lanes = D_lanes + deviation * deviation
        A_lanes = square_added(A_lanes, v_hat)
        if len(steps.means):
            M_lanes = M_lanes + widened(v_hat)
        if cast is not None and len(steps.cast):
            c = kept(widened(like(h, values) - values) - shift, i, d)
            cast_D = cast_D + c * c
            cast_S = cast_S + c * v
        store(room.v, at + i, v)
        store(room.v_hat, at + i, v_hat)
    found[D, row], found[A, row] = lane_total(D_lanes) / d, lane_total(A_lanes) / d
    found[V_MEAN, row] = lane_total(M_lanes) / d
    if cast is not None:
        cast[casts.D, row], cast[casts.S, row] = lane_total(cast_D) / d, lane_total(cast_S) / d
    if len(steps.low):
        found[S, row] = lane_total(S_lanes) / d
    else:
        # from A = q + 2 S + D, to 1e-16 of the largest of them: far below what these formats resolve
        found[S, row] = ((found[A, row] - given[references.Q, row]) - found[D, row]) / 2
        if found[A, row] > FAR * given[references.Q, row]:
            for i in range(0, d, LANES):
                v = load(room.v, at + i)
                S_lanes = S_lanes + (widened(load(room.v_hat, at + i)) - v) * v
            found[S, row] = lane_total(S_lanes) / d


@inlined
def _of_sums(square_sum, mean, h_max, h_min, d, steps, start, found):
    """Write what follows from the sums of sixteen rows; return their variance and max|v_hat|."""
    ends = largest_difference(h_max, h_min, blank(mean), ())
    diff = ends if len(steps.rms) else largest_difference(h_max, h_min, mean, steps.diff)
    squared = ends if len(steps.of_h) else diff
    raw = averaged(square_sum, d, steps.variance_reciprocal, steps.variance_wide, steps.variance)
    if len(steps.of_h):
        raw = rounded(raw - rounded(mean * mean, steps.variance), steps.variance)
    variance = clamped(raw, steps.clamp)
    store(found[MEAN], start, widened(mean))
    store(found[DIFF], start, widened(diff))
    store(found[SQUARE], start, widened(rounded(squared * squared, steps.square)))
    store(found[SQUARE_SUM], start, widened(square_sum))
    store(found[RAW], start, widened(raw))
    store(found[VARIANCE], start, widened(variance))
    return variance, diff


@inlined
def _normalized(v_hat, inverse, steps):
    return rounded(v_hat * inverse if len(steps.inverse) else v_hat / inverse, steps.normalized)


@inlined
def _core_row(d, steps, room, k, padded, row, given, found):
    """Write the RMS of core - v rho, rho the exact 1/std, of the row that is number k in the room."""
    at, scale, exact = k * padded, splat(room.inverses[k]), splat(given[references.ROOT, row])
    exact_low = splat(given[references.ROOT_LOW, row])
    errors, split = splat(0.0), splat(SPLIT)
    for i in range(0, d, LANES):
        n = _normalized(load(room.v_hat, at + i), scale, steps)
        core, v = kept(widened(rounded(n, steps.output)), i, d), load(room.v, at + i)
        if len(steps.low):
            product, product_low = two_product(v, exact, split)
            low = (product_low + load(room.v_low, at + i) * exact) + v * exact_low
            difference = (core - product) - low
        else:
            difference = core - v * exact
        errors = errors + difference * difference
    found[ERROR, row] = np.sqrt(lane_total(errors) / d)
