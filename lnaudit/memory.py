"""Memory that vectors of the processor read and write at once."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

CACHE_LINE = 64  # bytes


def aligned(nbytes: int) -> NDArray[Any]:
    """Return uninitialized bytes that begin with a cache line: a vector across two of them takes twice as long."""
    room = np.empty(nbytes + CACHE_LINE, np.uint8)
    start = -room.ctypes.data % CACHE_LINE
    return room[start : start + nbytes]


class Recycled:
    """Memory that is lent again when nothing of what was lent is held any more: new pages cost as much as a read."""

    def __init__(self) -> None:
        self._free: list[NDArray[Any]] = []

    def aligned(self, nbytes: int) -> NDArray[Any]:
        """Return what `aligned` does."""
        room = self._free.pop() if self._free else aligned(nbytes)
        if not nbytes <= len(room) <= 2 * nbytes:
            room = aligned(nbytes)
        # views are of what is lent, for it is of no other array
        lent = np.frombuffer(room.data, np.uint8)
        weakref.finalize(lent, self._free.append, room).atexit = False
        return lent[:nbytes]
