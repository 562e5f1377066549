"""The processor under the emulation: silent about overflow, and not one that flushes subnormal numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ..errors import LnauditError


@contextmanager
def quiet() -> Iterator[None]:
    """Emulated overflow, underflow and invalid operations are findings, never warnings."""
    with np.errstate(all="ignore"):
        yield


def check_hardware() -> None:
    """Refuse to run where a library has switched this thread's processor to flush subnormals.

    Raises
    ------
    LnauditError
        If a subnormal result or operand is flushed to zero.
    """
    for dtype in ("float32", "float64"):
        smallest = np.array([np.finfo(dtype).tiny], dtype)
        half = np.array([0.5], dtype)
        subnormal = smallest * half
        if subnormal[0] == 0 or (subnormal / half)[0] == 0:
            raise LnauditError(
                "this process flushes subnormal numbers to zero (a library loaded into it has switched that on)",
                "run lnaudit in a process of its own",
            )
