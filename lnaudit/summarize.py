"""From a site's rows to a Summary: blocks, threads, progress."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from numpy.typing import NDArray

from .arithmetic import Workspace, check_hardware, quiet
from .engine import numpy_engine
from .engine.rows import Plan, RowStatistics, join
from .site import Rows
from .summary import Summary, fold

Array = NDArray[Any]
BLOCK_BYTES = 1 << 24  # what one thread reads and analyses at a time
BLOCK_ROWS = 1 << 15  # of narrow rows the statistics are larger than the rows
# rows that are folded at a time: folding is many short steps, which take the interpreter rather than the processor
FOLD_ROWS = 1 << 14
ALONE = 1 << 18  # fewer elements than this are done before a second thread would have started
Progress = Callable[[int], None]

_local = threading.local()


def _work(block: Array, first_row: int, plan: Plan) -> RowStatistics:
    """Analyse one block in this thread's own workspace."""
    workspace: Workspace | None = getattr(_local, "workspace", None)
    if workspace is None:
        workspace = _local.workspace = Workspace()
        check_hardware()
    with quiet():
        return numpy_engine.analyse(block, first_row, plan, workspace)


def summarize(
    rows: Rows, plan: Plan, progress: Progress | None = None, jobs: int = 0, engine: str = "numpy"
) -> Summary:
    """Return the Summary of all rows.

    Parameters
    ----------
    progress : callable, optional
        Told the number of elements done after each block.
    jobs : int
        Threads; 0 means one a core. The result does not depend on it.
    engine : str
        "numpy", "numba", or "auto": which of them pays. Nor does it depend on this.
    """
    jobs = jobs or _cores()
    if rows.rows * rows.features <= ALONE:
        jobs = 1
    elements = min(BLOCK_BYTES // rows.dtype.itemsize, BLOCK_ROWS * rows.features)
    total, waiting, amount = Summary.empty(plan), [], 0
    for size, statistics in _analysed(rows.blocks(elements), plan, jobs):
        waiting.append(statistics)
        amount += len(statistics.input.index)
        if amount >= FOLD_ROWS:
            total.merge(_folded(waiting, plan))
            waiting, amount = [], 0
        if progress is not None:
            progress(size)
    if waiting:
        total.merge(_folded(waiting, plan))
    return total


def _folded(statistics: list[RowStatistics], plan: Plan) -> Summary:
    with quiet():
        return fold(join(statistics), plan)


def _cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _analysed(blocks: Iterator[tuple[int, Array]], plan: Plan, jobs: int) -> Iterator[tuple[int, RowStatistics]]:
    """Yield elements and statistics of the blocks, in order."""
    if jobs == 1:
        for first_row, block in blocks:
            yield block.size, _work(block, first_row, plan)
        return
    with ThreadPoolExecutor(jobs) as pool:
        pending: deque[tuple[int, Future[RowStatistics]]] = deque()
        try:
            for first_row, block in blocks:
                pending.append((block.size, pool.submit(_work, block, first_row, plan)))
                del block
                while len(pending) > jobs:
                    size, future = pending.popleft()
                    yield size, future.result()
            while pending:
                size, future = pending.popleft()
                yield size, future.result()
        finally:
            for _, future in pending:
                future.cancel()
