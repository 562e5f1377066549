"""Shell completion: what the scripts of the shells get to see of options and their values."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from lnaudit.families import FAMILIES
from lnaudit.formats import FORMATS
from lnaudit.kernels import KERNELS, find_runtime
from lnaudit.rules import RULES

# the shells know the program by its name; `python -m lnaudit` has another
PROGRAM = "import sys; sys.argv[0] = 'lnaudit'; from lnaudit.__main__ import main; main()"


def program(*words: str, **variables: str) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("_TYPER")}
    command = [sys.executable, "-W", "error", "-c", PROGRAM, *words]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**environment, **variables}, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def completed(*words: str) -> list[str]:
    """What bash offers for the last word."""
    line = ["lnaudit", *words]
    return program(
        _LNAUDIT_COMPLETE="complete_bash", COMP_WORDS=" ".join(line), COMP_CWORD=str(len(line) - 1)
    ).splitlines()


def test_commands_and_options() -> None:
    assert completed("sw") == ["sweep"]
    assert completed("scan", "--output") == ["--output-format"]
    assert {"scan", "check", "sweep", "synth", "formats", "kernels"} <= set(completed(""))


@pytest.mark.parametrize("command", ["scan", "check", "sweep"])
def test_formats_and_kernels_are_those_of_the_tables(command: str) -> None:
    assert completed(command, "--format", "") == list(FORMATS)
    assert completed(command, "--kernel", "") == [*KERNELS, "ladder"]


def test_the_last_item_of_a_comma_list_is_completed_with_what_it_has_not_yet() -> None:
    assert completed("scan", "--format", "float16,bf") == ["float16,bfloat16"]
    offered = completed("scan", "--format", "float16,")
    assert offered == [f"float16,{name}" for name in FORMATS if name != "float16"]


def test_every_runtime_that_is_offered_is_known() -> None:
    offered = completed("scan", "--runtime", "")
    assert offered
    for text in offered:
        assert find_runtime(text).kernel in KERNELS


def test_rules_and_families() -> None:
    assert completed("check", "--ignore", "LN3") == sorted(code for code in RULES if code.startswith("LN3"))
    assert completed("scan", "--select", "") == sorted(RULES)
    assert completed("sweep", "--family", "") == completed("synth", "") == list(FAMILIES)
    assert completed("kernels", "native") == ["native-serial", "native"]


@pytest.mark.parametrize(
    ("command", "option", "words"),
    [
        ("scan", "--output-format", ["table", "concise", "json"]),
        ("sweep", "--color", ["auto", "always", "never"]),
        ("check", "--fail-on", ["error", "warning", "note", "never"]),
        ("scan", "--ftz", ["none", "float32", "T", "all"]),
        ("sweep", "--engine", ["auto", "numpy", "numba"]),
        ("scan", "--verify", ["witness", "all"]),
        ("check", "--norm", ["layer", "rms"]),
    ],
)
def test_words(command: str, option: str, words: list[str]) -> None:
    assert completed(command, option, "") == words
    assert completed(command, option, words[-1][:-1]) == [words[-1]]


def test_zsh_and_fish_are_told_what_a_value_is() -> None:
    told = program(_LNAUDIT_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="lnaudit scan --kernel deco")
    assert KERNELS["decomposed"].stands_for[:30] in told
    told = program(
        _LNAUDIT_COMPLETE="complete_fish",
        _TYPER_COMPLETE_FISH_ACTION="get-args",
        _TYPER_COMPLETE_ARGS="lnaudit check --ignore LN104",
        _TYPER_COMPLETE_WORD_TO_COMPLETE="LN104",
    )
    assert "collapsed-rows" in told


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_can_be_shown(shell: str) -> None:
    # without detection of the shell, in which the tests run
    script = program("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert f"_LNAUDIT_COMPLETE=complete_{shell}" in script
    assert "lnaudit" in script.splitlines()[-1]


def test_formats_and_kernels_are_offered_without_numpy() -> None:
    code = (
        "import sys; from lnaudit.cli import completion\n"
        "assert completion.formats('f') and completion.kernels('n') and completion.runtimes('t')\n"
        "assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)
