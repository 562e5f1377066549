"""Files beside the dumps: what a run writes replaces nothing else, and what it is given is known by its kind."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lnaudit.readers import documents
from lnaudit.readers.documents import kind_of

from .program import run_in as run

KINDS = {"run.stats": "statistics", "known": "baseline", "report.json": "check", "sweep.json": "sweep"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one of all that lnaudit writes."""
    folder = tmp_path_factory.mktemp("made")
    (folder / ".git").mkdir()
    (folder / "lnaudit.toml").write_text('formats = ["float16"]\nkernels = ["native"]\n')
    x = np.random.default_rng(0).standard_normal((20, 16)).astype(np.float32)
    np.save(folder / "fine.npy", x)
    np.save(folder / "large.npy", x * 2000)
    (folder / "manifest.json").write_text('{"sites": [{"name": "a", "file": "fine.npy"}]}')
    words = ("large.npy", "--save-stats", "run.stats", "--write-baseline", "known", "--output-format", "json")
    (folder / "report.json").write_text(run(folder, "check", *words).stdout)
    (folder / "sweep.json").write_text(run(folder, "sweep", "fine.npy", "--output-format", "json").stdout)
    (folder / "empty").touch()
    return folder


def refused(folder: Path, *words: str) -> str:
    """The line that nothing but is said; nothing has been written."""
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    done = run(folder, *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    return done.stderr.removeprefix("lnaudit: ").rstrip()


@pytest.mark.parametrize("name", ["fine.npy", "manifest.json", "report.json", "sweep.json", "lnaudit.toml", "known"])
def test_statistics_replace_nothing_else(made: Path, name: str) -> None:
    said = f"{name}: holds no saved statistics and would be lost; name another file"
    # before the audit: what cannot be audited is not reached
    assert refused(made, "scan" if name == "known" else "check", "missing.npy", "--save-stats", name) == said


@pytest.mark.parametrize(
    "name", ["fine.npy", "manifest.json", "report.json", "sweep.json", "lnaudit.toml", "run.stats"]
)
def test_a_baseline_replaces_nothing_else(made: Path, name: str) -> None:
    said = f"{name}: is no baseline and would be lost; name another file"
    assert refused(made, "check", "missing.npy", "--write-baseline", name) == said


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "lnaudit.toml").touch()
    for name, said in (
        ("pipe", "is no regular file; name another file"),
        ("folder", "is a folder; name a file"),
        ("/dev/null", "is no regular file; name another file"),
        ("nowhere/x", "cannot be written (no such file or directory); name another place"),
        ("lnaudit.toml/x", "cannot be written (not a directory); name another place"),
    ):
        option = "--write-baseline" if name == "folder" else "--save-stats"
        assert refused(tmp_path, "check", "missing.npy", option, name) == f"{name}: {said}"
    assert (tmp_path / "pipe").is_fifo()


def test_an_older_file_of_the_kind_and_an_empty_one_are_replaced(made: Path) -> None:
    for option, old in (("--save-stats", "run.stats"), ("--write-baseline", "known")):
        text = (made / old).read_text()
        # as another program may have written it
        (made / "old").write_text(json.dumps(json.loads(text), sort_keys=True, indent=2))
        for name in ("old", "empty"):
            assert run(made, "check", "large.npy", option, name).returncode == 1
            assert (made / name).read_text() == text
            (made / "empty").write_text("")
        (made / "old").unlink()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--save-stats", "x", "--write-baseline", "x"), "--write-baseline x: is what --save-stats writes"),
        (
            ("--save-stats", "x", "--write-baseline", "../{here}/x"),
            "--write-baseline ../{here}/x: is what --save-stats",
        ),
        (("--write-baseline", "link", "--save-stats", "x"), "--write-baseline link: is what --save-stats writes"),
        (("--report", "a.svg", "--report", "./a.svg"), "--report a.svg: is named twice"),
        (("--save-stats", "a.svg", "--report", "a.svg"), "--report a.svg: is what --save-stats writes"),
        (("--write-baseline", "a.svg", "--report", "a.svg"), "--report a.svg: is what --write-baseline writes"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_two_outputs_are_two_files(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "link").symlink_to("x")
    words = tuple(word.format(here=tmp_path.name) for word in words)
    assert refused(tmp_path, "check", "missing.npy", *words).startswith(said.format(here=tmp_path.name))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a.html", "--report", "a.html"), "--report a.html: is audited and would be lost; name another file"),
        (("link.svg", "--report", "a.svg"), "--report a.svg: is audited and would be lost"),
        (("*.png", "--report", "./a.png"), "--report a.png: is audited and would be lost"),
        (("x", "--save-stats", "x"), "--save-stats x: is audited and would be lost"),
        (("x", "--write-baseline", "x"), "--write-baseline x: is audited and would be lost"),
        (("x", "--weight", "a.svg", "--report", "a.svg"), "--report a.svg: is what --weight reads and would be lost"),
        (("x", "--bias", "y", "--save-stats", "y"), "--save-stats y: is what --bias reads and would be lost"),
        (("x", "--config", "y", "--save-stats", "y"), "--save-stats y: is what --config reads and would be lost"),
        (("x", "--config", "y", "--write-baseline", "y"), "--write-baseline y: is what --config reads"),
        (("x", "--baseline", "y", "--save-stats", "y"), "--save-stats y: is what --baseline reads and would be lost"),
        (("x", "--baseline", "a.svg", "--report", "a.svg"), "--report a.svg: is what --baseline reads"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_read_is_not_written(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    for name in ("a.html", "a.svg", "a.png"):
        (tmp_path / name).touch()
    (tmp_path / "link.svg").symlink_to("a.svg")
    assert refused(tmp_path, "check", *words).startswith(said)


def test_a_dump_that_a_manifest_names_is_not_replaced_by_a_report(made: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "a.svg").write_bytes((made / "fine.npy").read_bytes())
    (tmp_path / "manifest.json").write_text('{"sites": [{"name": "a", "file": "a.svg"}]}')
    assert refused(tmp_path, "scan", ".", "--report", "a.svg").startswith("--report a.svg: is no report and would be")


def test_a_baseline_is_renewed_in_place(made: Path) -> None:
    (made / "renewed").write_text((made / "known").read_text())
    done = run(made, "check", "large.npy", "--baseline", "renewed", "--write-baseline", "./renewed")
    assert done.returncode == 0
    assert (made / "renewed").read_text() == (made / "known").read_text()


@pytest.mark.parametrize("more", [("missing.npy",), ("report.json",)])
def test_a_baseline_of_less_than_everything_is_not_written(made: Path, more: tuple[str, ...]) -> None:
    known = (made / "known").read_text()
    for name in ("known", "new"):
        for paths in (("large.npy", *more), more):
            done = run(made, "check", *paths, "--write-baseline", name, "--fail-on", "never")
            assert done.returncode == 2
            lines = [line for line in done.stderr.splitlines() if "baseline" in line and name in line]
            assert lines == [
                f"lnaudit: {name}: no baseline was written, for not everything could be audited; mend that first"
            ]
    assert (made / "known").read_text() == known
    assert not (made / "new").exists()


@pytest.mark.parametrize("name", ["run.stats", "run.npy"])
def test_statistics_are_known_by_their_kind(made: Path, tmp_path: Path, name: str) -> None:
    for given in ("lnaudit.toml", "large.npy"):
        (tmp_path / given).write_bytes((made / given).read_bytes())
    assert run(tmp_path, "scan", "large.npy", "--save-stats", name).returncode == 0
    fresh = run(tmp_path, "check", "large.npy", "--output-format", "json").stdout
    assert run(tmp_path, "check", name, "--output-format", "json").stdout == fresh
    for paths in ((name, "large.npy"), ("missing.npy", name), (name, name)):
        said = f"{name}: holds statistics, which are judged alone; lnaudit check {name}"
        assert refused(tmp_path, "check", *paths) == said


@pytest.mark.parametrize(
    ("command", "name", "said"),
    [
        ("scan", "run.stats", "holds saved statistics; lnaudit check FILE judges them"),
        ("sweep", "run.stats", "holds saved statistics; lnaudit check FILE judges them"),
        (
            "check",
            "report.json",
            "is a report; statistics come from lnaudit scan --save-stats, lnaudit diff compares reports",
        ),
        ("check", "known", "is a baseline; lnaudit check PATH --baseline FILE compares with it"),
        ("check", "sweep.json", "is the report of a sweep; name the dumps"),
        ("check", "lnaudit.toml", ".toml files cannot be read; what can: .npy"),
    ],
)
def test_what_is_no_dump_is_called_what_it_is(made: Path, command: str, name: str, said: str) -> None:
    done = run(made, command, name)
    assert (done.returncode, done.stderr) == (2, f"lnaudit: {name}: {said}\n")
    # the rest is reported
    assert "fine" in run(made, command, name, "fine.npy").stdout


def test_the_loss_scale_that_is_the_default_asks_for_nothing(made: Path) -> None:
    assert run(made, "check", "run.stats", "--loss-scale", "1.0").returncode == 1
    assert refused(made, "check", "run.stats", "--loss-scale", "1.5").startswith("--loss-scale: concerns rows")


def test_kinds(made: Path) -> None:
    assert {name: kind_of(made / name) for name in KINDS} == KINDS
    for name in ("fine.npy", "manifest.json", "lnaudit.toml", "missing", ".git"):
        assert kind_of(made / name) == ""


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"kind": "x"}', "x"),
        ('\ufeff \n{ "a" : -1.5e3 , "b\\"" : "c\\\\" ,\t"kind":"x", "rest', "x"),
        ('{"a": [{"kind": "y"}], "kind": "x"}', "x"),
        ('{"a": "\\"kind\\": \\"y\\"", "kind": "x"}', "x"),
        ('{"a": {"kind": "y"}}', ""),
        ('{"kind": ["x"]}', ""),
        ('[{"kind": "x"}]', ""),
        ('{"a": [], "kind": "x"', ""),
        ("", ""),
        ("{", ""),
    ],
)
def test_the_kind_of_a_document(tmp_path: Path, text: str, kind: str) -> None:
    (tmp_path / "x").write_text(text, encoding="utf-8")
    assert kind_of(tmp_path / "x") == kind


def test_what_is_large_is_not_read_to_know_its_kind(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*words: Any) -> None:
        pytest.fail("all of it is read")

    monkeypatch.setattr(documents, "read_json", never)
    for name in ("run.stats", "known", "report.json", "fine.npy"):
        assert kind_of(made / name) == KINDS.get(name, "")
