"""Commands in processes of their own, in turns: how long they take, what they say of themselves, their memory."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Run:
    """One run of a command: seconds of the whole process, its peak resident set in MiB, its standard output."""

    seconds: float
    peak: float
    output: str

    def own_seconds(self, elements: int) -> float:
        """Return the seconds that a last line "N Melem/s" stands for; of a program without it those of the process."""
        said = re.search(r"^([\d.]+) Melem/s\s*\Z", self.output, re.MULTILINE)
        return elements / float(said[1]) / 1e6 if said else self.seconds


def run(command: list[str], **variables: str) -> Run:
    """Run a command, with these environment variables; end everything if it fails.

    The peak counts from that of this process, whose memory a child has for a moment: so numpy is not imported here.
    """
    begun = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **variables}
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{output}")
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return Run(seconds, usage.ru_maxrss / unit, output)


def in_turns(commands: Mapping[K, list[str]], rounds: int) -> dict[K, list[Run]]:
    """Run every command once a round, one after the other."""
    runs: dict[K, list[Run]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            runs[name].append(run(command))
    return runs


def best(runs: list[Run]) -> float:
    """Return the shortest time."""
    return min(one.seconds for one in runs)


def median(runs: list[Run]) -> float:
    """Return the time in the middle."""
    return statistics.median(one.seconds for one in runs)


def peak(runs: list[Run]) -> float:
    """Return the largest memory, in MiB."""
    return max(one.peak for one in runs)


def duration(seconds: float) -> str:
    """Write a time."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.0f} ms"


def number(value: float | None, digits: int = 3) -> str:
    """Write a number with so many digits that count; a dash if there is none."""
    if value is None:
        return "-"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:,.{max(0, digits - whole)}f}"


def table(header: list[str], rows: list[list[str]]) -> str:
    """Write a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
