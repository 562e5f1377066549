"""The loops over the elements of rows: reference, cast, sums, squares, core and output.

Rows have shape (n, padded): d elements, then zeros to a multiple of 16. Results are written to arrays of one element a
row. The types of the rounding constants (`rounding.how`) pick the code; scalar stages in between are numpy's
(`numba_engine`). A reference row is v = (x - a) - b, or, with a low part, the double-double x - (a + b).
"""

from __future__ import annotations

import numpy as np

from .compiling import compiled, inlined
from .lanes import (
    LANES,
    blank,
    chosen,
    count,
    first,
    lanes_below,
    like,
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
from .rounding import rounded
from .sums import (
    lane_total,
    serial_sums,
    tree_sum,
    tree_sum_of_pairs,
    two_product,
    two_sum,
)

SPLIT = 134217729.0  # 2^27 + 1


@inlined
def _kept(x, i, d):
    """Return a vector with zeros in the lanes beyond the end of the row."""
    return x if i + LANES <= d else chosen(lanes_below(d - i), x, blank(x))


@compiled
def ends(x, d, largest, x_max, x_min, finite):
    """Write the extremes of rows, and whether all elements are finite."""
    for r in range(len(x)):
        row = x[r]
        beyond = splat(row[0])
        top = bottom = beyond
        inside = magnitude(beyond) <= splat(largest)
        for i in range(0, d, LANES):
            values = load(row, i)
            if i + LANES > d:
                values = chosen(lanes_below(d - i), values, beyond)
            top = _greater(top, values)
            bottom = chosen(values < bottom, values, bottom)
            inside = inside & (magnitude(values) <= splat(largest))
        finite[r] = count(inside) == LANES
        x_max[r], x_min[r] = _greatest(top), -_greatest(blank(bottom) - bottom)


@inlined
def _greater(x, y):
    return chosen(x < y, y, x)


@inlined
def _greatest(x):
    x = _greater(x, rotated8(x))
    x = _greater(x, rotated4(x))
    x = _greater(x, rotated2(x))
    return first(widened(_greater(x, rotated1(x))))


@compiled
def corrected_reference(x, d, rms, constant, a, b, variance):
    """Centre rows in two passes and write what is taken off, and the variance (Chan, Golub, LeVeque 1983)."""
    zero = splat(0.0)
    for r in range(len(x)):
        row = x[r]
        a[r] = b[r] = variance[r] = 0.0
        if not rms:
            total = zero
            for i in range(0, d, LANES):
                total = total + widened(load(row, i))
            a[r] = lane_total(total) / d
            total, mean = zero, splat(a[r])
            for i in range(0, d, LANES):
                total = total + _kept(widened(load(row, i)) - mean, i, d)
            b[r] = lane_total(total) / d
        if not constant[r]:
            total, mean, rest = zero, splat(a[r]), splat(b[r])
            for i in range(0, d, LANES):
                v = _kept((widened(load(row, i)) - mean) - rest, i, d)
                total = total + v * v
            variance[r] = lane_total(total) / d


@compiled
def sums_of_pairs(x, d, high, low, terms, terms_low):
    """Write the sums of rows in double-double; terms, terms_low: room for a row."""
    for r in range(len(x)):
        for i in range(0, d, LANES):
            store(terms, i, widened(load(x[r], i)))
            store(terms_low, i, splat(0.0))
        high[r], low[r] = tree_sum_of_pairs(terms, terms_low, d)


@compiled
def squares_of_pairs(x, d, constant, a, b, high, low, terms, terms_low):
    """Write the sums of the squares of v in double-double."""
    split = splat(SPLIT)
    for r in range(len(x)):
        high[r] = low[r] = 0.0
        if not constant[r]:
            for i in range(0, d, LANES):
                v, v_low = _pair(widened(load(x[r], i)), splat(a[r]), splat(b[r]))
                square, square_low = two_product(v, v, split)
                store(terms, i, square)
                store(terms_low, i, square_low + splat(2.0) * v * v_low)
            high[r], low[r] = tree_sum_of_pairs(terms, terms_low, d)


@inlined
def _pair(x, a, b):
    """Return x - (a + b) as a sum of two float64, the first of which is (x - a) - b."""
    v, error = two_sum(x, splat(0.0) - a)
    v, rest = two_sum(v, splat(0.0) - b)
    return v, error + rest


@compiled
def cast(x, d, how, changes, a, b, rms, finite, smallest_normal, largest, shift, D, S, counts):
    """Write mean(c) of what a cast adds to rows, mean((c - mean)^2), mean((c - mean) v); count elements.

    counts: numbers that are not finite any more, subnormal ones, zeros, zeros of the file. changes: the cast rounds.
    finite: rows that are so after the cast. What a cast adds is a number of the carrier: subtraction is exact.
    """
    zero, normal, most = splat(0.0), splat(smallest_normal), splat(largest)
    counts[:] = 0
    for r in range(len(x)):
        row, total, least = x[r], zero, most
        for i in range(0, d, LANES):
            values = load(row, i)
            h = rounded(values, how)
            size = magnitude(h) if i + LANES <= d else chosen(lanes_below(d - i), magnitude(h), most)
            least = chosen(size < least, size, least)
            if changes:
                total = total + widened(h - values)
        if not finite[r] or count((least < normal) | (least == blank(least))):
            _count_unusual(row, d, how, normal, most, counts)
        if not changes:
            shift[r] = D[r] = S[r] = 0.0
            continue
        shift[r] = 0.0 if rms else lane_total(total) / d
        mean, at, rest, squares, products = splat(shift[r]), splat(a[r]), splat(b[r]), zero, zero
        for i in range(0, d, LANES):
            values = load(row, i)
            c = _kept(widened(rounded(values, how) - values) - mean, i, d)
            squares = squares + c * c
            products = products + c * _kept((widened(values) - at) - rest, i, d)
        D[r], S[r] = lane_total(squares) / d, lane_total(products) / d


@inlined
def _count_unusual(row, d, how, normal, most, counts):
    nothing = blank(most)
    for i in range(0, d, LANES):
        values, inside = load(row, i), lanes_below(d - i)
        h = rounded(values, how)
        size = magnitude(h)
        counts[0] += count(inside) - count(inside & (size <= most))
        counts[1] += count(inside & (nothing < size) & (size < normal))
        counts[2] += count(inside & (h == nothing))
        counts[3] += count(inside & (values == nothing))


@compiled
def totals(x, d, cast_how, sum_how, serial, terms, total):
    """Write the sums of cast rows; terms: room for 16 rows in their carrier; total has room for a multiple of 16."""
    padded = x.shape[1]
    carrier = splat(terms[0])
    for r in range(len(x)):
        at = r % LANES * padded if serial else 0
        for i in range(0, d, LANES):
            store(terms, at + i, like(rounded(load(x[r], i), cast_how), carrier))
        if not serial:
            total[r] = tree_sum(terms, padded, sum_how)
        elif r % LANES == LANES - 1 or r == len(x) - 1:
            store(total, r - r % LANES, serial_sums(terms, padded, d, sum_how))


@compiled
def squares(
    x, d, cast_how, mean, diff_how, square_how, sum_how, serial, of_h, a, b, low, means, terms, total, D, S, A, M
):
    """Write the sums of squares of v_hat = h - mean, or `of_h` those of h, and how v_hat compares with v.

    D: mean((v_hat - v)^2), A: mean(v_hat^2). low: v has a low part that counts, and S is wanted: mean((v_hat - v) v).
    means: M is wanted: mean(v_hat).
    """
    padded = x.shape[1]
    carrier, zero = splat(terms[0]), splat(0.0)
    for r in range(len(x)):
        row, middle, center, rest = x[r], splat(mean[r]), splat(a[r]), splat(b[r])
        at = r % LANES * padded if serial else 0
        D_lanes = S_lanes = A_lanes = M_lanes = zero
        for i in range(0, d, LANES):
            values = load(row, i)
            h = like(rounded(values, cast_how), carrier)
            v_hat = _kept(rounded(h - middle, diff_how), i, d)
            term = h if of_h else v_hat
            store(terms, at + i, rounded(term * term, square_how))
            wide = widened(v_hat)
            A_lanes = A_lanes + wide * wide
            if means:
                M_lanes = M_lanes + wide
            v, deviation = _compared(widened(values), wide, center, rest, low, i, d)
            if low:
                S_lanes = S_lanes + deviation * v
            D_lanes = D_lanes + deviation * deviation
        D[r], S[r] = lane_total(D_lanes) / d, lane_total(S_lanes) / d
        A[r], M[r] = lane_total(A_lanes) / d, lane_total(M_lanes) / d
        if not serial:
            total[r] = tree_sum(terms, padded, sum_how)
        elif r % LANES == LANES - 1 or r == len(x) - 1:
            store(total, r - r % LANES, serial_sums(terms, padded, d, sum_how))


@inlined
def _compared(x, v_hat, a, b, low, i, d):
    """Return v and v_hat - v, in which the low part of v counts or not."""
    if low:
        v, v_low = _pair(x, a, b)
        v = _kept(v, i, d)
        return v, (v_hat - v) - _kept(v_low, i, d)
    v = _kept((x - a) - b, i, d)
    return v, v_hat - v


@compiled
def products(x, d, rows, cast_how, mean, diff_how, a, b, S):
    """Write mean((v_hat - v) v) of the rows whose numbers are given, where the low part of v does not count."""
    carrier, zero = splat(mean[0]), splat(0.0)
    for r in rows:
        middle, center, rest, lanes = splat(mean[r]), splat(a[r]), splat(b[r]), zero
        for i in range(0, d, LANES):
            values = load(x[r], i)
            v_hat = _kept(rounded(like(rounded(values, cast_how), carrier) - middle, diff_how), i, d)
            v, deviation = _compared(widened(values), widened(v_hat), center, rest, False, i, d)
            lanes = lanes + deviation * v
        S[r] = lane_total(lanes) / d


@inlined
def _normalized(values, middle, inverse, divides, cast_how, carrier, diff_how, normalized_how):
    v_hat = rounded(like(rounded(values, cast_how), carrier) - middle, diff_how)
    return rounded(v_hat / inverse if divides else v_hat * inverse, normalized_how)


@compiled
def cores(
    x, d, cast_how, mean, diff_how, inverse, divides, normalized_how, output_how,
    failed, largest, a, b, rho, rho_low, low, moments, error, total, square, nan, inf,
):  # fmt: skip
    """Write the RMS of core - v rho, with `moments` sum and square of the core; of rows that failed its NaN and Inf."""
    carrier, zero, split = splat(mean[0]), splat(0.0), splat(SPLIT)
    most = splat(largest)
    for r in range(len(x)):
        row, middle, scale = x[r], splat(mean[r]), splat(inverse[r])
        at, rest, exact, exact_low = splat(a[r]), splat(b[r]), splat(rho[r]), splat(rho_low[r])
        errors = sums = sums_of_squares = zero
        for i in range(0, d, LANES):
            values = load(row, i)
            n = _normalized(values, middle, scale, divides, cast_how, carrier, diff_how, normalized_how)
            core = _kept(widened(rounded(n, output_how)), i, d)
            if moments:
                sums = sums + core
                sums_of_squares = sums_of_squares + core * core
            if low:
                v, v_low = _pair(widened(values), at, rest)
                v, v_low = _kept(v, i, d), _kept(v_low, i, d)
                product, product_low = two_product(v, exact, split)
                difference = (core - product) - ((product_low + v_low * exact) + v * exact_low)
            else:
                difference = core - _kept((widened(values) - at) - rest, i, d) * exact
            errors = errors + difference * difference
        error[r] = np.sqrt(lane_total(errors) / d)
        total[r], square[r] = lane_total(sums), lane_total(sums_of_squares)
        nan[r] = inf[r] = 0
        if failed[r]:
            for i in range(0, d, LANES):
                n = _normalized(load(row, i), middle, scale, divides, cast_how, carrier, diff_how, normalized_how)
                size = magnitude(_kept(rounded(n, output_how), i, d))
                numbers = count(size == size)
                nan[r] += LANES - numbers
                inf[r] += numbers - count(size <= most)


@compiled
def outputs(
    x, d, cast_how, mean, diff_how, inverse, divides, normalized_how, affine_how, output_how,
    weight, bias, largest, nan, inf,
):  # fmt: skip
    """Count NaN and Inf of weight * core + bias; padded weight and bias are rounded already, empty if there is none."""
    carrier = splat(mean[0])
    most = splat(largest)
    for r in range(len(x)):
        middle, scale = splat(mean[r]), splat(inverse[r])
        nan[r] = inf[r] = 0
        for i in range(0, d, LANES):
            y = _normalized(load(x[r], i), middle, scale, divides, cast_how, carrier, diff_how, normalized_how)
            if len(weight):
                y = rounded(y * load(weight, i), affine_how)
            if len(bias):
                y = rounded(y + load(bias, i), affine_how)
            size = magnitude(_kept(rounded(y, output_how), i, d))
            finite = count(size <= most)
            if finite < LANES:
                numbers = count(size == size)
                nan[r] += LANES - numbers
                inf[r] += numbers - finite
