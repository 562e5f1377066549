"""The loops over the elements of rows for the reference: extremes, mean, variance.

Rows have shape (n, padded): d elements, then zeros to a multiple of 16. Results are written to arrays of one element a
row. A reference row is v = (x - a) - b, or with a low part the double-double x - (a + b).
"""

from __future__ import annotations

import numpy as np

from ..exact_sums import ROOM
from .compiling import compiled, inlined
from .lanes import (
    LANES,
    blank,
    first,
    like,
    load,
    magnitude,
    rotated1,
    rotated2,
    rotated4,
    rotated8,
    splat,
    square_added,
    store,
    widened,
)
from .masks import chosen, count, lanes_below
from .sums import (
    first_half,
    lane_total,
    lanes_added,
    product_by_parts,
    ratio_to_itself,
    renormalized,
    tree_sum_of_pairs,
    two_product,
    two_sum,
    two_sum_of_lanes,
)

SPLIT = 134217729.0  # 2^27 + 1
EXPONENT = 0x7FF << 52  # its bits in a float64
# columns of the table that the loops fill, one a row: what is taken off, variance, extremes, exact 1/std, mean
GIVEN = 10
A, B, Q, Q_LOW, X_MAX, X_MIN, ROOT, ROOT_LOW, MEAN, MEAN_LOW = range(GIVEN)


@inlined
def kept(x, i, d):
    """Return a vector with zeros in the lanes beyond the end of the row."""
    return x if i + LANES <= d else chosen(lanes_below(d - i), x, blank(x))


@inlined
def _is_constant(x_max, x_min, rms):
    """Whether nothing is left of a row with these extremes."""
    return x_max == x_min and not (rms and x_max != 0.0)


@compiled
def corrected_reference(x, d, rms, largest, given, finite):
    """Write extremes of rows and whether they are finite; what is taken off, variance (Chan, Golub, LeVeque 1983).

    Rows are centred in two passes. Of a constant row, and for RMSNorm a row of zeros, nothing is left. Rows that are
    not finite get no numbers.
    """
    zero = splat(0.0)
    for r in range(len(x)):
        row, a, b, variance = x[r], 0.0, 0.0, 0.0
        x_max, x_min, finite[r], total = _ends_and_sum(row, d, splat(largest))
        if _is_constant(x_max, x_min, rms):
            a = x_max
        elif finite[r]:
            if not rms:
                a = lane_total(total) / d
                total, mean = zero, splat(a)
                for i in range(0, d, LANES):
                    total = total + kept(widened(load(row, i)) - mean, i, d)
                b = lane_total(total) / d
            total, mean, rest = zero, splat(a), splat(b)
            for i in range(0, d, LANES):
                v = kept((widened(load(row, i)) - mean) - rest, i, d)
                total = total + v * v
            variance = lane_total(total) / d
        given[A, r], given[B, r], given[Q, r], given[X_MAX, r], given[X_MIN, r] = a, b, variance, x_max, x_min


@inlined
def _ends_and_sum(row, d, largest):
    """Return the extremes of a row, whether it is finite, and its sum in lanes."""
    beyond, total = splat(row[0]), splat(0.0)
    top = bottom = beyond
    inside = magnitude(beyond) <= largest
    for i in range(0, d, LANES):
        values = load(row, i)
        total = total + widened(values)
        if i + LANES > d:
            values = chosen(lanes_below(d - i), values, beyond)
        top = _greater(top, values)
        bottom = chosen(values < bottom, values, bottom)
        inside = inside & (magnitude(values) <= largest)
    return greatest(top), -greatest(blank(bottom) - bottom), count(inside) == LANES, total


@inlined
def _greater(x, y):
    return chosen(x < y, y, x)


@inlined
def greatest(x):
    """Return the largest of sixteen numbers."""
    x = _greater(x, rotated8(x))
    x = _greater(x, rotated4(x))
    x = _greater(x, rotated2(x))
    return first(widened(_greater(x, rotated1(x))))


@compiled
def precise_reference(x, d, rms, largest, width, narrow, given, finite, terms, terms_low):
    """Write what `corrected_reference` does in double-double, and the mean; terms, terms_low: room for a row.

    narrow, width: rows are tried by `engine.exact_sums` first, with its width.
    """
    for r in range(len(x)):
        row, a, b, q, q_low = x[r], 0.0, 0.0, 0.0, 0.0
        x_max, x_min, finite[r], lanes = _ends_and_sum(row, d, splat(largest))
        constant = _is_constant(x_max, x_min, rms)
        given[X_MAX, r], given[X_MIN, r] = x_max, x_min
        fits = False
        if len(narrow) and finite[r]:
            top, total = _power(max(abs(x_max), abs(x_min))), lane_total(lanes)
            high, low, least = _exact_sums(row, d, top, width)
            fits = top == 0.0 or top * width <= 2.0**ROOM * _power(least)
        if fits:
            if rms:
                q, q_low = _divided(*two_sum(high, low), d)
            else:
                a, b = _divided(total, 0.0, d)
                q, q_low = _divided(*_divided(*_centred(total, high, low, d), d), d)
        elif finite[r]:
            if not rms:
                a, b = _divided(*_sum_of_pairs(row, d, terms, terms_low), d)
            if not constant:
                q, q_low = _divided(*_sum_of_squares(row, d, a, b, terms, terms_low), d)
        given[MEAN, r], given[MEAN_LOW, r] = a, b
        if constant:
            a, b, q, q_low = np.float64(x_max), 0.0, 0.0, 0.0
        given[A, r], given[B, r], given[Q, r], given[Q_LOW, r] = a, b, q, q_low


@inlined
def _power(x):
    """Return the largest power of two that is not above x, 0 of 0."""
    bits = np.float64(x).view(np.int64) & np.int64(EXPONENT)
    return np.int64(bits).view(np.float64)


@inlined
def _exact_sums(row, d, top, width):
    """Return the two parts of the sum of squares and the smallest magnitude that is not 0 (`engine.exact_sums`)."""
    magic, high_sum, low_sum = splat(3.0 * width * top * top), splat(0.0), splat(0.0)
    nothing = blank(load(row, 0))
    least = like(splat(np.inf), nothing)
    for i in range(0, d, LANES):
        values = load(row, i)
        size = magnitude(values)
        least = chosen((nothing < size) & (size < least), size, least)
        high = square_added(magic, values) - magic
        high_sum = high_sum + high
        low_sum = low_sum + square_added(blank(high) - high, values)
    return lane_total(high_sum), lane_total(low_sum), -greatest(nothing - least)


@inlined
def _centred(total, high, low, d):
    """Return d times the sum of squares about the mean (`engine.exact_sums.centred`)."""
    scale = np.float64(d)
    a, a_low = product_by_parts(scale, high, SPLIT)
    b, b_low = product_by_parts(scale, low, SPLIT)
    c, c_low = product_by_parts(total, total, SPLIT)
    left, error = two_sum(a, -c)
    left, rest = two_sum(left, b)
    return two_sum(left, rest + (((error + a_low) - c_low) + b_low))


@inlined
def _sum_of_pairs(row, d, terms, terms_low):
    """Return the sum of a row in double-double."""
    none, half, one = splat(0.0), first_half(d), splat(ratio_to_itself(d))
    for i in range(0, half, LANES):
        total, error = widened(load(row, i)), none
        if i + half < d:
            total, error = two_sum_of_lanes(total, widened(load(row, i + half)), one)
        store(terms, i, total)
        store(terms_low, i, error)
    return tree_sum_of_pairs(terms, terms_low, min(half, d))


@inlined
def _sum_of_squares(row, d, a, b, terms, terms_low):
    """Return the sum of the squares of v in double-double."""
    half, one, at, rest = first_half(d), splat(ratio_to_itself(d)), splat(a), splat(b)
    for i in range(0, half, LANES):
        total, error = _squared_pair(load(row, i), at, rest, one, i, d)
        if i + half < d:
            other, other_low = _squared_pair(load(row, i + half), at, rest, one, i + half, d)
            other, other_low = lanes_added(total, error, other, other_low, one)
            # what nothing is added to stays as it is
            within = lanes_below(d - half - i)
            total, error = chosen(within, other, total), chosen(within, other_low, error)
        store(terms, i, total)
        store(terms_low, i, error)
    return tree_sum_of_pairs(terms, terms_low, min(half, d))


@inlined
def _divided(high, low, d):
    """Divide a double-double by a whole number (`engine.reference.divide`)."""
    quotient = high / d
    product, error = product_by_parts(quotient, np.float64(d), SPLIT)
    return renormalized(quotient, (((high - product) - error) + low) / d)


@inlined
def _squared_pair(x, a, b, one, i, d):
    """Return v^2 as a sum of two float64, 0 beyond the end of the row."""
    v, v_low = pair(widened(x), a, b, one)
    square, square_low = two_product(v, v, splat(SPLIT))
    return kept(square, i, d), kept(square_low + splat(2.0) * v * v_low, i, d)


@inlined
def pair(x, a, b, one):
    """Return x - (a + b) as a sum of two float64, the first of which is (x - a) - b; one: as in `two_sum_of_lanes`."""
    v, error = two_sum_of_lanes(x, splat(0.0) - a, one)
    # |b| is at most half an ulp of a, and a v that is not 0 at least as much: three operations are enough (Dekker 1971)
    w = v - b
    return w, error + ((v - w) - b)
