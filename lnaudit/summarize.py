"""From a site's rows to a Summary: blocks, threads, progress."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from numpy.typing import NDArray

from .arithmetic import Workspace, check_hardware, quiet
from .engine.choice import Chooser
from .engine.rows import Plan, RowStatistics, join
from .site import Rows
from .summary import Summary, fold

Array = NDArray[Any]
# what one thread reads and analyses at a time: blocks of all threads stay in a large cache, and a block outlasts what
# is done once for it (measured, two threads: 2^22 2.65, 2^23 2.36, 2^24 2.52 ns an element)
BLOCK_BYTES = 1 << 23
BLOCK_ROWS = 1 << 15  # of narrow rows the statistics are larger than the rows
# rows that are folded at a time: folding is many short steps, which take the interpreter rather than the processor
FOLD_ROWS = 1 << 14
ALONE = 1 << 18  # fewer elements than this are done before a second thread would have started
Progress = Callable[[int], None]
T = TypeVar("T")

_local = threading.local()


Analyse = Callable[[Array, int, Plan, Workspace], RowStatistics]


def _analyse_with(engine: str) -> Analyse:
    """Return how an engine analyses a block; the compiled one is imported when it is asked for."""
    if engine == "numba":
        from .engine import numba_engine

        return numba_engine.analyse
    from .engine import numpy_engine

    return numpy_engine.analyse


def _work(analyse: Analyse, block: Array, first_row: int, plan: Plan) -> tuple[int, RowStatistics]:
    """Analyse one block in this thread's own workspace; return its elements and the statistics of its rows."""
    workspace: Workspace | None = getattr(_local, "workspace", None)
    if workspace is None:
        workspace = _local.workspace = Workspace()
        check_hardware()
    with quiet():
        return block.size, analyse(block, first_row, plan, workspace)


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
        pool = ThreadPoolExecutor(jobs) if jobs > 1 else None
        analyse, total = _analyse_with(chosen.name), Summary.empty(plan)
        blocks = rows.blocks(min(BLOCK_BYTES // rows.dtype.itemsize, BLOCK_ROWS * rows.features))
        works = (partial(_work, analyse, block, first_row, plan) for first_row, block in blocks)
        groups = _grouped(_in_order(pool, works, jobs), progress)
        folds = (partial(_folded, group, plan, chosen.name) for group in groups)
        try:
            for summary in _in_order(pool, folds, jobs):
                total.merge(summary)
        finally:
            if pool is not None:  # an interrupt does not wait for what is being worked on
                pool.shutdown(wait=False, cancel_futures=True)
        return total


def _in_order(pool: ThreadPoolExecutor | None, tasks: Iterator[Callable[[], T]], ahead: int) -> Iterator[T]:
    """Yield what tasks return, in their order; of those of a pool so many are begun before one is waited for."""
    if pool is None:
        yield from (task() for task in tasks)
        return
    pending: deque[Future[T]] = deque()
    for task in tasks:
        pending.append(pool.submit(task))
        del task  # and with it the block
        while len(pending) > ahead:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def _grouped(analysed: Iterator[tuple[int, RowStatistics]], progress: Progress | None) -> Iterator[list[RowStatistics]]:
    """Collect the statistics of as many rows as are folded together, and say how far it is."""
    group: list[RowStatistics] = []
    amount = 0
    for elements, statistics in analysed:
        group.append(statistics)
        amount += len(statistics.input.index)
        if amount >= FOLD_ROWS:
            yield group
            group, amount = [], 0
        if progress is not None:
            progress(elements)
    if group:
        yield group


def _folded(statistics: list[RowStatistics], plan: Plan, engine: str) -> Summary:
    with quiet():
        return fold(join(statistics), plan, engine)


def _cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
