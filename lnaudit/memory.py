"""Memory that vectors of the processor read and write at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

CACHE_LINE = 64  # bytes


def aligned(nbytes: int) -> NDArray[Any]:
    """Return uninitialized bytes that begin with a cache line: a vector across two of them takes twice as long."""
    room = np.empty(nbytes + CACHE_LINE, np.uint8)
    start = -room.ctypes.data % CACHE_LINE
    return room[start : start + nbytes]
