"""The window picture: the marks stand where the report and the rows say."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.patches import StepPatch

import lnaudit
from lnaudit import pictures

from .picture_parts import X, blocks, column, decade, drawn, lines, words


def test_the_histogram_holds_every_row_in_its_octave() -> None:
    (site,) = lnaudit.audit(X).sites
    histogram, _ = drawn(pictures.window_picture(site)).axes
    (steps,) = [patch for patch in histogram.patches if isinstance(patch, StepPatch)]
    variances = X.astype(np.float64).var(axis=1)
    counts, edges = steps.get_data().values, steps.get_data().edges
    assert counts.tolist() == np.histogram(np.log10(variances), edges)[0].tolist()
    assert counts.sum() == len(X)
    octaves = np.log2(np.power(10, edges))
    assert octaves == pytest.approx(np.round(octaves))


def test_the_lanes_hold_what_the_report_says() -> None:
    (site,) = lnaudit.audit(X, epsilon=1e-5, formats=["float16", "float32"], kernels=["native"]).sites
    _, lanes = drawn(pictures.window_picture(site)).axes
    assert lines(lanes, "epsilon")[0].get_xdata() == [-5, -5]
    half, _ = site.results
    # float16 ends inside the plot, float32 on neither side
    (subnormal,) = blocks(lanes, "subnormal")
    assert [subnormal.get_x(), subnormal.get_x() + subnormal.get_width()] == [decade(2**-24), decade(2**-14)]
    ranges = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in blocks(lanes, "range")]
    assert ranges == [(decade(2**-14), decade(65504.0)), pytest.approx(lanes.get_xlim())]
    noise = blocks(lanes, "noise")[0]
    ends = [noise.get_x(), noise.get_x() + noise.get_width()]
    assert ends == [decade(half.noise["p50"]), decade(half.noise["max"])]


def test_the_safe_window_and_the_epsilon_to_use_are_those_of_the_recommendation() -> None:
    rows = np.random.default_rng(0).normal(size=(64, 32))
    (site,) = lnaudit.audit(rows, epsilon=1e-12, formats=["float16", "bfloat16"]).sites
    advices = [result.recommendation for result in site.results]
    _, lanes = drawn(pictures.window_picture(site)).axes
    assert [line.get_xdata()[0] for line in lines(lanes, "use")] == [decade(advice.epsilon) for advice in advices]
    found = blocks(lanes, "safe")
    assert [math.floor(safe.get_y()) for safe in found] == [0, 1, 2, 3]
    assert [safe.get_x() + safe.get_width() for safe in found] == [decade(advice.upper) for advice in advices]
    assert found[0].get_x() == decade(advices[0].lower)
    assert advices[0].lower > 1e-8
    for advice, safe in zip(advices[1:], found[1:], strict=True):
        assert advice.lower == 1e-14  # the end of the grid: the window is open and runs to where the numbers begin
        assert lanes.get_xticks()[0] < safe.get_x() < -14


def test_an_epsilon_that_is_lost_is_crossed_out_left_of_the_axis() -> None:
    (site,) = lnaudit.audit(X, epsilon=1e-12, formats=["float16"]).sites
    native, fused = site.results
    assert (native.epsilon_class, fused.epsilon_class) == ("zero", "normal")
    _, lanes = drawn(pictures.window_picture(site)).axes
    (cross,) = lines(lanes, "held as 0")
    assert cross.get_ydata()[0] < 1
    ticks = dict(zip((text.get_text() for text in lanes.get_xticklabels()), lanes.get_xticks(), strict=True))
    assert cross.get_xdata()[0] == ticks["0"] == min(ticks.values())


def test_epsilon_0_stands_at_the_place_of_0() -> None:
    (site,) = lnaudit.audit(X, epsilon=0, formats=["float32"]).sites
    _, lanes = drawn(pictures.window_picture(site)).axes
    assert lines(lanes, "epsilon")[0].get_xdata()[0] == lanes.get_xticks()[0]
    assert lanes.get_xticklabels()[0].get_text() == "0"


def test_rows_without_a_place_on_the_axis_are_counted_beside_it() -> None:
    (site,) = lnaudit.audit(np.vstack([X, np.ones((3, 32))])).sites
    picture = pictures.window_picture(site)
    texts = [text.get_text() for text in drawn(picture).axes[0].texts]
    assert "3 rows: q = 0" in texts
    assert picture is not None
    assert ("rows off the axis", "", "0", "0", "3") in picture.table.rows


def test_no_window_without_a_variance() -> None:
    assert pictures.window_picture(lnaudit.audit(np.ones((3, 8))).sites[0]) is None
    assert pictures.window_picture(lnaudit.audit(np.full((3, 8), np.nan)).sites[0]) is None


def test_the_table_of_a_window_has_a_row_for_everything_drawn() -> None:
    (site,) = lnaudit.audit(X).sites
    picture = pictures.window_picture(site)
    assert picture is not None
    what = column(picture.table, "what")
    (steps,) = [patch for patch in drawn(picture).axes[0].patches if isinstance(patch, StepPatch)]
    rows = [int(row[-1]) for row in picture.table.rows if row[0] == "rows"]
    assert rows == [count for count in steps.get_data().values if count]
    for mark in ("verdict", "can be held", "noise, median to worst row", "safe epsilons", "epsilon as held"):
        assert what.count(mark) == len(site.results)


@pytest.mark.parametrize(("size", "off"), [(1e145, []), (1e-150, []), (1e-155, ["5 rows: q < 5.56e-309"])])
def test_rows_of_any_size_are_drawn_where_they_are(size: float, off: list[str]) -> None:
    x = np.random.default_rng(0).normal(size=(25, 64))
    x[:20] *= size if not off else 1e-150
    x[20:] *= 1 if not off else 1e-157
    (site,) = lnaudit.audit(x, epsilon=1e-5, formats=["float64"]).sites
    histogram, lanes = drawn(pictures.window_picture(site)).axes
    (steps,) = [patch for patch in histogram.patches if isinstance(patch, StepPatch)]
    counts, edges = steps.get_data().values, steps.get_data().edges
    kept = x if not off else x[:20]
    # the variances of rows of moderate size, moved by whole decades
    scale = np.abs(kept).max(axis=1, keepdims=True)
    decades = np.log10((kept / scale).var(axis=1)) + 2 * np.log10(scale[:, 0])
    assert counts.tolist() == np.histogram(decades, edges)[0].tolist()
    assert lines(histogram, "epsilon")[0].get_xdata() == [-5, -5]
    low, high = lanes.get_xlim()
    assert low < edges[0] < edges[-1] < high
    assert [text for text in words(histogram) if "rows: q <" in text] == off


def test_the_octave_that_ends_where_float64_does_is_in_its_place() -> None:
    x = np.random.default_rng(0).normal(size=(6, 64))
    x[0] *= 1.1e154 / x[0].std()
    (site,) = lnaudit.audit(x, formats=["float64"]).sites
    picture = pictures.window_picture(site)
    (steps,) = [patch for patch in drawn(picture).axes[0].patches if isinstance(patch, StepPatch)]
    assert math.log10(1.1e154) * 2 > 308
    assert steps.get_data().edges[-1] == pytest.approx(1024 * math.log10(2))
    assert steps.get_data().values[-1] == 1
    assert picture is not None
    assert [row[2:] for row in picture.table.rows if row[0] == "rows"][-1] == ("8.98847e307", "1.79769e308", "1")


def test_variances_that_float64_hardly_holds_are_not_called_0() -> None:
    x = np.random.default_rng(0).normal(size=(10, 64))
    x[:5] *= 1e-157
    (site,) = lnaudit.audit(np.vstack([x, np.ones((2, 64))]), formats=["float64"]).sites
    picture = pictures.window_picture(site)
    assert picture is not None
    said = words(drawn(picture).axes[0])
    assert "2 rows: q = 0" in said
    # 2^-1024 is the first power of two below the normal numbers, with the first of its four bins
    assert "5 rows: q < 5.56e-309" in said
    (drawn_rows,) = [text for text in said if text.startswith("q of")]
    least = float(drawn_rows.split(": ")[1].split(" to ")[0])
    variances = x[5:].var(axis=1)
    assert drawn_rows.startswith("q of 5 rows: ")
    assert variances.min() / 1.3 < least <= variances.min()
    assert ("rows off the axis", "", "0", "5.56e-309", "5") in picture.table.rows


def test_a_failure_that_no_epsilon_mends_names_its_cause() -> None:
    (site,) = lnaudit.audit(X, formats=["float16"], kernels=["fused"]).sites
    (result,) = site.results
    keeps = replace(result.recommendation, reason="keeps")
    causes = {
        "lost in the cast": {"cast": replace(result.cast, destroyed_rows=2)},
        "1 row NaN/Inf": {"nonfinite_rows": 1},
        "3 rows all zero": {"collapsed_rows": 3},
        "error 0.25": {"error": {**result.error, "max": 0.25}},
    }
    for cause, changes in causes.items():
        failing = replace(result, verdict="fail", recommendation=keeps, **changes)
        assert cause in words(drawn(pictures.window_picture(replace(site, results=[failing]))).axes[1])


def test_kernels_whose_names_begin_and_end_alike_are_told_apart() -> None:
    kernels = [f"native:reduction={order},variance=one_pass" for order in ("serial", "lanes8")]
    (site,) = lnaudit.audit(X, formats=["float16"], kernels=kernels).sites
    names = [text for text in words(drawn(pictures.window_picture(site)).axes[1]) if text.startswith("native")]
    assert len(set(names)) == 2
    assert names[0].endswith("serial")
    assert names[1].endswith("lanes8")
