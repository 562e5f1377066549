"""The Summary: folding rows in any order, in blocks of any size, by any number of threads, says the same."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lnaudit
from lnaudit import pipeline, summarize
from lnaudit.advice import candidates
from lnaudit.arithmetic import Workspace, quiet
from lnaudit.engine import numpy_engine
from lnaudit.engine.rows import Plan
from lnaudit.formats import FORMATS
from lnaudit.kernels import LADDER, get_kernel
from lnaudit.render import render_json
from lnaudit.site import ArrayRows, Site
from lnaudit.summary import OPERATIONS, PRIMARY_CODES, Extremes, Histogram, Summary, fold

from .rows import named_rows

WIDTH = 17
KINDS = tuple(named_rows("float16", WIDTH))
PER_TEST = settings(max_examples=15, deadline=None)


def rows_of(picks: list[tuple[str, int]]) -> np.ndarray:
    """Return rows by kind and power of two; two of the kinds are not finite."""
    table = named_rows("float16", WIDTH)
    table = {
        **table,
        "nan": np.full(WIDTH, np.nan),
        "partly nan": np.where(np.arange(WIDTH) == 3, np.nan, 1.0),
        "inf": np.where(np.arange(WIDTH) == 3, np.inf, 1.0),
    }
    return np.array([table[kind] * 2.0**k for kind, k in picks])


picks = st.lists(
    st.tuples(st.sampled_from([*KINDS, "nan", "partly nan", "inf"]), st.integers(-3, 3)), min_size=1, max_size=24
)


@contextmanager
def cut_up(sub_block: int, block: int) -> Iterator[None]:
    """Make the engine and the reader work in pieces of so many elements."""
    with (
        mock.patch.object(numpy_engine, "SUB_BLOCK", sub_block),
        mock.patch.object(numpy_engine, "NARROW_ROWS", 1),
        mock.patch.object(summarize, "BLOCK_BYTES", 4 * block),
        mock.patch.object(summarize, "ALONE", 0),
    ):
        yield


def run(x: np.ndarray, jobs: int = 1, epsilon: float = 1e-5, norm: str = "layer") -> pipeline.Report:
    site = Site(name="site", source="site", rows=ArrayRows(x), norm=norm, epsilon=epsilon)
    kernels = ("native", "stored-stats", "fused", "native:variance=one_pass")
    run_settings = pipeline.Settings(
        formats=(FORMATS["float16"], FORMATS["float64"]), kernels=tuple(map(get_kernel, kernels)), jobs=jobs
    )
    return pipeline.run([site], run_settings)


def plan(norm: str = "layer", epsilon: float = 1e-5) -> Plan:
    return Plan(
        results=tuple((fmt, get_kernel(kernel)) for fmt in FORMATS.values() for kernel in ("native", "fused")),
        norm=norm,
        features=WIDTH,
        model_epsilon=epsilon,
        epsilon=epsilon,
        epsilons=candidates(epsilon),
    )


def summary_of(x: np.ndarray, some_plan: Plan, first_row: int = 0) -> Summary:
    with quiet():
        return fold(numpy_engine.analyse(x, first_row, some_plan, Workspace()), some_plan)


def contents(value: Any) -> Any:
    """Return everything that a Summary holds as plain objects; counts of 0 are those never counted."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: contents(item) for key, item in sorted(value.items(), key=repr) if item != 0 or key is None}
    if isinstance(value, list):
        return [contents(item) for item in value]
    if isinstance(value, Histogram):
        return [value.min, value.max, *map(contents, value.centres())]
    if hasattr(value, "__dict__"):
        return {key: contents(item) for key, item in vars(value).items() if key != "plan"}
    return value


@settings(max_examples=8, deadline=None)
@given(picks=picks, sub_block=st.integers(1, 200), block=st.integers(1, 200), jobs=st.integers(1, 3))
def test_blocks_and_threads_change_no_byte(picks, sub_block, block, jobs):
    x = rows_of(picks)
    expected = render_json(run(x))
    with cut_up(sub_block, block):
        assert render_json(run(x, jobs)) == expected


@PER_TEST
@given(picks=picks, data=st.data(), norm=st.sampled_from(["layer", "rms"]), epsilon=st.sampled_from([1e-5, 1e-12, 0.0]))
def test_the_order_of_the_rows_changes_only_their_numbers(picks, data, norm, epsilon):
    x = rows_of(picks)
    order = data.draw(st.permutations(range(len(x))))

    def without_rows(report: pipeline.Report) -> dict[str, Any]:
        document = report.to_dict()
        for finding in document["findings"]:
            del finding["row"]
        for result in document["sites"][0]["results"]:
            del result["error"]["max_row"]
        return document

    assert without_rows(run(x[order], epsilon=epsilon, norm=norm)) == without_rows(run(x, epsilon=epsilon, norm=norm))


@PER_TEST
@given(picks=picks, data=st.data())
def test_a_named_row_moves_with_its_values(picks, data):
    x = rows_of(picks)
    order = data.draw(st.permutations(range(len(x))))
    for a, b in zip(run(x).findings, run(x[order]).findings, strict=True):
        assert (a.row is None) == (b.row is None)
        # ties go to the smaller row, so only what the rows hold can be compared
        if a.row is not None and a.code not in ("LN001", "LN003", "LN105", "LN301", "LN107"):
            assert (a.code, a.measured) == (b.code, b.measured)


@PER_TEST
@given(
    picks=picks, cuts=st.lists(st.integers(0, 24), max_size=3), data=st.data(), norm=st.sampled_from(["layer", "rms"])
)
def test_merging_is_exact_and_takes_any_order(picks, cuts, data, norm):
    x, some_plan = rows_of(picks), plan(norm)
    ends = [0, *sorted(min(cut, len(x)) for cut in cuts), len(x)]
    parts = [summary_of(x[a:b], some_plan, a) for a, b in itertools.pairwise(ends) if b > a]
    total = Summary.empty(some_plan)
    for i in data.draw(st.permutations(range(len(parts)))):
        total.merge(copy.deepcopy(parts[i]))
    whole = summary_of(x, some_plan)
    assert contents(total) == contents(whole)
    assert total.witness_rows().tolist() == whole.witness_rows().tolist()


@PER_TEST
@given(picks=picks, epsilon=st.sampled_from([1e-5, 1e-12, 0.0]), norm=st.sampled_from(["layer", "rms"]))
def test_every_row_has_one_primary_code_or_is_healthy(picks, epsilon, norm):
    x, some_plan = rows_of(picks), plan(norm, epsilon)
    summary = summary_of(x, some_plan)
    counts = summary.input.counts
    assert counts["finite_rows"] + counts["nan_rows"] + counts["partly_nan_rows"] + counts["inf_rows"] == len(x)
    alone = [summary_of(row[None], some_plan) for row in x]
    for i, result in enumerate(summary.results):
        assert set(result.primary) <= set(PRIMARY_CODES)
        assert {op for _, op in result.operations} <= set(OPERATIONS)
        assert sum(result.operations.values()) == result.counts["failing_rows"]
        for code in PRIMARY_CODES:
            named = sum(n for (c, _), n in result.operations.items() if c == code)
            assert named == result.primary[code] == sum(s.results[i].primary[code] for s in alone)
        assert all(s.results[i].primary.total() <= 1 for s in alone)
        assert result.primary.total() + result.counts["affine_overflow_rows"] >= result.counts["failing_rows"]


@PER_TEST
@given(picks=picks)
def test_first_bad_operation_has_all_keys_and_sums_to_the_failing_rows(picks):
    for result in run(rows_of(picks)).to_dict()["sites"][0]["results"]:
        assert tuple(result["first_bad_operation"]) == OPERATIONS
        assert sum(result["first_bad_operation"].values()) == result["failing_rows"]


def test_the_operations_are_those_of_the_report():
    assert OPERATIONS == (
        "cast", "sum", "mean", "diff", "square", "variance", "add-epsilon", "rstd", "normalize", "affine", "rounding",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "counts"),
    [
        ([[1.0, 2.0], [3.0, 5.0]], {"finite_rows": 2}),
        ([[np.nan, np.nan], [1, 2]], {"finite_rows": 1, "nan_rows": 1, "nan": 2}),
        ([[np.nan, 1.0], [1, 2]], {"finite_rows": 1, "partly_nan_rows": 1, "nan": 1}),
        ([[np.inf, 1.0], [1, 2]], {"finite_rows": 1, "inf_rows": 1, "inf": 1}),
        ([[-np.inf, np.inf], [1, 2]], {"finite_rows": 1, "inf_rows": 1, "inf": 2}),
        # NaN and Inf in one row: partly NaN, counted once
        ([[np.nan, np.inf], [1, 2]], {"finite_rows": 1, "partly_nan_rows": 1, "nan": 1, "inf": 1}),
        ([[0.0, -0.0], [4, 4], [1, 2]], {"finite_rows": 3, "zero_rows": 1, "constant_rows": 2}),
        ([[np.nan, np.nan]], {"finite_rows": 0, "nan_rows": 1, "nan": 2}),
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_rows_of_the_input(rows, counts, dtype):
    found = lnaudit.audit(np.array(rows, dtype), formats="float16").sites[0].input
    wanted = dict.fromkeys(
        ("nan", "inf", "finite_rows", "nan_rows", "partly_nan_rows", "inf_rows", "zero_rows", "constant_rows"), 0
    )
    assert {key: found[key] for key in wanted} == {**wanted, **counts}


def test_padding_and_a_bad_row_are_told_apart():
    # case B86: 412 NaN, one row wholly NaN, one partly
    x = np.random.default_rng(0).normal(size=(4, 256))
    x[1] = np.nan
    x[2, 100:] = np.nan
    found = lnaudit.audit(x, formats="float16").sites[0].input
    assert (found["nan"], found["nan_rows"], found["partly_nan_rows"], found["finite_rows"]) == (412, 1, 1, 2)


def test_rmsnorm_knows_only_zero_rows():
    found = lnaudit.audit([[0.0, 0.0], [4, 4], [1, 2]], formats="float16", norm="rms").sites[0].input
    assert (found["zero_rows"], found["constant_rows"]) == (1, 1)


def test_one_feature_makes_every_row_constant():
    found = lnaudit.audit([[1.0], [2.0], [0.0]], formats="float16").sites[0].input
    assert (found["zero_rows"], found["constant_rows"]) == (1, 3)


def nearest_bin_centre(value: float) -> float:
    """Return the middle of the 1/64 of a power of two that holds a normal number."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp((math.floor(mantissa * 128) + 0.5) / 128, exponent)


@settings(max_examples=200, deadline=None)
@given(
    values=st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=60),
    p=st.sampled_from([0.0, 0.01, 0.25, 0.5, 0.99, 1.0]),
)
def test_quantiles_against_sorted_data(values, p):
    histogram = Histogram()
    histogram.see(np.array(values))
    rank = max(1, math.ceil(p * len(values)))
    wanted = nearest_bin_centre(sorted(values)[rank - 1])
    assert histogram.quantile(p) == min(max(wanted, min(values)), max(values))
    assert histogram.quantiles(a=0, b=1) == {"a": min(values), "b": max(values)}
    assert histogram.count == len(values)


def test_quantiles_are_exact_for_equal_values_zero_and_infinity():
    for value in (0.0, 3.7, math.inf, 5e-324):
        histogram = Histogram()
        histogram.see(np.full(5, value))
        assert histogram.quantiles(low=0, middle=0.5, high=1) == dict.fromkeys(("low", "middle", "high"), value)


def test_a_histogram_of_nothing():
    histogram = Histogram()
    histogram.see(np.array([np.nan]))
    assert histogram.count == 0
    assert histogram.quantile(0.5) is None
    assert histogram.quantiles(min=0, p50=0.5) == {"min": None, "p50": None}


def test_ties_go_to_the_smallest_row():
    extremes, other = Extremes(), Extremes()
    extremes.see("x", np.array([1.0, 7.0, 7.0]), np.array([10, 12, 11]))
    assert (extremes.value("x"), extremes.row("x")) == (7.0, 12)  # the first of a block, whose rows ascend
    other.see("x", np.array([7.0]), np.array([3]))
    extremes.merge(other)
    assert (extremes.value("x"), extremes.row("x")) == (7.0, 3)


def test_nan_and_masked_rows_are_no_extremes():
    extremes = Extremes()
    extremes.see("x", np.array([np.nan, 2.0, 9.0]), np.arange(3), np.array([True, True, False]))
    assert (extremes.value("x"), extremes.row("x")) == (2.0, 1)
    extremes.see("minus infinity", np.array([5.0, -np.inf]), np.arange(2), np.array([False, True]))
    assert (extremes.value("minus infinity"), extremes.row("minus infinity")) == (-np.inf, 1)
    extremes.see("none", np.array([np.nan]), np.arange(1))
    assert extremes.value("none") is None
    assert extremes.row("none") is None
    assert extremes.names("m") == ["minus infinity"]


def test_at_most_64_witness_rows_in_ascending_order():
    x = np.random.default_rng(3).normal(size=(500, WIDTH)) * np.logspace(-9, 6, 500)[:, None]
    some_plan = Plan(
        results=tuple((fmt, get_kernel(kernel)) for fmt in FORMATS.values() for kernel in LADDER),
        norm="layer",
        features=WIDTH,
        model_epsilon=1e-12,
        epsilon=1e-12,
    )
    witnesses = summary_of(x, some_plan).witness_rows()
    assert 0 < len(witnesses) <= 64
    assert (np.diff(witnesses) > 0).all()
    assert 0 in witnesses  # the smallest variance
    assert 499 in witnesses  # the largest
