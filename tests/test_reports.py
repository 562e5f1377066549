"""Files of --report and curves of --plot: what decides their kind, what is refused and when, that they are whole."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
import typer

from lnaudit.cli import reports
from lnaudit.cli.reports import check_plot, check_reports, deliver, write_reports
from lnaudit.errors import LnauditError
from lnaudit.pictures import picture_for, to_png, to_svg
from lnaudit.render.html import render_html
from lnaudit.render.plot import MARKS, plot_lines
from lnaudit.render.style import Style

from . import page_samples, report_samples
from .program import run

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
pytest.importorskip("uniplot")


def of_one_family():
    report = page_samples.real_sweep()
    return replace(report, sites=report.sites[:1], maps=[])


def test_the_suffix_decides_what_is_written(tmp_path):
    report = report_samples.healthy()
    paths = [tmp_path / name for name in ("a.html", "b.svg", "c.PNG")]
    check_reports(paths)
    write_reports(report, paths)
    page, picture, bitmap = (path.read_bytes() for path in paths)
    assert page.decode() == render_html(report)
    assert picture.decode() == to_svg(picture_for(report))
    assert ElementTree.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"
    assert bitmap == to_png(picture_for(report))
    assert bitmap.startswith(b"\x89PNG\r\n")
    assert sorted(tmp_path.iterdir()) == sorted(paths)


@pytest.mark.parametrize("name", ["report", "report.pdf", "report.html.gz", ".html"])
def test_another_suffix_is_refused_by_the_three_there_are(tmp_path, name):
    with pytest.raises(LnauditError, match=r"none of \.html, \.svg and \.png"):
        check_reports([tmp_path / name])


def test_a_place_that_cannot_be_written_is_refused_before_the_audit(tmp_path):
    with pytest.raises(LnauditError, match="no such folder"):
        check_reports([tmp_path / "nowhere" / "report.html"])
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(LnauditError, match="is a folder"):
        check_reports([tmp_path / "folder.html"])


def test_nothing_asked_for_is_nothing_refused_or_written(tmp_path):
    check_reports(None)
    write_reports(report_samples.healthy(), None)


@pytest.mark.parametrize(
    ("library", "names"), [("jinja2", ["a.html"]), ("matplotlib", ["a.html"]), ("matplotlib", ["a.svg", "a.png"])]
)
def test_a_missing_extra_is_refused_before_the_audit(monkeypatch, tmp_path, library, names):
    monkeypatch.setitem(sys.modules, library, None)
    for name in names:
        with pytest.raises(LnauditError, match=rf"{name}: needs the extra report; pip install 'lnaudit\[report\]'$"):
            check_reports([tmp_path / name])


def test_pictures_need_no_templates(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    check_reports([tmp_path / "a.svg"])


def test_a_file_is_replaced_whole_or_left_alone(tmp_path, monkeypatch):
    path = tmp_path / "a.html"
    path.write_text("before")

    def fails(document):
        raise LnauditError("cannot be drawn")

    monkeypatch.setattr("lnaudit.render.html.render_html", fails)
    with pytest.raises(LnauditError, match="cannot be drawn"):
        write_reports(report_samples.healthy(), [path])
    assert path.read_text() == "before"
    monkeypatch.undo()
    write_reports(report_samples.healthy(), [path])
    assert path.read_text().startswith("<!DOCTYPE html>")
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_not_one_picture_ends_with_exit_2_and_one_line(tmp_path, capsys):
    path = tmp_path / "a.svg"
    with pytest.raises(typer.Exit) as end:
        deliver(page_samples.real_sweep(), [path])
    assert end.value.exit_code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"lnaudit: {path.as_posix()}: holds ")
    assert said.count("\n") == 1
    assert not path.exists()


def test_a_folder_that_vanishes_ends_with_exit_2_and_one_line(tmp_path, capsys):
    with pytest.raises(typer.Exit):
        deliver(report_samples.healthy(), [tmp_path / "gone" / "a.html"])
    assert "a.html: cannot be written" in capsys.readouterr().err


def test_curves_are_refused_beside_formats_for_machines_and_without_the_extra(monkeypatch):
    check_plot("table")
    for output_format in ("json", "concise"):
        with pytest.raises(LnauditError, match=f"--plot: cannot stand beside --output-format {output_format}"):
            check_plot(output_format)
    monkeypatch.setitem(sys.modules, "uniplot", None)
    with pytest.raises(LnauditError, match="--plot: needs the extra report"):
        check_plot("table")
    with pytest.raises(LnauditError, match="extra report"):
        plot_lines(of_one_family())


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
    assert "not drawn: float16, float64" in text
    infinite = [replace(point, error={"p50": math.inf, "max": math.inf}) for point in site.results[0].points]
    text = plot_lines(
        replace(report, sites=[replace(site, results=[replace(site.results[0], points=infinite), site.results[1]])])
    )
    assert "not drawn: float16" in text


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


def test_every_suffix_is_made_with_something_of_the_extra():
    assert set(reports.NEEDED) == {".html", ".svg", ".png"}


def test_the_program_writes_reports_beside_its_results(tmp_path):
    names = ("a.html", "b.svg", "c.png")
    options = [word for name in names for word in ("--report", tmp_path / name)]
    done = run("scan", page_samples.EXAMPLES, "--output-format", "json", *options)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["kind"] == "scan"
    assert "<title>lnaudit scan: 3 sites: 1 FAIL" in (tmp_path / "a.html").read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == list(names)


def test_a_check_writes_its_page_and_fails_all_the_same(tmp_path):
    done = run("check", page_samples.EXAMPLES, "--isolated", "--report", tmp_path / "a.html")
    assert done.returncode == 1
    assert "<title>lnaudit check: 3 sites: 1 FAIL" in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_a_sweep_draws_below_its_table(tmp_path):
    done = run("sweep", "--family", "bump", "--plot", "--ascii", "--report", tmp_path / "a.svg")
    assert (done.returncode, done.stderr) == (0, "")
    table, _, plot = done.stdout.partition("1 site at 12 epsilons.")
    assert "1e-12" in table
    assert "++ float16" in plot
    assert (tmp_path / "a.svg").exists()


def test_results_are_shown_even_if_a_report_cannot_be_written(tmp_path):
    dumps = sorted(page_samples.EXAMPLES.glob("*.npy"))
    done = run("sweep", *dumps, "--report", tmp_path / "a.svg")
    assert done.returncode == 2
    assert f"{len(dumps)} sites at" in done.stdout
    assert "a.svg: holds 2 sites" in done.stderr


@pytest.mark.parametrize(
    ("library", "words"),
    [
        ("jinja2", ["scan", "acts.npy", "--report", "a.html"]),
        ("matplotlib", ["check", "acts.npy", "--report", "a.svg"]),
        ("uniplot", ["sweep", "--plot"]),
    ],
)
def test_the_program_says_what_to_install_before_it_reads_anything(library, words, tmp_path):
    program = f"import sys; sys.modules[{library!r}] = None; sys.argv[1:] = {words!r}; "
    program += "from lnaudit.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    what = words[-2] + " " + words[-1] if words[-1] != "--plot" else "--plot"
    assert done.stderr == f"lnaudit: {what}: needs the extra report; pip install 'lnaudit[report]'\n"
