"""Hardware that reads and writes subnormal numbers as zero, against the naive definition on exact rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from lnaudit.arithmetic import (
    Workspace,
    flushed_operand,
    fma,
    quiet,
    reciprocal_root_once,
    round_in_place,
    round_number,
    round_to,
    rounded,
    serial_fma_sum,
    serial_sum,
    tree_sum,
)
from lnaudit.engine import interpreter
from lnaudit.formats import FORMATS

from .oracles import (
    ALL_NAMES,
    EMIN,
    PRECISION,
    between,
    decode,
    equal,
    flush,
    fma_exact,
    infinity_code,
    reciprocal_root_exact,
    round_exact,
    special_values,
)

SYMBOLS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
FLUSHING = {name: FORMATS[name].flushing for name in ALL_NAMES}


def flushed(values: object, name: str) -> np.ndarray:
    """Write zero for what is subnormal, one after the other."""
    array = np.asarray(values, np.float64)
    return np.array([flush(x, name) for x in array.ravel().tolist()]).reshape(array.shape)


def small_numbers(name: str, count: int, seed: int) -> np.ndarray:
    """Return random numbers of a format, both signs: half of them subnormal, the others up to 16 times as large."""
    rng = np.random.default_rng(seed)
    top = 1 << (PRECISION[name] - 1)
    subnormal = rng.integers(0, top, count) * 2.0 ** (EMIN[name] - PRECISION[name] + 1)
    normal = rng.integers(top, 2 * top, count) * 2.0 ** (EMIN[name] - PRECISION[name] + 1 + rng.integers(0, 5, count))
    return np.where(rng.integers(0, 2, count) == 0, subnormal, normal) * rng.choice([-1.0, 1.0], count)


class TestRounding:
    @pytest.mark.parametrize("source", ["float32", "float64"])
    @pytest.mark.parametrize("name", [name for name in ALL_NAMES if name != "float64"])
    def test_subnormal_results_become_zero(self, name, source):
        """Codes around the smallest normal number and others, with what lies between them, of both signs."""
        if source == "float32" and name == "float32":
            numbers = decode(np.arange(0x00800000 - 300, 0x00800000 + 300), name).astype(source)
            expected = numbers.astype(np.float64)
        else:
            normal = 1 << (PRECISION[name] - 1)
            last = infinity_code(name)
            codes = np.unique(np.clip(normal + np.arange(-1_000, 1_000), 0, last - 1))
            numbers, expected = between(name, codes, source)
        expected = flushed(expected, name)
        assert 0 < np.count_nonzero(expected) < len(expected) - np.count_nonzero(numbers == 0)
        for sign in (1, -1):
            assert equal(round_to(sign * numbers, FLUSHING[name]), sign * expected)
            in_place = sign * numbers
            with quiet():
                round_in_place(in_place, FLUSHING[name], Workspace())
            assert equal(in_place, sign * expected)

    @pytest.mark.parametrize("name", ALL_NAMES)
    def test_rounding_comes_first(self, name):
        """The tie below the smallest normal number is rounded up to it and stays, what is less goes to zero."""
        normal, tiny = 2.0 ** EMIN[name], 2.0 ** (EMIN[name] - PRECISION[name] + 1)
        fmt = FLUSHING[name]
        if name != "float64":
            assert round_number(normal - tiny / 2, fmt) == normal
            assert round_number(float(np.nextafter(normal - tiny / 2, 0)), fmt) == 0
        for value, expected in ((normal, normal), (normal - tiny, 0), (tiny, 0), (0.0, 0), (1.0, 1.0)):
            assert round_number(value, fmt) == expected
            assert round_number(-value, fmt) == -expected
        assert round_number(tiny, FORMATS[name]) == tiny

    @pytest.mark.parametrize("name", ALL_NAMES)
    def test_signs_stay(self, name):
        x = small_numbers(name, 200, 12).astype(FORMATS[name].carrier)
        x = x[x != 0]
        signs = np.signbit(x)
        round_in_place(x, FLUSHING[name], Workspace())
        assert (x == 0).any()
        assert equal(np.signbit(x), signs)

    @pytest.mark.parametrize("name", ALL_NAMES)
    def test_special_values(self, name):
        values = special_values(name)
        assert equal(round_to(values, FLUSHING[name]), flushed(values, name))
        kept = values.copy()
        with quiet():
            assert equal(rounded(values, FORMATS["float64"], FLUSHING[name]), flushed(values, name))
        assert equal(values, kept)

    def test_float64_numbers_of_other_formats_are_not_touched(self):
        """No float32 is subnormal in float64, and none of float16 is in bfloat16."""
        smallest = np.array([2.0**-149, 2.0**-127], np.float32)
        round_in_place(smallest, FLUSHING["float64"], Workspace())
        assert smallest.tolist() == [2.0**-149, 2.0**-127]
        assert round_to(2.0**-24, FLUSHING["bfloat16"]) == 2.0**-24


class TestOperands:
    @pytest.mark.parametrize("name", ALL_NAMES)
    def test_subnormal_ones_are_read_as_zero(self, name):
        fmt = FORMATS[name]
        x = np.append(small_numbers(name, 200, 1), [np.inf, -np.inf, np.nan, 0.0]).astype(fmt.carrier).reshape(12, 17)
        kept = x.copy()
        result = flushed_operand(x, fmt.flushing)
        assert result.dtype == x.dtype
        assert equal(result, flushed(x, name))
        assert equal(np.signbit(result), np.signbit(x))
        assert equal(x, kept)
        assert not equal(result, x)

    @pytest.mark.parametrize("name", ALL_NAMES)
    def test_nothing_is_copied_where_nothing_changes(self, name):
        fmt = FORMATS[name]
        x = np.array([0.0, fmt.smallest_normal, -1.0, np.inf, np.nan], fmt.carrier)
        assert flushed_operand(x, fmt.flushing) is x
        subnormal = np.array([fmt.smallest_subnormal], fmt.carrier)
        assert flushed_operand(subnormal, fmt) is subnormal
        assert flushed_operand(subnormal, fmt.flushing)[0] == 0

    def test_float32_numbers_are_not_subnormal_in_float64(self):
        x = np.array([2.0**-149, 0.0], np.float32)
        assert flushed_operand(x, FLUSHING["float64"]) is x


def naive(symbol: str, a: float, b: float, name: str) -> float:
    """Read, compute, round, write, for numbers that are finite and not divided by zero."""
    u, v = Fraction(flush(a, name)), Fraction(flush(b, name))
    exact = u + v if symbol == "+" else u - v if symbol == "-" else u * v if symbol == "*" else u / v
    return flush(round_exact(exact, name), name)


@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize("name", ALL_NAMES)
def test_operations(name, symbol):
    """All pairs of special values, small numbers with others and with numbers around 1."""
    fmt = FLUSHING[name]
    special = special_values(name)
    a, b = (x.ravel() for x in np.meshgrid(special, special))
    a = np.concatenate([a, small_numbers(name, 2_000, 2)])
    b = np.concatenate([b, small_numbers(name, 1_000, 3), np.random.default_rng(4).integers(1, 9, 1_000) / 4])
    usable = np.isfinite(a) & np.isfinite(b)
    if symbol == "/":
        usable &= np.abs(b) >= 2.0 ** EMIN[name]
    a, b = a[usable], b[usable]
    expected = [naive(symbol, x, y, name) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    with quiet():
        carried = a.astype(fmt.carrier), b.astype(fmt.carrier)
        assert equal(interpreter.operate(Workspace(), "test", SYMBOLS[symbol], *carried, fmt, fmt), expected)
        gradual = interpreter.operate(Workspace(), "test", SYMBOLS[symbol], *carried, FORMATS[name], FORMATS[name])
    assert not equal(gradual, expected)


@pytest.mark.parametrize("name", ALL_NAMES)
def test_division_by_a_subnormal_number(name):
    """It is read as zero of its sign: 1 / -0 is -Inf, NaN where there is none, and 0 / 0 is NaN."""
    fmt = FLUSHING[name]
    tiny = np.array([-fmt.smallest_subnormal], fmt.carrier)
    for numerator, expected in ((np.ones_like(tiny), -np.inf if fmt.infinity else np.nan), (tiny, np.nan)):
        with quiet():
            assert equal(interpreter.operate(Workspace(), "test", np.divide, numerator, tiny, fmt, fmt), [expected])


@pytest.mark.parametrize("name", ALL_NAMES)
def test_reciprocal_root(name):
    """Of small numbers, subnormal ones read as zero; and of large float32 ones to narrow formats."""
    fmt = FLUSHING[name]
    w = np.abs(np.append(small_numbers(name, 300, 5), [0.0, 1.0]))
    with quiet():
        got = reciprocal_root_once(w.astype(fmt.carrier), fmt)
    assert equal(got, [flush(reciprocal_root_exact(flush(x, name), name), name) for x in w.tolist()])
    large = np.float32(2.0) ** np.arange(1, 128)
    with quiet():
        got = reciprocal_root_once(large, fmt)
    expected = [flush(reciprocal_root_exact(float(x), name), name) for x in large]
    assert equal(got, expected)
    assert (0.0 in expected) == (EMIN[name] > -64)


def add(a: float, b: float, name: str) -> float:
    return naive("+", a, b, name) if np.isfinite(a) and np.isfinite(b) else a + b


@pytest.mark.parametrize("d", [1, 2, 3, 7, 8, 17, 100, 1_000])
@pytest.mark.parametrize("name", ALL_NAMES)
def test_sums(name, d):
    """Tree and serial, terms and partial sums around the smallest normal number, in a loop over Fractions."""
    fmt = FLUSHING[name]
    columns = 3 if d < 1_000 else 1
    rows = small_numbers(name, d * columns, d).reshape(d, columns)
    rows[:, 0] = np.abs(rows[:, 0])
    carried = rows.astype(fmt.carrier)
    serial, tree = [], []
    for terms in rows.T.tolist():
        total = flush(terms[0], name)
        for term in terms[1:]:
            total = add(total, term, name)
        serial.append(total)
        level = [flush(x, name) for x in terms] + [0.0] * ((1 << (d - 1).bit_length()) - d)
        while len(level) > 1:
            half = len(level) // 2
            level = [add(x, y, name) for x, y in zip(level[:half], level[half:], strict=True)]
        tree += level
    with quiet():
        assert equal(serial_sum(carried, fmt, Workspace()), serial)
        assert equal(tree_sum(carried, fmt, Workspace()), tree)
    assert equal(carried, rows)


@pytest.mark.parametrize("name", ALL_NAMES)
def test_fma(name):
    """Subnormal factors and addends are read as zero, the product in between is never flushed, the result is."""
    fmt = FLUSHING[name]
    rng = np.random.default_rng(6)
    a = np.concatenate([small_numbers(name, 1_000, 7), round_to(rng.uniform(-2, 2, 1_000), name)])
    b = np.concatenate([round_to(rng.uniform(-2, 2, 1_000), name), small_numbers(name, 1_000, 8)])
    c = small_numbers(name, 2_000, 9)
    corners = np.meshgrid(*[special_values(name)[::4]] * 3)
    a, b, c = (np.append(x, corner) for x, corner in zip((a, b, c), corners, strict=True))
    triples = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    expected = [fma_exact(*triple, name, flushes=True) for triple in triples]
    carried = [x.astype(fmt.carrier) for x in (a, b, c)]
    with quiet():
        assert equal(fma(*carried, fmt), expected)
        assert not equal(fma(*carried, FORMATS[name]), expected)
    # a product of 3/4 of the smallest normal number is no result: with half of that number added it is normal
    normal = fmt.smallest_normal
    parts = [np.array([x], fmt.carrier) for x in (0.75 * 2, normal, -normal)]
    assert fma(parts[0] / 2, parts[1], parts[1], fmt)[0] == round_exact(Fraction(1.75) * Fraction(normal), name)
    assert fma(*parts, fmt)[0] == 0


@pytest.mark.parametrize("name", ALL_NAMES)
def test_serial_sum_of_products(name):
    fmt = FLUSHING[name]
    a = small_numbers(name, 400, 10).reshape(10, 40)
    b = round_to(np.random.default_rng(11).uniform(-2, 2, a.shape), name).astype(np.float64)
    expected = []
    for j in range(40):
        total = 0.0
        for x, y in zip(a[:, j].tolist(), b[:, j].tolist(), strict=True):
            total = fma_exact(x, y, total, name, flushes=True)
        expected.append(total)
    carried = a.astype(fmt.carrier), b.astype(fmt.carrier)
    assert equal(serial_fma_sum(*carried, fmt, Workspace()), expected)
    assert not equal(serial_fma_sum(*carried, FORMATS[name], Workspace()), expected)
