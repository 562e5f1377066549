"""Both 8-bit formats exhaustively: every pair of codes, every tie, against exact rationals and ml_dtypes."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from lnaudit.arithmetic import Workspace, quiet, round_in_place, round_number, round_to
from lnaudit.engine import interpreter
from lnaudit.engine.interpreter import inverse
from lnaudit.formats import FORMATS
from lnaudit.kernels import KERNELS

from .oracles import EMIN, FLOAT8, SCALARS, between, decode, equal, infinity_code, round_exact

SYMBOLS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}


def all_pairs(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of all 65,536 pairs of codes, in float64."""
    a, b = np.divmod(np.arange(1 << 16), 256)
    return decode(a, name), decode(b, name)


def exact_results(symbol: str, a: np.ndarray, b: np.ndarray, name: str) -> np.ndarray:
    """Round the exact results of an operation by hand, each distinct one once.

    Sums and products of 8-bit numbers are exact in float64. Two quotients that differ do so by more than 2^-9 of their
    size, so float64 tells them apart. What is infinite or NaN in float64 is so exactly.
    """
    with quiet():
        approximate = SYMBOLS[symbol](a, b)
    _, first, index = np.unique(approximate, return_index=True, return_inverse=True)
    expected = []
    for x, y, result in zip(a[first].tolist(), b[first].tolist(), approximate[first].tolist(), strict=True):
        if not np.isfinite(result):
            expected.append(np.nan if name == "float8_e4m3fn" else result)
        elif not (np.isfinite(x) and np.isfinite(y)):
            expected.append(0.0)  # a number divided by Inf
        else:
            u, v = Fraction(x), Fraction(y)
            exact = u + v if symbol == "+" else u - v if symbol == "-" else u * v if symbol == "*" else u / v
            expected.append(round_exact(exact, name))
    return np.array(expected)[index]


@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize("name", FLOAT8)
def test_every_pair_of_codes(name, symbol):
    """65,536 pairs, Inf and NaN included, the way lnaudit computes them."""
    fmt = FORMATS[name]
    a, b = all_pairs(name)
    with quiet():
        carried = a.astype(fmt.carrier), b.astype(fmt.carrier)
        got = interpreter.operate(Workspace(), "test", SYMBOLS[symbol], *carried, fmt, fmt)
        own = SYMBOLS[symbol](a.astype(SCALARS[name]), b.astype(SCALARS[name]))
    assert own.dtype == SCALARS[name]
    assert equal(got, exact_results(symbol, a, b, name))
    assert equal(got, own)


@pytest.mark.parametrize("symbol", SYMBOLS)
@pytest.mark.parametrize("name", FLOAT8)
def test_every_pair_of_codes_where_subnormal_numbers_are_flushed(name, symbol):
    """The same with operands that are subnormal read as zero of their sign, such results written as zero."""
    fmt, smallest = FORMATS[name].flushing, 2.0 ** EMIN[name]
    a, b = all_pairs(name)
    with quiet():
        carried = a.astype(fmt.carrier), b.astype(fmt.carrier)
        got = interpreter.operate(Workspace(), "test", SYMBOLS[symbol], *carried, fmt, fmt)
    a, b = (np.where(np.abs(x) < smallest, np.copysign(0.0, x), x) for x in (a, b))
    expected = exact_results(symbol, a, b, name)
    assert equal(got, np.where(np.abs(expected) < smallest, 0.0, expected))


@pytest.mark.parametrize("name", FLOAT8)
def test_every_square_root_is_that_of_ml_dtypes(name):
    codes = np.arange(256, dtype=np.uint8)
    with quiet():
        _, got = inverse(decode(codes, name).astype(np.float32), (0.0,), FORMATS[name], KERNELS["native"])
        assert equal(got[0], np.sqrt(codes.view(SCALARS[name])))


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("name", FLOAT8)
def test_a_hair_off_every_tie(name, source):
    """The numbers next to every tie, of both signs, and a hundred parts of the way between neighbours."""
    codes = np.arange(infinity_code(name))
    numbers, expected = between(name, codes, source)
    low, high = decode(codes[:-1], name), decode(codes[1:], name)
    for part in range(1, 10_000, 101):
        numbers = np.concatenate([numbers, (low + part / 10_000 * (high - low)).astype(source)])
        expected = np.concatenate([expected, low if part < 5_000 else high])
    for sign in (1, -1):
        x = sign * numbers
        assert equal(round_to(x, name), sign * expected)
        with quiet():
            round_in_place(x, FORMATS[name], Workspace())
        assert equal(x, sign * expected)


@pytest.mark.parametrize("source", ["float32", "float64"])
def test_e4m3fn_has_no_infinity(source):
    """What rounds beyond 448 is NaN; 464, the tie with the 480 that NaN displaced, goes to the even 448."""
    above = float(np.nextafter(np.dtype(source).type(464), np.inf))
    huge = float(np.finfo(source).max)
    values = np.array([448, 463, 464, above, 465, 480, 512, 1e6, huge, np.inf, np.nan], source)
    expected = [448, 448, 448, *[np.nan] * 8]
    assert equal(round_to(values, "fp8_e4m3"), expected)
    assert equal(round_to(-values, "fp8_e4m3"), -np.array(expected))
    assert np.isnan(round_number(float("inf"), FORMATS["float8_e4m3fn"]))


@pytest.mark.parametrize(("name", "tie", "odd"), [("float8_e4m3fn", 1.0625, 1.125), ("float8_e5m2", 1.125, 1.25)])
def test_arrays_of_float64_are_rounded_once(name, tie, odd):
    """Above the tie by 2^-40; ml_dtypes casts arrays by way of float32, onto the tie, and so down to 1."""
    value = np.array([tie + 2.0**-40])
    assert round_to(value, name)[0] == odd
    assert round_number(value[0], FORMATS[name]) == odd
    assert float(value.astype(SCALARS[name])[0]) == 1.0


@pytest.mark.parametrize("name", FLOAT8)
def test_values_of_the_dtype_are_taken_as_they_are(name):
    """An array of ml_dtypes' own type, every code, is returned unchanged; so is it in every wider format."""
    codes = np.arange(256, dtype=np.uint8)
    for other in (name, "float16", "bfloat16", "tfloat32", "float32", "float64"):
        assert equal(round_to(codes.view(SCALARS[name]), other), decode(codes, name))
    assert round_to(ml_dtypes.float8_e5m2(57344), "float8_e4m3fn").shape == ()
