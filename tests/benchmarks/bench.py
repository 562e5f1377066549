"""Measure lnaudit beside other programs, in one run and in turns, and print the tables of README.md.

    python tests/benchmarks/bench.py [--peer-python PYTHON] [--pychop-python PYTHON] [--rounds 5] [--quick]

The interpreter that runs it has lnaudit; the peers may live in others. What the columns mean is in README.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import growth
import memory
import tables
from context import HERE, Bench, lnaudit, machine, version

SMALLER = 64  # by what --quick divides the rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python", metavar="PYTHON", default=sys.executable, help="an interpreter with torch")
    parser.add_argument("--pychop-python", metavar="PYTHON", default=sys.executable, help="an interpreter with pychop")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--large", action="store_true", help="memory of a file of 8 GiB too")
    parser.add_argument("--quick", action="store_true", help="small files, one round: to see that everything runs")
    options = parser.parse_args()
    rounds, scale = (1, SMALLER) if options.quick else (options.rounds, 1)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LNAUDIT_CACHE_DIR"] = str(Path(folder, "cache"))  # what was compiled before does not count
        peers, about_peers = _peers(options.peer_python, options.pychop_python)
        bench = Bench(Path(folder), rounds, scale, engines=[], peers=peers)
        engines, about = _engines(bench.dump(256 * scale))
        if not engines:
            sys.exit("; ".join(about))
        bench = replace(bench, engines=engines)
        print("; ".join([machine(), *about, *about_peers, f"best of {rounds}, in turns"]), flush=True)
        if options.quick:
            print("\n--quick: shows that everything runs, not how fast.", flush=True)
        for make in (tables.speed, *growth.TABLES, tables.parts, tables.startup):
            print(f"\n{make(bench)}", flush=True)
        print(f"\n{memory.peaks(bench, options.large)}", flush=True)


def _peers(torch_python: str, pychop_python: str) -> tuple[dict[str, list[str]], list[str]]:
    """Return the command lines of the peers that can run, and what the header says of all."""
    commands, about = {}, []
    for package, wanted, python, option in (
        ("torch", "2.13.0", torch_python, "--peer-python"),
        ("pychop", "0.6.2", pychop_python, "--pychop-python"),
    ):
        found = version(python, package)
        if found:
            commands[package] = [python, str(HERE / f"peer_{package}.py")]
            about.append(f"{package} {found}")
        else:
            about.append(f"{package} left out (pip install {package}=={wanted}, then {option} PYTHON)")
    return commands, about


def _engines(path: str) -> tuple[list[str], list[str]]:
    """Return the engines that scan a file, which compiles what they compile, and what the header says of them."""
    found = {package: version(sys.executable, package) for package in ("lnaudit", "numpy", "numba")}
    engines, about = [], [f"{package} {number}" for package, number in found.items() if number]
    for engine in ("numpy", "numba"):
        tried = subprocess.run(lnaudit("scan", path, engine), capture_output=True, text=True)
        if tried.returncode == 0:
            engines.append(engine)
        else:
            about.append(f"engine {engine} left out ({_last_words(tried.stderr) or f'exit code {tried.returncode}'})")
    return engines, about


def _last_words(said: str) -> str:
    """Return the last line of an error message, without its frame."""
    lines = [line.strip(" \u2502") for line in said.splitlines()]
    return next((line for line in reversed(lines) if any(map(str.isalnum, line))), "")


if __name__ == "__main__":
    main()
