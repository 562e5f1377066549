"""Memory that is lent again is never lent while somebody reads it."""

from __future__ import annotations

import numpy as np
import pytest

from lnaudit.memory import CACHE_LINE, Recycled


def views(lent: np.ndarray) -> list[np.ndarray]:
    """Return what readers hold of memory: the whole, and views of views of it."""
    return [lent, lent[3:], lent.view("f4").reshape(4, -1).T[1:], lent.view("f8").byteswap(inplace=True)[::2]]


@pytest.mark.parametrize("held", range(4))
def test_memory_that_is_held_is_not_lent_again(held: int) -> None:
    memory = Recycled()
    lent = memory.aligned(64)
    lent[:] = 7
    kept = views(lent)[held]
    before, where = kept.tobytes(), lent.ctypes.data
    del lent
    other = memory.aligned(64)
    other[:] = 1
    assert not np.shares_memory(other, kept)
    assert kept.tobytes() == before
    del kept
    assert memory.aligned(64).ctypes.data == where


@pytest.mark.parametrize("nbytes", [0, 1, 64, 63, 100_000])
def test_it_has_the_size_asked_for_and_begins_with_a_cache_line(nbytes: int) -> None:
    memory = Recycled()
    for first in (0, 1, 64, 1000, 1_000_000):
        earlier = memory.aligned(first)
        assert len(earlier) == first
        del earlier
        lent = memory.aligned(nbytes)
        assert len(lent) == nbytes
        assert lent.flags.writeable
        assert lent.ctypes.data % CACHE_LINE == 0 or not nbytes


def test_much_more_memory_than_is_asked_for_is_given_back() -> None:
    memory = Recycled()
    memory.aligned(1 << 20)
    lent = memory.aligned(100)
    base = lent
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    assert memoryview(base).nbytes < 1 << 12
