"""Every axis of a kernel against naive scalar code on exact rationals, bit for bit, through lnaudit.layer_norm."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

import lnaudit
from lnaudit.kernels import AXES

from .exact_kernel import SUMS, ExactKernel, add, axes_of, multiply, multiply_add, nearest
from .exhaustive import sampled_cases
from .oracles import ALL_NAMES, EMAX, EMIN, PRECISION, equal, exact_rows, round_exact

ORDERS = ("sub_mul", "scale_shift", "folded", "gamma_rstd_first", "gamma_center_first")
TEXTS = (
    "native",
    "fused",
    # variance=welford
    "native:variance=welford",
    "fused:variance=welford",
    "decomposed:variance=welford,reduction=serial,clamp_negative=zero",
    "native:variance=welford,mean_scale=reciprocal",
    "native:variance=welford,fma=stats",
    "fused:variance=welford,mean_scale=reciprocal,fma=all",
    "native:variance=welford,sum=float64,mean=float32",
    # variance=cascade
    "native:variance=cascade,reduction=lanes4",
    "fused:variance=cascade,reduction=lanes8",
    "fused:variance=cascade,reduction=lanes8_fours,fma=all,inverse=recip_sqrt,apply=scale_shift",
    "decomposed:variance=cascade,reduction=lanes4,square_reduction=cascade4,clamp_negative=zero",
    "native:variance=cascade,reduction=lanes8,sum=float64,mean=float32,fma=stats",
    # reduction and square_reduction
    *(f"native:reduction={order}" for order in SUMS),
    "fused:reduction=cascade8,square_reduction=lanes8,variance=one_pass",
    "decomposed:reduction=cascade4,square_reduction=serial",
    "native-serial:square_reduction=lanes4,mean_scale=terms",
    *(f"native:reduction={order},fma=stats" for order in ("lanes4", "lanes8", "lanes8_fours")),
    "fused:sum=float64,reduction=lanes4,square_sum=float32,square_reduction=lanes8_fours,fma=all,inverse=recip_sqrt",
    "native-serial:square_reduction=lanes8_fours,fma=stats,variance=one_pass",
    "fused:square_reduction=lanes8,fma=stats,mean_scale=terms",
    "native:variance=welford,square_reduction=cascade4,fma=all",
    "native:reduction=pairwise,flush_subnormals=T",
    "stored-stats:reduction=pairwise,square_reduction=serial",
    # mean_scale
    "native:mean_scale=reciprocal",
    "fused:mean_scale=reciprocal,variance=one_pass",
    "native-serial:mean_scale=terms",
    "native:mean_scale=terms,variance=one_pass",
    "fused:mean_scale=terms",
    "stored-stats:mean_scale=terms,reduction=serial,fma=stats",
    # apply, with every order of weight and bias, fused and not
    *(f"native:inverse=recip_sqrt,apply={order}" for order in ORDERS),
    *(f"fused:apply={order}" for order in ORDERS),
    *(f"native:inverse=rsqrt,apply={order},fma=apply" for order in ORDERS),
    *(f"fused:inverse=recip_sqrt,apply={order},fma=apply" for order in ORDERS),
    "stored-stats:apply=scale_shift,fma=apply,normalized=T",
    "fused:apply=folded,affine=T,mean=T",
    "fused:inverse=div,apply=div",
    "fused:fma=apply,affine=T",
    "native:inverse=rsqrt,apply=gamma_center_first,diff=float64,affine=float32",
    # fma of running sums
    "native-serial:fma=stats",
    "native-serial:variance=one_pass,fma=stats",
    "fused:reduction=serial,fma=all,inverse=recip_sqrt,apply=scale_shift",
    "decomposed:reduction=serial,fma=stats,diff=float32",
    # plus_epsilon
    "native:plus_epsilon=float32",
    "native:plus_epsilon=float64,epsilon=float32,rstd=float32,inverse=recip_sqrt",
    "fused:plus_epsilon=T",
    "decomposed:plus_epsilon=float32,inverse=rsqrt,flush_subnormals=all",
    # epsilon_place
    "native:epsilon_place=outside",
    "native:inverse=recip_sqrt,epsilon_place=outside,epsilon=float64",
    "fused:inverse=div,epsilon_place=outside",
    "native:epsilon_place=none",
    "fused:epsilon_place=none,variance=one_pass",
    # inverse
    "native:inverse=recip_sqrt",
    "native:inverse=rsqrt",
    "fused:inverse=recip_sqrt,rstd=T",
    # flush_subnormals
    *(f"{preset}:flush_subnormals={which}" for preset in ("native", "fused") for which in ("float32", "T", "all")),
    "stored-stats:flush_subnormals=float32",
    "native-serial:flush_subnormals=all,fma=all",
    "fused:flush_subnormals=all,apply=folded,fma=apply",
    "native:flush_subnormals=T,variance=welford,inverse=recip_sqrt,apply=scale_shift",
    "fused:flush_subnormals=float32,affine=T,mean_scale=terms",
    "decomposed:flush_subnormals=float32,epsilon=float32,inverse=rsqrt",
    "native:flush_subnormals=float32,epsilon=float32,diff=float32",
    "native:flush_subnormals=T,variance=cascade,reduction=lanes4",
    "fused:flush_subnormals=float32,variance=cascade,reduction=lanes8",
    "native:flush_subnormals=all,reduction=lanes8_fours,fma=stats",
    "fused:flush_subnormals=all,reduction=cascade4",
)
# each kernel in three formats: its neighbours, which are like it, in others
USUAL = [(text, ALL_NAMES[(i + k) % len(ALL_NAMES)]) for i, text in enumerate(TEXTS) for k in (0, 2, 4)]
EPSILONS = (1e-5, 0.0, 1e-12, 1e-3, 1.7e-38)


@cache
def rows(name: str, d: int) -> tuple[list[str], np.ndarray]:
    """Return the names and the elements of the rows of one width, some not finite."""
    table = exact_rows(name, d, 51)
    table["near the smallest normal number"] = np.linspace(-3, 3, d) * 2.0 ** EMIN[name]
    table["variance below it"] = np.linspace(-0.4, 0.6, d) * 2.0 ** (EMIN[name] // 2)
    table["a NaN"] = np.where(np.arange(d) == d // 2, np.nan, 1.5)
    table["an Inf"] = np.where(np.arange(d) == d - 1, -np.inf, 1.5)
    return list(table), np.array(list(table.values()))


@cache
def parameters(name: str, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return weight and bias in float64: numbers around 1, some 0, some subnormal in the format."""
    rng = np.random.default_rng([52, d])
    weight, bias = 1 + rng.standard_normal(d), rng.standard_normal(d)
    weight[3::5], bias[1::7], bias[4::9] = 0.7 * 2.0 ** EMIN[name], 0.0, 1.3 * 2.0 ** (EMIN[name] - 1)
    return weight, bias


def compare(text: str, name: str, d: int, norm: str, epsilon: float, with_parameters: list[tuple[bool, bool]]) -> None:
    """Compare all rows, without weight and bias and with those asked for."""
    labels, x = rows(name, d)
    exact = ExactKernel(text, name, rms=norm == "rms")
    with np.errstate(over="ignore"):
        centred = [exact.centre(row) for row in x.tolist()]
    for weighted, biased in [(False, False), *with_parameters]:
        weight, bias = parameters(name, d)
        kept = {"weight": weight if weighted else None, "bias": bias if biased else None}
        got = lnaudit.layer_norm(x, format=name, kernel=text, epsilon=epsilon, norm=norm, **kept)
        lists = [None if values is None else values.tolist() for values in kept.values()]
        for label, found, row in zip(labels, got, centred, strict=True):
            expected = exact.finish(row, epsilon, *lists).output
            assert equal(found, expected), (label, norm, d, epsilon, kept)


@pytest.mark.parametrize(("text", "name"), sampled_cases([*product(TEXTS, ALL_NAMES)], *USUAL))
def test_layer_norm_bit_for_bit(text, name):
    """Widths, epsilons, and whether weight or bias is absent, take turns over kernels and formats."""
    turn = TEXTS.index(text) + ALL_NAMES.index(name)
    small, large = (1, 2, 3)[turn % 3], (8, 17, 8, 32, 8)[turn // 3 % 5]
    both = [(True, True), [(True, False), (False, True)][turn % 2]]
    compare(text, name, small, "layer", EPSILONS[(turn + 1) % 5], both)
    compare(text, name, large, "layer", EPSILONS[turn % 5], both[:1])


@pytest.mark.parametrize("name", ALL_NAMES)
@pytest.mark.parametrize("text", TEXTS)
def test_rms_norm_bit_for_bit(text, name):
    turn = TEXTS.index(text) + ALL_NAMES.index(name)
    compare(text, name, (1, 2, 3, 8)[turn % 4], "rms", EPSILONS[turn // 2 % 5], [(True, True)])


def test_every_value_of_every_axis_is_among_them():
    """But for those of the dtypes, which test_interpreter moves one by one, and "none" and the like."""
    used = {(axis, value) for text in TEXTS for axis, value in axes_of(text).items()}
    elsewhere = {("clamp_negative", "zero-nan")}
    algorithms = set(AXES["variance"]) - set(AXES["sum"])
    assert {("algorithm", value) for value in algorithms} <= used
    for axis in ("reduction", "square_reduction", "mean_scale", "clamp_negative", "epsilon_place", "inverse", "apply",
                 "fma", "flush_subnormals"):  # fmt: skip
        assert {(axis, value) for value in AXES[axis]} - elsewhere <= used


def test_the_rounding_of_these_tests():
    """In integers, against the one of the other tests in rationals: ties, both ends of the ranges, random numbers."""
    rng = np.random.default_rng(53)
    for name in ALL_NAMES:
        p, low, high = PRECISION[name], EMIN[name] - PRECISION[name], EMAX[name]
        exponents = rng.integers(low - 3, high + 3, 300).tolist() + [low] * 50 + [high - p + 1] * 50
        for k in exponents:
            n, m = (int(v) for v in rng.integers(1, 1 << min(p + 2, 60), 2))
            for x in (Fraction(n) * Fraction(2) ** k, -Fraction(n, m) * Fraction(2) ** k):
                assert equal(nearest(x.numerator, x.denominator, name), round_exact(x, name)), (name, x)


def product_first(a: float, b: float, c: float, name: str) -> float:
    """Multiply and add with a rounding each."""
    return add(multiply(a, b, name), c, name)


FUSED = (
    "native-serial:fma=stats",
    "native:variance=welford,fma=stats",
    "fused:output=float32,variance=welford,mean_scale=reciprocal,fma=stats",
    "native-serial:mean_scale=terms,fma=stats",
    "native:reduction=lanes4,fma=stats",
    "native:reduction=lanes8_fours,fma=stats",
    "native:variance=cascade,reduction=lanes4,fma=stats",
    "native:fma=apply",
    "native:inverse=recip_sqrt,apply=scale_shift,fma=apply",
    "fused:output=float32,apply=scale_shift,fma=apply",
    "fused:output=float32,apply=folded,fma=apply",
    "fused:output=float32,apply=gamma_rstd_first,fma=apply",
    "fused:output=float32,apply=gamma_center_first,fma=apply",
)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "tfloat32", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("text", FUSED)
def test_fused_products_are_not_rounded(text, name):
    """Rows for which a rounded product gives other outputs."""
    d, rng = 6, np.random.default_rng(54)
    x, weight, bias = rng.standard_normal((60, d)), 1 + rng.standard_normal(d), rng.standard_normal(d)
    got = lnaudit.layer_norm(x, format=name, kernel=text, weight=weight, bias=bias)
    once, twice = (
        np.array([kernel.finish(kernel.centre(row), 1e-5, weight.tolist(), bias.tolist()).output for row in x.tolist()])
        for kernel in (ExactKernel(text, name), ExactKernel(text, name, fused=product_first))
    )
    assert equal(got, once)
    assert not equal(once, twice)


@pytest.mark.parametrize(
    ("name", "by_way_of"), [("float16", "float32"), ("tfloat32", "float32"), ("float32", "float64")]
)
def test_fused_sums_are_rounded_once(name, by_way_of):
    """Weights and biases for which a sum that is rounded to a wider format first falls on a tie.

    B + n W with B = 1 or the next number and n W next to half a unit, so near that the wider format does not tell. An
    8-bit significand and less always fits into float32 so.
    """
    text, half, near = "native:inverse=recip_sqrt,fma=apply", Fraction(2) ** -PRECISION[name], PRECISION[by_way_of]
    x = np.random.default_rng(55).standard_normal((1, 400))
    exact = ExactKernel(text, name)
    row = exact.centre(x[0].tolist())
    weight, bias, chosen = np.zeros(400), np.ones(400), []
    for i, n in enumerate(exact.finish(row, 1e-5).core):
        weight[i] = round_exact(half / Fraction(n), name)
        rest = Fraction(weight[i]) * Fraction(n) - half
        bias[i] += 0 if rest > 0 else float(2 * half)
        if 0 < abs(rest) < Fraction(2) ** -near:
            chosen.append(i)
    assert len(chosen) >= 5

    def twice(a: float, b: float, c: float, wide: str) -> float:
        return round_exact(Fraction(multiply_add(a, b, c, by_way_of)), wide)

    got = lnaudit.layer_norm(x, format=name, kernel=text, weight=weight, bias=bias)[0]
    assert equal(got, exact.finish(row, 1e-5, weight.tolist(), bias.tolist()).output)
    wrong = ExactKernel(text, name, fused=twice).finish(row, 1e-5, weight.tolist(), bias.tolist()).output
    assert (got[chosen] != np.array(wrong)[chosen]).all()
