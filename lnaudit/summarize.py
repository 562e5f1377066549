"""From a site's rows to a Summary: blocks, threads, progress."""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from numpy.typing import NDArray

from .arithmetic import Workspace, check_hardware, quiet
from .compiling_ahead import compile_ahead
from .engine.choice import Chooser
from .engine.rows import Plan, RowStatistics, join
from .site import Rows
from .summary import Summary, fold

Array = NDArray[Any]
# what one thread reads and analyses at a time: blocks of all threads stay in a large cache, and a block outlasts what
# is done once for it (measured, two threads: 2^22 2.65, 2^23 2.36, 2^24 2.52 ns an element)
BLOCK_BYTES = 1 << 23
BLOCK_ROWS = 1 << 13  # of narrow rows the statistics are larger than the rows
# rows times emulations that are folded at a time: folding is many short steps, which take the interpreter rather than
# the processor; where the analysis takes far longer, memory counts more
FOLDED_AT_ONCE = {"numba": 9 << 13, "numpy": 2 << 13}
MANY_POINTS = 8  # each is a step more for a fold: rows are then folded twice as many at a time
ALONE = 1 << 18  # fewer elements than this are done before a second thread would have started
Progress = Callable[[int], None]
T = TypeVar("T")

_local = threading.local()


Analyse = Callable[[Array, int, Plan, Workspace], RowStatistics]
_Work = tuple[int, RowStatistics]  # elements of a block, and what was found about its rows


def _analyse_with(engine: str) -> Analyse:
    """Return how an engine analyses a block; the compiled one is imported when it is asked for."""
    if engine == "numba":
        from .engine import numba_engine

        return numba_engine.analyse
    from .engine import numpy_engine

    return numpy_engine.analyse


def _work(analyse: Analyse, plan: Plan, first_row: int, block: Array) -> _Work:
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
        """Return the Summary of all rows.

        progress: told the elements of each block. name: of a site, "" of a trial.
        """
        size = rows.rows * rows.features
        # what is only tried, on few rows, is not worth compiling another kernel
        asked = "auto" if self._asked == "numba" and not name else self._asked
        chosen = self._chooser.choose(asked, plan, size)
        if self._tell is not None and name:
            self._tell(f"{name}: engine {chosen.name} ({chosen.reason})")
        jobs = 1 if size <= ALONE else self._jobs
        pool = ThreadPoolExecutor(jobs) if jobs > 1 else None
        if chosen.name == "numba" and self._jobs > 1:
            _run(pool, partial(compile_ahead, plan, rows.dtype))
        analyse, total = _analyse_with(chosen.name), Summary.empty(plan)
        # shorter numbers are widened to float32
        blocks = rows.blocks(min(BLOCK_BYTES // max(rows.dtype.itemsize, 4), BLOCK_ROWS * rows.features))
        analysed = _analysed(pool, blocks, partial(_work, analyse, plan), jobs)
        at_once = (FOLDED_AT_ONCE[chosen.name] << (len(plan.points) > MANY_POINTS)) // len(plan.results)
        groups = _grouped(analysed, at_once, size, progress)
        folds = (partial(_folded, group, plan, chosen.name) for group in groups)
        try:
            for summary in _in_order(pool, folds, 1):
                total.merge(summary)
        finally:
            if pool is not None:  # an interrupt does not wait for what is being worked on
                pool.shutdown(wait=False, cancel_futures=True)
        return total


def _run(pool: ThreadPoolExecutor | None, task: Callable[[], None]) -> None:
    """Do something in a pool, where an interrupt does not wait for it."""
    if pool is None:
        task()
    else:
        pool.submit(task).result()


def _analysed(
    pool: ThreadPoolExecutor | None, blocks: Iterator[tuple[int, Array]], work: Callable[[int, Array], _Work], jobs: int
) -> Iterator[_Work]:
    """Yield what becomes of the blocks, in their order; each thread of a pool reads the block that it works on."""
    if pool is None:
        yield from itertools.starmap(work, blocks)
        return
    turn, numbered = threading.Lock(), enumerate(blocks)

    def take() -> tuple[int, _Work] | None:
        with turn:
            number, block = next(numbered, (0, None))
        return None if block is None else (number, work(*block))

    begun = deque(pool.submit(take) for _ in range(jobs + 1))
    done: dict[int, _Work] = {}
    wanted = 0
    while begun:
        found = begun.popleft().result()
        if found is not None:
            begun.append(pool.submit(take))
            done[found[0]] = found[1]
        while wanted in done:
            yield done.pop(wanted)
            wanted += 1


def _in_order(pool: ThreadPoolExecutor | None, tasks: Iterator[Callable[[], T]], ahead: int) -> Iterator[T]:
    """Yield what tasks return, in their order; of those of a pool so many are begun before one is waited for."""
    if pool is None:
        yield from (task() for task in tasks)
        return
    pending: deque[Future[T]] = deque()
    for task in tasks:
        pending.append(pool.submit(task))
        while len(pending) > ahead:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def _grouped(
    analysed: Iterator[_Work], rows: int, size: int, progress: Progress | None
) -> Iterator[list[RowStatistics]]:
    """Collect the statistics of so many rows, which are folded together, and say how far it is.

    The last ones, with which all of `size` elements are done, come in halves: nothing else is left to do beside them.
    """
    group: list[RowStatistics] = []
    amount = done = 0
    for elements, statistics in analysed:
        group.append(statistics)
        amount += len(statistics.input.index)
        done += elements
        if amount >= rows and done < size:
            yield group
            group, amount = [], 0
        if progress is not None:
            progress(elements)
    half = len(group) // 2
    yield from (part for part in (group[:half], group[half:]) if part)


def _folded(statistics: list[RowStatistics], plan: Plan, engine: str) -> Summary:
    with quiet():
        return fold(join(statistics), plan, engine)


def _cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
