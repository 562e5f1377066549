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
from .engine.choice import Chooser
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


Analyse = Callable[[Array, int, Plan, Workspace], RowStatistics]


def _analyse_with(engine: str) -> Analyse:
    """Return how an engine analyses a block; the compiled one is imported when it is asked for."""
    if engine == "numba":
        from .engine import numba_engine

        return numba_engine.analyse
    from .engine import numpy_engine

    return numpy_engine.analyse


def _work(analyse: Analyse, block: Array, first_row: int, plan: Plan) -> RowStatistics:
    """Analyse one block in this thread's own workspace."""
    workspace: Workspace | None = getattr(_local, "workspace", None)
    if workspace is None:
        workspace = _local.workspace = Workspace()
        check_hardware()
    with quiet():
        return analyse(block, first_row, plan, workspace)


class Summarizer:
    """Makes summaries as a run was asked to.

    Parameters
    ----------
    jobs : int
        Threads; 0 means one a core. The results do not depend on it.
    engine : str
        "numpy", "numba", or "auto": which of them pays. Nor do they depend on this.
    tell : callable, optional
        Told in a few words which engine analyses a site and why.
    """

    def __init__(self, jobs: int = 0, engine: str = "auto", tell: Callable[[str], None] | None = None) -> None:
        self._jobs, self._asked, self._tell = jobs or _cores(), engine, tell
        self._chooser = Chooser()

    def summarize(self, rows: Rows, plan: Plan, progress: Progress | None = None, name: str = "") -> Summary:
        """Return the Summary of all rows; `progress` is told the elements of each block; `name`: of a site to tell."""
        size = rows.rows * rows.features
        chosen = self._chooser.choose(self._asked, plan, size)
        if self._tell is not None and name:
            self._tell(f"{name}: engine {chosen.name} ({chosen.reason})")
        jobs = 1 if size <= ALONE else self._jobs
        elements = min(BLOCK_BYTES // rows.dtype.itemsize, BLOCK_ROWS * rows.features)
        total, waiting, amount = Summary.empty(plan), [], 0
        for done, statistics in _analysed(rows.blocks(elements), plan, jobs, chosen.name):
            waiting.append(statistics)
            amount += len(statistics.input.index)
            if amount >= FOLD_ROWS:
                total.merge(_folded(waiting, plan, chosen.name))
                waiting, amount = [], 0
            if progress is not None:
                progress(done)
        if waiting:
            total.merge(_folded(waiting, plan, chosen.name))
        return total


def _folded(statistics: list[RowStatistics], plan: Plan, engine: str) -> Summary:
    with quiet():
        return fold(join(statistics), plan, engine)


def _cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _analysed(
    blocks: Iterator[tuple[int, Array]], plan: Plan, jobs: int, engine: str
) -> Iterator[tuple[int, RowStatistics]]:
    """Yield elements and statistics of the blocks, in order."""
    analyse = _analyse_with(engine)
    if jobs == 1:
        for first_row, block in blocks:
            yield block.size, _work(analyse, block, first_row, plan)
        return
    pool = ThreadPoolExecutor(jobs)
    pending: deque[tuple[int, Future[RowStatistics]]] = deque()
    try:
        for first_row, block in blocks:
            pending.append((block.size, pool.submit(_work, analyse, block, first_row, plan)))
            del block
            while len(pending) > jobs:
                size, future = pending.popleft()
                yield size, future.result()
        while pending:
            size, future = pending.popleft()
            yield size, future.result()
    finally:
        # an interrupt does not wait for the blocks that are being worked on
        pool.shutdown(wait=False, cancel_futures=True)
