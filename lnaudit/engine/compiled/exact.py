"""The exact 1/std of sixteen rows, and what a cast costs them: what `engine.epsilon` works out, in the same order."""

from __future__ import annotations

import numpy as np

from . import references
from .compiling import compiled, inlined
from .lanes import LANES, load, magnitude, root, splat, store
from .masks import chosen, unpacked
from .references import SPLIT
from .sums import two_product, two_sum

LARGEST = np.finfo(np.float64).max
LARGEST_EPSILON = 2.0**500  # above it the Newton step for the low part of 1/std would have to be scaled
FEW, MANY = 2.0**-500, 2.0**600  # w below is scaled up before the Newton step, its root by 2^-300


@compiled
def roots(given, epsilon, low):
    """Write 1/std of rows, `low` with its low part; given: by `references`, a multiple of 16 columns."""
    for i in range(0, given.shape[1] - LANES + 1, LANES):
        q = load(given[references.Q], i)
        store(given[references.ROOT], i, exact_root(q + splat(epsilon)))
        if low:
            low_part = exact_root_low(q, load(given[references.Q_LOW], i), splat(epsilon))
            store(given[references.ROOT_LOW], i, low_part)


@compiled
def roots_at(q, q_low, epsilons, low, rho, rho_low):
    """Write 1/std of rows at each epsilon, `low` with its low part; shape (epsilons, rows), a multiple of 16 rows."""
    for e in range(len(epsilons)):
        epsilon, high, rest = splat(epsilons[e]), rho[e], rho_low[e]
        for i in range(0, len(q), LANES):
            variance = load(q, i)
            store(high, i, exact_root(variance + epsilon))
            if low:
                store(rest, i, exact_root_low(variance, load(q_low, i), epsilon))


@inlined
def exact_root(w):
    """Return rho = 1/sqrt(w), 0 where w is 0."""
    rho = splat(1.0) / root(w)
    return chosen(magnitude(rho) == splat(np.inf), splat(0.0), rho)


@inlined
def exact_root_low(q, q_low, epsilon):
    """Return what rho of q + q_low + epsilon has beyond one float64, by one Newton step (`engine.reference`)."""
    one, few, split = splat(1.0), splat(FEW), splat(SPLIT)
    w, w_low = two_sum(q, epsilon)
    usable, few = splat(0.0) < w, w < few
    # an exact power of four keeps the step in range
    up = chosen(few, splat(MANY), one)
    w, w_low = w * up, (w_low + q_low) * up
    y = one / root(w)
    square, square_low = two_product(y, y, split)
    product, product_low = two_product(w, square, split)
    residual = (((one - product) - product_low) - w * square_low) - w_low * square
    y_low = ((splat(0.5) * y) * residual) * chosen(few, splat(MANY**0.5), one)
    return chosen(usable, y_low, splat(0.0))


@inlined
def squared(difference, q, r, S, D):
    """Return difference^2 q + 2 difference r S + r^2 D, in the order of Horner."""
    return (difference * q + (splat(2.0) * S) * r) * difference + (r * r) * D


@inlined
def root_of(square):
    """Return the root of what may have come out a little below 0."""
    zero = splat(0.0)
    return root(chosen(square < zero, zero, square))


@inlined
def cast_error(q, S, D, w, rho, unchanged, constant):
    """Return G of rows with finite cast; w: variance of the cast row + epsilon."""
    rho_h = splat(1.0) / root(w)
    rho_h = chosen(magnitude(rho_h) <= splat(LARGEST), rho_h, splat(0.0))
    error = root_of(squared(rho_h - rho, q, rho_h, S, D))
    if unchanged | constant:
        error = chosen(unpacked(unchanged), splat(0.0), error)
        error = chosen(unpacked(constant), root(q) * rho, error)
    return error
