"""Ctrl-C and SIGTERM: gone within a second, 130 and 143, one line, nothing half-written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from .exhaustive import sampled

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for another process")
needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
CODES = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (143, "terminated")}
A_SECOND = 1.0
STARTED = 20.0  # seconds at most until a process is at work


def stopped(
    words: tuple[str, ...], number: signal.Signals, when: Callable[[subprocess.Popen[str]], bool], cwd: Path
) -> tuple[str, str, float]:
    """Run lnaudit, send it a signal when it is time; return stdout, stderr and the seconds it took to leave."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lnaudit", *words],
        cwd=cwd,
        env={**os.environ, "LNAUDIT_CACHE_DIR": str(cwd / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    begun = time.monotonic()
    while not when(process):
        assert process.poll() is None, "ended before it was interrupted"
        assert time.monotonic() - begun < STARTED
        time.sleep(0.01)
    sent = time.monotonic()
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    code, word = CODES[number]
    assert (process.returncode, err) == (code, f"lnaudit: {word}\n")
    return out, err, time.monotonic() - sent


def imported(name: str) -> Callable[[subprocess.Popen[str]], bool]:
    """Return whether a process has a library of a package open, for then it is past its start."""

    def look(process: subprocess.Popen[str]) -> bool:
        return name in Path(f"/proc/{process.pid}/maps").read_text()

    return look


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file that takes numpy longer than a test waits."""
    path = tmp_path_factory.mktemp("large") / "large.npy"
    rows = np.lib.format.open_memmap(path, "w+", np.float32, (1 << 15, 1024))
    rows[:], rows[:, ::2] = 1.5, -0.5
    return str(path)


needs_proc = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no /proc, which tells what a process has")


@needs_proc
@pytest.mark.parametrize("jobs", ["1", "auto"])
@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
def test_numpy_at_work_leaves_within_a_second(number: signal.Signals, jobs: str, large: str, tmp_path: Path) -> None:
    words = ("scan", large, "--engine", "numpy", "--jobs", jobs, "--output-format", "json")
    out, _, seconds = stopped(words, number, imported("_ml_dtypes"), tmp_path)
    assert json.loads(out)["not_audited"] == [{"source": "", "reason": CODES[number][1]}]
    assert seconds < A_SECOND


@needs_proc
@needs_numba
@pytest.mark.parametrize("after", sampled([0.0, 0.7, 1.1, 1.9], 1.1))
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_compilation_does_not_swallow_an_interrupt(jobs: str, after: float, large: str, tmp_path: Path) -> None:
    """The compiler calls back into Python where an exception goes nowhere, or comes out as another one."""
    has_llvm, seen = imported("libllvmlite"), [float("inf")]

    def when(process: subprocess.Popen[str]) -> bool:
        if has_llvm(process):
            seen[0] = min(seen[0], time.monotonic())
        return time.monotonic() - seen[0] >= after

    _, _, seconds = stopped(("scan", large, "--engine", "numba", "--jobs", jobs), signal.SIGINT, when, tmp_path)
    assert seconds < A_SECOND + 0.5  # half a second of grace, on a machine that does other things too


@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
def test_nothing_is_left_of_a_file_that_was_being_written(number: signal.Signals, tmp_path: Path) -> None:
    words = ("synth", "near-constant:rows=10000000,features=64", "-o", "family.npy")

    def writing(process: subprocess.Popen[str]) -> bool:
        return any(path.stat().st_size > 1 << 20 for path in tmp_path.glob(".lnaudit-*"))

    _, _, seconds = stopped(words, number, writing, tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert seconds < A_SECOND
