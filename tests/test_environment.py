"""Environment variables: the option goes before them, blank ones say nothing, and a bad value names them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command

from lnaudit.cli.app import app

from .program import run_in as run

VARIABLES = {p.envvar: p.opts[0] for c in get_command(app).commands.values() for p in c.params if p.envvar}
# a value of each that cannot be honoured; one of LNAUDIT_CONFIG is a file, which is named itself
BAD = {variable: "," if variable in ("LNAUDIT_SELECT", "LNAUDIT_IGNORE") else "x" for variable in VARIABLES}
del BAD["LNAUDIT_CONFIG"]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    np.save(tmp_path / "a.npy", np.eye(4))
    return tmp_path


def test_there_are_variables() -> None:
    assert len(VARIABLES) == 11


@pytest.mark.parametrize("variable", BAD)
def test_a_bad_value_names_the_variable_where_it_is_from_there(here: Path, variable: str) -> None:
    option = VARIABLES[variable]
    both = run(here, "check", "a.npy", "--output-format", "json", **{variable: BAD[variable]})
    alone = run(here, "check", "a.npy", "--output-format", "json", option, BAD[variable], **{variable: "y"})
    assert both.returncode == alone.returncode == 2
    assert alone.stderr.startswith(f"lnaudit: {option}: ")
    assert both.stderr == alone.stderr.replace(f"{option}: ", f"{option} (or {variable}): ", 1)
    assert json.loads(both.stdout)["not_audited"][0]["source"] == f"{option} (or {variable})"


@pytest.mark.parametrize("blank", ["", " ", "\t\n"], ids=repr)
def test_blank_variables_say_nothing(here: Path, blank: str) -> None:
    (here / "lnaudit.toml").write_text('formats = ["float16"]\n')
    shown = run(here, "check", "a.npy", "--show-settings").stdout
    done = run(here, "check", "a.npy", "--show-settings", **dict.fromkeys(VARIABLES, blank))
    assert (done.returncode, done.stdout, done.stderr) == (0, shown, "")


def test_an_option_goes_before_a_policy_of_the_environment(here: Path) -> None:
    (here / "other.toml").write_text('formats = ["float32"]\n')
    assert "float32" in run(here, "check", "a.npy", "--show-settings", LNAUDIT_CONFIG="other.toml").stdout
    for config in ("other.toml", "missing.toml"):
        done = run(here, "check", "a.npy", "--show-settings", "--isolated", LNAUDIT_CONFIG=config)
        assert (done.returncode, done.stdout.splitlines()[0], done.stderr) == (0, "# no policy file", "")
    done = run(here, "check", "a.npy", LNAUDIT_CONFIG="missing.toml")
    assert (done.returncode, done.stderr) == (2, "lnaudit: missing.toml: does not exist\n")
    done = run(here, "check", "a.npy", "--isolated", "--config", "other.toml", LNAUDIT_CONFIG="missing.toml")
    assert done.stderr == "lnaudit: --config: cannot stand beside --isolated; leave one of them out\n"
