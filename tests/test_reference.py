"""The reference: exact layer norm of adversarial rows against exact rationals and mpmath."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log2

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lnaudit.arithmetic import quiet
from lnaudit.engine.reference import Reference, center, inverse_root

from .oracles import equal, lanes

U = 2.0**-53
WIDTHS = (1, 2, 3, 17, 100)
EPSILONS = (0.0, 1e-12, 1e-5, 1.0)


def adversarial_rows(d: int) -> dict[str, np.ndarray]:
    """Return the rows of d float64 numbers on which a variance goes wrong."""
    rng = np.random.default_rng(d)
    noise = rng.standard_normal((12, d))
    outlier = noise[3].copy()
    outlier[-1] = 1e15
    return {
        "normal": noise[0],
        "offset 1e8, spread 1": 1e8 + noise[1],
        "alternating": 1e15 * (-1.0) ** np.arange(d) + noise[2],
        "one outlier": outlier,
        "subnormal": 5e-324 * rng.integers(-50, 50, d),
        "smallest normals": 3e-308 * noise[4],
        "near constant": 5.1 + 3 * 2.0**-50 * rng.integers(-8, 9, d),
        "two neighbours": np.where(np.arange(d) == d // 2, np.nextafter(5.1, 6), 5.1),
        "huge": 1e200 * noise[6],
        "huge with an offset": 1e200 * (1e6 + noise[7]),
        "largest": 1.7e308 * np.clip(noise[8], -1, 1),
        "tiny": 1e-170 * noise[9],
        "all magnitudes": noise[10] * np.logspace(-30, 30, d),
        "ramp": 1000 + 1e-3 * np.arange(d),
    }


def reference_of(row: np.ndarray, *, rms: bool, double_double: bool) -> Reference:
    """Ask lnaudit for the reference of one row."""
    constant = (row == 0).all() if rms else (row == row[0]).all()
    with quiet():
        return center(
            row[:, None].copy(),
            rms=rms,
            constant=np.array([constant]),
            amax=np.array([np.abs(row).max()]),
            double_double=double_double,
        )


def exact_of(row: np.ndarray, rms: bool) -> tuple[list[Fraction], Fraction]:
    """Centre a row and take its biased variance in rationals."""
    z = [Fraction(x) for x in row.tolist()]
    mean = Fraction(0) if rms else sum(z) / len(z)
    v = [x - mean for x in z]
    return v, sum(x * x for x in v) / len(v)


def got_of(reference: Reference) -> tuple[list[Fraction], Fraction]:
    """Return the v and q that lnaudit holds, low parts and the power of two included, as rationals."""
    unit = Fraction(2) ** int(reference.unit[0])
    v = [Fraction(x) for x in reference.v[:, 0].tolist()]
    q = Fraction(float(reference.variance[0]))
    if reference.v_low is not None:
        v = [x + Fraction(low) for x, low in zip(v, reference.v_low[:, 0].tolist(), strict=True)]
        q += Fraction(float(reference.variance_low[0]))
    return [x * unit for x in v], q * unit * unit


def root(value: Fraction) -> float:
    """Return the square root of a rational of any size."""
    with mpmath.workprec(100):
        return mpmath.sqrt(mpmath.mpf(value.numerator) / value.denominator)


def bounds(d: int, condition: float, double_double: bool) -> tuple[float, float]:
    """Return the bounds on the relative errors of v (as a vector) and of q; condition = max|x| / rms(v).

    Corrected two-pass: a lane sum and its quotient are off by c u max|x|, c = ceil(d/16) + 6. That moves every element
    of the first residual; its mean is taken off with an error of c u of what is left: c u (1 + c u condition), and each
    of the two subtractions rounds once more. q has twice the error of v, plus one square and one sum: c u.
    Double-double: a sum of two is good to 2^-104 (4 u^2), there are ceil(log2 d) + 3 steps, and the error of the mean
    is not corrected, so the condition counts. The squares of the low parts, left out of q, are below u^2 v^2, because
    v_low <= u |v| after the renormalization.
    """
    if double_double:
        error = 4 * U**2 * (ceil(log2(d)) + 4) * (1 + condition)
        return error, 3 * error
    c = ceil(d / 16) + 6
    error = U * (2 + c * (1 + c * U * condition))
    return error, 2 * error + c * U


@pytest.mark.parametrize("double_double", [False, True], ids=["corrected", "double-double"])
@pytest.mark.parametrize("rms", [False, True], ids=["layer", "rms"])
@pytest.mark.parametrize("d", WIDTHS)
@pytest.mark.parametrize("name", adversarial_rows(3))
def test_against_exact_rationals(name, d, rms, double_double):
    """v (relative to rms(v)) and q are within the derived bounds of exact rational arithmetic, and 0 where it is 0."""
    row = adversarial_rows(d)[name]
    reference = reference_of(row, rms=rms, double_double=double_double)
    v, q = exact_of(row, rms)
    got_v, got_q = got_of(reference)
    if q == 0:
        assert got_q == 0
        assert not any(got_v)
        return
    condition = float(Fraction(float(np.abs(row).max())) / _fraction(root(q)))
    # RMSNorm subtracts nothing: v is x itself, exactly
    bound_v, bound_q = bounds(d, 0.0 if rms else condition, double_double)
    error = sum((a - b) ** 2 for a, b in zip(got_v, v, strict=True)) / d
    assert root(error / q) <= (0 if rms else bound_v)
    assert abs(got_q - q) / q <= bound_q
    assert float(reference.variance[0]) > 0


def _fraction(value: mpmath.mpf) -> Fraction:
    sign, mantissa, exponent, _ = value._mpf_
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent) * (-1 if sign else 1)


@pytest.mark.parametrize("rms", [False, True], ids=["layer", "rms"])
def test_ordinary_rows_are_good_to_1e_15(rms):
    """On float32-like rows (768 features, offset 100 spreads) v is good to 1e-15 in float64, to 1e-28 in double-double.

    The general bound counts 54 units for 768 features; rounding errors of random sign do far better.
    """
    row = (100 + np.random.default_rng(23).standard_normal(768)).astype(np.float32).astype(np.float64)
    v, q = exact_of(row, rms)
    for double_double, limit in ((False, 1e-15), (True, 1e-28)):
        got_v, got_q = got_of(reference_of(row, rms=rms, double_double=double_double))
        error = sum((a - b) ** 2 for a, b in zip(got_v, v, strict=True)) / len(row)
        assert root(error / q) <= limit
        assert abs(got_q - q) / q <= limit


@pytest.mark.parametrize("d", WIDTHS)
def test_corrected_two_pass_is_the_stated_sequence(d):
    """In float64 the reference is bit for bit: centre, centre again, mean square, every sum in 16 lanes."""
    for name in ("normal", "offset 1e8, spread 1", "ramp", "one outlier"):
        row = adversarial_rows(d)[name]
        if (row == row[0]).all():
            continue
        reference = reference_of(row, rms=False, double_double=False)
        first = row - lanes(row) / d
        second = first - lanes(first) / d
        assert equal(reference.v[:, 0], second)
        assert reference.variance[0] == lanes(second * second) / d


@pytest.mark.parametrize("double_double", [False, True])
def test_rows_side_by_side_do_not_mix(double_double):
    """A block of rows of every magnitude gives each row what it gets alone, constants and scaled rows among them."""
    rows = [row for row in adversarial_rows(17).values() if np.abs(row).max() > 0] + [np.full(17, 0.1), np.zeros(17)]
    x = np.stack(rows, axis=1)
    constant, amax = (x == x[0]).all(axis=0), np.abs(x).max(axis=0)
    with quiet():
        block = center(x.copy(), rms=False, constant=constant, amax=amax, double_double=double_double)
    for i, row in enumerate(rows):
        alone = reference_of(row, rms=False, double_double=double_double)
        assert equal(block.v[:, i], alone.v[:, 0])
        assert block.variance[i] == alone.variance[0]
        assert block.unit[i] == alone.unit[0]
        if double_double:
            assert equal(block.v_low[:, i], alone.v_low[:, 0])
            assert block.variance_low[i] == alone.variance_low[0]


@pytest.mark.parametrize("double_double", [False, True])
@pytest.mark.parametrize("value", [0.1, -5.1, 1e-310, 1e300, 0.0])
def test_constant_rows_are_exactly_zero(value, double_double):
    """Equal elements, whose rounded mean may differ from them: v = 0, q = 0, and the core is 0 at epsilon 0 too."""
    reference = reference_of(np.full(7, value), rms=False, double_double=double_double)
    assert not reference.v.any()
    assert reference.variance[0] == 0
    with quiet():
        for epsilon in EPSILONS:
            assert not (reference.v * reference.inverse_root(epsilon)[0]).any()


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_inverse_root_against_mpmath(epsilon):
    """1/sqrt(q + eps), both parts, is within 2^-100 of mpmath at 300 bits for q of every size, low parts included.

    One Newton step squares an error of 2^-52; what it adds is rounded in the last bit of the low part: 2^-103 or so.
    """
    rng = np.random.default_rng(24)
    q = np.concatenate(
        [np.exp(rng.uniform(-400, 400, 300)), [1.0, 4.0, 0.25, 1e-5, 1 - 2.0**-53], 2.0 ** np.arange(-40, 40)]
    )
    low = q * rng.uniform(-0.5, 0.5, len(q)) * 2.0**-53
    with quiet():
        high, tail = inverse_root(q, low, np.zeros(len(q), np.int64), epsilon)
    with mpmath.workprec(300):
        for a, b, x, y in zip(q.tolist(), low.tolist(), high.tolist(), tail.tolist(), strict=True):
            expected = 1 / mpmath.sqrt(mpmath.mpf(a) + mpmath.mpf(b) + mpmath.mpf(epsilon))
            assert abs((mpmath.mpf(x) + mpmath.mpf(y)) / expected - 1) < mpmath.mpf(2) ** -100
            # the head alone is what float64 users read: half an ulp, and the error of 1/sqrt in float64
            assert abs(mpmath.mpf(x) / expected - 1) < 2 * U


@pytest.mark.parametrize("unit", [-560, -320, 320, 660])
def test_inverse_root_in_units_of_a_scaled_row(unit):
    """For a row x 2^-unit epsilon counts as eps 4^-unit; what that leaves of the core is right to 1e-150.

    Where eps 4^-unit overflows, the core is below 1e-150 and is given as 0.
    """
    q = np.array([0.3, 1.0, 0.02])
    with quiet():
        high, low = inverse_root(q, np.zeros(3), np.full(3, unit), 1e-5)
    with mpmath.workprec(300):
        for a, x, y in zip(q.tolist(), high.tolist(), low.tolist(), strict=True):
            expected = 1 / mpmath.sqrt(mpmath.mpf(a) + mpmath.ldexp(mpmath.mpf(1e-5), -2 * unit))
            error = abs(mpmath.mpf(x) + mpmath.mpf(y) - expected)
            assert error <= max(expected * mpmath.mpf(2) ** -100, mpmath.mpf("1e-150"))


def test_inverse_root_of_nothing():
    """q = 0: 1/sqrt(eps) for eps > 0, and 0 at eps = 0, so that the core of a constant row is 0 there."""
    zero = np.zeros(1)
    with quiet():
        assert inverse_root(zero, zero, np.zeros(1, np.int64), 0.0)[0][0] == 0
        assert inverse_root(zero, zero, np.zeros(1, np.int64), 0.25)[0][0] == 2


@pytest.mark.parametrize("double_double", [False, True], ids=["corrected", "double-double"])
@pytest.mark.parametrize("rms", [False, True], ids=["layer", "rms"])
@pytest.mark.parametrize("name", adversarial_rows(3))
def test_core_against_mpmath(name, rms, double_double):
    """u = v / sqrt(q + eps), at four epsilons, is within the bounds of v and q of the core in 400 bits (|u| <= sqrt d).

    The bound of u is that of v, half that of q and the root's, times sqrt(d); below 1e-150 nothing is claimed.
    """
    d = 17
    row = adversarial_rows(d)[name]
    v, q = exact_of(row, rms)
    assert q > 0
    reference = reference_of(row, rms=rms, double_double=double_double)
    condition = float(Fraction(float(np.abs(row).max())) / _fraction(root(q)))
    bound_v, bound_q = bounds(d, 0.0 if rms else condition, double_double)
    with mpmath.workprec(400):
        for epsilon in EPSILONS:
            with quiet():
                rho, rho_low = reference.inverse_root(epsilon)
            scale = mpmath.mpf(rho[0]) + (mpmath.mpf(rho_low[0]) if double_double else 0)
            denominator = mpmath.sqrt(mpmath.mpf(q.numerator) / q.denominator + mpmath.mpf(epsilon))
            limit = mpmath.sqrt(d) * (bound_v + bound_q) + (mpmath.mpf(2) ** -100 if double_double else 2 * U)
            for i, exact in enumerate(v):
                held = mpmath.mpf(reference.v[i, 0]) + (mpmath.mpf(reference.v_low[i, 0]) if double_double else 0)
                u = mpmath.mpf(exact.numerator) / exact.denominator / denominator
                assert abs(held * scale - u) <= max(limit, mpmath.mpf("1e-150"))


@given(
    integers=st.lists(st.integers(-(2**20), 2**20), min_size=2, max_size=40),
    shift=st.integers(-(2**40), 2**40),
    exponent=st.integers(-30, 30),
)
@settings(derandomize=True, deadline=None, max_examples=200)
def test_shift_law(integers, shift, exponent):
    """u(z + c) = u(z): for exactly representable shifts both references are within the bounds of the same rationals."""
    assume(len(set(integers)) > 1)
    z = np.ldexp(np.array(integers, np.float64), exponent)
    shifted = np.ldexp(np.array([x + shift for x in integers], np.float64), exponent)
    v, q = exact_of(z, False)
    assert exact_of(shifted, False) == (v, q)
    for row in (z, shifted):
        condition = float(np.abs(row).max()) / float(root(q))
        for double_double in (False, True):
            got_v, got_q = got_of(reference_of(row, rms=False, double_double=double_double))
            bound_v, bound_q = bounds(len(row), condition, double_double)
            error = sum((a - b) ** 2 for a, b in zip(got_v, v, strict=True)) / len(row)
            assert root(error / q) <= bound_v
            assert abs(got_q - q) / q <= bound_q


@given(integers=st.lists(st.integers(-(2**20), 2**20), min_size=2, max_size=40), k=st.integers(-900, 900))
@settings(derandomize=True, deadline=None, max_examples=200)
def test_powers_of_two_change_nothing(integers, k):
    """x and x 2^k have the same v and q to the last bit, up to the exact power, however extreme k is."""
    assume(len(set(integers)) > 1)
    z = np.array(integers, np.float64)
    for double_double in (False, True):
        plain = got_of(reference_of(z, rms=False, double_double=double_double))
        scaled = got_of(reference_of(np.ldexp(z, k), rms=False, double_double=double_double))
        factor = Fraction(2) ** k
        assert scaled == ([x * factor for x in plain[0]], plain[1] * factor * factor)
