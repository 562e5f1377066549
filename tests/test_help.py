"""The help: examples that run, exit codes, first steps; and it needs no numpy."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command

from lnaudit.cli.app import app
from lnaudit.cli.exit_codes import MEANINGS, TERMINATED

from .program import run, run_in

EXAMPLES = Path(__file__).parent.parent / "examples"
COMMANDS = sorted(get_command(app).commands)


def help_of(*words: str) -> str:
    done = run(*words, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def examples(text: str) -> list[str]:
    """The commands at the end of a help, without what is said of them."""
    lines = text[text.rindex("\nExamples:\n") :].splitlines()[2:]
    assert all(line.startswith("  lnaudit ") for line in lines), lines
    return [line.partition("  # ")[0].strip() for line in lines]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the examples name."""
    folder = tmp_path_factory.mktemp("project")
    (folder / ".git").mkdir()
    x = np.random.default_rng(0).standard_normal((20, 32), dtype=np.float32)
    np.save(folder / "acts.npy", x)
    (folder / "dumps").mkdir()
    shutil.copy(EXAMPLES / "silent_zero.npy", folder / "dumps")
    for name in ("run.json", "old.json"):
        run_in(folder, "scan", "dumps", "--save-stats", name)
    np.save(folder / "dumps" / "more.npy", x)
    run_in(folder, "scan", "dumps", "--save-stats", "new.json")
    run_in(folder, "check", "dumps", "--write-baseline", "known.json")
    return folder


@pytest.mark.exhaustive
@pytest.mark.parametrize("command", COMMANDS)
def test_every_example_runs(command: str, project: Path) -> None:
    found = examples(help_of(command))
    assert len(found) >= 2
    assert any(words.startswith(f"lnaudit {command}") for words in found)
    for words in found:
        done = run_in(project, *shlex.split(words)[1:])
        # 1: what is audited there has findings
        assert done.returncode in (0, 1), (words, done.stderr)
        assert done.stderr == "", words
        assert done.stdout.strip(), words


def test_the_first_steps_run(project: Path) -> None:
    text = help_of()
    steps = re.findall(r"^  (lnaudit .*?)  +# ", text, re.MULTILINE)
    assert len(steps) >= 3
    for words in steps:
        assert run_in(project, *shlex.split(words)[1:]).returncode in (0, 1), words


def test_the_help_of_the_program_says_how_a_run_ends() -> None:
    text = " ".join(help_of().split())
    for code, meaning in MEANINGS.items():
        assert f" {code} {meaning}" in text
    assert str(TERMINATED) in text
    assert "130, 3, 2, 1, 0" in text
    assert all(command in text for command in COMMANDS)
    assert not re.search(r"\w\.\.\.", text)  # nothing that is said of a command is cut off


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_a_help_fits_eighty_columns(command: str) -> None:
    if command == "synth":
        pytest.skip("its families are lines to be copied")
    assert [line for line in help_of(*command.split()).splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("command", ["", *(c for c in COMMANDS if c != "synth")])
def test_the_help_imports_no_numpy(command: str) -> None:
    # but for that of synth, which lists the families
    code = (
        "import sys; from lnaudit.cli.app import app\n"
        f"try: app({[*command.split(), '--help']!r})\nexcept SystemExit: pass\n"
        "assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)


@pytest.mark.parametrize("command", COMMANDS)
def test_everything_that_can_be_given_says_what_it_is(command: str) -> None:
    for parameter in get_command(app).commands[command].params:
        assert re.search(r"[.)\]]$", parameter.help or ""), parameter.name
