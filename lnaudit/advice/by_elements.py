"""The epsilons of a kernel whose row error has no closed form, element by element on the witness rows (design 4)."""

from __future__ import annotations

from ..summary import EpsilonTable, Summary
from .trials import Trials


def fill_table(trials: Trials, summary: Summary, i: int) -> None:
    """Fill the table of epsilons of such a kernel with what its witness rows do; leave others alone."""
    (fmt, kernel), plan, result = summary.plan.results[i], summary.plan, summary.results[i]
    if kernel.has_closed_form(plan.rms) or not summary.input.counts["finite_rows"]:
        return
    table = EpsilonTable.empty(len(plan.tried))
    for at, epsilon in enumerate(plan.tried):
        run = trials.run(fmt, kernel, epsilon=epsilon, sample=True).results[0]
        table.failing[at] = run.counts["unverified_rows"]
        table.nonfinite[at] = run.counts["nonfinite_rows"] - run.counts["overflow_rows"]
        worst, row = run.extremes.value("error"), run.extremes.row("error")
        if worst is not None and row is not None:
            table.worst[at], table.worst_row[at] = worst, row
    result.table = table
