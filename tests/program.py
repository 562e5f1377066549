"""The program as users run it, in a process of its own, warnings as errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def run(*args: Any, cwd: Any = None, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the program; what the environment says of terminals and CI does not count."""
    command = [sys.executable, "-W", "error", "-m", "lnaudit", *map(str, args)]
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "FORCE_COLOR", "GITHUB_ACTIONS")}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment | (env or {}), timeout=120)


def run_in(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a folder, with these environment variables."""
    return run(*words, cwd=folder, env=variables)
