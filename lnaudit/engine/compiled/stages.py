"""What a kernel does with one number a row, for sixteen rows at a time: means, variance, the root and its inverse.

Every operation is that of `engine.interpreter`, in the same order, where all stages are held in one carrier.
"""

from __future__ import annotations

import numpy as np

from .compiling import inlined
from .lanes import blank, like, magnitude, root, splat, widened
from .masks import chosen
from .rounding import rounded


@inlined
def averaged(total, d, reciprocal, wide_how, how):
    """Make sums of d terms means; reciprocal: () divides by d, else what sums are multiplied by.

    wide_how: of a quotient in float64, to the widest dtype that takes part; how: to that of the stage.
    """
    if len(reciprocal):
        return rounded(total * splat(reciprocal[0]), how)
    return rounded(like(rounded(widened(total) / splat(np.float64(d)), wide_how), total), how)


@inlined
def largest_difference(h_max, h_min, mean, how):
    """Return max|h - mean| of rows from their extremes: rounding is monotone. NaN where either difference is."""
    top, bottom = magnitude(rounded(h_max - mean, how)), magnitude(rounded(h_min - mean, how))
    # a comparison with NaN is false: of the two the second is taken, unless the first is NaN
    larger = chosen(bottom < top, top, bottom)
    return chosen(top == top, larger, top)


@inlined
def clamped(variance, clamp):
    """Return a variance with 0 for what is negative; of a clamp of two elements for NaN too, of none as it is."""
    if len(clamp) == 0:
        return variance
    zero = blank(variance)
    if len(clamp) == 2:
        variance = chosen(variance == variance, variance, zero)
    return chosen(variance < zero, zero, variance)


@inlined
def inverted(variance, epsilon, inverse, w_how, once_how, root_how, rstd_how):
    """Return variance + epsilon and its root or 1/std.

    inverse: a tuple of no element for "div", one for "recip_sqrt", two for "rsqrt".
    """
    w = rounded(variance + epsilon, w_how)
    if len(inverse) == 2:
        once = rounded(splat(1.0) / root(widened(w)), once_how)
        return w, rounded(like(once, w), rstd_how)
    found = rounded(root(w), root_how)
    if len(inverse) == 1:
        found = rounded(like(splat(1.0), w) / found, rstd_how)
    return w, found
