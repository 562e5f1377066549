"""The loops over the elements of rows for a kernel: cast, sums, squares, core and output.

Rows, references and results are as in `references`. The types of the rounding constants (`rounding.how`) pick the code,
and flags that are a tuple: () leaves out what (0,) asks for, so that less is compiled. Scalar stages in between are
numpy's (`numba_engine`).
"""

from __future__ import annotations

import numpy as np

from .compiling import compiled, inlined
from .lanes import (
    LANES,
    blank,
    chosen,
    count,
    lanes_below,
    like,
    load,
    magnitude,
    splat,
    store,
    widened,
)
from .references import SPLIT, kept, pair
from .rounding import rounded
from .sums import lane_total, serial_sums, tree_sum, two_product


@compiled
def cast(x, d, how, a, b, rms, finite, smallest_normal, largest, terms, shift, D, S, counts):
    """Write mean(c) of what a cast adds to rows, mean((c - mean)^2), mean((c - mean) v); count elements.

    counts: numbers that are not finite any more, subnormal ones, zeros, zeros of the file.
    finite: rows that are so after the cast. What a cast adds is a number of the carrier: subtraction is exact. terms:
    room for a row.
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
            if len(how):
                store(terms, i, h - values)
                total = total + widened(h - values)
        if not finite[r] or count((least < normal) | (least == blank(least))):
            _count_unusual(row, d, how, normal, most, counts)
        if len(how) == 0:  # nothing is rounded
            shift[r] = D[r] = S[r] = 0.0
            continue
        shift[r] = 0.0 if rms else lane_total(total) / d
        mean, at, rest, squares, products = splat(shift[r]), splat(a[r]), splat(b[r]), zero, zero
        for i in range(0, d, LANES):
            c = kept(widened(load(terms, i)) - mean, i, d)
            squares = squares + c * c
            products = products + c * kept((widened(load(row, i)) - at) - rest, i, d)
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
        at = r % LANES * padded if len(serial) else 0
        for i in range(0, d, LANES):
            store(terms, at + i, like(rounded(load(x[r], i), cast_how), carrier))
        if len(serial) == 0:
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
        at = r % LANES * padded if len(serial) else 0
        D_lanes = S_lanes = A_lanes = M_lanes = zero
        for i in range(0, d, LANES):
            values = load(row, i)
            h = like(rounded(values, cast_how), carrier)
            v_hat = kept(rounded(h - middle, diff_how), i, d)
            term = h if len(of_h) else v_hat
            store(terms, at + i, rounded(term * term, square_how))
            wide = widened(v_hat)
            A_lanes = A_lanes + wide * wide
            if len(means):
                M_lanes = M_lanes + wide
            v, deviation = _compared(widened(values), wide, center, rest, low, i, d)
            if len(low):
                S_lanes = S_lanes + deviation * v
            D_lanes = D_lanes + deviation * deviation
        D[r], S[r] = lane_total(D_lanes) / d, lane_total(S_lanes) / d
        A[r], M[r] = lane_total(A_lanes) / d, lane_total(M_lanes) / d
        if len(serial) == 0:
            total[r] = tree_sum(terms, padded, sum_how)
        elif r % LANES == LANES - 1 or r == len(x) - 1:
            store(total, r - r % LANES, serial_sums(terms, padded, d, sum_how))


@inlined
def _compared(x, v_hat, a, b, low, i, d):
    """Return v and v_hat - v, in which the low part of v counts or not."""
    if len(low):
        v, v_low = pair(x, a, b)
        v = kept(v, i, d)
        return v, (v_hat - v) - kept(v_low, i, d)
    v = kept((x - a) - b, i, d)
    return v, v_hat - v


@compiled
def products(x, d, rows, cast_how, mean, diff_how, a, b, S):
    """Write mean((v_hat - v) v) of the rows whose numbers are given, where the low part of v does not count."""
    carrier, zero = splat(mean[0]), splat(0.0)
    for r in rows:
        middle, center, rest, lanes = splat(mean[r]), splat(a[r]), splat(b[r]), zero
        for i in range(0, d, LANES):
            values = load(x[r], i)
            v_hat = kept(rounded(like(rounded(values, cast_how), carrier) - middle, diff_how), i, d)
            v, deviation = _compared(widened(values), widened(v_hat), center, rest, (), i, d)
            lanes = lanes + deviation * v
        S[r] = lane_total(lanes) / d


@inlined
def _normalized(values, middle, inverse, divides, cast_how, carrier, diff_how, normalized_how):
    v_hat = rounded(like(rounded(values, cast_how), carrier) - middle, diff_how)
    return rounded(v_hat / inverse if len(divides) else v_hat * inverse, normalized_how)


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
            core = kept(widened(rounded(n, output_how)), i, d)
            if len(moments):
                sums = sums + core
                sums_of_squares = sums_of_squares + core * core
            if len(low):
                v, v_low = pair(widened(values), at, rest)
                v, v_low = kept(v, i, d), kept(v_low, i, d)
                product, product_low = two_product(v, exact, split)
                difference = (core - product) - ((product_low + v_low * exact) + v * exact_low)
            else:
                difference = core - kept((widened(values) - at) - rest, i, d) * exact
            errors = errors + difference * difference
        error[r] = np.sqrt(lane_total(errors) / d)
        total[r], square[r] = lane_total(sums), lane_total(sums_of_squares)
        nan[r] = inf[r] = 0
        if failed[r]:
            for i in range(0, d, LANES):
                n = _normalized(load(row, i), middle, scale, divides, cast_how, carrier, diff_how, normalized_how)
                size = magnitude(kept(rounded(n, output_how), i, d))
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
            size = magnitude(kept(rounded(y, output_how), i, d))
            finite = count(size <= most)
            if finite < LANES:
                numbers = count(size == size)
                nan[r] += LANES - numbers
                inf[r] += numbers - finite
