"""Sums of vectors in the orders of `arithmetic.sums`, and of double-doubles in that of the reference."""

from __future__ import annotations

import numpy as np

from .compiling import inlined
from .lanes import (
    first,
    fused,
    like,
    load,
    load_strided,
    magnitude,
    rotated1,
    rotated2,
    rotated4,
    rotated8,
    splat,
    store,
)
from .masks import chosen, count, lanes_below
from .processor import HAS_FMA
from .rounding import rounded

INEXACT = 2.0**-900  # products below it may have an error that float64 cannot hold


@inlined
def ratio_to_itself(d):
    """Return 1.0 as a number that the compiler does not know."""
    return np.float64(d) / np.float64(d)


@inlined
def lane_total(lanes):
    """Add up 16 float64 lanes by halves."""
    lanes = lanes + rotated8(lanes)
    lanes = lanes + rotated4(lanes)
    lanes = lanes + rotated2(lanes)
    return first(lanes + rotated1(lanes))


@inlined
def first_half(d):
    """Return the largest power of two below d, at least 16: how far apart the first numbers are that are added."""
    half = 16
    while 2 * half < d:
        half *= 2
    return half


@inlined
def tree_sum(source, start, terms, padded, how):
    """Sum by halves elements from `start` on, zeros to a multiple of 16 at their end; terms: room for half of them.

    Sums are of the type of the terms.
    """
    half, model = first_half(padded), splat(terms[0])
    for i in range(0, half, 16):
        total = like(load(source, start + i), model)
        if i + half < padded:
            total = rounded(total + like(load(source, start + i + half), model), how)
        store(terms, i, total)
    while half > 16:
        half //= 2
        for i in range(0, half, 16):
            store(terms, i, rounded(load(terms, i) + load(terms, i + half), how))
    lanes = load(terms, 0)
    lanes = rounded(lanes + rotated8(lanes), how)
    lanes = rounded(lanes + rotated4(lanes), how)
    lanes = rounded(lanes + rotated2(lanes), how)
    return first(rounded(lanes + rotated1(lanes), how))


@inlined
def serial_sums(terms, stride, d, how):
    """Return the sums of 16 rows of d terms from left to right, a row a lane."""
    total = load_strided(terms, 0, stride)
    for i in range(1, d):
        total = rounded(total + load_strided(terms, i, stride), how)
    return total


@inlined
def two_sum(a, b):
    """Return s and e with s = fl(a + b) and s + e = a + b exactly (Knuth, TAOCP 2, 4.2.2)."""
    s = a + b
    bb = s - a
    return s, (a - (s - bb)) + (b - bb)


@inlined
def _balanced_two_sum(a, b, one):
    s = a + b
    bb = fused(s, one, a)
    return s, fused(a, one, s - bb) + fused(b, one, bb)


@inlined
def _plain_two_sum(a, b, one):
    return two_sum(a, b)


# the same for vectors; one: 1.0, not known when it is compiled. Half of the operations are done by units that multiply,
# which have nothing else to do
two_sum_of_lanes = _balanced_two_sum if HAS_FMA else _plain_two_sum


@inlined
def product_by_parts(a, b, split):
    """Return p and e with p = fl(a * b) and, absent over- and underflow, p + e = a * b (Dekker 1971)."""
    p = a * b
    ta = split * a
    tb = split * b
    ah = ta - (ta - a)
    bh = tb - (tb - b)
    al = a - ah
    bl = b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


@inlined
def _product_at_once(a, b, split):
    p = a * b
    if count(magnitude(p) < splat(INEXACT)):
        return product_by_parts(a, b, split)
    return p, fused(a, b, p)


# the same of vectors; split: 2^27 + 1. Where e is exact a fused multiply-add gives the same; where it may not be, only
# the same operations do
two_product = _product_at_once if HAS_FMA else product_by_parts


@inlined
def renormalized(high, low):
    """Return the same sum of two numbers, the first one rounded."""
    total = high + low
    return total, low - (total - high)


@inlined
def added(high, low, other, other_low):
    """Add two double-doubles."""
    total, error = two_sum(high, other)
    return renormalized(total, error + (low + other_low))


@inlined
def lanes_added(high, low, other, other_low, one):
    """Add up two vectors of double-doubles."""
    total, error = two_sum_of_lanes(high, other, one)
    return renormalized(total, error + (low + other_low))


@inlined
def tree_sum_of_pairs(high, low, d):
    """Sum d double-doubles by halves in place; arrays have room for a multiple of 16."""
    one = splat(ratio_to_itself(d))
    while d > 1:
        if d == 16:
            a, a_low = load(high, 0), load(low, 0)
            a, a_low = lanes_added(a, a_low, rotated8(a), rotated8(a_low), one)
            a, a_low = lanes_added(a, a_low, rotated4(a), rotated4(a_low), one)
            a, a_low = lanes_added(a, a_low, rotated2(a), rotated2(a_low), one)
            a, a_low = lanes_added(a, a_low, rotated1(a), rotated1(a_low), one)
            return first(a), first(a_low)
        half = 1
        while 2 * half < d:
            half *= 2
        rest = d - half
        if half < 16:
            for i in range(rest):
                high[i], low[i] = added(high[i], low[i], high[i + half], low[i + half])
        else:
            for i in range(0, rest, 16):
                a, a_low = load(high, i), load(low, i)
                total, error = lanes_added(a, a_low, load(high, i + half), load(low, i + half), one)
                within = lanes_below(rest - i)
                store(high, i, chosen(within, total, a))
                store(low, i, chosen(within, error, a_low))
        d = half
    return high[0], low[0]
