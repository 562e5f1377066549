"""Compiles what a plan needs in two processes at once: within one, numba compiles one function at a time.

What the other process (`main`) has compiled is found in the folder of compiled code. Only where nothing is there yet;
if anything fails, all is compiled here when it is called.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arithmetic import Workspace, quiet
from .engine.cache_folder import cache_folder, is_warm
from .engine.coverage import covers
from .engine.rows import CastStatistics, Plan, held_in
from .formats import Format, get_format
from .kernels import Kernel, get_kernel
from .summary import fold

Array = NDArray[Any]
Result = tuple[Format, Kernel]
_first = threading.Lock()  # taken once: what was found, or was in vain, is not asked again for the next site
FEATURES = 64
# the same package is imported as here, wherever another one is installed
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import lnaudit
del sys.path[0]
from lnaudit.compiling_ahead import main
main()
"""
PATIENCE = 30  # seconds that the other process may take longer
ALIKE = ("norm", "features", "model_epsilon", "epsilon", "epsilons", "points", "by_elements")


def compile_ahead(plan: Plan, dtype: np.dtype[Any]) -> None:
    """Compile what a plan asks of rows of a dtype, with the help of a second process, if nothing is compiled yet.

    Once in the life of this process.
    """
    if not _first.acquire(blocking=False):
        return
    here, there = _halves(plan)
    if not here or plan.weight is not None or plan.bias is not None or is_warm() or not _can_keep():
        return
    name = held_in(dtype)
    words = {key: getattr(plan, key) for key in ALIKE} | {"double_double": plan.needs_double_double}
    results = [(fmt.name, kernel.name) for fmt, kernel in there]
    # numbers of numpy are made floats
    process = _started(json.dumps({"dtype": name, "plan": words, "results": results}, default=float))
    if process is None:
        return
    with process:
        try:
            _compile(replace(plan, results=here, double_double=plan.needs_double_double), name)
            with suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
        finally:
            process.kill()


def _halves(plan: Plan) -> tuple[tuple[Result, ...], tuple[Result, ...]]:
    """Share out the kernels: what this process compiles, which has the reference and the epsilons too, and the other.

    Of kernels that cast alike the first counts what the cast does, so these stay together.
    """
    alike: dict[Format, list[Result]] = {}
    for fmt, kernel in plan.results:
        if covers(fmt, kernel, plan):
            alike.setdefault(kernel.stages(fmt).T, []).append((fmt, kernel))
    here: list[Result] = []
    there: list[Result] = []
    for results in alike.values():
        (here if len(here) + 1 < len(there) else there).extend(results)
    return tuple(here), tuple(there)


def _can_keep() -> bool:
    """Whether there is a folder that the other process can leave anything in."""
    with suppress(OSError, RuntimeError):
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        return os.access(folder, os.W_OK)
    return False


def _started(words: str) -> subprocess.Popen[str] | None:
    """Start the other process, told what to compile; None where that cannot be done.

    Its stdin stays open: when it ends, this process has ended.
    """
    if not sys.executable or getattr(sys, "frozen", False):
        return None
    # -P: nothing is imported from the folder that one happens to be in
    command = [sys.executable, "-P", "-c", PROGRAM, str(Path(__file__).resolve().parents[1])]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        process = subprocess.Popen(command, text=True, **pipes)
    except OSError:
        return None
    assert process.stdin is not None
    try:
        process.stdin.write(f"{words}\n")
        process.stdin.flush()
    except OSError:  # it has ended already
        process.kill()
        with suppress(OSError), process:
            pass
        return None
    return process


def _compile(plan: Plan, dtype: str) -> None:
    """Compile all that a plan needs by running it on one row."""
    from .engine import numba_engine

    row, plan = _short(plan, dtype)
    with quiet():
        fold(numba_engine.analyse(row, 0, plan, Workspace()), plan, "numba")


def _compile_kernels(plan: Plan, dtype: str) -> None:
    """Compile what runs the kernels of a plan, and nothing that others need too."""
    from .engine.numba_kernel import run
    from .engine.numba_rows import unreferred

    casts: dict[Format, CastStatistics] = {}
    row, plan = _short(plan, dtype)
    with quiet():
        rows = unreferred(row, plan)
        for fmt, kernel in plan.results:
            run(rows, casts, fmt, kernel, plan, Workspace())


def _short(plan: Plan, dtype: str) -> tuple[Array, Plan]:
    """Return one row and the plan for it: what is compiled depends on types, not on how long a row is."""
    features = min(plan.features, FEATURES)
    return np.linspace(-1, 1, features, dtype=dtype)[None], replace(plan, features=features)


def _end_with_the_other() -> None:
    sys.stdin.read()
    os._exit(1)


def main() -> None:
    """Compile what stdin says, as `compile_ahead` writes it."""
    words = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_the_other, daemon=True).start()
    said: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in words["plan"].items()}
    rms, features = said["norm"] == "rms", said["features"]
    results = [(get_format(fmt), get_kernel(kernel)) for fmt, kernel in words["results"]]
    at = tuple((fmt, kernel.at(fmt, rms, features)) for fmt, kernel in results)
    _compile_kernels(Plan(results=at, **said), words["dtype"])
