"""Pictures as files: the same bytes every time, inert names, ink of the page, one line if the extra is missing."""

from __future__ import annotations

import hashlib
import os
import re
import struct
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

import lnaudit
from lnaudit import pictures
from lnaudit.families import parse_family, site_of
from lnaudit.findings import Finding
from lnaudit.formats import get_format
from lnaudit.pictures import style
from lnaudit.pipeline import Settings, sweep
from lnaudit.report import Report, SweepReport, VerdictMap

from . import report_samples as samples
from .picture_parts import measured

matplotlib = pytest.importorskip("matplotlib", reason="pictures need the extra report")

X = np.random.default_rng(5).normal(3.0, [[1e-3], [0.1], [1.0], [40.0]] * 16, (64, 32)).astype(np.float32)
HOSTILE = (
    '<script>alert(1)</script> $x^2$ &amp; ]]> --> " onload="alert(1) \' id="a" url(#a) style="fill: red" '
    "\x00\x07\x1b[31m\n\u202e \u05e9\u05dc\u05d5\u05dd \u6a21\u578b \udcff" + style.INK + "n" * 300
)
INERT = ("svg", "g", "defs", "path", "use", "marker", "text", "clipPath", "rect", "pattern", "title", "style", "tspan")
DRAW = """
import hashlib, sys, numpy as np, lnaudit
from lnaudit.pictures import pictures_of, to_svg, to_png
from lnaudit.families import parse_family, site_of
from lnaudit.pipeline import Settings, sweep
x = np.random.default_rng(5).normal(3.0, [[1e-3], [1.0]] * 8, (16, 32))
swept = sweep([site_of(parse_family('antisymmetric'), 1e-5)], Settings(), (0, 0.1))
documents = [lnaudit.audit(x, epsilon=1e-12), swept]
for picture in [p for d in documents for p in pictures_of(d)]:
    data = to_svg(picture).encode() + to_svg(picture, inline=True).encode() + to_png(picture, dpi=50)
    print(picture.name, hashlib.sha256(data).hexdigest())
"""


def hostile_map() -> VerdictMap:
    return VerdictMap(
        family=HOSTILE,
        format="float16",
        kernel=HOSTILE,
        epsilon=1e-5,
        parameters=[HOSTILE, HOSTILE],
        values=[[0.0, 1.0, 10.0], [1e-3, 1.0]],
        verdicts=[["fail", "warn", "pass"], ["pass", "pass", "fail"]],
        errors=[[None, float("nan"), 0.0], [1.0, float("inf"), 1e-300]],
        nonfinite_rows=[[2, 0, 0], [0, 1, 0]],
        codes=[[["LN101"], [], []], [[], [], ["LN104", "LN103"]]],
    )


def swept() -> SweepReport:
    found = sweep(
        [site_of(parse_family("antisymmetric"), 1e-5)], Settings(formats=(get_format("float16"),)), (0.0, 0.1)
    )
    return replace(found, maps=[hostile_map()])


def hostile_scan() -> Report:
    found = lnaudit.audit(X, epsilon=1e-12, name="x")
    (site,) = found.sites
    results = [replace(result, kernel=HOSTILE, format=HOSTILE) for result in site.results]
    return replace(found, sites=[replace(site, name=HOSTILE), replace(site, name=HOSTILE, results=results)])


def hostile_sweep() -> SweepReport:
    found = swept()
    (site,) = found.sites
    named = [{**kernel, "format": HOSTILE, "kernel": HOSTILE} for kernel in site.response[0].kernels]
    response = [replace(site.response[0], kernels=named), *site.response[1:]]
    results = [replace(result, kernel=HOSTILE, format=HOSTILE) for result in site.results]
    return replace(found, sites=[replace(site, name=HOSTILE, results=results, response=response)])


def subprocess_of(code: str, **environment: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def chunks(png: bytes) -> list[str]:
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    names, at = [], 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        names.append(png[at + 4 : at + 8].decode())
        at += length + 12
    return names


def test_the_same_bytes_in_every_process() -> None:
    first, second = (subprocess_of(DRAW, PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert first == second
    assert [line.split()[0] for line in first.splitlines()] == ["depth", "window", "response", "curves"]


def test_the_style_of_the_program_around_us_neither_counts_nor_changes() -> None:
    picture = pictures.picture_for(lnaudit.audit(X))
    plain, small = pictures.to_svg(picture), hashlib.sha256(pictures.to_png(picture, dpi=40)).digest()
    theirs = {"font.size": 40, "text.usetex": True, "axes.facecolor": "red", "svg.fonttype": "path", "axes.grid": True}
    with matplotlib.rc_context(theirs):
        before = dict(matplotlib.rcParams)
        assert pictures.to_svg(picture) == plain
        assert hashlib.sha256(pictures.to_png(picture, dpi=40)).digest() == small
        assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("document", [hostile_scan(), hostile_sweep()], ids=["scan", "sweep"])
def test_hostile_names_are_text_and_nothing_else(document: Report | SweepReport, inline: bool) -> None:
    named = 0
    for picture in pictures.pictures_of(document):
        svg = pictures.to_svg(picture, inline=inline)
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]", svg)
        root = ElementTree.fromstring(svg.encode())
        for element in root.iter():
            assert element.tag.split("}")[-1] in INERT
            assert not any("on" == key[:2] or "alert" in key for key in element.attrib)
            for key, value in element.attrib.items():
                assert key == "aria-label" or not re.search("alert|red|nnn", value)
            if element.tag.split("}")[-1] == "style":
                assert "alert" not in (element.text or "")
        named += sum("<script>" in (element.text or "") for element in root.iter())
        for row in (picture.table.headings, *picture.table.rows):
            assert all(cell.isprintable() for cell in row)
        assert (picture.title + picture.description).isprintable()
    assert named


def test_names_are_drawn_as_they_are_not_as_formulas() -> None:
    (site,) = lnaudit.audit(X, name="$x^2$ \\alpha").sites
    picture = pictures.window_picture(site)
    assert picture is not None
    root = ElementTree.fromstring(pictures.to_svg(picture))
    texts = [element.text or "" for element in root.iter() if element.tag.endswith("}text")]
    assert "$x^2$ \\alpha: where epsilon belongs" in texts


@pytest.mark.parametrize("sample", [s for s in samples.SAMPLES if s != "empty"])
def test_whatever_is_in_a_report_can_be_drawn(sample: str) -> None:
    for picture in pictures.pictures_of(samples.SAMPLES[sample]()):
        ElementTree.fromstring(pictures.to_svg(picture, inline=True))
        assert all(len(row) == len(picture.table.headings) for row in picture.table.rows)


@pytest.mark.parametrize("scale", [1e200, 1e-170, 1e-155, 1e150, 0.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 1e300])
def test_rows_and_epsilons_of_any_size_can_be_drawn(scale: float, epsilon: float) -> None:
    x = np.random.default_rng(0).normal(size=(4, 8)) * scale
    x[0, 0] = np.inf
    report = lnaudit.audit(x, epsilon=epsilon, formats=["float16", "float64"])
    for document in (report, Report.from_dict(report.to_dict())):
        for picture in pictures.pictures_of(document):
            ElementTree.fromstring(pictures.to_svg(picture, inline=True))


def test_documents_without_sites_results_or_points_can_be_drawn() -> None:
    (site,) = lnaudit.audit(X).sites
    (other,) = swept().sites
    bare = replace(other, results=[replace(result, points=[]) for result in other.results])
    found = [
        pictures.depth_picture(samples.empty()),
        pictures.window_picture(replace(site, results=[])),
        pictures.curves_picture(replace(other, results=[])),
        pictures.curves_picture(bare),
        pictures.depth_picture(samples.report([replace(site, results=[])])),
    ]
    for picture in found:
        assert picture is not None
        ElementTree.fromstring(pictures.to_svg(picture))


def test_hundreds_of_sites_and_kernels_can_be_drawn() -> None:
    results = [samples.result("float16", f"kernel-{i}", verdict=("fail", "warn", "pass")[i % 3]) for i in range(44)]
    many = samples.report([samples.site(f"site {i}", results) for i in range(300)])
    svg = pictures.to_svg(pictures.depth_picture(many), inline=True)
    assert "site 299" in svg
    assert "crossed: FAIL, one stroke: warn" in svg
    assert svg.count("<text") < 500
    assert len(svg) < 2_000_000
    window = pictures.window_picture(many.sites[0])
    assert window is not None
    lanes = pictures.to_svg(window, inline=True)
    assert "kernel-43" in lanes


def all_pictures() -> list[pictures.Picture]:
    return [*pictures.pictures_of(lnaudit.audit(X, epsilon=1e-12)), *pictures.pictures_of(swept())]


def test_only_ink_and_the_palette_are_drawn() -> None:
    verdicts = style.VERDICTS.values()
    allowed = {"currentColor", "none", *style.COLORS, *style._COLORS.values()}
    allowed |= {paint.fill for paint in verdicts} | {paint.text for paint in verdicts} - {style.INK}
    names = set()
    for picture in all_pictures():
        names.add(picture.name)
        root = ElementTree.fromstring(pictures.to_svg(picture, inline=True))
        assert root.get("fill") == "currentColor"
        for element in root.iter():
            written = element.get("style", "") + "".join(f";{k}:{v}" for k, v in element.attrib.items() if k != "style")
            for color in re.findall(r"(?:^|;)(?:fill|stroke|color|stop-color):([^;]+)", written):
                assert color in allowed or color.startswith("url(#"), (picture.name, color)
    assert names == {"depth", "window", "response", "curves", "map"}


def test_pictures_of_a_page_do_not_share_ids_and_refer_to_nothing_else() -> None:
    seen: set[str] = set()
    for picture in all_pictures():
        svg = pictures.to_svg(picture, inline=True)
        ids = re.findall(r'\bid="([^"]+)"', svg)
        assert len(ids) == len(set(ids))
        assert not seen & set(ids)
        attributes = [pair for element in ElementTree.fromstring(svg).iter() for pair in element.attrib.items()]
        values = [value for key, value in attributes if key != "aria-label"]
        referred = [name for value in values for name in re.findall(r"^#(.*)|url\(#([^)]+)\)", value)]
        assert set(ids) == {name for pair in referred for name in pair if name}
        seen |= set(ids)
        assert "<style" not in svg
        assert "<?xml" not in svg


def test_inline_pictures_say_what_they_are() -> None:
    for picture in all_pictures():
        root = ElementTree.fromstring(pictures.to_svg(picture, inline=True))
        assert (root.get("role"), root.get("aria-label")) == ("img", picture.description)
        assert root.get("font-family") == "sans-serif"
        width, height = (float(root.get(key, "0")) / 96 for key in ("width", "height"))
        assert (width, height) == pytest.approx(picture.size, abs=0.01)
        assert not any("font-family" in element.get("style", "") for element in root.iter())


def test_files_have_a_title_and_read_on_white_and_on_dark() -> None:
    picture = pictures.picture_for(lnaudit.audit(X, name="norm_1"))
    svg = pictures.to_svg(picture)
    assert svg.startswith("<?xml")
    texts = [element.text or "" for element in ElementTree.fromstring(svg).iter()]
    assert texts.count("norm_1: where epsilon belongs") == 2
    assert "prefers-color-scheme:dark" in svg


def test_a_window_is_small() -> None:
    (site,) = lnaudit.audit(X).sites
    assert len(site.results) == 6
    picture = pictures.window_picture(site)
    assert picture is not None
    assert len(pictures.to_svg(picture, inline=True)) < 20_000


def test_a_png_holds_nothing_but_the_picture() -> None:
    png = pictures.to_png(pictures.picture_for(lnaudit.audit(X)), dpi=50)
    assert set(chunks(png)) <= {"IHDR", "pHYs", "IDAT", "IEND"}


def test_findings_do_not_matter() -> None:
    report = lnaudit.audit(X)
    finding = Finding(code="LN104", name=HOSTILE, severity="error", site=HOSTILE, source=HOSTILE, title="", message="")
    told = replace(report, findings=[finding])
    assert pictures.to_svg(pictures.picture_for(told)) == pictures.to_svg(pictures.picture_for(report))


@pytest.mark.parametrize("letters", ["W" * 200, "M" * 200, "\u6a21\u578b" * 100, "i" * 200, "layers.3.norm"])
def test_a_title_does_not_run_out(letters: str) -> None:
    (site,) = lnaudit.audit(X, name=letters).sites
    picture = pictures.window_picture(site)
    assert picture is not None
    with measured(picture) as (figure, renderer):
        (title,) = figure.subfigs[0].texts
        assert title.get_window_extent(renderer).x1 <= figure.bbox.width
        assert title.get_text().endswith(picture.title[-10:])
