"""What pictures show: the marks stand where the report, the rows and the formulas say."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import lnaudit
from lnaudit import pictures, wording
from lnaudit.errors import LnauditError
from lnaudit.families import parse_family, parse_grid, site_of
from lnaudit.formats import get_format
from lnaudit.kernels import get_kernel
from lnaudit.pipeline import Settings, sweep
from lnaudit.pipeline.mapping import verdict_maps
from lnaudit.report import SweepReport, VerdictMap

from . import report_samples as samples
from .picture_parts import X, blocks, column, decade, drawn, lines, measured, words

pytest.importorskip("matplotlib", reason="pictures need the extra report")

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
        expected = lnaudit.theory.sensitivity(np.power(10, t), epsilon)
        assert np.power(10, slope) == pytest.approx(expected, rel=1e-9)
    assert not lines(right, "epsilon 0")


def test_what_the_kernels_give_is_marked_on_the_response(antisymmetric: SweepReport) -> None:
    (site,) = antisymmetric.sites
    left, right = drawn(pictures.response_picture(site)).axes
    for number, curve in enumerate(site.response):
        for kernel in curve.kernels:
            marks = lines(left, f"{kernel['format']} {kernel['kernel']}")[number]
            assert marks.get_xdata().tolist() == curve.t
            assert np.array_equal(marks.get_ydata(), kernel["response"], equal_nan=True)
    assert lines(right, "measured")[0].get_ydata() == pytest.approx(np.log10(site.response[1].sensitivity_measured))


def test_other_families_have_no_response(near_constant: SweepReport) -> None:
    assert pictures.response_picture(near_constant.sites[0]) is None


def test_the_curves_are_those_of_the_points(near_constant: SweepReport) -> None:
    (site,) = near_constant.sites
    picture = pictures.curves_picture(site)
    worst, median, failing, ratio = drawn(picture).axes
    finite = site.input["finite_rows"]
    for result in site.results:
        points = result.points[1:]
        name = f"{result.format} {result.kernel}"
        (curve,) = lines(median, name)
        assert curve.get_xdata().tolist() == [decade(point.epsilon) for point in points]
        assert curve.get_ydata().tolist() == [decade(point.error["p50"]) for point in points]
        (curve,) = lines(worst, name)
        for point, height in zip(points, curve.get_ydata(), strict=True):
            assert height == decade(point.error["max"])
        (curve,) = lines(failing, name)
        shares = [point.failing_rows / finite for point in points]
        heights = [height for height, share in zip(curve.get_ydata(), shares, strict=True) if share]
        assert heights == [decade(share) for share in shares if share]
    (curve,) = lines(ratio, "exact, the median row")
    assert curve.get_ydata().tolist() == [decade(point.collapse_ratio) for point in site.results[0].points[1:]]
    assert [line.get_ydata()[0] for line in lines(worst, "limit")] == [decade(0.02)]
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
    assert line.get_xdata()[0] == -6


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


def test_the_accepted_errors_are_those_of_the_site(near_constant: SweepReport) -> None:
    (site,) = near_constant.sites
    own = replace(site, limits={"float16": 0.05, "float32": 0.001})
    picture = pictures.curves_picture(own, {"float16": 0.02, "float32": 0.02})
    worst, *_ = drawn(picture).axes
    assert [line.get_ydata()[0] for line in lines(worst, "limit")] == [decade(0.05), decade(0.001)]
    (legend,) = drawn(picture).legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts[-2:] == ["accepted error 5e-2 of float16", "accepted error 1e-3 of float32"]


def test_rows_that_are_all_constant_have_no_collapse_ratio_and_none_is_drawn() -> None:
    family = parse_family("near-constant:offset=5,spread=0,rows=4,features=8")
    (site,) = sweep([site_of(family, 1e-5)], settings("float32"), EPSILONS).sites
    assert [point.collapse_ratio for point in site.results[0].points] == [None] * len(EPSILONS)
    *_, ratio = drawn(pictures.curves_picture(site)).axes
    assert np.isnan(lines(ratio, "exact, the median row")[0].get_ydata()).all()
    assert "NaN/Inf" not in [text.get_text() for text in ratio.get_yticklabels()]
    assert words(ratio) == ["no row that is not constant"]


def test_no_two_of_many_curves_look_alike(near_constant: SweepReport) -> None:
    (site,) = near_constant.sites
    results = [
        replace(site.results[0], format=fmt, kernel=f"native:reduction=lanes{i},variance=one_pass,statistics=float64")
        for fmt in ("float16", "bfloat16", "float32", "float64")
        for i in range(12)
    ]
    with measured(pictures.curves_picture(replace(site, results=results))) as (figure, renderer):
        *panels, _ = figure.subfigs[1].axes
        (legend,) = figure.subfigs[1].legends
        handles = [line for line in legend.legend_handles if line.get_marker() != "None"]
        assert len({(str(line._unscaled_dash_pattern), line.get_marker()) for line in handles}) == len(results)
        names = [text.get_text() for text in legend.get_texts()]
        assert len(set(names)) == len(names)
        box = legend.get_window_extent(renderer)
        assert 0 <= box.x0 < box.x1 <= figure.bbox.width
        assert 0 <= box.y0 < box.y1 <= min(axes.get_tightbbox(renderer).y0 for axes in panels)


def test_emulations_of_a_response_have_markers_of_their_own(antisymmetric: SweepReport) -> None:
    (site,) = antisymmetric.sites
    first = site.response[0]
    many = [{**first.kernels[0], "kernel": f"kernel-{i}"} for i in range(20)]
    left, _ = drawn(pictures.response_picture(replace(site, response=[replace(first, kernels=many)]))).axes
    markers = {line.get_marker() for line in left.lines if "kernel-" in str(line.get_label())}
    assert len(markers) == 20


def test_legends_of_a_response_stay_in_the_figure(antisymmetric: SweepReport) -> None:
    (site,) = antisymmetric.sites
    long = [replace(site.response[1], epsilon=3.16228e-14 * (1 + i)) for i in range(9)]
    picture = pictures.response_picture(replace(site, response=long))
    assert picture is not None
    with measured(picture) as (figure, renderer):
        boxes = [legend.get_window_extent(renderer) for legend in figure.subfigs[1].legends]
        assert max(box.x1 for box in boxes) <= figure.bbox.width
        assert min(box.y0 for box in boxes) >= 0


def test_both_asymptotes_have_their_sign(antisymmetric: SweepReport) -> None:
    picture = pictures.response_picture(antisymmetric.sites[0])
    assert picture is not None
    said = words(drawn(picture).axes[0])
    assert said == ["sqrt(3/2) = 1.22474", "-sqrt(3/2) = -1.22474"]
    assert f"{math.sqrt(3 / 2):.5f}" == "1.22474"
    assert "-sqrt(3/2) = -1.22474 and sqrt(3/2) = 1.22474" in picture.description


def test_a_step_has_no_slope_to_draw_and_that_is_said() -> None:
    found = sweep([site_of(parse_family("antisymmetric"), 1e-5)], settings("float32"), (0.0,))
    _, right = drawn(pictures.response_picture(found.sites[0])).axes
    assert words(right) == ["epsilon 0: a step, whose slope is 0 everywhere but at t = 0"]


def test_cells_of_a_map_say_that_rows_are_lost_below_the_word(verdict_map: VerdictMap) -> None:
    found = replace(
        verdict_map,
        values=[[1.0, 2.0], [3.0]],
        verdicts=[["fail", "warn"]],
        errors=[[4.1e-4, 4.2e-4]],
        nonfinite_rows=[[2, 0]],
        codes=[[["LN101"], []]],
    )
    picture = pictures.map_picture(found)
    axes, *_ = drawn(picture).axes
    places = {text.get_text(): text.get_position()[1] for text in axes.texts}
    assert set(places) == {"FAIL", "NaN/Inf", "warn", "4.2e-4"}
    assert places["FAIL"] > places["NaN/Inf"]
    assert not axes.yaxis_inverted()
    assert column(picture.table, "error, worst row") == ["NaN/Inf", "4.2e-4"]
    assert column(picture.table, "NaN/Inf rows") == ["2", "0"]
