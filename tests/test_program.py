"""Every command in an interpreter of its own, and that a fork of one that waits is no other program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from .program import run

SHOWN = (("--version",), ("--help",), ("formats",), ("kernels", "fused"), ("rule",))
AUDITS = (
    ("scan", "x.npy"),
    ("scan", "x.npy", "--output-format", "json"),
    ("check", "x.npy"),
    ("sweep", "x.npy"),
    ("synth", "normal:rows=4,features=8", "-o", "made.npy", "--force"),
)
ENDINGS = (("scan", "gone.npy"), ("scan", "--nope"), ("scn",), ())


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a dump of rows that lose something in float16."""
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(100, 1e-2, (8, 32)).astype(np.float32))
    return tmp_path


@pytest.mark.parametrize("words", [*SHOWN, *AUDITS, *ENDINGS], ids=" ".join)
def test_a_fork_says_what_an_interpreter_says(words: tuple[str, ...], here: Path) -> None:
    started, forked = run(*words, cwd=here, started=True), run(*words, cwd=here)
    assert (started.returncode, started.stdout, started.stderr) == (forked.returncode, forked.stdout, forked.stderr)
    assert started.returncode == (2 if words in ENDINGS else 1 if words[0] == "check" else 0), started.stderr


def test_statistics_and_what_compares_them_are_the_same(here: Path) -> None:
    for folder, started in (("a", True), ("b", False)):
        (here / folder).mkdir()
        done = run("scan", "x.npy", "--save-stats", f"{folder}/s.json", cwd=here, started=started)
        assert done.returncode == 0, done.stderr
    assert (here / "a/s.json").read_bytes() == (here / "b/s.json").read_bytes()
    found = [run("diff", "a/s.json", "b/s.json", cwd=here, started=started) for started in (True, False)]
    assert (found[0].returncode, found[0].stdout) == (found[1].returncode, found[1].stdout)
    assert found[0].returncode == 0, found[0].stderr


def test_nothing_is_left_of_a_run(here: Path) -> None:
    (here / "other").mkdir()
    words = ("scan", "x.npy", "--output-format", "concise")
    first = run(*words, cwd=here)
    elsewhere = run(*words, cwd=here / "other", env={"LNAUDIT_FORMAT": "bfloat16"})
    assert (elsewhere.returncode, elsewhere.stderr) == (2, "lnaudit: x.npy: does not exist\n")
    narrowed = run(*words, cwd=here, env={"LNAUDIT_FORMAT": "bfloat16"})
    assert narrowed.stdout != first.stdout
    assert run(*words, cwd=here).stdout == first.stdout


def test_an_interpreter_reads_its_own_variables(here: Path) -> None:
    (here / "sitecustomize.py").write_text("import sys\nsys.stderr.write('began')\n")
    assert run("--version", env={"PYTHONPATH": str(here)}).stderr == "began"
    assert run("--version").stderr == ""
