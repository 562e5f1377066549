"""The depth view: a cell for each verdict, and marks where a verdict alone would mislead."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import lnaudit
from lnaudit import pictures
from lnaudit.report import AcceptedFinding, Report

from . import report_samples as samples
from .picture_parts import X, blocks, drawn, measured, words


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


def corners(report: Report, verdict: str) -> set[tuple[int, int]]:
    axes, *_ = drawn(pictures.depth_picture(report)).axes
    return {
        (math.floor(x), math.floor(y))
        for shape in blocks(axes, verdict)
        for x, y in shape.get_path().vertices.reshape(-1, 5, 2)[:, 0]
    }


def test_an_error_of_a_whole_site_has_a_cell_of_its_own() -> None:
    report = lnaudit.audit(np.vstack([X, [np.nan, *X[0, 1:]]]), formats=["float32"])
    assert [f.code for f in report.findings if f.format is None and f.severity == "error"] == ["LN001"]
    assert report.sites[0].verdict == "pass"
    picture = pictures.depth_picture(report)
    assert corners(report, "fail") == {(0, 0)}
    assert corners(report, "pass") == {(1, 0)}
    assert "LN001" in words(drawn(picture).axes[0])
    assert picture.table.rows[0][1] == "FAIL  LN001"
    assert "whole site errors 1 FAIL" in picture.description


def test_sites_without_errors_have_no_such_cell() -> None:
    picture = pictures.depth_picture(lnaudit.audit(X, formats=["float32"]))
    assert picture.table.headings[1:] == ("float32 native",)


def test_a_site_without_a_finite_row_is_not_judged() -> None:
    report = samples.several()
    lost = samples.site("padded", input={**report.sites[3].input, "finite_rows": 0})
    report = replace(report, sites=[*report.sites, lost])
    picture = pictures.depth_picture(report)
    assert {y for verdict in ("fail", "warn", "pass") for _, y in corners(report, verdict)} == {0, 1, 2, 3}
    assert picture.table.rows[4] == ("padded: not judged", *["-"] * 6)
    assert "1 site without a finite row: not judged" in picture.description
    axes, legend = drawn(picture).axes
    assert "padded: not judged" in words(axes)
    assert words(axes).count("-") == 6
    assert "-: not judged" in words(legend)
    alone = pictures.depth_picture(samples.report([lost]))
    assert "none was judged; 1 site" in alone.description


@pytest.mark.parametrize("accepted", [True, False])
def test_known_and_accepted_findings_are_marked(accepted: bool) -> None:
    report = samples.silent_zero()
    (finding,) = report.findings
    assert not any("\N{DAGGER}" in cell for row in pictures.depth_picture(report).table.rows for cell in row)
    if accepted:
        taken = AcceptedFinding(finding=finding, pattern="*", reason="a reason")
        passing = [replace(result, verdict="pass") for result in report.sites[0].results]
        report = replace(report, findings=[], accepted=[taken], sites=[replace(report.sites[0], results=passing)])
    else:
        report = replace(report, findings=[replace(finding, known=True)])
    picture = pictures.depth_picture(report)
    word = "pass\N{DAGGER}" if accepted else "FAIL\N{DAGGER}"
    axes, legend = drawn(picture).axes
    assert [text for text in words(axes) if "\N{DAGGER}" in text] == [word]
    assert "\N{DAGGER} known from the baseline, or accepted by the policy" in words(legend)
    assert [cell.split("  ")[0] for cell in picture.table.rows[0] if "\N{DAGGER}" in cell] == [word]


def test_what_is_new_beside_what_is_known_is_not_marked() -> None:
    report = samples.silent_zero()
    (finding,) = report.findings
    report = replace(report, findings=[replace(finding, known=True), replace(finding, code="LN103")])
    assert not any("\N{DAGGER}" in cell for row in pictures.depth_picture(report).table.rows for cell in row)


@pytest.mark.parametrize("columns", [1, 3, 5, 12])
def test_nothing_of_the_legend_runs_out_of_the_figure(columns: int) -> None:
    results = [samples.result("float16", f"kernel-{i}") for i in range(columns)]
    lost = samples.site("b", results, input={**samples.site().input, "finite_rows": 0})
    picture = pictures.depth_picture(samples.report([samples.site("a", results), lost]))
    with measured(picture) as (figure, renderer):
        *_, legend = figure.subfigs[1].axes
        boxes = [text.get_window_extent(renderer) for text in legend.texts]
        assert max(box.x1 for box in boxes) <= figure.bbox.width
        assert min(box.y0 for box in boxes) >= 0
    assert "headroom to the largest number of the format" in " ".join(words(legend)) or columns == 12


def test_sites_and_kernels_of_like_names_are_told_apart() -> None:
    kernels = ["native:reduction=serial,variance=one_pass", "native:reduction=lanes8,variance=one_pass"]
    names = [f"model.encoder.layers.{i}.self_attention.output.final_layer_norm" for i in (10, 11)]
    report = samples.report([samples.site(n, [samples.result("float16", k) for k in kernels]) for n in names])
    said = words(drawn(pictures.depth_picture(report)).axes[0])
    assert len({text for text in said if text.startswith("native")}) == 2
    drawn_names = [text for text in said if text.startswith("model")]
    assert len(set(drawn_names)) == 2
    for number, text in zip(("10", "11"), drawn_names, strict=True):
        assert number in text
        assert text.endswith("layer_norm")
