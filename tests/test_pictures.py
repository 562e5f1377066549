"""What pictures show: the marks stand where the report, the rows and the formulas say."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lnaudit
from lnaudit import pictures, wording
from lnaudit.errors import LnauditError
from lnaudit.families import parse_family, parse_grid, site_of
from lnaudit.formats import get_format
from lnaudit.kernels import get_kernel
from lnaudit.pictures.scale import LogScale
from lnaudit.pipeline import Settings, sweep
from lnaudit.pipeline.mapping import verdict_maps
from lnaudit.report import SweepReport, VerdictMap

from . import report_samples as samples

pytest.importorskip("matplotlib", reason="pictures need the extra report")

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

X = np.random.default_rng(5).normal(3.0, [[1e-3], [0.1], [1.0], [40.0]] * 16, (64, 32)).astype(np.float32)
EPSILONS = (0.0, 1e-8, 1e-5, 1e-2)


def settings(*formats: str) -> Settings:
    return Settings(formats=tuple(map(get_format, formats)), kernels=(get_kernel("native"), get_kernel("fused")))


def swept(*families: str) -> SweepReport:
    return sweep([site_of(parse_family(text), 1e-5) for text in families], settings("float16", "float32"), EPSILONS)


@pytest.fixture(scope="module")
def antisymmetric() -> SweepReport:
    return swept("antisymmetric:t=1e-4..1e2")


@pytest.fixture(scope="module")
def near_constant() -> SweepReport:
    return swept("near-constant:offset=5,spread=1e-3,rows=8,features=64")


@pytest.fixture(scope="module")
def verdict_map() -> VerdictMap:
    grid = parse_grid("near-constant:offset=1..100,spread=1e-3..10,rows=4,features=16")
    assert grid is not None
    return verdict_maps(grid, settings("float16"), (1e-5,))[0]


def drawn(picture: pictures.Picture | None) -> Figure:
    assert picture is not None
    figure = Figure(figsize=picture.size)
    picture.draw(figure)
    return figure


def lines(axes: Axes, label: str) -> list[Any]:
    return [line for line in axes.lines if line.get_label() == label]


def blocks(axes: Axes, label: str) -> list[Any]:
    return [patch for patch in axes.patches if patch.get_label() == label]


def column(table: pictures.Table, heading: str) -> list[str]:
    return [row[table.headings.index(heading)] for row in table.rows]


def test_the_response_is_that_of_the_theory_and_runs_to_its_asymptotes(antisymmetric: SweepReport) -> None:
    (site,) = antisymmetric.sites
    left, right = drawn(pictures.response_picture(site)).axes
    for epsilon in EPSILONS:
        (curve,) = lines(left, f"epsilon {wording.epsilon(epsilon)}")
        t, h = curve.get_data()
        assert np.array_equal(h, lnaudit.theory.response(t, epsilon), equal_nan=True)
        assert np.array_equal(t, -t[::-1])
        assert (t[t > 0].min(), t.max()) == (min(site.response[0].t), 1e2)
    heights = {line.get_ydata()[0] for line in lines(left, "asymptote")}
    assert heights == {math.sqrt(3 / 2), -math.sqrt(3 / 2)}
    assert all(line.is_dashed() for line in lines(left, "asymptote"))
    for epsilon in EPSILONS[1:]:
        (curve,) = lines(right, f"epsilon {wording.epsilon(epsilon)}")
        t, slope = curve.get_data()
        assert np.array_equal(slope, lnaudit.theory.sensitivity(t, epsilon))
    assert (right.get_xscale(), right.get_yscale()) == ("log", "log")
    assert not lines(right, "epsilon 0")


def test_what_the_kernels_give_is_marked_on_the_response(antisymmetric: SweepReport) -> None:
    (site,) = antisymmetric.sites
    left, right = drawn(pictures.response_picture(site)).axes
    for number, curve in enumerate(site.response):
        for kernel in curve.kernels:
            marks = lines(left, f"{kernel['format']} {kernel['kernel']}")[number]
            assert marks.get_xdata().tolist() == curve.t
            assert np.array_equal(marks.get_ydata(), kernel["response"], equal_nan=True)
    assert lines(right, "measured")[0].get_ydata().tolist() == site.response[1].sensitivity_measured


def test_other_families_have_no_response(near_constant: SweepReport) -> None:
    assert pictures.response_picture(near_constant.sites[0]) is None


def test_the_histogram_holds_every_row_in_its_octave() -> None:
    (site,) = lnaudit.audit(X).sites
    histogram, _ = drawn(pictures.window_picture(site)).axes
    (steps,) = [patch for patch in histogram.patches if isinstance(patch, StepPatch)]
    variances = X.astype(np.float64).var(axis=1)
    counts, edges = steps.get_data().values, steps.get_data().edges
    assert counts.tolist() == np.histogram(variances, edges)[0].tolist()
    assert counts.sum() == len(X)
    assert {math.frexp(edge)[0] for edge in edges} == {0.5}


def test_the_lanes_hold_what_the_report_says() -> None:
    (site,) = lnaudit.audit(X, epsilon=1e-5, formats=["float16", "float32"], kernels=["native"]).sites
    _, lanes = drawn(pictures.window_picture(site)).axes
    assert lines(lanes, "epsilon")[0].get_xdata() == [1e-5, 1e-5]
    half, _ = site.results
    # float16 ends inside the plot, float32 on neither side
    (subnormal,) = blocks(lanes, "subnormal")
    assert [subnormal.get_x(), subnormal.get_x() + subnormal.get_width()] == pytest.approx([2**-24, 2**-14])
    ranges = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in blocks(lanes, "range")]
    assert ranges == [pytest.approx((2**-14, 65504.0)), pytest.approx(lanes.get_xlim())]
    noise = blocks(lanes, "noise")[0]
    ends = [noise.get_x(), noise.get_x() + noise.get_width()]
    assert ends == pytest.approx([half.noise["p50"], half.noise["max"]])


def test_the_safe_window_and_the_epsilon_to_use_are_those_of_the_recommendation() -> None:
    rows = np.random.default_rng(0).normal(size=(64, 32))
    (site,) = lnaudit.audit(rows, epsilon=1e-12, formats=["float16", "bfloat16"]).sites
    advices = [result.recommendation for result in site.results]
    _, lanes = drawn(pictures.window_picture(site)).axes
    assert [line.get_xdata()[0] for line in lines(lanes, "use")] == [advice.epsilon for advice in advices]
    found = blocks(lanes, "safe")
    assert [math.floor(safe.get_y()) for safe in found] == [0, 1, 2, 3]
    assert [safe.get_x() + safe.get_width() for safe in found] == pytest.approx([advice.upper for advice in advices])
    assert found[0].get_x() == advices[0].lower
    assert advices[0].lower > 1e-8
    for advice, safe in zip(advices[1:], found[1:], strict=True):
        assert advice.lower == 1e-14  # the end of the grid: the window is open and runs to where the numbers begin
        assert lanes.get_xticks()[0] < safe.get_x() < 1e-14


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
    assert "3 rows with q = 0" in texts
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


@pytest.mark.parametrize("count", [12, 130])
def test_depth_has_a_cell_for_each_verdict(count: int) -> None:
    sites = [samples.several().sites[i % 4] for i in range(count)]
    picture = pictures.depth_picture(samples.report(sites))
    (axes, *_) = drawn(picture).axes
    for verdict in ("fail", "warn", "pass"):
        (shape,) = blocks(axes, verdict)
        corners = shape.get_path().vertices.reshape(-1, 5, 2)[:, 0]
        cells = {(math.floor(x), math.floor(y)) for x, y in corners}
        keys = [("float16", "native"), ("float16", "fused"), ("bfloat16", "native"), ("bfloat16", "fused")]
        keys += [("float32", "native"), ("float64", "native")]
        expected = {
            (keys.index((result.format, result.kernel)), y)
            for y, site in enumerate(sites)
            for result in site.results
            if result.verdict == verdict
        }
        assert cells == expected
    words = [text.get_text() for text in axes.texts]
    table = [cell for row in picture.table.rows for cell in row[1:]]
    for word in ("FAIL", "warn"):
        assert words.count(word) == sum(cell.startswith(word) for cell in table) > 0
    assert [row[0] for row in picture.table.rows][:2] == [sites[0].name, sites[1].name]


def test_cells_of_few_sites_hold_error_and_headroom() -> None:
    site = samples.site(
        results=[
            samples.result("float16", errors=(1e-4, 0.031), headroom=0.12, verdict="fail"),
            samples.result("float32", errors=(None, None), headroom=-math.inf, nonfinite_rows=3),
        ]
    )
    picture = pictures.depth_picture(samples.report([site]))
    texts = [text.get_text() for text in drawn(picture).axes[0].texts]
    assert "0.031  12 %" in texts
    assert "NaN/Inf  over" in texts
    assert picture.table.rows == ((site.name, "FAIL  0.031  12 %", "pass  NaN/Inf  over"),)


def test_the_curves_are_those_of_the_points(near_constant: SweepReport) -> None:
    (site,) = near_constant.sites
    picture = pictures.curves_picture(site, {"float16": 0.02, "float32": 0.01})
    worst, median, failing, ratio = drawn(picture).axes
    finite = site.input["finite_rows"]
    for result in site.results:
        points = result.points[1:]
        name = f"{result.format} {result.kernel}"
        (curve,) = lines(median, name)
        assert curve.get_xdata().tolist() == [point.epsilon for point in points]
        assert curve.get_ydata().tolist() == [point.error["p50"] for point in points]
        (curve,) = lines(worst, name)
        for point, height in zip(points, curve.get_ydata(), strict=True):
            assert height == point.error["max"]
        (curve,) = lines(failing, name)
        shares = [point.failing_rows / finite for point in points]
        assert [h for h, share in zip(curve.get_ydata(), shares, strict=True) if share] == [s for s in shares if s]
    (curve,) = lines(ratio, "exact, the median row")
    assert curve.get_ydata().tolist() == [point.collapse_ratio for point in site.results[0].points[1:]]
    assert {line.get_ydata()[0] for line in lines(worst, "limit")} == {0.02, 0.01}
    assert worst.get_xticklabels()[0].get_text() == ""
    assert ratio.get_xticklabels()[0].get_text() == "0"
    assert len(picture.table.rows) == len(site.results) * len(EPSILONS)
    assert column(picture.table, "epsilon")[:4] == ["0", "1e-8", "1e-5", "1e-2"]


def test_lost_rows_have_a_place_above_all_errors(near_constant: SweepReport) -> None:
    (site,) = near_constant.sites
    lost = replace(site.results[0].points[2], nonfinite_rows=2)
    result = replace(site.results[0], points=[*site.results[0].points[:2], lost, site.results[0].points[3]])
    worst, *_ = drawn(pictures.curves_picture(replace(site, results=[result]))).axes
    (curve,) = lines(worst, "float16 native")
    top = worst.get_yticks()[-1]
    assert worst.get_yticklabels()[-1].get_text() == "NaN/Inf"
    assert curve.get_ydata()[1] == top > max(curve.get_ydata()[[0, 2]])


def test_the_site_own_epsilon_is_marked_for_dumps_only(near_constant: SweepReport) -> None:
    (site,) = near_constant.sites
    assert not lines(drawn(pictures.curves_picture(site)).axes[0], "own epsilon")
    dump = replace(site, source="dump.npy", epsilon=1e-6)
    (line,) = lines(drawn(pictures.curves_picture(dump)).axes[0], "own epsilon")
    assert line.get_xdata()[0] == 1e-6


def test_formats_and_kernels_differ_without_colour(near_constant: SweepReport) -> None:
    (site,) = near_constant.sites
    axes = drawn(pictures.curves_picture(site)).axes[0]
    looks = set()
    for result in site.results:
        (curve,) = lines(axes, f"{result.format} {result.kernel}")
        after = axes.lines[list(axes.lines).index(curve) + 1]
        looks.add((str(curve.get_linestyle()), str(curve._unscaled_dash_pattern), after.get_marker()))
    assert len(looks) == len(site.results) == 4


def test_the_map_has_a_cell_for_each_pair(verdict_map: VerdictMap) -> None:
    picture = pictures.map_picture(verdict_map)
    axes, *_ = drawn(picture).axes
    for verdict in {verdict for row in verdict_map.verdicts for verdict in row}:
        (shape,) = blocks(axes, verdict)
        for corner in shape.get_path().vertices.reshape(-1, 5, 2)[:, 0]:
            x, y = map(math.floor, corner)
            assert verdict_map.verdicts[y][x] == verdict
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("offset", "spread")
    labels = [text.get_text() for text in axes.get_xticklabels()]
    places = [verdict_map.values[0][math.floor(x)] for x in axes.get_xticks()]
    assert labels == list(map(wording.epsilon, places))
    assert len(picture.table.rows) == len(verdict_map.values[0]) * len(verdict_map.values[1])
    assert column(picture.table, "offset")[:2] == list(map(wording.epsilon, verdict_map.values[0][:2]))


def test_log_scales_have_a_place_for_everything() -> None:
    scale = LogScale.over([0.0, 3e-7, 4.0, math.nan, None])
    assert (scale.low, scale.high) == (-7, 1)
    positions = [scale.at(value) for value in (0.0, 3e-7, 4.0, math.inf)]
    assert positions == sorted(positions)
    assert positions[1:3] == [3e-7, 4.0]
    assert scale.limits[0] < positions[0] < 1e-7
    assert 10 < positions[3] < scale.limits[1]
    assert scale.ticks(20)[1] == ["0", "1e-7", "1e-6", "1e-5", "1e-4", "1e-3", "1e-2", "0.1", "1", "10", "NaN/Inf"]
    assert len(scale.ticks(4)[1]) <= 4 + 2


@pytest.mark.parametrize(
    "values", [[], [0.0], [math.inf], [1.0], [5e-324], [1.7e308], [5e-324, 1.7e308, 0.0, math.inf]]
)
def test_log_scales_of_anything_have_ends(values: list[float]) -> None:
    scale = LogScale.over(values)
    low, high = scale.limits
    assert 0 < low < high < math.inf
    assert all(low <= scale.at(value) <= high for value in values)
    assert all(low <= tick <= high for tick in scale.ticks(5)[0])


def test_which_picture_a_document_is(antisymmetric: SweepReport, near_constant: SweepReport) -> None:
    one, several = lnaudit.audit(X), samples.several()
    assert pictures.picture_for(one).name == "window"
    assert pictures.picture_for(lnaudit.audit(np.ones((2, 4)))).name == "depth"
    assert pictures.picture_for(several).name == "depth"
    assert pictures.picture_for(antisymmetric).name == "response"
    assert pictures.picture_for(near_constant).name == "curves"
    assert [p.name for p in pictures.pictures_of(several)] == ["depth", *["window"] * 4]
    assert [p.name for p in pictures.pictures_of(antisymmetric)] == ["response", "curves"]


def test_documents_that_are_no_one_picture(near_constant: SweepReport, verdict_map: VerdictMap) -> None:
    assert pictures.picture_for(replace(near_constant, sites=[], maps=[verdict_map])).name == "map"
    for document in (
        replace(near_constant, sites=near_constant.sites * 2),
        replace(near_constant, sites=[], maps=[verdict_map] * 3),
    ):
        with pytest.raises(LnauditError, match=r"\.html"):
            pictures.picture_for(document)
    with pytest.raises(LnauditError, match="nothing to draw"):
        pictures.picture_for(samples.empty())


def test_descriptions_tell_the_numbers() -> None:
    (site,) = lnaudit.audit(X, epsilon=1e-6, formats=["float16", "float32"], kernels=["native"]).sites
    picture = pictures.window_picture(site)
    assert picture is not None
    assert "epsilon is 1e-6" in picture.description
    variances = X.astype(np.float64).var(axis=1)
    assert (
        f"{variances.min():.3g} to {variances.max():.3g}".replace("e-0", "e-").replace("e+0", "e")
        in picture.description
    )
    for result in site.results:
        assert f"{result.format} {result.kernel}" in picture.description
