"""The loops over the elements of rows for a kernel: cast, sums, squares, core and output.

Rows, references and results are as in `references`. The types of the rounding constants (`rounding.how`) pick the code,
and flags that are a tuple: () leaves out what (0,) asks for, so that less is compiled. Scalar stages in between are
numpy's (`numba_engine`).
"""

from __future__ import annotations

import numpy as np

from .compiling import compiled, inlined
from .lanes import LANES, like, load, magnitude, splat, widened
from .masks import count
from .references import SPLIT, kept, pair
from .rounding import rounded
from .sums import lane_total, ratio_to_itself, two_product


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
    most, one = splat(largest), splat(ratio_to_itself(d))
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
                v, v_low = pair(widened(values), at, rest, one)
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
