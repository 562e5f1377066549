"""Formats: derived constants against the identities that numpy and ml_dtypes know, and the names."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from lnaudit.errors import LnauditError
from lnaudit.formats import DEFAULT_FORMATS, FORMATS, WIDER, Format, get_format, wider

from .oracles import ALL_NAMES, BITS, EMAX, EMIN, NAMES, PRECISION, SCALARS, decode, infinity_code


@pytest.mark.parametrize("name", SCALARS)
def test_constants_are_those_of_finfo(name):
    """Every derived constant is that of ml_dtypes.finfo, which numpy's finfo backs for IEEE formats."""
    fmt, info = FORMATS[name], ml_dtypes.finfo(SCALARS[name])
    assert fmt.max == float(info.max)
    assert fmt.smallest_subnormal == float(info.smallest_subnormal)
    assert fmt.smallest_normal == float(info.smallest_normal)
    assert 2 * fmt.unit_roundoff == float(info.eps)
    assert (fmt.precision - 1, fmt.emin, fmt.emax + 1) == (info.nmant, info.minexp, info.maxexp)
    assert (fmt.precision, fmt.emin, fmt.emax) == (PRECISION[name], EMIN[name], EMAX[name])


@pytest.mark.parametrize("name", SCALARS)
def test_constants_are_the_edges_that_arithmetic_shows(name):
    """In the dtype's arithmetic: 2 max overflows, half the smallest subnormal is 0, 1 + u is a tie that goes to 1."""
    fmt, scalar = FORMATS[name], SCALARS[name]
    one, two, u = scalar(1), scalar(2), scalar(fmt.unit_roundoff)
    with np.errstate(all="ignore"):
        assert (np.isinf if fmt.infinity else np.isnan)(scalar(fmt.max) * two)
        assert np.isfinite(scalar(fmt.max))
        assert scalar(fmt.smallest_subnormal) / two == 0
        assert scalar(fmt.smallest_subnormal) > 0
        assert one + u == one
        assert float(one + two * u) == 1 + 2 * fmt.unit_roundoff
        assert float(one - u) == 1 - fmt.unit_roundoff


@pytest.mark.parametrize("name", ["float16", "bfloat16", "tfloat32", "float8_e4m3fn", "float8_e5m2"])
def test_all_codes_decode_by_the_facts_of_the_table(name):
    """Sign, exponent and fraction, read by hand from all codes with the table's facts, give numpy's values."""
    fmt, codes = FORMATS[name], np.arange(1 << BITS[name])
    sign, fraction_bits = 1 << (BITS[name] - 1), fmt.precision - 1
    exponent, fraction = (codes & sign - 1) >> fraction_bits, codes & (1 << fraction_bits) - 1
    significand = np.where(exponent > 0, fraction + (1 << fraction_bits), fraction).astype(np.float64)
    value = np.ldexp(significand, np.maximum(exponent, 1) - 1 + fmt.emin - fraction_bits)
    if fmt.infinity:
        special = exponent == fmt.emax - fmt.emin + 2
        value = np.where(special, np.where(fraction == 0, np.inf, np.nan), value)
    else:
        value = np.where(codes & sign - 1 == sign - 1, np.nan, value)
    np.testing.assert_array_equal(np.where(codes & sign, -value, value), decode(codes, name))
    assert fmt.max == decode(infinity_code(name) - 1, name)


def test_tfloat32_has_the_exponents_of_float32_and_the_significand_of_float16():
    """NVIDIA A100 Tensor Core GPU Architecture, 2020: 8 bits of exponent, 10 of fraction."""
    fmt = FORMATS["tfloat32"]
    assert (fmt.emin, fmt.emax) == (FORMATS["float32"].emin, FORMATS["float32"].emax)
    assert fmt.precision == FORMATS["float16"].precision
    assert fmt.max == np.uint32(0x7F7FE000).view(np.float32)
    assert fmt.smallest_subnormal == np.uint32(0x00002000).view(np.float32)


def test_those_that_are_audited_unless_others_are_named():
    """The new formats have to be asked for."""
    assert tuple(fmt.name for fmt in DEFAULT_FORMATS) == NAMES
    assert set(FORMATS) == set(ALL_NAMES)


@pytest.mark.parametrize("name", ALL_NAMES)
def test_carrier_holds_every_value(name):
    """Max, smallest subnormal and 1 + 2u pass through the carrier unchanged."""
    fmt = FORMATS[name]
    for value in (fmt.max, fmt.smallest_subnormal, fmt.smallest_normal, 1 + 2 * fmt.unit_roundoff):
        assert float(np.dtype(fmt.carrier).type(value)) == value


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("fp16", "float16"),
        ("half", "float16"),
        ("bf16", "bfloat16"),
        ("fp32", "float32"),
        ("float", "float32"),
        ("fp64", "float64"),
        ("double", "float64"),
        ("tf32", "tfloat32"),
        ("fp8_e4m3", "float8_e4m3fn"),
        ("E4M3FN", "float8_e4m3fn"),
        ("e4m3", "float8_e4m3fn"),
        ("fp8_e5m2", "float8_e5m2"),
        ("e5m2", "float8_e5m2"),
        (" Float16 ", "float16"),
        ("BFLOAT16", "bfloat16"),
    ],
)
def test_aliases(alias, name):
    """The aliases of the field lead to the format, whatever their case and padding; a Format leads to itself."""
    assert get_format(alias) is FORMATS[name]
    assert get_format(FORMATS[name]) is FORMATS[name]


def test_aliases_are_unambiguous():
    """No name is claimed twice."""
    claimed = [name for fmt in FORMATS.values() for name in (fmt.name, *fmt.aliases)]
    assert len(claimed) == len(set(claimed))


def test_unknown_names_are_refused_with_a_remedy():
    with pytest.raises(LnauditError, match=r"float12.*choose from float16, bfloat16, float32, float64"):
        get_format("float12")


@pytest.mark.parametrize("name", ALL_NAMES)
def test_held_as(name):
    """The classes zero, subnormal and normal change exactly at 0 and at the smallest normal number."""
    fmt = FORMATS[name]
    below = fmt.smallest_normal - fmt.smallest_subnormal
    for sign in (1, -1):
        assert fmt.held_as(sign * 0.0) == "zero"
        assert fmt.held_as(sign * fmt.smallest_subnormal) == "subnormal"
        assert fmt.held_as(sign * below) == "subnormal"
        assert fmt.held_as(sign * fmt.smallest_normal) == "normal"
        assert fmt.held_as(sign * fmt.max) == "normal"


@pytest.mark.parametrize("name", ALL_NAMES)
def test_flushing_twin(name):
    """One twin a format, with the same numbers but those that are subnormal."""
    fmt = FORMATS[name]
    twin = fmt.flushing
    assert twin is fmt.flushing
    assert twin is not fmt
    assert twin.flushing is twin
    assert (fmt.flushes, twin.flushes) == (False, True)
    for same in ("name", "precision", "emin", "emax", "infinity", "max", "smallest_normal", "carrier"):
        assert getattr(twin, same) == getattr(fmt, same)
    assert (fmt.smallest, twin.smallest) == (fmt.smallest_subnormal, fmt.smallest_normal)
    assert FORMATS[name] is fmt


def test_wider_orders_by_precision():
    """`wider` is symmetric where precisions differ, and WIDER names only formats that hold more precision or range."""
    for a in FORMATS.values():
        for b in FORMATS.values():
            chosen = wider(a, b)
            assert isinstance(chosen, Format)
            assert chosen.precision == max(a.precision, b.precision)
    assert set(WIDER) == set(FORMATS)
    for name, others in WIDER.items():
        for other in others:
            a, b = FORMATS[name], FORMATS[other]
            assert b.precision > a.precision or b.emax > a.emax
