"""Fused multiply-add: one rounding of a * b + c, against exact rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lnaudit.arithmetic import Workspace, fma, quiet, round_to, serial_fma_sum
from lnaudit.formats import FORMATS

from .oracles import (
    ALL_NAMES,
    BITS,
    EMAX,
    EMIN,
    PRECISION,
    decode,
    equal,
    fma_exact,
    infinity_code,
    random_values,
    round_exact,
    special_values,
)

COUNT = 2_000
# in float16 and both 8-bit formats a * b + c is exact in float64 wherever it comes near a tie
WRONG_IN_TWO_STEPS = ("bfloat16", "tfloat32", "float32", "float64")


def carried(x: np.ndarray, name: str) -> np.ndarray:
    return np.asarray(x).astype(FORMATS[name].carrier)


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray, name: str) -> np.ndarray:
    with quiet():
        result = fma(*(carried(x, name) for x in (a, b, c)), FORMATS[name])
    assert result.dtype == FORMATS[name].carrier
    return result


def expected_of(a: np.ndarray, b: np.ndarray, c: np.ndarray, name: str) -> np.ndarray:
    triples = zip(*(np.asarray(x, np.float64).ravel().tolist() for x in (a, b, c)), strict=True)
    return np.array([fma_exact(*triple, name) for triple in triples])


def assert_fused(a: np.ndarray, b: np.ndarray, c: np.ndarray, name: str) -> np.ndarray:
    """Check fma against Fractions and return what those say."""
    expected = expected_of(a, b, c, name)
    assert equal(fused(a, b, c, name), expected)
    return expected


def near(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random a, b, c of a format, c within the precision of a * b, the product anywhere in the range."""
    rng = np.random.default_rng(seed)
    p, low, high = PRECISION[name], EMIN[name] - PRECISION[name], EMAX[name]
    target = rng.integers(low - 3, high + 2, COUNT)
    half = np.clip(target // 2 + rng.integers(-p, p, COUNT), EMIN[name], high)
    a = np.ldexp(rng.uniform(1, 2, COUNT), half)
    b = np.ldexp(rng.uniform(1, 2, COUNT), np.clip(target - half, EMIN[name] - 1, high - 1))
    c = np.ldexp(rng.uniform(-2, 2, COUNT), np.clip(target + rng.integers(-p - 3, p + 4, COUNT), low, high - 1))
    with quiet():
        return round_to(a, name), round_to(b, name), round_to(c, name)


@pytest.mark.parametrize("name", ALL_NAMES)
class TestAgainstRationals:
    def test_random_codes(self, name):
        """Random bit patterns: every exponent, subnormal numbers, Inf and NaN."""
        with np.errstate(invalid="ignore"):
            a, b, c = (random_values(name, COUNT, seed).astype(np.float64) for seed in (1, 2, 3))
        assert_fused(a, b, c, name)

    def test_addends_of_the_size_of_the_product(self, name):
        """Where the addend decides which way the product is rounded, at all exponents."""
        expected = assert_fused(*near(name, 4), name)
        if EMAX[name] > 15:
            assert len(np.unique(expected)) > COUNT // 2

    def test_cancellation(self, name):
        """The addend is minus the rounded product, or next to it: what is left is the error of the product."""
        a, b, _ = near(name, 5)
        rng = np.random.default_rng(6)
        with quiet():
            product = round_to(-(a.astype(np.float64) * b), name)
            c = round_to(product * (1 + rng.integers(-2, 3, COUNT) * 2.0 ** (1 - PRECISION[name])), name)
        keep = np.isfinite(c)
        expected = assert_fused(a[keep], b[keep], c[keep], name)
        assert len(np.unique(expected)) > COUNT // 20

    def test_special_values(self, name):
        """All triples of the ends of the ranges, 1, ties, Inf and NaN: 0 * Inf, Inf - Inf, overflow, underflow."""
        values = special_values(name)
        a, b, c = (x.ravel() for x in np.meshgrid(values[::2], values[1::2], values[::3]))
        assert_fused(a, b, c, name)

    def test_overflow_threshold(self, name):
        """max + half a unit is a tie that overflows; a product that adds a hair less stays at max."""
        top = float(decode(infinity_code(name) - 1, name))
        unit = 2.0 ** (EMAX[name] - PRECISION[name] + 1)
        eps = 2.0 ** (1 - PRECISION[name])
        half = np.array([unit / 2, unit / 2, unit / 2, -unit / 2])
        factors = np.array([1.0, 1 - eps / 2, 1 + eps, 1 + eps])
        expected = assert_fused(half, factors, np.array([top, top, top, -top]), name)
        over = np.nan if name == "float8_e4m3fn" else np.inf
        # where NaN displaced the last significand, max is even and keeps the tie
        assert equal(expected, [top if name == "float8_e4m3fn" else over, top, over, -over])

    def test_subnormal_results(self, name):
        """Products at and around half the smallest subnormal number, addends of a few of it."""
        rng = np.random.default_rng(7)
        tiny = EMIN[name] - PRECISION[name] + 1
        eps = 2.0 ** (1 - PRECISION[name])
        a = 1 + rng.integers(-4, 5, COUNT) * eps / 2
        b = np.ldexp(1 + rng.integers(0, 4, COUNT) * eps, tiny // 2 - rng.integers(0, 3, COUNT))
        a, b = np.ldexp(round_to(a, name), tiny - tiny // 2), b
        c = rng.integers(-9, 10, COUNT) * 2.0**tiny
        expected = assert_fused(*(round_to(x, name) for x in (a, b)), c, name)
        assert {k * 2.0**tiny for k in range(min(8, 1 << (PRECISION[name] - 1)))} <= set(np.abs(expected).tolist())


def ties_and_a_bit(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a * b half way between two numbers of the format, and c below the last bit that float64 keeps of it.

    The factors have few bits and their product one more than the precision, so it is a tie. c is too small to be seen
    in float64(a * b + c), which goes to the even neighbour of the tie; the exact sum is on c's side of it.
    """
    rng = np.random.default_rng(8)
    p = PRECISION[name]
    few = p // 2 + 1
    a, b = (2 * rng.integers(1 << (bits - 2), 1 << (bits - 1), 4_000) + 1 for bits in (few, p + 1 - few))
    product = a * b
    tie = (product >> p) == 1
    a, b, product = a[tie], b[tie], product[tie]
    even_is_below = (product >> 1) % 2 == 0
    scale = 0 if name != "float64" else -20
    c = np.where(even_is_below, 1.0, -1.0) * 2.0 ** (scale + p - 1 - 53 - rng.integers(2, 40, len(a)))
    return np.ldexp(a.astype(np.float64), scale), b.astype(np.float64), c


@pytest.mark.parametrize("name", WRONG_IN_TWO_STEPS)
def test_ties_that_two_roundings_get_wrong(name):
    """Rounding float64(a * b + c) gives the other neighbour in every one of these cases."""
    a, b, c = ties_and_a_bit(name)
    assert len(a) > 500
    expected = assert_fused(a, b, c, name)
    assert (round_to(a * b + c, name) != expected).all()


def test_products_that_push_a_sum_off_a_tie():
    """1 + ulp plus a product just below half an ulp: float64 keeps only the tie, which goes up to the even number."""
    k = np.arange(1, 181)  # 4 k^2 2^-70 is below what float64 keeps
    a, b = (1 + 2 * k * 2.0**-23), (1 - 2 * k * 2.0**-23) * 2.0**-24
    c = np.full(len(k), 1 + 2.0**-23)
    expected = assert_fused(a, b, c, "float32")
    assert (expected == c).all()
    assert (round_to(a * b + c, "float32") == 1 + 2.0**-22).all()


class TestFloat64:
    """The ends of the range, where the error-free products and sums do not hold."""

    @pytest.mark.parametrize("size", [-1075, -1074, -1023, -1000, -961, -960, -959, 1019, 1020, 1021, 1023])
    def test_products_of_all_sizes(self, size):
        """a * b next to 2^size from factors of every size, c comparable, far above and far below."""
        rng = np.random.default_rng(size + 2_000)
        ea = rng.integers(max(-1022, size - 1023), min(1023, size + 1022), 600)
        a, b = np.ldexp(rng.uniform(1, 2, 600), ea), np.ldexp(rng.uniform(1, 2, 600), size - ea)
        offset = np.concatenate([rng.integers(-60, 60, 300), rng.integers(-2_000, 2_000, 300)])
        c = np.ldexp(rng.uniform(-2, 2, 600), np.clip(size + offset, -1074, 1022))
        assert_fused(a, b, c, "float64")
        with quiet():
            assert_fused(a, b, np.nan_to_num(-(a * b)), "float64")

    def test_huge_factors_and_addends(self):
        """Splitting a factor above 2^996, or adding to a number next to max, would overflow on the way."""
        top = np.finfo(np.float64).max
        a = np.array([top, 2.0**1000, top, top, 2.0**600, -(2.0**1023), 1.0, 3.0, top])
        b = np.array([0.5, 2.0**-1000, 2.0**-1074, 1.0, 2.0**600, 2.0, 2.0**970, 2.0**968, 2.0])
        c = np.array([top / 2, -1.0, 1e-300, -top, -top, top, top, top, -np.inf])
        expected = assert_fused(a, b, c, "float64")
        assert equal(expected[[0, 3, 4, 8]], [top, 0, np.inf, -np.inf])

    def test_rounded_thrice_is_not_rounded_once(self):
        """(1 + 2^-52)^2 - 1 - 2^-51 = 2^-104 is lost where the product is rounded first."""
        a, c = np.array([1 + 2.0**-52]), np.array([-1 - 2.0**-51])
        assert fused(a, a, c, "float64")[0] == 2.0**-104
        assert a * a + c == 0


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(ALL_NAMES), st.data())
def test_any_codes(name, data):
    """Any three codes of any format."""
    code = st.integers(0, (1 << BITS[name]) - 1)
    a, b, c = (decode([data.draw(code)], name) for _ in range(3))
    assert_fused(a, b, c, name)


finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=300, deadline=None)
@given(finite, finite, st.integers(-4, 4), st.booleans())
def test_float64_next_to_cancellation(a, b, steps, subtract):
    """The addend is some units from the rounded product."""
    with quiet():
        product = np.array([a]) * b
        c = product.view(np.int64) + steps
    c = np.nan_to_num(c.view(np.float64), nan=0.0)
    assert_fused(np.array([a]), np.array([b]), -c if subtract else c, "float64")


class TestShapes:
    @pytest.mark.parametrize("name", ["float16", "float64", "tfloat32"])
    def test_broadcasting(self, name):
        """A column, a row and one number; the operands are left alone; memory is used again."""
        rng = np.random.default_rng(9)
        a, b, c = (carried(round_to(rng.standard_normal(s), name), name) for s in ((5, 1), (7,), ()))
        kept = [x.copy() for x in (a, b, c)]
        ws = Workspace()
        first = fma(a, b, c, FORMATS[name], ws)
        again = fma(b, a, a, FORMATS[name], ws)
        assert first.shape == again.shape == (5, 7)
        full = np.broadcast_arrays(a, b, c)
        assert equal(first.ravel(), expected_of(*full, name))
        assert equal(again.ravel(), expected_of(full[1], full[0], full[0], name))
        assert all(equal(x, y) for x, y in zip((a, b, c), kept, strict=True))

    @pytest.mark.parametrize("name", ALL_NAMES)
    def test_single_numbers_and_none(self, name):
        two = np.asarray(carried(2, name))
        result = fma(two, two, two, FORMATS[name])
        assert result.shape == ()
        assert result == 6
        assert fma(two, np.zeros((0, 3), two.dtype), two, FORMATS[name]).shape == (0, 3)

    def test_narrower_carriers(self):
        """float32 arrays multiplied and added in float64 and in tfloat32."""
        a, b, c = 1 + 2.0**-20, 1 + 2.0**-19, 1 + 2.0**-18
        arrays = [np.array([x], np.float32) for x in (a, b, c)]
        for name in ("float64", "tfloat32"):
            assert fma(*arrays, FORMATS[name])[0] == fma_exact(a, b, c, name)


@pytest.mark.parametrize("d", [1, 2, 17, 100])
@pytest.mark.parametrize("name", ALL_NAMES)
def test_serial_sum_of_products(name, d):
    """acc = rd(a[0] * b[0]), acc = fma(a[i], b[i], acc), in a loop over Fractions; three rows, one overflows."""
    rng = np.random.default_rng([10, d])
    scale = [1.0, 2.0 ** (EMIN[name] // 2), 2.0 ** (EMAX[name] // 2)]
    a, b = (round_to(rng.standard_normal((d, 3)) * scale, name) for _ in range(2))
    expected = []
    for j in range(3):
        total = 0.0
        for x, y in zip(a[:, j].tolist(), b[:, j].tolist(), strict=True):
            total = fma_exact(x, y, total, name)
        expected.append(total)
    a, b = carried(a, name), carried(b, name)
    kept = a.copy()
    with quiet():
        assert equal(serial_fma_sum(a, b, FORMATS[name], Workspace()), expected)
    assert equal(a, kept)


def test_fused_and_unfused_sums_differ():
    """Of squares of 1 + 2^-10 in float16: the first product is rounded alone, the second not before it is added."""
    x = np.full((2, 1), 1 + 2.0**-10, np.float32)
    square = Fraction(1 + 2.0**-10) ** 2
    first = round_exact(square, "float16")
    assert serial_fma_sum(x, x, FORMATS["float16"], Workspace())[0] == round_exact(square + Fraction(first), "float16")
