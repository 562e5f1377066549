"""Sums without error against rationals: rows as far apart as they may be, and one step further."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lnaudit.arithmetic import quiet
from lnaudit.engine.exact_sums import ROOM, centred, exact_sums, width
from lnaudit.engine.reference import center

WIDTHS = (1, 2, 3, 4, 5, 16, 17, 768, 1000, 1024, 4097)
LARGEST_BELOW_ONE = 1 - 2.0**-24


def check(row: np.ndarray) -> bool:
    """Compare the sums of a row of float32 numbers, and its variance, with rationals; return whether they fit."""
    x, z, d = row.astype(np.float64)[:, None], [Fraction(value) for value in row.tolist()], len(row)
    sums = exact_sums(x.copy(), np.abs(x).max(axis=0))
    total, squares = sum(z), sum(value * value for value in z)
    if sums.fits[0]:
        assert Fraction(sums.total[0]) == total
        assert Fraction(sums.high[0]) + Fraction(sums.low[0]) == squares
        high, low = centred(sums, d)
        assert Fraction(high[0]) + Fraction(low[0]) == d * squares - total * total
        assert high[0] + low[0] == high[0]
    for rms in (False, True):
        constant = np.array([(row == (0 if rms else row[0])).all()])
        with quiet():
            found = center(
                x.copy(), rms=rms, constant=constant, amax=np.abs(x).max(axis=0), double_double=True, narrow=True
            )
        exact = squares / d - (0 if rms else (total / d) ** 2)
        got = Fraction(found.variance[0]) + Fraction(found.variance_low[0])
        if sums.fits[0]:
            assert abs(got - exact) <= exact * Fraction(2) ** -103
        else:  # the bound of the double-double sums, whose condition counts
            assert abs(got - exact) <= squares * Fraction(2) ** -98
    return bool(sums.fits[0])


def row_of(d: int, bits: int, signs: str) -> np.ndarray:
    """Return a row of the largest numbers below 1 and at its end one that is so many bits smaller."""
    row = np.full(d, LARGEST_BELOW_ONE, np.float32)
    if signs == "alternating":
        row[1::2] *= -1
    row[-1] = np.float32(LARGEST_BELOW_ONE * 2.0**-bits)
    return row


@pytest.mark.parametrize("signs", ["equal", "alternating"])
@pytest.mark.parametrize("d", WIDTHS)
def test_rows_at_the_limit_are_exact_and_those_beyond_are_left_alone(d: int, signs: str) -> None:
    limit = ROOM - int(np.log2(width(d)))
    assert check(row_of(d, limit, signs))
    assert check(row_of(d, limit + 1, signs)) == (d == 1)  # of one number the smallest is the largest


@pytest.mark.parametrize("unit", [-149, -126, -20, 0, 100])
@pytest.mark.parametrize("d", WIDTHS)
def test_every_last_place_counts(d: int, unit: int) -> None:
    """Random last places, at the ends of the range too, where the unit is that of the subnormal numbers."""
    numbers = np.random.default_rng(d).integers(-(2**24) + 1, 2**24, d)
    assert check(np.ldexp(numbers.astype(np.float64), unit).astype(np.float32)) or d > 16


@pytest.mark.parametrize("name", ["zeros", "some zeros", "one beside others", "offset", "neighbours"])
@pytest.mark.parametrize("d", WIDTHS)
def test_rows_that_are_hard_in_other_ways(d: int, name: str) -> None:
    rng = np.random.default_rng(d)
    noise = rng.standard_normal(d)
    row = {
        "zeros": 0 * noise,
        "some zeros": np.where(rng.random(d) < 0.5, 0, 1 + np.abs(noise)),
        "one beside others": np.where(np.arange(d) == d // 2, 5e-2, 1 + np.abs(noise)),
        "offset": 1e4 + 1e-2 * noise,
        "neighbours": np.where(np.arange(d) == d // 2, np.nextafter(np.float32(5.1), np.float32(6)), np.float32(5.1)),
    }[name]
    assert check(row.astype(np.float32))


@settings(max_examples=300, deadline=None)
@given(hnp.arrays(np.float32, st.integers(1, 40), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_any_row(row: np.ndarray) -> None:
    check(row)


def test_rows_side_by_side_are_those_alone() -> None:
    """Rows that fit beside rows that do not."""
    rows = [row_of(17, bits, signs) for bits in (0, 22, 23, 24, 40) for signs in ("equal", "alternating")]
    x = np.stack(rows, axis=1).astype(np.float64)
    amax, constant = np.abs(x).max(axis=0), np.zeros(x.shape[1], bool)
    for rms in (False, True):
        block = center(x.copy(), rms=rms, constant=constant, amax=amax, double_double=True, narrow=True)
        for i in range(len(rows)):
            part = slice(i, i + 1)
            alone = center(
                x[:, part].copy(),
                rms=rms,
                constant=constant[part],
                amax=amax[part],
                double_double=True,
                narrow=True,
            )
            for name in ("mean", "mean_low", "variance", "variance_low"):
                assert getattr(block, name)[i] == getattr(alone, name)[0]
            assert np.array_equal(block.v_low[:, i], alone.v_low[:, 0])
