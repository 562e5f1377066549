"""Which engine analyses rows: numpy, or the compiled one of the extra `fast`."""

from __future__ import annotations

from importlib.util import find_spec

from ..errors import LnauditError

ENGINES = ("auto", "numpy", "numba")


def check_engine(name: str) -> str:
    """Return the name of an engine that can run here.

    Raises
    ------
    LnauditError
        If there is none of that name, or the package that it needs is not installed.
    """
    if name not in ENGINES:
        raise LnauditError(f"unknown engine {name!r}", f"choose from {', '.join(ENGINES)}", "--engine")
    if name == "numba" and find_spec("numba") is None:
        raise LnauditError("the compiled engine needs numba", "pip install 'lnaudit[fast]'", "--engine")
    return name
