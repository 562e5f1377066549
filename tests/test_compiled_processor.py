"""What the compiled engine leaves to the processor gives the same numbers as what it does where that is missing."""

from __future__ import annotations

import numpy as np
import pytest

from lnaudit.arithmetic import quiet, rounding
from lnaudit.double_double import two_product, two_sum
from lnaudit.formats import FORMATS

numba = pytest.importorskip("numba", reason="numba is not installed: pip install 'lnaudit[fast]'")

from lnaudit.engine.compiled import sums  # noqa: E402
from lnaudit.engine.compiled.lanes import LANES, load, splat, square_added, store  # noqa: E402
from lnaudit.engine.compiled.processor import HAS_FMA, HAS_HALF  # noqa: E402
from lnaudit.engine.compiled.references import SPLIT  # noqa: E402
from lnaudit.engine.compiled.rounding import rounded  # noqa: E402


@numba.njit(error_model="numpy")
def rounded_by(x, how, out):
    for i in range(0, len(x), LANES):
        store(out, i, rounded(load(x, i), how))


def halves() -> np.ndarray:
    """Return all numbers of float16, what lies half-way between neighbours, and the next float32 on both sides."""
    numbers = np.arange(0x7C01, dtype=np.uint16).view(np.float16).astype(np.float32)
    numbers[-1] = 65536.0  # where Inf would be
    middles = (numbers[:-1] + numbers[1:]) / 2
    around = [np.nextafter(some, np.float32(to)) for some in (numbers, middles) for to in (-np.inf, np.inf)]
    found = np.concatenate([numbers, middles, *around, [np.inf, np.nan, 1e30, 1e-30, 1e-45]]).astype(np.float32)
    found = np.concatenate([found, -found])
    return np.concatenate([found, np.zeros(-len(found) % LANES, np.float32)])


@pytest.mark.skipif(not HAS_HALF, reason="the processor has no conversions of float16")
def test_conversion_to_float16_and_back_is_rounding_by_addition() -> None:
    x = halves()
    by_processor, by_addition = np.empty_like(x), np.empty_like(x)
    rounded_by(x, (np.int16(0),), by_processor)
    rounded_by(x, rounding.addition_constants(FORMATS["float16"], 4), by_addition)
    with quiet():
        expected = x.astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(by_processor, expected)
    np.testing.assert_array_equal(by_addition, expected)


@numba.njit(error_model="numpy")
def products_by(a, b, fused, p, e):
    for i in range(0, len(a), LANES):
        x, y, split = load(a, i), load(b, i), splat(SPLIT)
        if fused:
            high, low = sums._product_at_once(x, y, split)
        else:
            high, low = sums.product_by_parts(x, y, split)
        store(p, i, high)
        store(e, i, low)


@pytest.mark.skipif(not HAS_FMA, reason="the processor has no fused multiply-add")
def test_errors_of_products_are_those_of_dekker_to_the_last_bit() -> None:
    """Of products whose error underflows too, beside others that do not."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 1 << 16)) * 10.0 ** rng.uniform(-160, 150, (2, 1 << 16))
    a[::97], b[::89], a[5::101] = 0.0, -0.0, 2.0**-537
    b[5::101] = 2.0 ** -rng.integers(400, 560, len(b[5::101]))
    with quiet():
        expected = two_product(a, b)
    for fused in (True, False):
        p, e = np.empty_like(a), np.empty_like(a)
        products_by(a, b, fused, p, e)
        np.testing.assert_array_equal(p, expected[0])
        np.testing.assert_array_equal(e, expected[1])
        np.testing.assert_array_equal(np.signbit(e), np.signbit(expected[1]))


def test_the_error_of_a_product_is_exact_where_it_can_be() -> None:
    from fractions import Fraction

    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 256)) * 2.0 ** rng.integers(-200, 200, (2, 256))
    p, e = np.empty_like(a), np.empty_like(a)
    products_by(a, b, HAS_FMA, p, e)
    for x, y, high, low in zip(a, b, p, e, strict=True):
        assert Fraction(x) * Fraction(y) == Fraction(high) + Fraction(low)


@numba.njit(error_model="numpy")
def sums_by(a, b, one, s, e):
    for i in range(0, len(a), LANES):
        high, low = sums._balanced_two_sum(load(a, i), load(b, i), splat(one))
        store(s, i, high)
        store(e, i, low)


@pytest.mark.skipif(not HAS_FMA, reason="the processor has no fused multiply-add")
def test_errors_of_sums_are_those_of_knuth_to_the_last_bit() -> None:
    """Of numbers far apart, of the same size, that cancel, that are not finite, and of zeros of either sign."""
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((2, 1 << 16)) * 10.0 ** rng.uniform(-300, 300, (2, 1 << 16))
    b[::3] = a[::3] * rng.choice([1.0, -1.0, 1 + 2**-52, 2**-30], len(b[::3]))
    special = np.array([0.0, -0.0, 5e-324, -5e-324, 1.7e308, -1.7e308, np.inf, -np.inf, np.nan])
    pairs = np.stack(np.meshgrid(special, special)).reshape(2, -1)
    a, b = (
        np.concatenate([some, more, np.zeros(-len(more) % LANES)]) for some, more in zip((a, b), pairs, strict=True)
    )
    with quiet():
        expected = two_sum(a, b)
    s, e = np.empty_like(a), np.empty_like(a)
    sums_by(a, b, 1.0, s, e)
    for found, known in zip((s, e), expected, strict=True):
        np.testing.assert_array_equal(found, known)
        numbers = ~np.isnan(known)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(known[numbers]))


@numba.njit(error_model="numpy")
def squares_by(total, x, out):
    for i in range(0, len(x), LANES):
        store(out, i, square_added(load(total, i), load(x, i)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_squares_are_rounded_before_they_are_added(dtype: type) -> None:
    rng = np.random.default_rng(3)
    x = (rng.standard_normal(1 << 12) * 10.0 ** rng.uniform(-40, 38, 1 << 12)).astype(dtype)
    x[:4] = 0.0, np.inf, np.nan, 1e-45
    total = rng.standard_normal(1 << 12) * 10.0 ** rng.uniform(-80, 76, 1 << 12)
    out = np.empty_like(total)
    squares_by(total, x, out)
    with quiet():
        np.testing.assert_array_equal(out, total + x.astype(np.float64) * x.astype(np.float64))
