"""Curves of --plot: they stand where the errors are, and what is not drawn or not seen is told."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from lnaudit.errors import LnauditError
from lnaudit.render.plot import MARKS, plot_lines
from lnaudit.render.style import Style

from . import page_samples, report_samples

pytest.importorskip("uniplot")


def of_one_family():
    report = page_samples.real_sweep()
    return replace(report, sites=report.sites[:1], maps=[])


@pytest.mark.parametrize("style", [Style(ascii=True), Style(curves=False), Style(ascii=True, width=60)])
def test_plain_curves_are_ascii(style):
    lines = plot_lines(of_one_family(), style).splitlines()
    assert "".join(lines).isascii()
    name = of_one_family().sites[0].name
    assert max(len(line) for line in lines if name not in line) <= style.columns


def test_curves_without_colour_have_marks_that_tell_them_apart():
    text = plot_lines(of_one_family(), Style())
    assert f"{MARKS[0] * 2} float16" in text
    assert f"{MARKS[1] * 2} float64" in text
    assert "\x1b" not in text
    assert "\x1b" in plot_lines(of_one_family(), Style(color=True))


def test_curves_stand_where_their_errors_are():
    """The top of the axis is the largest error, and a curve a hundred times lower lies below another."""
    site = of_one_family().sites[0]
    text = plot_lines(of_one_family(), Style(ascii=True))
    inside = [line[1:] for line in text.splitlines() if line.startswith("|")]
    rows = {mark: [i for i, line in enumerate(inside) if mark in line] for mark in MARKS[:2]}
    worst = [max(point.error["max"] for point in result.points if point.epsilon > 0) for result in site.results]
    assert worst[0] > 100 * worst[1]
    assert min(rows["+"]) == 0
    assert max(rows["+"]) < min(rows["x"])
    assert max(rows["x"]) == len(inside) - 1


def test_what_has_no_logarithm_is_named_instead_of_drawn():
    report = of_one_family()
    site = report.sites[0]
    lost = [replace(point, nonfinite_rows=8, error={"p50": None, "max": None}) for point in site.results[0].points]
    exact = [replace(point, error={"p50": 0.0, "max": 0.0}) for point in site.results[1].points]
    results = [replace(r, points=points) for r, points in zip(site.results, (lost, exact), strict=True)]
    text = plot_lines(replace(report, sites=[replace(site, results=results)]))
    assert "not drawn: float16: 5 epsilons from 0 to 1e-2: rows are NaN/Inf" in text
    assert "not drawn: float64: 5 epsilons from 0 to 1e-2: no error" in text
    infinite = [replace(point, error={"p50": math.inf, "max": math.inf}) for point in site.results[0].points]
    text = plot_lines(
        replace(report, sites=[replace(site, results=[replace(site.results[0], points=infinite), site.results[1]])])
    )
    assert "not drawn: float16" in text


def test_points_that_are_left_out_of_a_curve_are_told():
    site = of_one_family().sites[0]
    points = [replace(p, nonfinite_rows=int(p.epsilon < 1e-9)) for p in site.results[0].points]
    results = [replace(site.results[0], points=points), site.results[1]]
    text = plot_lines(replace(of_one_family(), sites=[replace(site, results=results)]))
    assert "not drawn: float16: 2 epsilons from 0 to 1e-12: rows are NaN/Inf" in text
    assert "not drawn: float64: epsilon 0: no place on a log axis" in text


@pytest.mark.parametrize("style", [Style(), Style(ascii=True), Style(color=True)])
def test_a_curve_is_not_hidden_by_another_without_a_word(style):
    """Where two are the same, the first is drawn on top with its own mark, and the other is named."""
    site = of_one_family().sites[0]
    twin = replace(site.results[0], format="bfloat16")
    text = plot_lines(replace(of_one_family(), sites=[replace(site, results=[site.results[0], twin])]), style)
    assert "under other curves, all or most of it: bfloat16" in text
    if not style.color:
        inside = "".join(line[1:] for line in text.splitlines() if line[:1] in ("|", "\u2502"))
        assert "+" in inside
        assert "++ float16" in text
        assert "xx bfloat16" in text


def test_a_site_without_a_finite_row_and_a_map_have_no_curve_and_it_is_said():
    report = page_samples.real_sweep()
    lost = replace(report.sites[0], input={**report.sites[0].input, "finite_rows": 0})
    assert "no row is finite, so there is no curve" in plot_lines(replace(report, sites=[lost]))
    assert "--report FILE.html draws maps" in plot_lines(replace(report, sites=[]))
    assert "draws maps" not in plot_lines(of_one_family())


def test_one_point_can_be_drawn():
    report = of_one_family()
    results = [replace(r, points=r.points[2:3]) for r in report.sites[0].results]
    assert "float64" in plot_lines(replace(report, sites=[replace(report.sites[0], results=results)]))


def test_a_hostile_name_above_a_plot_is_escaped():
    report = of_one_family()
    text = plot_lines(replace(report, sites=[replace(report.sites[0], name="a\x1b[31m\n\u202eb")]))
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_a_scan_has_no_curves():
    with pytest.raises(LnauditError, match="lnaudit sweep --plot"):
        plot_lines(report_samples.healthy())
