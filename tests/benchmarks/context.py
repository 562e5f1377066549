"""What is measured, with what, and where its files are."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
THREE = "float16,bfloat16,float32"


@dataclass(frozen=True)
class Bench:
    """A run of the benchmarks.

    rounds : how often each command runs; scale : by what the dumps are smaller than they are meant to be; engines : of
    lnaudit; peers : command lines without the file, by name.
    """

    folder: Path
    rounds: int
    scale: int
    engines: list[str]
    peers: dict[str, list[str]]

    def dump(self, rows: int, features: int = 1024, *kind: str) -> str:
        """Return a dump of so many rows, divided by the scale; written when it is first asked for.

        kind: dtype and order, if they are not float32 in C order.
        """
        rows //= self.scale
        path = self.folder / f"{rows}x{features}{''.join(kind).strip('<')}.npy"
        if not path.exists():
            # in a process of its own, so that this one stays small
            words = [str(HERE / "make_dump.py"), str(path), str(rows), str(features), *kind]
            subprocess.run([sys.executable, *words], check=True)
        return str(path)


def lnaudit(command: str, path: str, engine: str, *words: str) -> list[str]:
    """Return the command line of a scan or sweep of a file."""
    return [sys.executable, "-m", "lnaudit", command, path, "--engine", engine, *words]


def native(formats: str) -> list[str]:
    """Return the options that ask for the native kernel in these formats."""
    return ["--format", formats, "--kernel", "native"]


def version(python: str, package: str) -> str | None:
    """Return the version of a package that an interpreter can import, None if it cannot."""
    code = f"import importlib.metadata as m, {package}; print(m.version('{package}'))"
    try:
        found = subprocess.run([python, "-c", code], capture_output=True, text=True)
    except OSError:
        return None
    return found.stdout.split()[-1] if found.returncode == 0 else None


def machine() -> str:
    """Name the processor, the cores that may be used, the caches and the Python."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return ", ".join([_processor(), f"{cores} cores", *_caches(), f"Python {platform.python_version()}"])


def _processor() -> str:
    try:
        lines = [line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines()]
    except OSError:
        return platform.processor() or platform.machine()
    found = {name.strip(): value.strip() for name, _, value in lines}
    speed = f" at {float(found['cpu MHz']) / 1000:.1f} GHz" if "cpu MHz" in found else ""
    return found.get("model name", platform.machine()) + speed


def _caches() -> list[str]:
    """Return the caches of the first core, where the system tells."""
    caches = []
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            caches.append(f"L{level} {size}")
    return caches
