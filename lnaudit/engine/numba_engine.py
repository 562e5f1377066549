"""The compiled engine: the row statistics of `numpy_engine` to the last bit, from loops over a few rows at a time.

Results that it does not cover (`coverage.covers`) are analysed by the numpy engine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from ..arithmetic import Workspace
from ..formats import Format
from . import numba_kernel, numpy_engine
from .coverage import covers
from .numba_rows import refer
from .rows import CastStatistics, KernelStatistics, Plan, RowStatistics

Array = NDArray[Any]


def analyse(block: Array, first_row: int, plan: Plan, ws: Workspace) -> RowStatistics:
    """Return the statistics of the finite rows of a block of shape (n, d), whose first row has index `first_row`."""
    covered = [covers(fmt, kernel, plan) for fmt, kernel in plan.results]
    rows = refer(block, first_row, plan, ws) if any(covered) else None
    if rows is None:
        return numpy_engine.analyse(block, first_row, plan, ws)
    casts: dict[Format, CastStatistics] = {}
    kernels: list[KernelStatistics | None] = [
        numba_kernel.run(rows, casts, fmt, kernel, plan, ws) if done else None
        for (fmt, kernel), done in zip(plan.results, covered, strict=True)
    ]
    if not all(covered):
        left = tuple(result for result, done in zip(plan.results, covered, strict=True) if not done)
        others = replace(plan, results=left, double_double=plan.needs_double_double)
        rest = numpy_engine.analyse(block, first_row, others, ws)
        casts = {**rest.casts, **casts}
        remaining = iter(rest.kernels)
        kernels = [next(remaining) if found is None else found for found in kernels]
    ordered = {kernel.stages(fmt).T: casts[kernel.stages(fmt).T] for fmt, kernel in plan.results}
    return RowStatistics(
        input=rows.statistics, casts=ordered, kernels=[found for found in kernels if found is not None]
    )
