"""The compiled engine against the numpy engine: every statistic of every row to the last bit."""

from __future__ import annotations

import gc
from dataclasses import fields, replace
from itertools import cycle, product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lnaudit.arithmetic import Workspace, quiet
from lnaudit.engine import numpy_engine
from lnaudit.engine.coverage import covers
from lnaudit.engine.rows import Plan
from lnaudit.formats import FORMATS
from lnaudit.kernels import KERNELS, get_kernel
from lnaudit.pipeline import Settings
from lnaudit.site import ArrayRows, Site

from .exhaustive import sampled, sampled_cases
from .rows import named_rows

numba_engine = pytest.importorskip(
    "lnaudit.engine.numba_engine", reason="numba is not installed: pip install 'lnaudit[fast]'", exc_type=ImportError
)

WIDTHS = (1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100, 127, 300, 768, 1000, 1024)
TEXTBOOK = ("native-serial", "native", "decomposed", "stored-stats", "fused")
VARIATIONS = (
    "native:variance=one_pass,clamp_negative=zero",
    "fused:variance=one_pass,reduction=serial",
    "native:square_reduction=serial",
    "fused:mean_scale=reciprocal",
    "fused:inverse=recip_sqrt,epsilon=float64",
    "native:epsilon_place=outside",
    "native:inverse=rsqrt,epsilon_place=none",
    "decomposed:output=float32,normalized=float32",
    "stored-stats:square_sum=T,sum=T",
    "fused:apply=gamma_rstd_first",
)
# of all textbook kernels in all formats by both norms: every one of each of these, and every way to round
USUAL = (
    *(("float16", "layer", name) for name in TEXTBOOK),
    ("float16", "rms", "fused"),
    ("bfloat16", "layer", "stored-stats"),
    ("bfloat16", "rms", "native"),
    ("tfloat32", "rms", "native"),
    ("float32", "layer", "fused"),
    ("float32", "rms", "native-serial"),
    ("float8_e4m3fn", "layer", "native"),
    ("float8_e5m2", "rms", "stored-stats"),
    ("float64", "layer", "native"),
    ("float64", "rms", "fused"),
)
OF_FLOAT64 = (
    ("float16", "layer", "native"),
    ("float16", "rms", "fused"),
    ("float64", "layer", "native"),
    ("float64", "rms", "fused"),
)


def hard_rows(fmt: str, width: int, dtype: Any = np.float32) -> np.ndarray:
    """Return rows that are hard for a format, some of them not finite; 18 of them, so that sixteen are not all."""
    rows = [*named_rows(fmt, width).values()]
    for broken in (np.nan, np.inf, -np.inf):
        row = rows[0].copy()
        row[width // 2] = broken
        rows.append(row)
    rows += [np.full(width, np.nan), rows[1][::-1]]
    with quiet():
        return np.array(rows).astype(dtype)


def assert_same(a: Any, b: Any, where: object) -> None:
    for part in fields(a):
        left, right = getattr(a, part.name), getattr(b, part.name)
        assert type(left) is type(right), (where, part.name)
        if isinstance(left, np.ndarray):
            assert (left.dtype, left.shape) == (right.dtype, right.shape), (where, part.name)
            np.testing.assert_array_equal(left, right, err_msg=f"{where} {part.name}")
        else:
            assert left == right, (where, part.name)


def assert_engines_agree(x: np.ndarray, plan: Plan) -> None:
    with quiet():
        expected = numpy_engine.analyse(x, 5, plan, Workspace())
        found = numba_engine.analyse(x, 5, plan, Workspace())
    assert_same(expected.input, found.input, "input")
    assert list(expected.casts) == list(found.casts)
    for fmt, cast in expected.casts.items():
        assert_same(cast, found.casts[fmt], fmt.name)
    for (fmt, kernel), left, right in zip(plan.results, expected.kernels, found.kernels, strict=True):
        assert_same(left, right, (fmt.name, kernel.name))


def plan_of(formats: tuple[str, ...], kernels: tuple[str, ...], width: int, **words: Any) -> Plan:
    norm = words.pop("norm", "layer")
    results = tuple(
        (FORMATS[fmt], get_kernel(name).at(FORMATS[fmt], norm == "rms", width)) for fmt in formats for name in kernels
    )
    return Plan(results=results, norm=norm, features=width, **{"model_epsilon": 1e-5, "epsilon": 1e-5, **words})


def assert_agree_in_every_statistic(fmt: str, width: int, dtype: Any, kernels: tuple[str, ...], norm: str) -> None:
    x, weight = hard_rows(fmt, width, dtype), np.random.default_rng(width).standard_normal(width) * 50
    assert_engines_agree(x, plan_of((fmt,), kernels, width, norm=norm, points=(0.0, 1e-6), by_elements=True))
    assert_engines_agree(
        x, plan_of((fmt,), kernels, width, norm=norm, points=(1e-6,), weight=weight, bias=weight[::-1])
    )


@pytest.mark.parametrize("width", sampled(WIDTHS, 1, 17, 100))
@pytest.mark.parametrize(
    ("fmt", "norm", "name"), sampled_cases([*product(FORMATS, ("layer", "rms"), TEXTBOOK)], *USUAL)
)
def test_textbook_kernels_agree_in_every_statistic(fmt: str, norm: str, name: str, width: int) -> None:
    assert_agree_in_every_statistic(fmt, width, np.float32, (name,), norm)


@pytest.mark.parametrize("width", sampled(WIDTHS, 17))
@pytest.mark.parametrize(
    ("fmt", "norm", "name"),
    sampled_cases([*product(FORMATS, ("layer", "rms"), ("native", "fused"))], *OF_FLOAT64),
)
def test_files_of_float64_agree_in_every_statistic(fmt: str, norm: str, name: str, width: int) -> None:
    assert_agree_in_every_statistic(fmt, width, np.float64, (name,), norm)


@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.exhaustive
def test_textbook_kernels_side_by_side_agree(fmt: str, norm: str) -> None:
    """The cast is counted for the first of them alone."""
    for width in WIDTHS:
        for dtype, kernels in ((np.float32, TEXTBOOK), (np.float64, ("native", "fused"))):
            assert_agree_in_every_statistic(fmt, width, dtype, kernels, norm)


# each variation in one format by one norm, each of these several times
@pytest.mark.parametrize(
    ("name", "fmt", "norm"),
    sampled_cases(
        [*product(VARIATIONS, ("float16", "bfloat16", "float32"), ("layer", "rms"))],
        *zip(VARIATIONS, cycle(("float16", "bfloat16", "float32")), cycle(("layer", "rms")), strict=False),
    ),
)
def test_variations_agree(name: str, fmt: str, norm: str) -> None:
    for width in (3, 100, 128):
        plan = plan_of((fmt,), (name,), width, norm=norm, points=(1e-6,))
        assert covers(*plan.results[0], plan)
        assert_engines_agree(hard_rows(fmt, width), plan)


@pytest.mark.parametrize(
    "formats", sampled([("float32",), ("float16", "float32", "float64")], ("float32",)), ids=" ".join
)
def test_kernels_that_are_not_covered_are_analysed_by_numpy_among_those_that_are(formats: tuple[str, ...]) -> None:
    names = tuple(KERNELS)
    for width in (5, 64):
        plan = plan_of(formats, names, width)
        covered = [covers(fmt, kernel, plan) for fmt, kernel in plan.results]
        assert any(covered)
        assert not all(covered)
        assert_engines_agree(hard_rows("float16", width), plan)


@pytest.mark.parametrize("axis", ["variance", "plus_epsilon", "mean", "rstd"])
def test_stages_that_are_held_in_float64_agree(axis: str) -> None:
    for width in (20, 64):
        plan = plan_of(("float16", "float32"), (f"native:{axis}=float64",), width)
        assert_engines_agree(hard_rows("float16", width), plan)


@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 2.0**500, 1e200])
def test_epsilons_far_from_all_others_agree(epsilon: float) -> None:
    plan = plan_of(("float32", "float64"), ("native",), 20, model_epsilon=epsilon, epsilon=epsilon)
    assert_engines_agree(hard_rows("float32", 20), plan)


def test_what_the_loops_read_begins_with_a_cache_line() -> None:
    ws = Workspace()
    for size in (3, 1000, 17):
        assert ws.array(f"of {size}", (size,), "float32").ctypes.data % 64 == 0


def test_garbage_is_collected_again_after_something_was_compiled() -> None:
    assert gc.isenabled()
    assert_engines_agree(hard_rows("float32", 3), plan_of(("float32",), ("native",), 3))
    assert gc.isenabled()


@pytest.mark.parametrize("what", ["flushed", "weight", "prescale", "tiny rows"])
def test_what_is_not_covered_agrees_too(what: str) -> None:
    x, plan = hard_rows("float32", 20, np.float64), plan_of(("float16", "float32"), ("native", "fused"), 20)
    if what == "flushed":
        plan = replace(plan, results=tuple((f, replace(k, flush_subnormals="all")) for f, k in plan.results))
    elif what == "weight":
        plan = replace(plan, weight=np.array([np.nan, np.inf, *range(18)], float))
    elif what == "prescale":
        plan = replace(plan, prescale=-3)
    else:
        x = x * 1e-170
    with quiet():
        assert_engines_agree(x if what == "tiny rows" else x.astype(np.float32), plan)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.float32])
def test_files_of_every_dtype_and_layout_agree(dtype: Any) -> None:
    x = hard_rows("float16", 48, dtype)
    plan = plan_of(("float16", "bfloat16", "float32", "float64"), ("native", "fused"), 48)
    assert_engines_agree(x, plan)
    assert_engines_agree(np.asfortranarray(x), plan)
    assert_engines_agree(np.repeat(x, 2, axis=1)[:, ::2], plan)


@pytest.mark.parametrize(
    ("norm", "kernels"),
    sampled_cases(
        [*product(("layer", "rms"), (("native",), ("fused",), ("native", "fused")))],
        ("layer", ("native",)),
        ("rms", ("fused",)),
    ),
)
def test_elements_whose_squares_underflow_beside_large_ones_agree(norm: str, kernels: tuple[str, ...]) -> None:
    rng = np.random.default_rng(8)
    x = rng.standard_normal((40, 37)) * 10.0 ** rng.uniform(-165, 0, (40, 37))
    x[:, 0], x[::3, 1:] = 3.0, x[::3, 1:] * 1e-140
    assert_engines_agree(x, plan_of(("float16", "float64"), kernels, 37, norm=norm, points=(0.0, 1e-300)))


@pytest.mark.parametrize("width", [64, 700, 2048])  # 16, 2 or 3 and 1 rows are worked on at once
def test_any_number_of_rows_agrees(width: int) -> None:
    some = np.random.default_rng(3).normal(2, 3, (37, width)).astype(np.float32)
    some[::5] *= 1e5  # beyond float16
    for number in (1, 2, 3, 5, 15, 16, 17, 18, 31, 32, 33, 37):
        x = some[:number]
        assert_engines_agree(x, Settings().plan(Site(name="x", source="x", rows=ArrayRows(x))))


def beside_their_mean(dtype: Any) -> np.ndarray:
    """Return rows whose elements are a few units of a dtype from their mean."""
    rng = np.random.default_rng(4)
    steps = rng.integers(-3, 4, (20, 33)) * np.finfo(dtype).eps
    near = (np.exp2(rng.integers(-60, 61, (20, 1))) * (1 + steps)).astype(dtype)
    near[::2, 0] *= -1
    return near


@pytest.mark.parametrize("dtype", sampled([np.float32, np.float64], np.float32))
def test_rows_beside_their_mean_agree(dtype: Any) -> None:
    near = beside_their_mean(dtype)
    assert_engines_agree(near, Settings().plan(Site(name="x", source="x", rows=ArrayRows(near))))


def test_rows_of_float64_beside_their_mean_agree() -> None:
    near = beside_their_mean(np.float64)
    assert_engines_agree(near, plan_of(("float16", "float64"), ("native",), 33, points=(1e-6,)))


@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("width", [1, 3, 33, 700])
def test_rows_whose_sums_are_exact_or_just_not_agree(width: int, norm: str) -> None:
    """Numbers that are 2^14 to 2^31 apart: up to 2^28 / width their sums are exact (`engine.exact_sums`)."""
    rng = np.random.default_rng(width)
    rows = [np.ldexp(rng.uniform(1, 2, width), rng.integers(-apart, 1, width)) for apart in range(14, 32)]
    x = np.stack([*rows, *(row * rng.choice([-1, 0, 1], width) for row in rows)]).astype(np.float32)
    assert_engines_agree(x, plan_of(("float64",), ("native",), width, norm=norm))


def test_a_block_without_a_finite_row_agrees() -> None:
    x = np.full((20, 16), np.nan, np.float32)
    assert_engines_agree(x, plan_of(("float16", "float64"), ("native",), 16))


@pytest.mark.parametrize("alone", sampled([True, False], True))
@settings(max_examples=40, deadline=None)
@given(
    width=st.integers(1, 70),
    exponents=st.lists(st.integers(-60, 38), min_size=1, max_size=20),
    offset=st.sampled_from([0.0, 5.0, -1000.0]),
    case=st.sampled_from(USUAL),
    formats=st.lists(st.sampled_from(sorted(FORMATS)), min_size=1, max_size=3, unique=True),
    epsilon=st.sampled_from([0.0, 1e-12, 1e-5, 0.1]),
    seed=st.integers(0, 2**32),
)
def test_random_rows_agree(
    alone: bool,
    width: int,
    exponents: list[int],
    offset: float,
    case: tuple[str, str, str],
    formats: list[str],
    epsilon: float,
    seed: int,
) -> None:
    """By a kernel in a format, or by all of them in some."""
    noise = np.random.default_rng(seed).standard_normal((len(exponents), width))
    with quiet():
        x = (offset + noise * 10.0 ** np.array(exponents)[:, None]).astype(np.float32)
    fmt, norm, name = case
    some, kernels = ((fmt,), (name,)) if alone else (tuple(formats), TEXTBOOK)
    assert_engines_agree(x, plan_of(some, kernels, width, norm=norm, epsilon=epsilon, points=(epsilon,)))
