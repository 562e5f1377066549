"""Where compiled code is kept for the next run."""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cache
from pathlib import Path

from ..version import __version__

SOURCES = Path(__file__).parent


def cache_folder() -> Path:
    """Return the folder of compiled code: one a version of its sources, in the user's cache directory.

    The environment variable LNAUDIT_CACHE_DIR says where, in place of the directory that the system has for caches.

    Raises
    ------
    RuntimeError
        If the user has no home directory.
    """
    if named := os.environ.get("LNAUDIT_CACHE_DIR"):
        base = Path(named)
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "lnaudit"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches" / "lnaudit"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lnaudit"
    return base / f"{__version__}-{_digest()}"


@cache
def _digest() -> str:
    """Return a digest of all sources: numba looks at the file of a function alone, not at what that imports."""
    sources = b"".join(path.read_bytes() for path in sorted(SOURCES.rglob("*.py")))
    return hashlib.sha256(sources).hexdigest()[:12]


def is_warm() -> bool:
    """Whether compiled code of these sources is at hand."""
    try:
        return next(cache_folder().rglob("*.nbi"), None) is not None
    except (OSError, RuntimeError):
        return False
