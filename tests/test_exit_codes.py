"""Exit codes 0, 1, 2, 3 and 130, of the program itself; where several hold, 130 before 3 before 2 before 1."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from lnaudit import __main__
from lnaudit.cli import exit_codes

from .program import run_in

# one that cannot be opened, one with an error finding, one without
WORST = ("missing.npy", "large.npy", "fine.npy")
CRASH = "raise RuntimeError('boom')"
INTERRUPT = "raise KeyboardInterrupt"
# what an interrupt in the middle of foreign code may turn into
BOTH = """
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(30)
    except KeyboardInterrupt:
        raise RuntimeError('boom')"""
COMMANDS = {
    "scan": ("lnaudit.pipeline.scanning.audit_site", ("scan", *WORST, "--fail-on", "error")),
    "check": ("lnaudit.pipeline.scanning.audit_site", ("check", *WORST)),
    "sweep": ("lnaudit.pipeline.sweeping._sweep_site", ("sweep", *WORST)),
    "synth": ("lnaudit.families.blocks", ("synth", "zeros", "-o", "zeros.npy")),
    "kernels": ("lnaudit.kernels.get_kernel", ("kernels", "fused")),
}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    x = np.random.default_rng(0).standard_normal((30, 64), dtype=np.float32)
    np.save(tmp_path / "fine.npy", x)
    np.save(tmp_path / "large.npy", x * 500)
    return tmp_path


def break_down(folder: Path, place: str, how: str) -> dict[str, str]:
    """Let a function of the program do something else; what the environment must say for that."""
    (folder / "broken").mkdir(exist_ok=True)
    module, _, name = place.rpartition(".")
    (folder / "broken" / "sitecustomize.py").write_text(
        f"import os, signal, time\nimport {module} as module\ndef stop(*a, **k):\n    {how}\nmodule.{name} = stop\n"
    )
    return {"PYTHONPATH": str(folder / "broken")}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("scan", "fine.npy"), 0),
        (("scan", "large.npy"), 0),  # findings alone do not fail a scan
        (("scan", "large.npy", "--fail-on", "error"), 1),
        (("scan", *WORST, "--fail-on", "error"), 2),
        (("scan", "nothing*.npy"), 2),
        (("scan", ".git"), 2),
        (("scan",), 2),
        (("check", "fine.npy"), 0),
        (("check", "large.npy"), 1),
        (("check", *WORST), 2),
        (("sweep",), 0),
        (("sweep", "large.npy"), 0),
        (("sweep", *WORST), 2),
        (("sweep", "--family", "nonsense"), 2),
        (("synth", "zeros", "-o", "zeros.npy"), 0),
        (("synth", "zeros", "-o", "fine.npy"), 2),
        (("formats",), 0),
        (("kernels",), 0),
        (("kernels", "nonsense"), 2),
        (("nonsense",), 2),
        ((), 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_a_run_ends_with(here: Path, words: tuple[str, ...], code: int) -> None:
    done = run_in(here, *words)
    assert done.returncode == code, done.stderr
    assert bool(done.stderr) == (code == 2)


@pytest.mark.parametrize("more", [("--output-format", "concise", "-q"), ("--output-format", "json"), ("-q",)])
@pytest.mark.parametrize(("words", "code"), [(("large.npy",), 1), (("fine.npy",), 0), (WORST, 2)])
def test_the_output_changes_no_exit_code(here: Path, words: tuple[str, ...], code: int, more: tuple[str, ...]) -> None:
    assert run_in(here, "check", *words, *more).returncode == code


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("how", "code"), [(CRASH, 3), (INTERRUPT, 130), (BOTH, 130)], ids=["crash", "interrupt", "both"]
)
def test_a_crash_is_3_and_an_interrupt_130_whatever_else_holds(here: Path, command: str, how: str, code: int) -> None:
    place, words = COMMANDS[command]
    done = run_in(here, *words, **break_down(here, place, how))
    assert done.returncode == code, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last == (
        "lnaudit: interrupted"
        if code == 130
        else "lnaudit: internal error: RuntimeError: boom; run it again with -v and report it"
    )
    assert "Traceback" not in done.stderr
    assert not (here / "zeros.npy").exists()


@pytest.mark.parametrize("command", ["scan", "check", "sweep"])
@pytest.mark.parametrize(("how", "said"), [(CRASH, "internal error: RuntimeError: boom"), (INTERRUPT, "interrupted")])
def test_a_run_that_broke_down_still_writes_json(here: Path, command: str, how: str, said: str) -> None:
    place, words = COMMANDS[command]
    done = run_in(here, *words, "--output-format", "json", **break_down(here, place, how))
    document = json.loads(done.stdout)
    assert (document["kind"], document["not_audited"]) == (command, [{"source": "", "reason": said}])


def test_the_program_ends_with_the_codes_that_its_help_explains() -> None:
    of_program = (__main__.USAGE, __main__.INTERNAL_ERROR, __main__.INTERRUPTED, __main__.TERMINATED)
    assert of_program == (
        exit_codes.NOT_AUDITED, exit_codes.INTERNAL_ERROR, exit_codes.INTERRUPTED, exit_codes.TERMINATED
    )  # fmt: skip
    assert list(exit_codes.MEANINGS) == [0, 1, 2, 3, 130]
