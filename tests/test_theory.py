"""The mathematics, against exact rationals, mpmath and numpy.linalg; and the example that shows it."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from fractions import Fraction
from functools import partial
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import lnaudit
from lnaudit import theory

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "theory.py"
NORMS = ("layer", "rms")
ULP = 2.0**-52
TINY = 2.0**-1022  # below it float64 has fewer digits
MP = mpmath.mp.clone()
MP.prec = 400

laws = settings(max_examples=100, deadline=None, derandomize=True)
norms = st.sampled_from(NORMS)
# of any size, not only near 1
sizes = st.builds(lambda m, e: m * 10.0**e, st.floats(1, 10), st.integers(-280, 280))
moderate = st.builds(lambda m, e: m * 10.0**e, st.floats(1, 10), st.integers(-14, 3))
# a grid on which differences and sums are exact
cells = st.integers(-64, 64).map(lambda n: n / 8)
rows = st.lists(cells, min_size=1, max_size=6)
numbers = st.floats(-1e3, 1e3, allow_subnormal=False)


def close(found: float, exact: object, ulps: float = 4) -> bool:
    exact = MP.mpf(exact.numerator) / exact.denominator if isinstance(exact, Fraction) else MP.mpf(exact)
    return bool(abs(MP.mpf(float(found)) - exact) <= ulps * ULP * abs(exact) + TINY)


def exact_core(z: list[object], epsilon: object, norm: str) -> list[object]:
    """The definition, in mpmath."""
    mean = MP.fsum(z) / len(z) if norm == "layer" else 0
    q = MP.fsum((x - mean) ** 2 for x in z) / len(z)
    return [(x - mean) / MP.sqrt(q + epsilon) for x in z]


def variance(z: list[float], norm: str) -> Fraction:
    exact = [Fraction(x) for x in z]
    mean = sum(exact) / len(z) if norm == "layer" else 0
    return sum((x - mean) ** 2 for x in exact) / len(z)


class TestFormulas:
    @laws
    @given(sizes, sizes)
    def test_ratio(self, q, epsilon):
        assert close(theory.collapse_ratio(q, epsilon), Fraction(q) / (Fraction(q) + Fraction(epsilon)))
        assert theory.collapse_ratio(q, q) == 0.5

    @laws
    @given(sizes, sizes)
    def test_gains(self, q, epsilon):
        w = MP.mpf(q) + MP.mpf(epsilon)
        assert close(theory.tangential_gain(q, epsilon), 1 / MP.sqrt(w))
        assert close(theory.radial_gain(q, epsilon), MP.mpf(epsilon) / w ** MP.mpf("1.5"), 8)

    @laws
    @given(sizes, sizes)
    def test_response_and_its_slope(self, t, epsilon):
        def h(s):
            return s / MP.sqrt(2 * s * s / 3 + MP.mpf(epsilon))

        assert close(theory.response(t, epsilon), h(MP.mpf(t)))
        assert theory.response(-t, epsilon) == -theory.response(t, epsilon)
        # in units of t, so that the steps of the difference quotient suit
        with MP.workprec(4000):
            slope = MP.diff(lambda s: h(s * MP.mpf(t)), 1) / MP.mpf(t)
        assert close(theory.sensitivity(t, epsilon), slope, 8)
        assert theory.sensitivity(-t, epsilon) == theory.sensitivity(t, epsilon)

    @laws
    @given(sizes, st.integers(-40, 40))
    def test_prescale(self, epsilon, k):
        assert Fraction(theory.prescale(epsilon, k)) == Fraction(epsilon) * Fraction(4) ** k


class TestCore:
    @laws
    @given(st.lists(numbers, min_size=1, max_size=6), moderate, norms)
    def test_against_its_definition(self, z, epsilon, norm):
        found = theory.normalize(z, epsilon, norm)
        exact = exact_core([MP.mpf(x) for x in z], MP.mpf(epsilon), norm)
        # the mean is known to half an ulp of the largest element, and that twice
        largest = float(max(map(abs, exact)))
        np.testing.assert_allclose(found, np.array(exact, float), rtol=0, atol=16 * ULP * largest)

    @laws
    @given(rows, moderate, norms)
    def test_its_mean_square_is_the_ratio(self, z, epsilon, norm):
        q = variance(z, norm)
        found = np.square(theory.normalize(z, epsilon, norm)).mean()
        assert found == pytest.approx(float(q / (q + Fraction(epsilon))), rel=32 * ULP)

    @laws
    @given(rows, moderate, cells)
    def test_shift(self, z, epsilon, c):
        shifted = theory.normalize(np.array(z) + 128 * c, epsilon)
        np.testing.assert_allclose(shifted, theory.normalize(z, epsilon), rtol=0, atol=64 * ULP)

    @laws
    @given(rows, moderate, st.integers(-30, 30), norms)
    def test_scale_by_powers_of_two_is_exact_in_binary(self, z, epsilon, k, norm):
        x, new = np.ldexp(z, k), theory.prescale(epsilon, k)
        for kernel in ("native", "native:variance=one_pass"):
            options = {"format": "float64", "norm": norm, "kernel": "native" if norm == "rms" else kernel}
            meant = lnaudit.layer_norm(z, epsilon=epsilon, **options)
            np.testing.assert_array_equal(lnaudit.layer_norm(x, epsilon=new, **options), meant)

    @laws
    @given(rows, moderate, st.floats(0.01, 100), norms)
    def test_scale_by_anything(self, z, epsilon, a, norm):
        scaled = theory.normalize(a * np.array(z), a * a * epsilon, norm)
        np.testing.assert_allclose(scaled, theory.normalize(z, epsilon, norm), rtol=0, atol=64 * ULP * np.sqrt(len(z)))

    def test_the_emulator_in_float64_agrees(self):
        z = np.random.default_rng(3).normal(size=(3, 4, 16))
        for norm in NORMS:
            emulated = lnaudit.layer_norm(z, format="float64", epsilon=1e-5, norm=norm)
            np.testing.assert_allclose(theory.normalize(z, 1e-5, norm), emulated, rtol=1e-13)


class TestJacobian:
    @settings(laws, max_examples=25)
    @given(st.lists(cells, min_size=1, max_size=4), st.floats(1e-3, 10), norms)
    def test_against_derivatives(self, z, epsilon, norm):
        exact = [MP.mpf(x) for x in z]

        def element(i, j, step):
            return exact_core([x + step * (k == j) for k, x in enumerate(exact)], MP.mpf(epsilon), norm)[i]

        d = range(len(z))
        wanted = [[float(MP.diff(partial(element, i, j), 0)) for j in d] for i in d]
        found = theory.jacobian(z, epsilon, norm)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=16 * ULP / np.sqrt(epsilon))

    @laws
    @given(rows, moderate, norms)
    def test_eigenvalues_and_gain(self, z, epsilon, norm):
        J, d, q = theory.jacobian(z, epsilon, norm), len(z), float(variance(z, norm))
        wanted = [value for value, times in theory.eigenvalues(q, epsilon, d, norm) for _ in range(times)]
        scale = theory.tangential_gain(q, epsilon)
        np.testing.assert_allclose(np.linalg.eigvalsh(J), wanted, rtol=0, atol=64 * ULP * scale)
        assert np.linalg.norm(J, 2) == pytest.approx(theory.gain(q, epsilon, d, norm), abs=64 * ULP * scale)

    @pytest.mark.parametrize(
        ("d", "norm", "q", "wanted"),
        [
            (1, "layer", 0.0, {0.0: 1}),
            (2, "layer", 3.0, {0.0: 1, 0.125: 1}),
            (3, "layer", 3.0, {0.0: 1, 0.125: 1, 0.5: 1}),
            (768, "layer", 3.0, {0.0: 1, 0.125: 1, 0.5: 766}),
            (768, "layer", 0.0, {0.0: 1, 1.0: 767}),
            (1, "rms", 3.0, {0.125: 1}),
            (2, "rms", 3.0, {0.125: 1, 0.5: 1}),
            (768, "rms", 3.0, {0.125: 1, 0.5: 767}),
            (768, "rms", 0.0, {1.0: 768}),
        ],
    )
    def test_multiplicities(self, d, norm, q, wanted):
        # epsilon 1, q 3: radial 1/8, tangential 1/2
        found = theory.eigenvalues(q, 1.0, d, norm)
        assert found == [(pytest.approx(value, rel=1e-15), times) for value, times in wanted.items()]
        assert theory.gain(q, 1.0, d, norm) == pytest.approx(max(wanted), rel=1e-15)

    @pytest.mark.parametrize("norm", NORMS)
    @pytest.mark.parametrize("exponent", [-200, 200])
    def test_rows_of_extreme_size(self, norm, exponent):
        # J(a z; a^2 epsilon) = J(z; epsilon)/a; at these sizes epsilon is nothing, or all
        z, a = np.array([1.0, 2.0, 4.0, -3.0]), 10.0**exponent
        np.testing.assert_allclose(theory.jacobian(a * z, 0.0, norm) * a, theory.jacobian(z, 0.0, norm), rtol=1e-13)
        expected = theory.jacobian(z if exponent > 0 else 0 * z, 0.0 if exponent > 0 else 0.01, norm)
        np.testing.assert_allclose(theory.jacobian(a * z, 0.01, norm) * max(a, 1), expected, rtol=1e-13, atol=1e-13)


class TestLipschitz:
    weights = st.lists(st.integers(-5, 5).map(float), min_size=5, max_size=5)

    @laws
    @given(*[st.lists(cells, min_size=5, max_size=5)] * 2, weights, st.integers(-12, 0), moderate, norms)
    def test_never_exceeded(self, first, second, weight, k, epsilon, norm):
        a, b = np.ldexp(first, k), np.ldexp(second, k)
        assume((a != b).any())
        u = theory.normalize([a, b], epsilon, norm)
        distance = np.linalg.norm(a - b)
        noise = 64 * ULP
        assert np.linalg.norm(u[0] - u[1]) <= theory.lipschitz_bound(epsilon) * distance * (1 + noise) + noise
        apart = np.linalg.norm(weight * (u[0] - u[1]))
        assert apart <= theory.lipschitz_bound(epsilon, weight) * distance * (1 + noise) + 5 * noise

    @pytest.mark.parametrize("d", [2, 3, 100])
    @pytest.mark.parametrize("norm", NORMS)
    @pytest.mark.parametrize("epsilon", [1e-12, 1e-5, 1.0])
    def test_attained(self, d, norm, epsilon):
        flat = np.full(d, 3.0 if norm == "layer" else 0.0)
        measured = np.linalg.norm(theory.jacobian(flat, epsilon, norm), 2)
        assert measured == pytest.approx(theory.lipschitz_bound(epsilon), rel=1e-13)
        assert measured == pytest.approx(1 / epsilon**0.5, rel=1e-13)

    def test_a_weight_makes_it_a_bound_that_need_not_be_attained(self):
        # |diag(1, 0) P| = 1/sqrt(2) for d = 2
        weight = np.array([1.0, 0.0])
        measured = np.linalg.norm(weight[:, None] * theory.jacobian([0.0, 0.0], 1e-4), 2)
        assert measured == pytest.approx(100 / 2**0.5)
        assert theory.lipschitz_bound(1e-4, weight) == pytest.approx(100)

    def test_what_is_not_finite_in_a_weight_is_left_out(self):
        assert theory.lipschitz_bound(1e-4, [np.nan, -2.0, np.inf]) == pytest.approx(200)
        assert theory.lipschitz_bound(1e-4, [np.nan]) == 0


class TestEnds:
    INF = np.inf

    @pytest.mark.parametrize(
        ("q", "epsilon", "ratio", "tangential", "radial"),
        [
            (0, 0, 1, INF, INF),
            (0, 1e-200, 0, 1e100, 1e100),
            (1e-200, 0, 1, 1e100, 0),
            (1e200, 0, 1, 1e-100, 0),
            (1e200, 1e-5, 1, 1e-100, 1e-305),
            (1e-200, 1e-5, 1e-195, 1e2 * 10**0.5, 1e2 * 10**0.5),
            (2.0**1023, 2.0**1023, 0.5, 2.0**-512, 2.0**-513),
            (2.0**-1074, 2.0**-1074, 0.5, 2.0**536.5, 2.0**535.5),
            (INF, 1e-5, 1, 0, 0),
            (1.0, INF, 0, 0, 0),
            (INF, INF, 1, 0, 0),
        ],
    )
    def test_of_the_gains(self, q, epsilon, ratio, tangential, radial):
        assert theory.collapse_ratio(q, epsilon) == pytest.approx(ratio, rel=1e-14, abs=0)
        assert theory.tangential_gain(q, epsilon) == pytest.approx(tangential, rel=1e-14, abs=0)
        assert theory.radial_gain(q, epsilon) == pytest.approx(radial, rel=1e-14, abs=0)

    @pytest.mark.parametrize("sign", [1, -1])
    @pytest.mark.parametrize(
        ("t", "epsilon", "h", "slope"),
        [
            (0.0, 1e-4, 0.0, 100.0),
            (5e-324, 0.0, 1.5**0.5, 0.0),
            (1e-200, 1e-5, 1e-198 * 10**0.5, 1e2 * 10**0.5),
            (1e200, 1e-5, 1.5**0.5, 0.0),
            (1e308, 1.0, 1.5**0.5, 0.0),
            (INF, 1e-5, 1.5**0.5, 0.0),
            (1.0, INF, 0.0, 0.0),
        ],
    )
    def test_of_the_family(self, t, epsilon, h, slope, sign):
        assert theory.response(sign * t, epsilon) == pytest.approx(sign * h, rel=1e-14, abs=0)
        assert theory.sensitivity(sign * t, epsilon) == pytest.approx(slope, rel=1e-14, abs=0)

    @pytest.mark.parametrize("d", [1, 3, 7, 768])
    def test_constant_rows_are_constant_whatever_their_mean_is_rounded_to(self, d):
        values = np.random.default_rng(5).uniform(-10, 10, (200, 1))
        assert (theory.normalize(np.tile(values, d), 1e-300) == 0).all()

    def test_nothing_over_nothing(self):
        assert np.isnan(theory.response(0.0, 0.0))
        assert theory.sensitivity(0.0, 0.0) == np.inf
        for row, norm in (([0.1] * 3, "layer"), ([0.0] * 3, "rms")):
            assert (theory.normalize(row, 1e-300, norm) == 0).all()
            assert np.isnan(theory.normalize(row, 0.0, norm)).all()
            assert np.isnan(theory.jacobian(row, 0.0, norm)).all()

    @pytest.mark.parametrize("size", [1e-320, 1e-200, 1e200, 1e308])
    def test_rows_at_the_ends(self, size):
        # (-1, 0, 1) in units of its standard deviation
        for row in ([-size, 0.0, size], [[-size, 0.0, size]] * 2):
            np.testing.assert_allclose(theory.normalize(row, 0.0), np.array(row) / size * 1.5**0.5, rtol=1e-14)
        meant = 1.5**0.5 if size > 1 else size / 1e-5**0.5
        assert theory.normalize([-size, 0.0, size], 1e-5)[2] == pytest.approx(meant, rel=1e-14, abs=1e-321)

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_rows_that_are_not_finite(self, bad):
        u = theory.normalize([[1.0, bad, 3.0], [1.0, 2.0, 3.0]], 1e-5)
        assert np.isnan(u[0]).all()
        assert np.isfinite(u[1]).all()

    def test_nan_goes_through(self):
        for function in (theory.collapse_ratio, theory.tangential_gain, theory.radial_gain, theory.response):
            assert np.isnan(function(np.nan, 1e-5))
            assert np.isnan(function(1.0, np.nan))

    def test_an_epsilon_that_leaves_the_range(self):
        assert theory.prescale(1.0, 600) == np.inf
        assert theory.prescale(1.0, -600) == 0
        assert theory.lipschitz_bound(np.inf) == 0


class TestArguments:
    FUNCTIONS = (
        theory.collapse_ratio,
        theory.tangential_gain,
        theory.radial_gain,
        theory.response,
        theory.sensitivity,
        lambda q, epsilon: theory.gain(q, epsilon, 3),
    )

    @pytest.mark.parametrize("function", FUNCTIONS)
    def test_scalars_give_scalars_and_arrays_broadcast(self, function):
        assert isinstance(function(2, 1), float)
        values, epsilons = np.array([0.5, 1.0, 2.0]), np.array([[1e-5], [1e-3]])
        found = function(values, epsilons)
        assert found.shape == (2, 3)
        assert found[1, 2] == function(2.0, 1e-3)
        assert function([0.5, 1], 1e-5).tolist() == found[0, :2].tolist()

    def test_one_feature_has_no_gain(self):
        assert theory.gain(0.0, 1e-5, 1) == 0
        assert theory.gain(np.zeros(3), [0.0, 1e-5, 1.0], 1).tolist() == [0, 0, 0]

    @pytest.mark.parametrize("function", FUNCTIONS)
    def test_a_negative_epsilon(self, function):
        with pytest.raises(ValueError, match=r"epsilon is -1e-05, it must be >= 0"):
            function(1.0, -1e-5)

    @pytest.mark.parametrize("function", FUNCTIONS[:3])
    def test_a_negative_variance(self, function):
        with pytest.raises(ValueError, match=r"q is -2\.0, it must be >= 0"):
            function([1.0, np.nan, -2.0], 1e-5)

    def test_a_negative_epsilon_beside_rows(self):
        calls = (
            lambda: theory.normalize([1.0, 2.0], -1.0),
            lambda: theory.jacobian([1.0, 2.0], -1.0),
            lambda: theory.lipschitz_bound(-1.0),
            lambda: theory.prescale(-1.0, 2),
            lambda: theory.eigenvalues(1.0, -1.0, 3),
        )
        for call in calls:
            with pytest.raises(ValueError, match="epsilon"):
                call()

    @pytest.mark.parametrize("norm", ["group", "Layer", ""])
    def test_an_unknown_norm(self, norm):
        for call in (
            lambda: theory.normalize([1.0, 2.0], 1.0, norm),
            lambda: theory.jacobian([1.0, 2.0], 1.0, norm),
            lambda: theory.gain(1.0, 1.0, 3, norm),
        ):
            with pytest.raises(ValueError, match=re.escape(f"norm is {norm!r}, it must be 'layer' or 'rms'")):
                call()

    def test_shapes_that_are_no_rows(self):
        for z in (1.0, [], np.zeros((3, 0))):
            with pytest.raises(ValueError, match="at least one feature"):
                theory.normalize(z, 1e-5)
        with pytest.raises(ValueError, match="at least one feature"):
            theory.gain(1.0, 1e-5, 0)
        with pytest.raises(ValueError, match=r"shape \(2, 3\)"):
            theory.jacobian(np.ones((2, 3)), 1e-5)


@pytest.fixture(scope="module")
def page() -> list[str]:
    command = [sys.executable, "-W", "error", str(EXAMPLE.relative_to(ROOT))]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def facts(page: list[str]) -> dict[str, tuple[str, str, str]]:
    """Text: (measured, relation, formula); of equal texts the first."""
    pattern = re.compile(r"  +(\S.*?)  +(?:(\S.*?) +)?(=|!=|<=|<) (\S.*)")
    found = [match.groups() for line in page if (match := pattern.fullmatch(line))]
    return {text: (measured, relation, formula) for text, measured, relation, formula in reversed(found)}


class TestExample:
    # by hand: 1/sqrt(2); sqrt(3/2); 1, 2 and 3 over sqrt(5); h(0.1) = sqrt(0.6), h'(0.1) = 0.01 * 60^1.5 at 0.01;
    # the table of the near-constant tensor and 0.203 are other people's numbers
    EXPECTED = {  # noqa: RUF012
        "output, eps = 1e-5: the bias": "(1, 2, 3, 4)",
        "u, eps = 0: 0/0": "(nan, nan, nan, nan)",
        "u, eps = 1/3: v": "(-1, 0, 1)",
        "u, eps = 4/3: v/sqrt(2)": "(-0.707107, 0, 0.707107)",
        "q = eps": "0.5",
        "h(0.01, 0.1, 1), eps = 0.01": ", 0.774597, ",
        "h', by difference quotients": ", 4.64758, ",
        "h(-1000, 1000): -+sqrt(3/2)": "(-1.22474, 1.22474)",
        "constant row, nudged: attained": "100",
        "u of (1, 2, 3), eps = 1/3": "(0.447214, 0.894427, 1.34164)",
        "zero row, eps = 0.01: I/sqrt(eps)": "(10, 10, 10)",
        "a = 2^-4, same eps: u(a z)/u(z)": "0.203",
        "std of the whole, eps = 0": "nan",
        "std of the whole, eps = 1e-12": "0.507998",
        "std of the whole, eps = 1e-8": "0.486255",
        "std of the whole, eps = 1e-5": "0.052836",
        "std of the whole, eps = 0.001": "0.005312",
    }

    def test_is_a_readable_page(self, page):
        assert len(page) <= 75
        assert all(line.isascii() and len(line) <= 100 for line in page)
        assert page[-1].endswith("All hold.")

    def test_its_numbers(self, facts):
        for text, wanted in self.EXPECTED.items():
            assert wanted in facts[text][0], text
        assert f"{float(facts['unbiased variance of its row'][0]):.3g}" == "1.25e-07"

    def test_both_sides_print_alike_where_they_are_equal(self, facts):
        relations = [relation for _, relation, _ in facts.values()]
        assert relations.count("=") >= 30
        assert relations.count("<") == 6
        for text, (measured, relation, formula) in facts.items():
            assert (measured is None) == (relation == "<"), text
            assert (measured == formula) == (relation == "="), text

    def test_says_so_when_something_does_not_hold(self, monkeypatch, capsys):
        specification = importlib.util.spec_from_file_location("example_of_the_theory", EXAMPLE)
        example = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(example)
        monkeypatch.setattr(theory, "radial_gain", lambda q, epsilon: 1.0)
        assert example.main() == 1
        page = capsys.readouterr().out
        assert "NOT = 1\n" in page
        assert page.endswith(" do not hold.\n")
