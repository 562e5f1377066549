"""The interpreter: kernels bit by bit against naive scalar code written from the design's table."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lnaudit.arithmetic import Workspace, quiet
from lnaudit.engine import interpreter
from lnaudit.formats import FORMATS
from lnaudit.kernels import LADDER, get_kernel

from .oracles import COLUMNS, EMIN, NAMES, NaiveKernel, NaiveRow, equal, root_exact, round_exact, rows_of

WIDTHS = (1, 2, 3, 7, 8, 17, 100)
EPSILONS = (1e-12, 1e-5, 0.0)


@dataclass(kw_only=True)
class Emulated:
    """What lnaudit computes of rows h of shape (d, n); core, output and inverse have one entry an epsilon."""

    v: np.ndarray
    mean: np.ndarray
    raw_variance: np.ndarray
    variance: np.ndarray
    diff: np.ndarray
    square: np.ndarray
    inverse: list[np.ndarray]
    core: list[np.ndarray]
    output: list[np.ndarray]
    core_maximum: list[np.ndarray]


def emulate(
    h: np.ndarray,
    name: str,
    kernel_name: str,
    *,
    rms: bool,
    epsilons: tuple[float, ...] = EPSILONS,
    weight: np.ndarray | None = None,
    bias: np.ndarray | None = None,
) -> Emulated:
    """Run the stages of the interpreter in their order."""
    fmt, kernel, ws = FORMATS[name], get_kernel(kernel_name), Workspace()
    with quiet():
        carried = h.astype(fmt.carrier)
        kept = carried.copy()
        centered = interpreter.center(carried, carried.max(axis=0), carried.min(axis=0), fmt, kernel, rms, ws)
        _, inverses = interpreter.inverse(centered.variance, epsilons, fmt, kernel)
        core, output, maximum = [], [], []
        for inverse in inverses:
            n = interpreter.normalize(centered, inverse, fmt, kernel, rms, ws)
            # the buffers are used again
            core.append(interpreter.core(n, fmt, kernel, ws).copy())
            output.append(interpreter.output(centered, n, inverse, weight, bias, fmt, kernel, rms, ws).copy())
            maximum.append(interpreter.core_maximum(centered, inverse, fmt, kernel, rms))
        assert equal(carried, kept), "the cast rows are read only"
    return Emulated(
        v=centered.v.copy(),
        mean=centered.mean,
        raw_variance=centered.raw_variance,
        variance=centered.variance,
        diff=centered.diff,
        square=centered.square,
        inverse=list(inverses),
        core=core,
        output=output,
        core_maximum=maximum,
    )


@cache
def rows(name: str, d: int) -> tuple[list[str], list[list[Any]]]:
    """Return the names and the elements of the rows of one width."""
    table = rows_of(name, d, 25)
    return list(table), list(table.values())


def parameters(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a random weight and bias in float64."""
    rng = np.random.default_rng([26, d])
    return 1 + rng.standard_normal(d), rng.standard_normal(d)


def naive_of(kernel_name: str, name: str, *, rms: bool, d: int) -> list[NaiveRow]:
    """Run the naive kernel that a specification of column, reduction, algorithm and clamp means."""
    preset, _, overrides = kernel_name.partition(":")
    axes = dict(item.split("=") for item in overrides.split(",") if item)
    naive = NaiveKernel(
        "native" if preset == "native-serial" else preset,
        name,
        rms=rms,
        reduction=axes.get("reduction", "serial" if preset == "native-serial" else "tree"),
        one_pass=axes.get("variance") == "one_pass",
        clamp=axes.get("clamp_negative", "none"),
    )
    with np.errstate(all="ignore"):
        return [naive.run(row, EPSILONS, *parameters(d)) for row in rows(name, d)[1]]


def compare(kernel_name: str, name: str, *, rms: bool, d: int) -> None:
    """Assert that every stage agrees to the last bit, row by row so that a failure names the row."""
    names, elements = rows(name, d)
    weight, bias = parameters(d)
    got = emulate(np.array(elements).T, name, kernel_name, rms=rms, weight=weight, bias=bias)
    for i, (row, expected) in enumerate(zip(names, naive_of(kernel_name, name, rms=rms, d=d), strict=True)):
        assert equal(got.v[:, i], expected.v), row
        if not rms:
            assert equal(got.mean[i], expected.mean), row
        assert equal(got.raw_variance[i], expected.raw_variance), row
        assert equal(got.variance[i], expected.variance), row
        assert equal(got.diff[i], np.abs(expected.v).max()), row
        for j in range(len(EPSILONS)):
            assert equal(got.inverse[j][i], expected.inverse[j]), (row, EPSILONS[j])
            assert equal(got.core[j][:, i], expected.core[j]), (row, EPSILONS[j])
            assert equal(got.output[j][:, i], expected.output[j]), (row, EPSILONS[j])
            # one number a row decides its fate: not finite, all zero, or the largest magnitude
            maximum, core = got.core_maximum[j][i], np.array(expected.core[j])
            assert np.isfinite(maximum) == np.isfinite(core).all(), (row, EPSILONS[j])
            if np.isfinite(maximum):
                assert maximum == np.abs(core).max(), (row, EPSILONS[j])


@pytest.mark.parametrize("d", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kernel_name", LADDER)
def test_textbook_layer_norm(kernel_name, name, d):
    """The five presets: v, mean, variance, 1/std, core and output of 16 rows at three epsilons, to the last bit."""
    compare(kernel_name, name, rms=False, d=d)


@pytest.mark.parametrize("d", [1, 2, 3, 13, 100])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kernel_name", LADDER)
def test_textbook_rms_norm(kernel_name, name, d):
    """The same without mean and difference."""
    compare(kernel_name, name, rms=True, d=d)


@pytest.mark.parametrize("d", [1, 3, 8, 17])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reduction", ["tree", "serial"])
@pytest.mark.parametrize("column", COLUMNS)
def test_one_pass(column, reduction, name, d):
    """E[x^2] - E[x]^2 in every column, both reductions; the rows with an offset make it negative."""
    compare(f"{column}:variance=one_pass,reduction={reduction}", name, rms=False, d=d)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("column", ["decomposed", "stored-stats", "fused"])
@pytest.mark.parametrize("rms", [False, True])
def test_serial_sums_of_the_other_columns(rms, column, name):
    """`reduction=serial` changes the order of the sums and nothing else."""
    compare(f"{column}:reduction=serial", name, rms=rms, d=100)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("clamp", ["zero", "zero-nan"])
@pytest.mark.parametrize("column", COLUMNS)
def test_clamp_negative(column, clamp, name):
    """A negative rounded variance becomes 0; with zero-nan a NaN does too; two-pass variances are never touched."""
    compare(f"{column}:variance=one_pass,clamp_negative={clamp}", name, rms=False, d=17)
    compare(f"{column}:clamp_negative={clamp}", name, rms=False, d=8)


@pytest.mark.parametrize(
    ("column", "name"),
    # 16-bit elements one unit apart have a variance above float32's rounding error, so `fused` stays positive there
    [(column, name) for column in COLUMNS for name in NAMES if column != "fused" or name in ("float32", "float64")],
)
def test_one_pass_variances_do_become_negative(column, name):
    """The named rows exercise the clamp: some one-pass variance is below 0, and the raw variance keeps saying so."""
    got = emulate(np.array(rows(name, 17)[1]).T, name, f"{column}:variance=one_pass,clamp_negative=zero", rms=False)
    assert (got.raw_variance < 0).any()
    assert not (got.variance < 0).any()


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kernel_name", LADDER)
def test_weight_and_bias_may_be_absent(kernel_name, name, rms):
    """Without weight and bias the output is the core; with one of them absent it is that of 1 or of 0."""
    d = 13
    h = np.array(rows(name, d)[1]).T
    weight, bias = parameters(d)
    plain = emulate(h, name, kernel_name, rms=rms)
    neutral = emulate(h, name, kernel_name, rms=rms, weight=np.ones(d), bias=np.zeros(d))
    only_weight = emulate(h, name, kernel_name, rms=rms, weight=weight)
    zero_bias = emulate(h, name, kernel_name, rms=rms, weight=weight, bias=np.zeros(d))
    only_bias = emulate(h, name, kernel_name, rms=rms, bias=bias)
    unit_weight = emulate(h, name, kernel_name, rms=rms, weight=np.ones(d), bias=bias)
    for j in range(len(EPSILONS)):
        assert equal(plain.output[j], plain.core[j])
        assert equal(neutral.output[j], plain.core[j])
        assert equal(only_weight.output[j], zero_bias.output[j])
        assert equal(only_bias.output[j], unit_weight.output[j])


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_rsqrt_in_float32_stored_in_16_bits(name):
    """`fused:rstd=T`: 1/sqrt(w) is rounded to float32, the widest dtype that takes part, then to T.

    The variances are those whose root comes so near a tie of T that float32 falls onto it.
    """
    fmt, kernel = FORMATS[name], get_kernel("fused:rstd=T")
    step = 2 * fmt.unit_roundoff
    ties = 0.5 + step / 4 + step / 2 * np.arange(1, 60)
    w = (1 / ties**2).astype(np.float32)
    _, got = interpreter.inverse(w, (0.0,), fmt, kernel)
    once = [root_exact(1 / Fraction(float(x)), "float32") for x in w]
    assert equal(got[0], [round_exact(Fraction(x), name) for x in once])


def test_rsqrt_of_a_float64_variance_stored_in_float32():
    """`native:variance=float64,inverse=rsqrt` for float32: float64's 1/sqrt rounded once, then to float32."""
    fmt, kernel = FORMATS["float32"], get_kernel("native:variance=float64,inverse=rsqrt")
    ties = 1 + 2.0**-24 + 2.0**-23 * np.arange(1, 4_000)
    nearest = 1 / ties**2
    w = np.concatenate([np.nextafter(nearest, 0), nearest, np.nextafter(nearest, 2)])
    _, got = interpreter.inverse(w, (0.0,), fmt, kernel)
    once = [root_exact(1 / Fraction(x), "float64") for x in w.tolist()]
    assert equal(got[0], [round_exact(Fraction(x), "float32") for x in once])


@pytest.mark.parametrize("name", NAMES)
def test_epsilon_is_rounded_once_where_it_is_held(name):
    """At variance 0 the root is that of epsilon as the format holds it: 1e-12 is 0 in float16, and 0/0 is NaN."""
    fmt, zero = FORMATS[name], np.zeros(1, FORMATS[name].carrier)
    with quiet():
        for epsilon in (1e-5, 1e-8, 6e-8, 1e-12, 1 + 2.0**-8 + 2.0**-40):
            w, den = interpreter.inverse(zero, (epsilon,), fmt, get_kernel("native"))
            held = round_exact(Fraction(epsilon), name)
            assert w[0, 0] == held
            assert den[0, 0] == root_exact(Fraction(held), name)
    got = emulate(np.zeros((4, 1)), name, "native", rms=False, epsilons=(1e-12,))
    assert np.isnan(got.core[0]).all() == (name == "float16")


def test_mean_of_ones_in_float16():
    """Tree sums of up to 2,048 ones are exact; 2049 is a tie that goes to 2048, and 2048/2049 is divided by 2049."""
    for d in (2047, 2048, 2049):
        got = emulate(np.ones((d, 1)), "float16", "native", rms=False)
        total = 2048 if d == 2049 else d
        assert got.mean[0] == round_exact(Fraction(total, d), "float16")


@pytest.mark.parametrize("d", [4097, 65_537])
def test_count_is_never_rounded(d):
    """d = 4097 and 65537 are no numbers of float16 or bfloat16; the quotient is that of the exact integer."""
    h = np.zeros((d, 1))
    h[:8] = 1000.0
    for name in ("float16", "bfloat16"):
        got = emulate(h, name, "native", rms=False)
        assert got.mean[0] == round_exact(Fraction(round_exact(Fraction(8000), name)) / d, name)


@pytest.mark.parametrize("rms", [False, True], ids=["layer", "rms"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "kernel_name",
    [
        *LADDER,
        "native:variance=one_pass",
        "fused:variance=one_pass,reduction=serial",
        "fused:variance=welford,mean_scale=reciprocal",
        "native:inverse=recip_sqrt,apply=scale_shift,fma=apply",
    ],
)
def test_scale_law(kernel_name, name, rms):
    """LN(a z; a^2 eps) = LN(z; eps) to the last bit for a = 2^k, while nothing over- or underflows.

    Quarters up to 8 in rows of at most 13: sums of squares stay below 65504 and nonzero means above 2^-6. Rows with a
    nonzero |v| below 2^-5 are left out: their squares would be subnormal in float16 at k = -2.
    """
    span = 2 if name == "float16" else 20

    @given(
        quarters=st.lists(st.integers(-32, 32), min_size=1, max_size=13),
        k=st.integers(-span, span),
        epsilon=st.floats(2.0**-9, 1.0),
    )
    @settings(derandomize=True, deadline=None, max_examples=30)
    def law(quarters: list[int], k: int, epsilon: float) -> None:
        z = np.array(quarters, np.float64)[:, None] / 4
        plain = emulate(z, name, kernel_name, rms=rms, epsilons=(epsilon,))
        magnitudes = np.abs(plain.v[plain.v != 0])
        assume(not len(magnitudes) or magnitudes.min() >= 2.0**-5)
        # a one-pass variance may cancel to a rounding error, and its sum with epsilon to nothing
        assume(plain.raw_variance[0] == 0 or abs(plain.raw_variance[0]) >= 2.0 ** (EMIN["float16"] + 4))
        scaled = emulate(np.ldexp(z, k), name, kernel_name, rms=rms, epsilons=(np.ldexp(epsilon, 2 * k),))
        assert equal(scaled.v, np.ldexp(plain.v.astype(np.float64), k))
        assert equal(scaled.core[0], plain.core[0])

    law()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kernel_name", LADDER)
def test_rows_and_blocks_do_not_mix(kernel_name, name):
    """A row gives the same bits alone, in a block and in a used workspace that held a larger block before."""
    d = 17
    h = np.array(rows(name, d)[1]).T
    together = emulate(h, name, kernel_name, rms=False)
    for i in range(h.shape[1]):
        alone = emulate(h[:, i : i + 1], name, kernel_name, rms=False)
        assert equal(alone.v[:, 0], together.v[:, i])
        for j in range(len(EPSILONS)):
            assert equal(alone.core[j][:, 0], together.core[j][:, i])


def test_near_constant_float32_tensor():
    """The numbers of the design: ones(1, 4, 8) * 5 with one element 5.001; std of the whole core with ddof = 1."""
    x = np.full((8, 4), 5, np.float32)
    x[0, 0] = 5.001
    epsilons = (0.0, 1e-12, 1e-8, 1e-5, 1e-3)
    got = emulate(x, "float32", "native", rms=False, epsilons=epsilons)
    with quiet():
        found = [float(np.std(core.astype(np.float64), ddof=1)) for core in got.core]
    assert np.isnan(found[0])
    # printed to six decimals
    assert [round(value, 6) for value in found[1:]] == [0.507998, 0.486255, 0.052836, 0.005312]
    assert f"{got.variance[0] * 8 / 7:.2e}" == "1.25e-07"
