"""Rounding, operations, roots and sums, bit by bit against exact rationals, numpy and ml_dtypes."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

import ml_dtypes
import mpmath
import numpy as np
import pytest

from lnaudit.arithmetic import (
    REDUCTIONS,
    Workspace,
    check_hardware,
    lane_sum,
    quiet,
    reciprocal_root_once,
    round_in_place,
    round_number,
    round_to,
    rounded,
    serial_sum,
    tree_sum,
)
from lnaudit.double_double import two_product, two_sum
from lnaudit.engine import interpreter
from lnaudit.engine.interpreter import inverse
from lnaudit.formats import FORMATS
from lnaudit.kernels import KERNELS

from .oracles import (
    ALL_NAMES,
    BITS,
    EMAX,
    FLOAT8,
    NAMES,
    SCALARS,
    between,
    decode,
    equal,
    infinite,
    infinity_code,
    lanes,
    random_values,
    reciprocal_root_exact,
    root_exact,
    round_exact,
    serial,
    special_values,
    tree,
)

SHORT = ("float16", "bfloat16")
# those of which every bit pattern is tried
FEW_CODES = (*SHORT, "tfloat32", *FLOAT8)
WIDTHS = (1, 2, 3, 7, 8, 13, 17, 100, 127, 768, 777)


class TestRounding:
    @pytest.mark.parametrize("source", ["float32", "float64"])
    @pytest.mark.parametrize("name", FEW_CODES)
    def test_every_code_rounds_to_itself(self, name, source):
        """All codes of at most 19 bits, subnormals, Inf and every NaN payload included."""
        with np.errstate(invalid="ignore"):  # signalling NaN
            values = decode(np.arange(1 << BITS[name]), name).astype(source)
        assert equal(round_to(values, name), values)

    @pytest.mark.parametrize("source", ["float32", "float64"])
    @pytest.mark.parametrize("name", FEW_CODES)
    def test_between_all_neighbours(self, name, source):
        """0.3, 0.49, tie - 1 ulp of the source, tie, tie + 1 ulp, 0.51, 0.99 between all neighbours of both signs.

        The expected code is known by construction: below the middle the lower, above it the upper, at it the even one.
        """
        codes = np.arange(infinity_code(name))
        numbers, expected = between(name, codes, source)
        assert equal(round_to(numbers, name), expected)
        assert equal(round_to(-numbers, name), -expected)
        in_place = numbers.copy()
        with quiet():
            round_in_place(in_place, FORMATS[name], Workspace())
        assert in_place.dtype == source
        assert equal(in_place, expected)

    def test_between_neighbours_of_float32(self):
        """The same from float64 to float32: 100,000 random codes, and all around 0, the normal range's ends and 1."""
        infinity = infinity_code("float32")
        edges = [np.arange(300), infinity - np.arange(1, 300)]
        edges += [center + np.arange(-300, 300) for center in (0x00800000, 0x3F800000)]
        random = np.random.default_rng(1).integers(0, infinity, 100_000)
        numbers, expected = between("float32", np.concatenate([*edges, random]), "float64")
        assert equal(round_to(numbers, "float32"), expected)
        assert equal(round_to(-numbers, "float32"), -expected)

    @pytest.mark.parametrize("name", [*SHORT, *FLOAT8])
    def test_casts_of_numpy_and_ml_dtypes(self, name):
        """A million random float32 numbers of all exponents round like numpy's and ml_dtypes' own casts."""
        values = random_values("float32", 1_000_000, 2)
        with np.errstate(all="ignore"):
            assert equal(round_to(values, name), values.astype(SCALARS[name]).astype(np.float64))

    @pytest.mark.parametrize("name", ["float16", "float32"])
    def test_casts_of_numpy_from_float64(self, name):
        """A million random float64 numbers within and around the format's range round like numpy's casts."""
        rng = np.random.default_rng(3)
        span = EMAX[name] + 30
        values = np.ldexp(rng.uniform(-2, 2, 1_000_000), rng.integers(-span, span, 1_000_000))
        with np.errstate(all="ignore"):
            assert equal(round_to(values, name), values.astype(name))

    @pytest.mark.parametrize("name", [name for name in ALL_NAMES if name != "float64"])
    def test_exact_rationals_from_float64(self, name):
        """20,000 float64 numbers, random and a hair off the ties, against Fractions rounded by hand."""
        rng = np.random.default_rng(4)
        span = EMAX[name] + 12
        values = np.ldexp(rng.uniform(-2, 2, 10_000), rng.integers(-span, span, 10_000))
        ties, _ = between(name, rng.integers(0, infinity_code(name), 2_000), "float64")
        values = np.concatenate([values, ties[5 * 2_000 :], ties[-4_000:] * (1 + 2.0**-45)])
        assert equal(round_to(values, name), [round_exact(Fraction(x), name) for x in values.tolist()])

    def test_float64_is_rounded_once_to_bfloat16(self):
        """1 + 2^-8 + 2^-40 is above the tie; by way of float32 it would fall onto it, which is what ml_dtypes does."""
        value = np.array([1 + 2.0**-8 + 2.0**-40])
        assert round_to(value, "bfloat16")[0] == 1.0078125
        assert float(value.astype(ml_dtypes.bfloat16)[0]) == 1.0
        assert round_to(-value, "bf16")[0] == -1.0078125
        assert round_number(value[0], FORMATS["bfloat16"]) == 1.0078125
        assert round_to(1 + 2.0**-11 + 2.0**-40, "float16") == 1 + 2.0**-10

    @pytest.mark.parametrize("source", ["float32", "float64"])
    @pytest.mark.parametrize(
        ("name", "threshold", "largest"),
        [
            ("float16", 65520.0, 65504.0),
            # max = (2 - 2^-7) 2^127; half a unit above it is the tie between max and 2^128
            ("bfloat16", (2 - 2.0**-8) * 2.0**127, (2 - 2.0**-7) * 2.0**127),
            ("tfloat32", (2 - 2.0**-11) * 2.0**127, (2 - 2.0**-10) * 2.0**127),
            ("float8_e5m2", 61440.0, 57344.0),
        ],
    )
    def test_overflow_threshold(self, name, threshold, largest, source):
        """The tie above max goes to Inf, the next number below it to max; so does everything beyond."""
        threshold = np.dtype(source).type(threshold)
        below = np.nextafter(threshold, 0, dtype=source)
        values = np.array([threshold, below, -threshold, -below, np.finfo(source).max, np.inf, -np.inf])
        expected = [np.inf, largest, -np.inf, -largest, np.inf, np.inf, -np.inf]
        assert equal(round_to(values.astype(source), name), expected)

    def test_overflow_numbers_of_float16(self):
        """65519.99 is 65504, 65520 is Inf."""
        assert round_to(65519.99, "float16") == 65504
        assert round_to(65520.0, "float16") == np.inf

    def test_float32_overflow_from_float64(self):
        """float64 from the tie above float32's max on is Inf; just below it, max."""
        tie = (2 - 2.0**-24) * 2.0**127
        assert round_to(tie, "float32") == np.inf
        assert round_to(np.nextafter(tie, 0), "float32") == np.finfo(np.float32).max
        assert round_to(1e300, "float32") == np.inf

    @pytest.mark.parametrize("name", ALL_NAMES)
    def test_nan_stays_nan_with_any_payload(self, name):
        """Signalling, all low bits set, both signs: a payload must never carry into the exponent."""
        patterns = np.array([0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0x7F80FFFF, 0x7FC00000, 0xFF800001], np.uint32)
        assert np.isnan(round_to(patterns.view(np.float32), name)).all()
        patterns = np.array([0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0x7FF00000FFFFFFFF], np.uint64)
        assert np.isnan(round_to(patterns.view(np.float64), name)).all()

    @pytest.mark.parametrize("carrier", ["float32", "float64"])
    @pytest.mark.parametrize("name", FEW_CODES)
    def test_nan_of_arithmetic_stays_nan_in_place(self, name, carrier):
        """Inf - Inf, 0 * Inf, 0 / 0 and sqrt(-1) give the NaN that round_in_place must keep."""
        inf, zero = np.array([np.inf], carrier), np.array([0], carrier)
        with quiet():
            values = np.concatenate([inf - inf, zero * inf, zero / zero, np.sqrt(zero - 1), -(inf - inf)])
            round_in_place(values, FORMATS[name], Workspace())
        assert np.isnan(values).all()

    @pytest.mark.parametrize("name", ALL_NAMES)
    def test_values_of_the_format_pass_unchanged(self, name):
        """Any array of the format's own dtype is returned as it is, float32 but for float64, in its shape."""
        values = random_values(name, 1200, 5).reshape(3, 4, 100)
        with np.errstate(invalid="ignore"):
            exact = values.astype(np.float64)
        result = round_to(values, name)
        assert result.dtype == ("float64" if name == "float64" else "float32")
        assert result.shape == values.shape
        assert equal(result, exact)

    def test_shapes_and_kinds_of_input(self):
        """Scalars, lists, integers, empty and transposed arrays; the input is left alone."""
        assert round_to(2049, "half").shape == ()
        assert round_to(2049, "half") == 2048
        assert round_to([[1, 257]], "bf16").tolist() == [[1.0, 256.0]]
        assert round_to(np.zeros((0, 3)), "float16").shape == (0, 3)
        x = np.arange(2045, 2069, dtype=np.float32).reshape(4, 6)
        kept = x.copy()
        assert equal(round_to(x.T[::2], "float16"), x.T[::2].astype(np.float16))
        assert equal(x, kept)

    def test_scratch_memory_does_not_leak_between_arrays(self):
        """One Workspace serves arrays of different sizes and both carriers."""
        scratch = Workspace()
        for seed, (size, carrier) in enumerate([(100, "float64"), (7, "float32"), (300, "float32"), (9, "float64")]):
            x = np.random.default_rng(seed).standard_normal(size).astype(carrier)
            expected = x.astype(np.float16)
            round_in_place(x, FORMATS["float16"], scratch)
            assert equal(x, expected)


SYMBOLS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}


def operate(symbol: str, a: np.ndarray, b: np.ndarray, name: str) -> np.ndarray:
    """Perform an operation the way lnaudit does."""
    fmt, ws = FORMATS[name], Workspace()
    with quiet():
        a, b = a.astype(fmt.carrier), b.astype(fmt.carrier)
        return interpreter.operate(ws, "test", SYMBOLS[symbol], a, b, fmt, fmt)


def exact_operation(symbol: str, a: float, b: float, name: str) -> float:
    """Perform an operation on rationals and round it by hand."""
    a, b = Fraction(a), Fraction(b)
    return round_exact({"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b}[symbol](), name)


@pytest.mark.parametrize("name", NAMES)
class TestOperations:
    @pytest.mark.parametrize("symbol", SYMBOLS)
    def test_a_million_random_pairs(self, name, symbol):
        """Random bit patterns, so every exponent, against the dtype's own arithmetic in numpy or ml_dtypes."""
        count = 1_000_000
        a, b = random_values(name, count, 6), random_values(name, count, 7)
        with np.errstate(all="ignore"):
            expected = SYMBOLS[symbol](a, b)
            assert expected.dtype == SCALARS[name]
            assert equal(operate(symbol, a, b, name), expected)

    @pytest.mark.parametrize("symbol", SYMBOLS)
    def test_all_pairs_of_special_values(self, name, symbol):
        """0, the ends of the subnormal and normal ranges, 1, ties, max, Inf and NaN, each with each and both signs."""
        values = special_values(name).astype(SCALARS[name])
        a, b = (x.ravel() for x in np.meshgrid(values, values))
        with np.errstate(all="ignore"):
            assert equal(operate(symbol, a, b, name), SYMBOLS[symbol](a, b))

    def test_square_root_against_the_dtype(self, name):
        """Roots of a million random bit patterns against the dtype's own sqrt."""
        values = np.abs(random_values(name, 1_000_000, 12))
        with np.errstate(all="ignore"):
            carried = values.astype(FORMATS[name].carrier)
            _, root = inverse(carried, (0.0,), FORMATS[name], KERNELS["native"])
            assert equal(root[0], np.sqrt(values))


@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize("name", [*NAMES, "tfloat32"])
def test_operations_on_exact_rationals(name, symbol):
    """The finite special pairs and 3,000 random ones of near exponents, against Fractions rounded by hand."""
    rng = np.random.default_rng(8)
    special = special_values(name)
    special = special[np.isfinite(special)]
    a, b = (x.ravel() for x in np.meshgrid(special, special))
    with np.errstate(all="ignore"):
        random = [random_values(name, 3_000, seed).astype(np.float64) for seed in (9, 10)]
        random[1][:1_500] = random[0][:1_500] * rng.uniform(-2, 2, 1_500)
        random[1] = round_to(random[1], name)
    a, b = np.concatenate([a, random[0]]), np.concatenate([b, random[1]])
    usable = np.isfinite(a) & np.isfinite(b) & ((b != 0) | (symbol != "/"))
    a, b = a[usable], b[usable]
    expected = [exact_operation(symbol, x, y, name) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert equal(operate(symbol, a, b, name), expected)


@pytest.mark.parametrize("name", ALL_NAMES)
def test_square_root(name):
    """Roots of all positive codes of at most 16 bits (12,000 of wider formats) by integer square root.

    Asked of the kernel that divides by the root: with epsilon 0 its denominator is the root of the variance.
    """
    infinity = infinity_code(name)
    if BITS[name] <= 16:
        codes = np.arange(infinity)
    else:
        edges = [np.arange(1_000), infinity - np.arange(1, 1_000)]
        codes = np.concatenate([*edges, np.random.default_rng(11).integers(0, infinity, 10_000)])
    values = decode(codes, name)
    with quiet():
        _, root = inverse(values.astype(FORMATS[name].carrier), (0.0,), FORMATS[name], KERNELS["native"])
    assert equal(root[0], [root_exact(Fraction(x), name) for x in values.tolist()])
    with quiet():
        special = np.array([0.0, infinite(name), np.nan, -1.0], FORMATS[name].carrier)
        _, root = inverse(special, (0.0,), FORMATS[name], KERNELS["native"])
    assert equal(root[0], [0, infinite(name), np.nan, np.nan])


def near_ends_of_tfloat32(symbol: str) -> tuple[np.ndarray, np.ndarray]:
    """Return 4,000 pairs of which most results are subnormal, ties between such, or at the overflow threshold."""
    rng = np.random.default_rng(31)
    a, b = (rng.integers(1024, 2048, 4_000) * 2.0**-10 for _ in range(2))
    target = rng.choice([-139, -138, -137, -136, -134, -130, -128, -127, -126, 126, 127, 128], 4_000)
    if symbol in "+-":
        # neighbours of one another that cancel, and the largest that add up
        e = np.where(target < 0, rng.integers(-126, -116, 4_000), 127)
        b = np.where(target < 0, (a + rng.integers(-9, 9, 4_000) * 2.0**-10).clip(1, 2 - 2.0**-10), b)
        sign = np.where((target < 0) == (symbol == "+"), -1.0, 1.0)
        return np.ldexp(a, e), sign * np.ldexp(b, np.where(target < 0, e, e - rng.integers(0, 13, 4_000)))
    e = np.where(target < 0, rng.integers(-126, -10, 4_000), rng.integers(10, 127, 4_000))
    other = target - e if symbol == "*" else e - target
    return np.ldexp(a, e), np.ldexp(b, other.clip(-126, 127))


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_tfloat32_at_the_ends_of_its_range(symbol):
    """Where float32 would not do: subnormal results, ties between them, overflow; against Fractions."""
    a, b = near_ends_of_tfloat32(symbol)
    expected = [exact_operation(symbol, x, y, "tfloat32") for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert equal(operate(symbol, a, b, "tfloat32"), expected)
    assert len({x for x in expected if 0 < abs(x) < 2.0**-126}) > 10
    assert np.isinf(expected).any()


def test_products_of_tfloat32_are_not_exact_in_float32():
    """Why its carrier is float64: float32 rounds 1525 * 1719 * 2^-156, above a tie, onto the tie."""
    a, b = np.array([1525 * 2.0**-80]), np.array([1719 * 2.0**-76])
    exact = exact_operation("*", a[0], b[0], "tfloat32")
    assert exact == 3 * 2.0**-136
    assert operate("*", a, b, "tfloat32")[0] == exact
    assert round_to(a.astype(np.float32) * b.astype(np.float32), "tf32")[0] == 2 * 2.0**-136


def test_mixed_formats_round_once_in_the_wide_one_and_once_when_stored():
    """float32 times bfloat16 is rounded to float32, then to float16; broadcasting included."""
    rng = np.random.default_rng(13)
    a = rng.standard_normal((50, 40)).astype(np.float32)
    b = rng.standard_normal(40).astype(ml_dtypes.bfloat16)
    carried = b.astype(np.float32)
    got = interpreter.operate(Workspace(), "x", np.multiply, a, carried, FORMATS["float32"], FORMATS["float16"])
    assert equal(got, (a * carried).astype(np.float16))


class TestReciprocalRoot:
    def test_every_significand_of_float32(self):
        """Exhaustive proof for 1 <= w < 4 in integers: 1/sqrt(w) lies strictly within half a unit of the answer.

        With w = m 2^s and the answer Y 2^-24, (2Y - 1)^2 m < 2^73 or 2^72 < (2Y + 1)^2 m, in two limbs of 25 bits.
        """
        step, mask = 1 << 20, (1 << 25) - 1
        for doubled in (1, 2):
            for start in range(1 << 23, 1 << 24, step):
                m = np.arange(start, start + step)
                w = (m * doubled).astype(np.float64) * 2.0**-23
                answer = reciprocal_root_once(w.astype(np.float32), FORMATS["float32"])
                assert answer.dtype == np.float32
                y = (answer.astype(np.float64) * 2.0**24).astype(np.int64)
                for tie, sign in ((2 * y - 1, -1), (2 * y + 1, 1)):
                    square = tie * tie
                    low = (square & mask) * (m * doubled)
                    high = (square >> 25) * (m * doubled) + (low >> 25)
                    low &= mask
                    if sign < 0:
                        assert (high < 1 << 48).all()
                    else:
                        assert ((high > 1 << 48) | ((high == 1 << 48) & (low > 0))).all()

    def test_float32_of_all_exponents(self):
        """5,000 random bit patterns and the edges, subnormals included, against integer square roots."""
        infinity = infinity_code("float32")
        edges = [np.arange(500), infinity - np.arange(1, 500), 0x3F800000 + np.arange(-500, 500)]
        codes = np.concatenate([*edges, np.random.default_rng(14).integers(0, infinity, 5_000)])
        values = decode(codes, "float32")
        with quiet():
            got = reciprocal_root_once(values.astype(np.float32), FORMATS["float32"])
        assert equal(got, [reciprocal_root_exact(x, "float32") for x in values.tolist()])

    @pytest.mark.parametrize("name", [*SHORT, *FLOAT8])
    def test_every_positive_code_of_16_bits(self, name):
        """All positive codes, 0 and Inf against integer square roots."""
        values = decode(np.arange(infinity_code(name) + 1), name)
        with quiet():
            got = reciprocal_root_once(values.astype(np.float32), FORMATS[name])
        assert equal(got, [reciprocal_root_exact(x, name) for x in values.tolist()])

    @pytest.mark.parametrize("name", FEW_CODES)
    def test_float32_variance_to_narrower_formats(self, name):
        """float32 numbers whose 1/sqrt is next to a tie of the format, where a second rounding would show."""
        rng = np.random.default_rng(15)
        codes = rng.integers(*np.searchsorted(decode(np.arange(infinity_code(name)), name), [1e-2, 1e2]), 2_000)
        tie = (decode(codes, name) + decode(codes + 1, name)) / 2
        nearest = (1 / tie**2).astype(np.float32)
        w = np.concatenate([np.nextafter(nearest, np.float32(0)), nearest, np.nextafter(nearest, np.float32(np.inf))])
        got = reciprocal_root_once(w, FORMATS[name])
        assert equal(got, [reciprocal_root_exact(float(x), name) for x in w])

    def test_tfloat32_of_all_exponents(self):
        """Every exponent with 40 significands, and the edges, against integer square roots."""
        infinity = infinity_code("tfloat32")
        codes = np.concatenate([np.arange(1_100), infinity - np.arange(1, 500), np.arange(0, infinity, 26)])
        values = decode(codes, "tfloat32")
        with quiet():
            got = reciprocal_root_once(values, FORMATS["tfloat32"])
        assert equal(got, [reciprocal_root_exact(x, "tfloat32") for x in values.tolist()])

    def test_float64_random(self):
        """5,000 random bit patterns, subnormals, powers of 4 and the edges of the range, against integers."""
        with np.errstate(all="ignore"):
            values = np.abs(random_values("float64", 5_000, 16))
        edges = np.concatenate([np.arange(300), infinity_code("float64") - np.arange(1, 300)])
        around_one = decode(0x3FF0000000000000 + np.arange(-300, 300), "float64")
        powers = np.ldexp(1.0, np.arange(-1074, 1024))
        values = np.concatenate([values, decode(edges, "float64"), around_one, 4 * around_one, powers, 3 * powers[:-2]])
        values = values[~np.isnan(values)]
        with quiet():
            got = reciprocal_root_once(values, FORMATS["float64"])
        assert equal(got, [reciprocal_root_exact(x, "float64") for x in values.tolist()])

    def test_float64_next_to_ties(self):
        """w = 1 - k 2^-52, k odd, has 1/sqrt(w) = 1 + k 2^-53 + 1.5 k^2 2^-106: a tie to 50 bits and more beyond it."""
        k = np.concatenate([np.arange(1, 2_000, 2), 2 * np.random.default_rng(17).integers(0, 2**22, 2_000) + 1])
        w = 1 - k * 2.0**-52
        values = np.concatenate([w, np.ldexp(w, 600), np.ldexp(w, -600), np.ldexp(w, -1000)])
        got = reciprocal_root_once(values, FORMATS["float64"])
        assert equal(got, [reciprocal_root_exact(x, "float64") for x in values.tolist()])

    def test_float64_against_mpmath(self):
        """The integer oracle itself and lnaudit agree with mpmath at 400 bits on 500 random numbers."""
        values = np.exp(np.random.default_rng(18).uniform(-600, 600, 500))
        got = reciprocal_root_once(values, FORMATS["float64"])
        with mpmath.workprec(400):
            expected = [1 / mpmath.sqrt(mpmath.mpf(x)) for x in values.tolist()]
        with mpmath.workprec(53):
            assert equal(got, [float(+x) for x in expected])
        assert equal(got, [reciprocal_root_exact(x, "float64") for x in values.tolist()])

    @pytest.mark.parametrize("name", ALL_NAMES)
    def test_special_values(self, name):
        """IEEE 754 rSqrt: 0 gives Inf (NaN where there is none), Inf gives 0, NaN and negative numbers give NaN."""
        with quiet():
            got = reciprocal_root_once(np.array([0, np.inf, np.nan, -1, 4], FORMATS[name].carrier), FORMATS[name])
        assert equal(got, [infinite(name), 0, np.nan, np.nan, 0.5])


def rows_to_sum(name: str, d: int) -> np.ndarray:
    """Return four rows of one format, shape (d, 4): noise, positive, cancelling, one that overflows on the way."""
    rng = np.random.default_rng(d)
    top = 2.0 ** EMAX[name]
    alternating = 100 * (-1.0) ** np.arange(d)
    rows = [
        rng.standard_normal(d),
        rng.uniform(0, 9, d),
        alternating + rng.uniform(0, 1, d),
        top * rng.uniform(0, 1, d),
    ]
    return np.array([[round_exact(Fraction(x), name) for x in row] for row in np.stack(rows, axis=1).tolist()])


def sum_exact(a: float, b: float, name: str) -> float:
    """Add two numbers of a format, Inf and NaN as IEEE 754 has it."""
    return round_exact(Fraction(a) + Fraction(b), name) if np.isfinite(a) and np.isfinite(b) else a + b


class TestSums:
    @pytest.mark.parametrize("d", WIDTHS)
    @pytest.mark.parametrize("name", [*NAMES, *FLOAT8])
    def test_tree_and_serial(self, name, d):
        """Both reductions equal a loop over numpy / ml_dtypes scalars to the last bit, Inf and NaN included."""
        fmt, rows = FORMATS[name], rows_to_sum(name, d)
        carried, rows = rows.astype(fmt.carrier), rows.astype(SCALARS[name])
        kept = carried.copy()
        with quiet():
            for reduce, oracle in ((tree_sum, tree), (serial_sum, serial)):
                expected = [oracle(list(rows[:, i]), name) for i in range(rows.shape[1])]
                assert equal(reduce(carried, fmt, Workspace()), np.array(expected).astype(np.float64))
        assert equal(carried, kept)

    @pytest.mark.parametrize("d", WIDTHS)
    def test_tree_and_serial_of_tfloat32(self, d):
        """The same for the format that has no dtype, against a loop over Fractions."""
        fmt, rows = FORMATS["tfloat32"], rows_to_sum("tfloat32", d)
        kept = rows.copy()
        halves = [*rows.T.tolist()]
        for i, terms in enumerate(halves):
            terms += [0.0] * ((1 << (d - 1).bit_length()) - d)
            while len(terms) > 1:
                half = len(terms) // 2
                terms = [sum_exact(a, b, "tfloat32") for a, b in zip(terms[:half], terms[half:], strict=True)]
            halves[i] = terms
        in_order = [list(accumulate(row, lambda a, b: sum_exact(a, b, "tfloat32")))[-1] for row in rows.T.tolist()]
        with quiet():
            assert equal(tree_sum(rows, fmt, Workspace()), np.ravel(halves))
            assert equal(serial_sum(rows, fmt, Workspace()), in_order)
        assert equal(rows, kept)

    def test_names(self):
        """The axis values name the functions."""
        assert (REDUCTIONS["tree"], REDUCTIONS["serial"]) == (tree_sum, serial_sum)

    def test_serial_sum_stagnates_in_float16(self):
        """Of 4,096 ones the serial float16 sum stops at 2048, to which 1 adds nothing; the tree does not."""
        ones = np.ones((4096, 1), np.float32)
        assert serial_sum(ones, FORMATS["float16"], Workspace())[0] == 2048
        assert tree_sum(ones, FORMATS["float16"], Workspace())[0] == 4096

    @pytest.mark.parametrize("n", [1, 2, 3, 5, 16, 17, 64])
    def test_lanes(self, n):
        """16 lanes in order, then by halves: equal to a Python loop for every remainder and around the block sizes."""
        for d in (*range(1, 50), 63, 64, 65, 100, 127, 128, 129, 255, 256, 768, 777, 1025):
            x = np.random.default_rng([n, d]).standard_normal((d, n)) * np.logspace(-8, 8, d)[:, None]
            got = lane_sum(x)
            assert got.shape == (n,)
            assert got.tolist() == [lanes(x[:, i]) for i in range(n)]

    def test_lanes_of_a_long_row(self):
        """One row of 100,003 features, where numpy's own pairwise summation would differ."""
        x = np.random.default_rng(19).standard_normal((100_003, 1))
        assert lane_sum(x)[0] == lanes(x[:, 0])
        assert lane_sum(x)[0] != np.sum(x)

    @pytest.mark.parametrize("layout", ["F", "strided"])
    def test_lanes_of_other_layouts(self, layout):
        """The order of the additions does not depend on how the array lies in memory."""
        x = np.random.default_rng(20).standard_normal((777, 6))
        other = np.asfortranarray(x) if layout == "F" else np.repeat(x, 2, axis=1)[:, ::2]
        assert lane_sum(other).tolist() == [lanes(x[:, i]) for i in range(6)]

    @pytest.mark.parametrize("d", [1, 15, 16, 33])
    def test_lanes_of_no_rows(self, d):
        """A block in which no row is finite leaves nothing to sum: the sums are empty too."""
        assert lane_sum(np.zeros((d, 0))).shape == (0,)


class TestErrorFreeTransformations:
    def test_two_sum(self):
        """s + e = a + b in exact rationals for 2,000 pairs of very different sizes."""
        rng = np.random.default_rng(21)
        a, b = (rng.standard_normal(2_000) * 2.0 ** rng.integers(-80, 80, 2_000) for _ in range(2))
        s, e = two_sum(a, b)
        assert equal(s, a + b)
        for x, y, high, low in zip(a.tolist(), b.tolist(), s.tolist(), e.tolist(), strict=True):
            assert Fraction(x) + Fraction(y) == Fraction(high) + Fraction(low)

    def test_two_product(self):
        """p + e = a b in exact rationals for 2,000 pairs."""
        rng = np.random.default_rng(22)
        a, b = (rng.standard_normal(2_000) * 2.0 ** rng.integers(-200, 200, 2_000) for _ in range(2))
        p, e = two_product(a, b)
        assert equal(p, a * b)
        for x, y, high, low in zip(a.tolist(), b.tolist(), p.tolist(), e.tolist(), strict=True):
            assert Fraction(x) * Fraction(y) == Fraction(high) + Fraction(low)


def test_this_process_keeps_subnormals():
    """The check that refuses flush-to-zero passes here, where nothing has switched it on."""
    check_hardware()


@pytest.mark.parametrize("name", ALL_NAMES)
def test_rounded_returns_a_new_array_in_the_carrier(name):
    """`rounded` leaves its argument alone."""
    x = np.array([1 / 3, 1e-9, 1e9])
    kept = x.copy()
    with quiet():
        result = rounded(x, FORMATS[name])
    assert result.dtype == FORMATS[name].carrier
    assert equal(x, kept)
    assert equal(result, [round_exact(Fraction(v), name) for v in kept.tolist()])
