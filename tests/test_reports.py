"""Files of --report: what decides their kind, what is refused and when, that they are whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
import typer

from lnaudit.cli import reports
from lnaudit.cli.reports import check_plot, check_reports, deliver, write_reports
from lnaudit.errors import LnauditError
from lnaudit.pictures import picture_for, to_png, to_svg
from lnaudit.render.html import render_html
from lnaudit.render.plot import plot_lines

from . import page_samples, report_samples
from .program import run

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
pytest.importorskip("uniplot")


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
    for folder in ("nowhere", "gone"):
        (tmp_path / "gone.html").unlink(missing_ok=True)
        (tmp_path / "gone.html").symlink_to(tmp_path / "gone" / "a.html")
        path = tmp_path / "nowhere" / "report.html" if folder == "nowhere" else tmp_path / "gone.html"
        with pytest.raises(LnauditError, match="no such file or directory"):
            check_reports([path])
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(LnauditError, match="is a folder"):
        check_reports([tmp_path / "folder.html"])
    os.mkfifo(tmp_path / "pipe.html")
    with pytest.raises(LnauditError, match="is no regular file"):
        check_reports([tmp_path / "pipe.html"])
    with pytest.raises(LnauditError, match=r"cannot be written \(file name too long\)"):
        check_reports([tmp_path / f"{'n' * 300}.html"])


@pytest.mark.parametrize("content", [b"\x93NUMPY\x01\x00", b'{"schema_version": 1, "kind": "scan"}'])
def test_what_holds_data_is_no_report_whatever_it_is_called(tmp_path, content):
    path = tmp_path / "a.svg"
    path.write_bytes(content)
    with pytest.raises(LnauditError, match="is no report and would be lost"):
        check_reports([path])
    for older in (b"", b"<!DOCTYPE html>", b"\x89PNG"):
        path.write_bytes(older)
        check_reports([path])


def test_what_a_link_leads_to_is_written(tmp_path):
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "a.html", tmp_path / "there" / "b.html"
    link.symlink_to(target)
    for _ in range(2):  # it leads nowhere at first
        check_reports([link])
        write_reports(report_samples.healthy(), [link])
        assert link.is_symlink()
        assert target.read_text().startswith("<!DOCTYPE html>")
        target.write_text("before")


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


def test_a_library_that_does_not_start_is_refused_before_the_audit(monkeypatch, tmp_path):
    def fails():
        raise LnauditError("matplotlib does not start", "mend it")

    monkeypatch.setattr("lnaudit.pictures.library.load_figure", fails)
    for name in ("a.html", "a.svg", "a.png"):
        with pytest.raises(LnauditError, match=rf"--report .*{name}: matplotlib does not start; mend it"):
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
        plot_lines(page_samples.real_sweep())


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


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("command", ["scan", "check", "sweep"])
def test_reports_are_written_even_if_stdout_is_full(command, tmp_path):
    path = tmp_path / "a.html"
    words = [sys.executable, "-m", "lnaudit", command, str(page_samples.EXAMPLES), "--isolated", "--report", str(path)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 2
    assert "stdout" in done.stderr
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_writing_is_told_where_that_is_wanted(tmp_path):
    words = ("scan", page_samples.EXAMPLES, "--report", "a.html")
    assert "writing" not in run(*words, cwd=tmp_path).stderr
    assert "lnaudit: writing a.html\n" in run(*words, "--verbose", cwd=tmp_path).stderr


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
