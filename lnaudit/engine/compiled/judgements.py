"""The loops over points and rows: each row judged as if the epsilon of the point were the model's.

Masks of rows are packed, sixteen rows a number, as in `responses`. Every operation is that of `engine.epsilon` and
`summary.codes`, in the same order.
"""

from __future__ import annotations

import numpy as np

from .compiling import compiled_with_arrays, inlined
from .exact import cast_error
from .lanes import LANES, load, magnitude, root, splat, store
from .masks import chosen, count, packed, unpacked
from .responses import (
    ALL,
    CAST_D,
    CAST_S,
    CAST_W,
    CONSTANT,
    EMPTIED,
    FINITE,
    KNOWN,
    NEGATIVE,
    PRESENT,
    UNCHANGED,
    V_MEAN,
    VARYING,
    A,
    D,
    Q,
    S,
    first_largest,
    larger,
    row_error,
)

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

# counts: rows that are unusual in any way, then by number of their primary code, then the others
CODES = 11
DEVIATIONS = (7, 8)  # of the codes
FAR, FAR_TOO, NONFINITE, ZERO_OVER_ZERO, COLLAPSED, AFFINE, COSTLY, COUNTS = range(CODES, CODES + 8)
KEY_SHIFT = 46  # the bits of a float64 that are left number its bin: 64 for each power of two
BINS = 1 << (63 - KEY_SHIFT)
INFINITE = 0x7FF0000000000000 >> KEY_SHIFT  # the bin of Inf; what is above holds NaN


@compiled_with_arrays
def point_errors(table, masks, epsilons, rho, rho_low, features, low, changed, scale, scale_low, nonfinite):
    """Return E and the cost G of the cast, both against the exact row at each epsilon; sum and squares of the core.

    Then the largest cost, -1 if none is a number, and the number of its row. rho: exact, shape (epsilons, rows). low:
    r_hat and rho have low parts that count. changed: the cast changes a row.
    """
    shape = scale.shape
    error, cost, total, square = np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape)
    dearest, dearest_at = np.empty(len(scale)), np.empty(len(scale), np.int64)
    q_row, S_row, D_row, A_row = table[Q], table[S], table[D], table[A]
    mean_row, cast_S, cast_D, cast_w = table[V_MEAN], table[CAST_S], table[CAST_D], table[CAST_W]
    for e in range(len(scale)):
        scales, scales_low, errors, costs, totals, squares = (
            scale[e], scale_low[e], error[e], cost[e], total[e], square[e]
        )  # fmt: skip
        epsilon, width, best, best_at = splat(epsilons[e]), splat(features), splat(-1.0), splat(-1.0)
        exact, exact_low = rho[e], rho_low[e]
        for g in range(masks.shape[1]):
            i = LANES * g
            q, r, meant, left = load(q_row, i), load(scales, i), load(exact, i), load(A_row, i)
            difference = r - meant
            if low:
                difference = difference + (load(scales_low, i) - load(exact_low, i))
            emptied, lost = np.int64(masks[EMPTIED, g]), np.int64(nonfinite[e, g])
            store(errors, i, row_error(r, difference, meant, q, load(S_row, i), load(D_row, i), left, emptied, lost))
            G = splat(0.0)
            if changed:
                unchanged, constant = np.int64(masks[UNCHANGED, g]), np.int64(masks[CONSTANT, g])
                w = load(cast_w, i) + epsilon
                G = cast_error(q, load(cast_S, i), load(cast_D, i), w, meant, unchanged, constant)
            G = chosen(unpacked(np.int64(masks[FINITE, g])), G, splat(np.nan))
            store(costs, i, G)
            best, best_at = larger(G, i, best, best_at)
            scaled = r * width
            store(totals, i, scaled * load(mean_row, i))
            store(squares, i, (r * scaled) * left)
        dearest[e], dearest_at[e] = first_largest(best, best_at)
    return error, cost, total, square, dearest, dearest_at


@compiled_with_arrays
def tally(error, masks, nonfinite, bins):
    """Return extremes and histogram of the errors of rows that are finite, NaN left out.

    The largest, -1 where there are none, and the number of its row; the smallest; how many bins are not empty, their
    numbers, ascending, and how many errors they hold. bins: room to count in, zeros and left as zeros.
    """
    n = len(error)
    largest, largest_at, smallest, filled = np.empty(n), np.empty(n, np.int64), np.empty(n), np.empty(n, np.int64)
    keys = np.empty((n, min(error.shape[1], BINS)), np.int64)
    amounts, buffer = np.empty_like(keys), np.empty(LANES)
    bits, shift = buffer.view(np.uint64), np.uint64(KEY_SHIFT)
    zero, infinity = splat(0.0), splat(np.inf)
    for e in range(n):
        errors = error[e]
        best, best_at, least, zeros = splat(-1.0), splat(-1.0), infinity, 0
        for g in range(masks.shape[1]):
            i = LANES * g
            healthy = np.int64(masks[FINITE, g]) & (ALL ^ np.int64(nonfinite[e, g]))
            seen = chosen(unpacked(healthy), magnitude(load(errors, i)), splat(np.nan))
            best, best_at = larger(seen, i, best, best_at)
            least = chosen((zero < seen) & (seen < least), seen, least)
            zeros += count(seen == zero)
            store(buffer, 0, seen)
            for lane in range(LANES):
                bins[bits[lane] >> shift] += 1
        largest[e], largest_at[e] = first_largest(best, best_at)
        positive = -first_largest(zero - least, zero)[0]
        smallest[e] = 0.0 if zeros else positive
        bins[INFINITE + 1 :] = 0
        buffer[0], buffer[1] = positive, max(largest[e], 0.0)
        filled[e] = gathered(bins, np.int64(bits[0] >> shift), np.int64(bits[1] >> shift), keys[e], amounts[e])
    return largest, largest_at, smallest, filled, keys, amounts


@inlined
def gathered(bins, first, last, keys, amounts):
    """Write bin 0 and the bins first to last, as far as they are not empty; leave them empty. Return how many."""
    n = 0
    if first > 0 and bins[0]:
        keys[0], amounts[0], bins[0] = 0, bins[0], 0
        n = 1
    for key in range(first, last + 1):
        if bins[key]:
            keys[n], amounts[n], bins[key] = key, bins[key], 0
            n += 1
    return n


@compiled_with_arrays
def count_codes(table, masks, rho, accepted, scale, nonfinite, zero, nothing, affine, error, cost):
    """Return which rows have a code, packed, and for each epsilon the counts named above.

    affine: rows whose output is not finite though the core is.
    """
    coded, counts = np.zeros_like(nonfinite), np.zeros((len(scale), COUNTS), np.int64)
    q_row, S_row = table[Q], table[S]
    accept = splat(accepted)
    for e in range(len(scale)):
        scales, errors, costs, counted = scale[e], error[e], cost[e], counts[e]
        for g in range(masks.shape[1]):
            i = LANES * g
            E, G = load(errors, i), load(costs, i)
            twice = G + G
            limits = chosen(accept < twice, twice, accept)
            counted[COSTLY] += count(accept < G)
            deviates = ALL ^ packed(E <= limits)
            unusual = deviates | (ALL ^ np.int64(masks[FINITE, g])) | np.int64(masks[CONSTANT, g])
            unusual |= np.int64(nonfinite[e, g]) | np.int64(zero[e, g]) | np.int64(affine[e, g])
            unusual &= np.int64(masks[PRESENT, g])
            if unusual:
                counted[0] += count(unpacked(unusual))
                q, r = load(q_row, i), load(scales, i)
                exact = load(rho[e], i)
                meant = root(q) * exact
                together = packed(limits < magnitude(scale_error(q, r, exact, load(S_row, i))) * meant)
                coded[e, g] = classified(
                    masks, g, np.int64(nonfinite[e, g]), np.int64(zero[e, g]), np.int64(nothing[e, g]),
                    np.int64(affine[e, g]), deviates, together, ALL ^ packed(E <= splat(5.0) * limits),
                    packed(accept < meant), counted,
                )  # fmt: skip
    return coded, counts


@inlined
def scale_error(q, r, rho, S):
    """Return r_hat (q + S) / (rho q) - 1, 0 where q is 0."""
    zero, one = splat(0.0), splat(1.0)
    some = zero < q
    q = chosen(some, q, one)
    return chosen(some, r * (q + S) / (rho * q) - one, zero)


@inlined
def classified(masks, g, nonfinite, zero, nothing, affine, deviates, together, far, matters, counted):
    """Count sixteen rows, each under the first code that applies; return which have one. All masks are numbers."""
    present, varying, finite = np.int64(masks[PRESENT, g]), np.int64(masks[VARYING, g]), np.int64(masks[FINITE, g])
    destroyed = np.int64(masks[CONSTANT, g]) & varying
    left = present
    # in the order of `summary.codes.CODES`
    in_turn = (
        ALL ^ finite,
        destroyed & matters,
        nonfinite & np.int64(masks[NEGATIVE, g]),
        nonfinite & nothing,
        nonfinite & (ALL ^ np.int64(masks[KNOWN, g])),
        nonfinite,
        zero & matters,
        deviates & together,
        deviates,
        affine,
    )
    for number, mask in enumerate(in_turn):
        here = mask & left
        left = left & (ALL ^ mask)
        counted[1 + number] += count(unpacked(here))
        if number in DEVIATIONS:
            counted[FAR + number - DEVIATIONS[0]] += count(unpacked(here & far))
    counted[NONFINITE] += count(unpacked(present & nonfinite))
    counted[ZERO_OVER_ZERO] += count(unpacked(present & finite & nothing & nonfinite))
    counted[COLLAPSED] += count(unpacked(present & varying & zero))
    counted[AFFINE] += count(unpacked(present & affine))
    return present & (ALL ^ left)
