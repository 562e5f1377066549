"""The loops over epsilons and rows, one number a row: the kernel after its variance, and the deviation F of each row.

Statistics of rows have a multiple of sixteen elements; masks of rows are packed, a number of sixteen bits for sixteen
rows (`lanes.packed`), zero beyond the last row. Every operation is that of `engine.epsilon`, in the same order.
"""

from __future__ import annotations

import numpy as np

from .compiling import compiled, compiled_with_arrays, inlined
from .exact import LARGEST, root_of, squared
from .lanes import LANES, blank, lane_numbers, load, magnitude, root, splat, store, widened
from .masks import chosen, count, is_finite, packed, unpacked
from .references import SPLIT, greatest
from .rounding import rounded
from .stages import inverted
from .sums import two_product

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

ALL = 0xFFFF  # lanes
# rows of the table of statistics: those of the reference and the kernel, then of the cast: S, D, max(q + 2 S + D, 0)
Q, Q_LOW, S, D, A, V_MEAN, CAST_S, CAST_D, CAST_W = range(9)
# masks of rows: that are there, not constant, all statistics finite, variance negative, emptied by the kernel; of the
# cast finite, constant, unchanged
PRESENT, VARYING, KNOWN, NEGATIVE, EMPTIED, FINITE, CONSTANT, UNCHANGED = range(8)


@compiled
def respond(
    variance,
    diff,
    epsilons,
    inverse,
    w_how,
    once_how,
    root_how,
    rstd_how,
    core_how,
    low,
    scale,
    scale_low,
    nonfinite,
    zero,
    nothing,
):
    """Write r_hat of rows, `low` with its low part, and masks: NaN or Inf in the core, a core of zeros, w = 0.

    variance, diff: in the carrier; epsilons: as the kernel holds them, in the carrier. inverse: as in `stages`.
    """
    zeros = splat(variance.dtype.type(0))
    for e in range(len(epsilons)):
        epsilon, scales, scales_low = splat(epsilons[e]), scale[e], scale_low[e]
        for g in range(len(variance) // LANES):
            w, divisor = inverted(load(variance, LANES * g), epsilon, inverse, w_how, once_how, root_how, rstd_how)
            r, v = widened(divisor), load(diff, LANES * g)
            if len(inverse) == 0:
                r, r_low = reciprocal(r)
                if low:
                    store(scales_low, LANES * g, r_low)
                core = rounded(v / divisor, core_how)
            else:
                core = rounded(v * divisor, core_how)
            store(scales, LANES * g, r)
            nonfinite[e, g] = ALL ^ packed(is_finite(core))
            zero[e, g] = packed(core == zeros)
            nothing[e, g] = packed(w == zeros)


@inlined
def reciprocal(b):
    """Return 1/b as a sum of two float64, the second 0 where the first is not finite."""
    one = splat(1.0)
    high = one / b
    product, error = two_product(high, b, splat(SPLIT))
    low = ((one - product) - error) / b
    return high, chosen(magnitude(low) <= splat(LARGEST), low, splat(0.0))


@inlined
def row_error(r, difference, rho, q, S, D, A, emptied, nonfinite):
    """Return E or F from r_hat, r_hat - rho and rho; emptied, nonfinite: packed."""
    square = squared(difference, q, r, S, D)
    if emptied:
        two = splat(2.0)
        left = (r * r) * A - ((two * r) * rho) * (q + S) + (rho * rho) * q
        nothing = rho * root(q)
        left = chosen(A == splat(0.0), nothing * nothing, left)
        square = chosen(unpacked(emptied), left, square)
    error = root_of(square)
    lost = ALL ^ (packed(magnitude(error) <= splat(LARGEST)) | nonfinite)
    if lost:
        error = chosen(unpacked(lost), r * root(A), error)
    return chosen(unpacked(nonfinite), splat(np.nan), error)


@compiled_with_arrays
def deviations(table, masks, limits, rho, rho_low, low, scale, scale_low, nonfinite):
    """Return for each epsilon how many rows fail and how many are not finite, the largest F and the number of its row.

    Of rows with finite cast; the largest F is -1 where no row has one.
    """
    failing, bad = np.zeros(len(scale), np.int64), np.zeros(len(scale), np.int64)
    worst, worst_at = np.empty(len(scale)), np.empty(len(scale), np.int64)
    q_row, S_row, D_row, A_row = table[Q], table[S], table[D], table[A]
    for e in range(len(scale)):
        scales, scales_low = scale[e], scale_low[e]
        best, best_at = splat(-1.0), splat(-1.0)
        for g in range(masks.shape[1]):
            i = LANES * g
            lost, judged = np.int64(nonfinite[e, g]), np.int64(masks[FINITE, g])
            r, exact = load(scales, i), load(rho, i)
            difference = r - exact
            if low:
                difference = difference + (load(scales_low, i) - load(rho_low, i))
            F = row_error(
                r, difference, exact, load(q_row, i), load(S_row, i), load(D_row, i), load(A_row, i),
                np.int64(masks[EMPTIED, g]), lost,
            )  # fmt: skip
            failing[e] += count(unpacked(judged & (ALL ^ packed(F <= load(limits, i)))))
            bad[e] += count(unpacked(judged & lost))
            best, best_at = larger(chosen(unpacked(judged), F, splat(np.nan)), i, best, best_at)
        worst[e], worst_at[e] = first_largest(best, best_at)
    return failing, bad, worst, worst_at


@inlined
def larger(values, i, best, best_at):
    """Return the largest numbers so far, lane by lane, and where they are from; i: where these values are from."""
    better = best < values
    return chosen(better, values, best), chosen(better, splat(np.float64(i)), best_at)


@inlined
def first_largest(values, at):
    """Return the largest of some lanes and the least number of a row that has it; at: where they are from."""
    best = greatest(values)
    where = chosen(values == splat(best), at + lane_numbers(), splat(LARGEST))
    return best, np.int64(-greatest(blank(where) - where))
