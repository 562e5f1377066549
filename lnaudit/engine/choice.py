"""Which engine analyses rows: numpy, or the compiled one of the extra `fast`."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from ..errors import LnauditError
from .cache_folder import is_warm
from .coverage import covers
from .rows import Plan

ENGINES = ("auto", "numpy", "numba")
# elements times results for which numpy takes as long as loading compiled code, and as compiling it (measured: 10^8 a
# second, 0.6 s and 10 s)
PAYS_WARM, PAYS_COLD = 1 << 26, 1 << 30


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


@dataclass(frozen=True)
class Chosen:
    """An engine and why it was chosen, in a few words."""

    name: str
    reason: str


class Chooser:
    """Chooses engines for one site after the other; what numpy has done already counts, for it could have paid then."""

    def __init__(self) -> None:
        self._work = 0

    def choose(self, asked: str, plan: Plan, elements: int) -> Chosen:
        """Return the engine for so many elements; the results do not depend on it."""
        covered = sum(covers(fmt, kernel, plan) for fmt, kernel in plan.results)
        if asked == "numpy":
            return Chosen("numpy", "asked for")
        if not covered:
            return Chosen("numpy", "the compiled engine has none of these kernels")
        some = "" if covered == len(plan.results) else f", numpy for {_uncovered(plan)}"
        if asked == "numba":
            return Chosen("numba", f"asked for{some}")
        if find_spec("numba") is None:
            return Chosen("numpy", "numba is not installed: pip install 'lnaudit[fast]'")
        work = self._work + elements * covered
        if work >= PAYS_COLD or (work >= PAYS_WARM and is_warm()):
            return Chosen("numba", f"many elements{some}")
        self._work = work
        return Chosen("numpy", "few elements")


def _uncovered(plan: Plan) -> str:
    names = [f"{fmt.name} {kernel.name}" for fmt, kernel in plan.results if not covers(fmt, kernel, plan)]
    return ", ".join(dict.fromkeys(names))
