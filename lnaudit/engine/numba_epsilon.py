"""The compiled twin of `epsilon` and of the verdict at a point: many epsilons on rows whose statistics are known.

The same numbers to the last bit, from loops over sixteen rows at a time. What they do not cover (`covers`) is left to
`epsilon`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic.rounding import round_number
from ..formats import Format, wider
from ..kernels import Kernel, Stages
from .compiled import exact, judgements, responses
from .compiled.exact import LARGEST_EPSILON
from .compiled.lanes import LANES
from .compiled.steps import covers_inverse, first_how, inverse_hows
from .epsilon import inverse_roots
from .rows import CastStatistics, InputStatistics, KernelStatistics, Plan

Array = NDArray[Any]
AT_ONCE = 1 << 16  # numbers in an array of rows and epsilons: it stays in cache
# JSON keys of counts, in the order of `judgements`
COUNTED = (
    "nonfinite_rows",
    "zero_over_zero_rows",
    "collapsed_rows",
    "affine_overflow_rows",
    "costly_cast_rows",
)


def covers(rows: InputStatistics, fmt: Format, kernel: Kernel, plan: Plan) -> bool:
    """Whether the loops run what follows the variance in a kernel (`steps.covers_inverse`), and nothing is scaled."""
    return (
        covers_inverse(fmt, kernel, plan.rms)
        and not rows.scaled
        and not plan.prescale
        and max(*plan.tried, *plan.points, 0.0) <= LARGEST_EPSILON
    )


def _packed(mask: Array, size: int) -> Array:
    """Return a mask whose last axis are rows in numbers of sixteen bits, zero beyond the end."""
    whole = np.zeros((*mask.shape[:-1], size), bool)
    whole[..., : mask.shape[-1]] = mask
    return np.packbits(whole, axis=-1, bitorder="little").view(np.uint16)


@dataclass(kw_only=True)
class Verdicts:
    """What each point makes of the rows; arrays have an entry a point.

    unusual: rows that are not plainly healthy. codes: rows by number of their primary code, from 1. far: rows of LN204
    and of LN202 far beyond the limit. others: counts by `COUNTED`. worst, worst_row: largest E of a healthy row and
    largest G, and their rows, -1 without one. smallest, keys, amounts: of the histogram of the healthy rows' errors.
    moments: sum of the core and of its squares. coded: rows of any code, packed.
    """

    unusual: Array
    codes: Array
    far: Array
    others: Array
    worst: Array
    worst_row: Array
    smallest: Array
    keys: list[Array]
    amounts: list[Array]
    moments: Array
    coded: Array

    def has_code(self, point: int, rows: int) -> Array:
        """Return which of so many rows have a code at a point."""
        return np.unpackbits(self.coded[point].view(np.uint8), count=rows, bitorder="little").view(bool)


def _hows(at: Stages, inverse: str, rms: bool) -> tuple[Any, ...]:
    """Return what `responses.respond` is told of a kernel."""
    normalizing = wider(wider(at.T if rms else at.diff, at.rstd), at.normalized)
    core = first_how(at.variance.carrier, normalizing, at.normalized, at.output)
    return (*inverse_hows(at, inverse).values(), core)


class Emulation:
    """The rows of one emulation, as the loops read them.

    known: rows whose statistics are all finite. low: r_hat and the exact 1/std have low parts that count.
    """

    def __init__(
        self,
        rows: InputStatistics,
        cast: CastStatistics,
        stats: KernelStatistics,
        known: Array,
        fmt: Format,
        kernel: Kernel,
        plan: Plan,
    ) -> None:
        self._rows, self._plan = rows, plan
        self._n = len(rows.index)
        self._size = -(-self._n // LANES) * LANES
        self.low = fmt.precision == 53
        self._accepted = plan.limit_of(fmt)
        at = kernel.stages(fmt)
        self._holds, self._carrier = at.epsilon, at.variance.carrier
        self._variance, self._diff = (self._padded(part, self._carrier) for part in (stats.variance, stats.diff))
        self._how = _hows(at, kernel.inverse, plan.rms)
        self._changed = bool(cast.D.any())
        columns = [rows.variance, rows.variance_low, stats.S, stats.D, stats.A]
        if plan.points:
            w = np.maximum(rows.variance + 2 * cast.S + cast.D, 0.0)
            columns += [stats.v_mean, cast.S, cast.D, w]
        self._table = np.empty((len(columns), self._size))
        self._table[:, self._n :] = 0.0
        for row, column in zip(self._table, columns, strict=True):
            row[: self._n] = column
        emptied = ~(stats.A >= rows.variance / 4) | (stats.A == 0)
        masks = (~rows.constant, known, stats.variance < 0, emptied, cast.finite, cast.constant, cast.D == 0)
        self._masks = _packed(np.stack((np.ones(self._n, bool), *masks)), self._size)

    def _padded(self, values: Array, dtype: Any = np.float64) -> Array:
        padded = np.zeros((*values.shape[:-1], self._size), dtype)
        padded[..., : self._n] = values
        return padded

    def groups(self, epsilons: tuple[float, ...]) -> Iterator[slice]:
        """Yield which epsilons are run at a time."""
        step = max(1, AT_ONCE // self._size)
        for start in range(0, len(epsilons), step):
            yield slice(start, start + step)

    def _respond(self, epsilons: tuple[float, ...]) -> tuple[Array, Array, Array, Array, Array]:
        held = np.array([round_number(epsilon, self._holds) for epsilon in epsilons]).astype(self._carrier)
        shape, groups = (len(held), self._size), (len(held), self._size // LANES)
        scale, scale_low = np.empty(shape), np.zeros(shape if self.low else (len(held), 0))
        masks = np.empty((3, *groups), np.uint16)
        responses.respond(self._variance, self._diff, held, *self._how, self.low, scale, scale_low, *masks)
        return scale, scale_low, masks[0], masks[1], masks[2]

    def deviations(self, limits: Array) -> tuple[Array, Array, Array, Array]:
        """Return what each epsilon that the plan tries does to rows with finite cast, against the model's.

        Rows that fail, rows that are not finite, the largest F (-1 without one) and its row.
        """
        rho, rho_low = inverse_roots(self._rows, (self._plan.model_epsilon,), 0)
        given = [self._padded(part) for part in (limits, rho[0], np.broadcast_to(rho_low, rho.shape)[0])]
        parts = []
        for some in self.groups(self._plan.tried):
            scale, scale_low, nonfinite, _, _ = self._respond(self._plan.tried[some])
            parts.append(responses.deviations(self._table, self._masks, *given, self.low, scale, scale_low, nonfinite))
        failing, bad, worst, at = (np.concatenate(column) for column in zip(*parts, strict=True))
        return failing, bad, worst, np.where(at >= 0, self._rows.index[at], -1)

    def exact_roots(self, epsilons: tuple[float, ...], low: bool) -> tuple[Array, Array]:
        """Return the exact 1/std of the rows at each epsilon, `low` with its low part."""
        shape = (len(epsilons), self._size)
        rho, rho_low = np.empty(shape), np.zeros(shape if low else (len(epsilons), 0))
        exact.roots_at(self._table[responses.Q], self._table[responses.Q_LOW], np.array(epsilons), low, rho, rho_low)
        return rho, rho_low

    def masked(self, rows: Array, points: int) -> Array:
        """Return which rows a mask of shape (points or 1, rows) has at each point, packed."""
        return np.broadcast_to(_packed(rows, self._size), (points, self._size // LANES))

    def judged(
        self, epsilons: tuple[float, ...], roots: tuple[Array, Array], affine: Array, bins: Array
    ) -> tuple[Any, ...]:
        """Return the columns of some points: counts, rows with a code, the worst and their rows, and so on."""
        table, masks, held = self._table, self._masks, np.array(epsilons)
        scale, scale_low, nonfinite, zero, nothing = self._respond(epsilons)
        error, cost, total, square, dearest, dearest_at = judgements.point_errors(
            table, masks, held, *roots, float(self._plan.features), self.low, self._changed, scale, scale_low, nonfinite
        )
        largest, largest_at, smallest, filled, *parts = judgements.tally(error, masks, nonfinite, bins)
        coded, counts = judgements.count_codes(
            table, masks, roots[0], self._accepted, scale, nonfinite, zero, nothing, affine, error, cost
        )
        moments = np.stack([part[:, : self._n].sum(axis=1) for part in (total, square)], axis=1)
        # copies, for the room that they were counted in is large
        histograms = ([part[:n].copy() for part, n in zip(array, filled.tolist(), strict=True)] for array in parts)
        return (
            counts,
            coded,
            np.stack((largest, dearest)),
            np.stack((largest_at, dearest_at)),
            smallest,
            moments,
            *histograms,
        )

    def assembled(self, parts: list[tuple[Any, ...]]) -> Verdicts:
        """Put what `judged` found at some points after the other together."""
        counts, coded, worst, at, smallest, moments, keys, amounts = zip(*parts, strict=True)
        counted, rows = np.concatenate(counts), np.concatenate(at, axis=1)
        return Verdicts(
            unusual=counted[:, 0],
            codes=counted[:, 1 : judgements.CODES],
            far=counted[:, judgements.FAR : judgements.FAR + 2],
            others=counted[:, judgements.NONFINITE :],
            worst=np.concatenate(worst, axis=1),
            worst_row=np.where(rows >= 0, self._rows.index[rows], -1),
            smallest=np.concatenate(smallest),
            keys=[part for group in keys for part in group],
            amounts=[part for group in amounts for part in group],
            moments=np.concatenate(moments),
            coded=np.concatenate(coded),
        )


def verdicts(emulations: list[tuple[Emulation, Array]], epsilons: tuple[float, ...]) -> list[Verdicts]:
    """Return what each epsilon makes of the rows in each of their emulations, were it the model's.

    Beside an emulation: rows whose output is not finite though the core is, shape (epsilons or 1, rows). What they are
    compared with is the same for all.
    """
    rows, bins = emulations[0][0], np.zeros(judgements.BINS, np.int32)
    masks = [emulation.masked(affine, len(epsilons)) for emulation, affine in emulations]
    low = any(emulation.low for emulation, _ in emulations)
    parts: list[list[tuple[Any, ...]]] = [[] for _ in emulations]
    for some in rows.groups(epsilons):
        roots = rows.exact_roots(epsilons[some], low)
        for (emulation, _), mask, found in zip(emulations, masks, parts, strict=True):
            found.append(emulation.judged(epsilons[some], roots, np.ascontiguousarray(mask[some]), bins))
    return [emulation.assembled(found) for (emulation, _), found in zip(emulations, parts, strict=True)]
