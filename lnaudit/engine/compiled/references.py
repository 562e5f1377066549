"""The loops over the elements of rows for the reference: extremes, mean, variance.

Rows have shape (n, padded): d elements, then zeros to a multiple of 16. Results are written to arrays of one element a
row. A reference row is v = (x - a) - b, or with a low part the double-double x - (a + b).
"""

from __future__ import annotations

from .compiling import compiled, inlined
from .lanes import (
    LANES,
    blank,
    chosen,
    count,
    first,
    lanes_below,
    load,
    magnitude,
    rotated1,
    rotated2,
    rotated4,
    rotated8,
    splat,
    store,
    widened,
)
from .sums import (
    first_half,
    lane_total,
    lanes_added,
    ratio_to_itself,
    tree_sum_of_pairs,
    two_product,
    two_sum_of_lanes,
)

SPLIT = 134217729.0  # 2^27 + 1
# columns of the table that the loops fill, one a row: what is taken off, variance, extremes, exact 1/std
GIVEN = 8
A, B, Q, Q_LOW, X_MAX, X_MIN, ROOT, ROOT_LOW = range(GIVEN)


@inlined
def kept(x, i, d):
    """Return a vector with zeros in the lanes beyond the end of the row."""
    return x if i + LANES <= d else chosen(lanes_below(d - i), x, blank(x))


@compiled
def ends(x, d, largest, given, finite):
    """Write the extremes of rows, and whether all elements are finite."""
    for r in range(len(x)):
        given[X_MAX, r], given[X_MIN, r], finite[r], _ = _ends_and_sum(x[r], d, splat(largest))


@compiled
def corrected_reference(x, d, rms, largest, given, finite):
    """Write what `ends` does; centre rows in two passes (Chan, Golub, LeVeque 1983), write what is taken off, variance.

    Of a constant row, and for RMSNorm a row of zeros, nothing is left. Rows that are not finite get no numbers.
    """
    zero = splat(0.0)
    for r in range(len(x)):
        row, a, b, variance = x[r], 0.0, 0.0, 0.0
        x_max, x_min, finite[r], total = _ends_and_sum(row, d, splat(largest))
        if x_max == x_min and not (rms and x_max != 0.0):
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
def sums_of_pairs(x, d, high, low, terms, terms_low):
    """Write the sums of rows in double-double; terms, terms_low: room for a row."""
    none, half, one = splat(0.0), first_half(d), splat(ratio_to_itself(d))
    for r in range(len(x)):
        row = x[r]
        for i in range(0, half, LANES):
            total, error = widened(load(row, i)), none
            if i + half < d:
                total, error = two_sum_of_lanes(total, widened(load(row, i + half)), one)
            store(terms, i, total)
            store(terms_low, i, error)
        high[r], low[r] = tree_sum_of_pairs(terms, terms_low, min(half, d))


@compiled
def squares_of_pairs(x, d, constant, a, b, high, low, terms, terms_low):
    """Write the sums of the squares of v in double-double."""
    half, one = first_half(d), splat(ratio_to_itself(d))
    for r in range(len(x)):
        high[r] = low[r] = 0.0
        if not constant[r]:
            row, at, rest = x[r], splat(a[r]), splat(b[r])
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
            high[r], low[r] = tree_sum_of_pairs(terms, terms_low, min(half, d))


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
    v, rest = two_sum_of_lanes(v, splat(0.0) - b, one)
    return v, error + rest
