"""The epsilons of a kernel whose row error has no closed form, element by element on the witness rows (design 4)."""

from __future__ import annotations

from ..summary import EpsilonTable, Summary
from .trials import Trials


def fill_table(trials: Trials, summary: Summary, i: int) -> None:
    """Fill the table of epsilons of such a kernel with what its witness rows do; leave others alone.

    So too under the other tolerances that the rows are judged under.
    """
    (fmt, kernel), plan = summary.plan.results[i], summary.plan
    if kernel.has_closed_form(plan.rms) or not summary.input.counts["finite_rows"]:
        return
    runs = [trials.run(fmt, kernel, epsilon=epsilon, sample=True) for epsilon in plan.tried]
    for k, under in enumerate((summary, *summary.variants)):
        table = EpsilonTable.empty(len(plan.tried))
        for at, run in enumerate(runs):
            result = (run, *run.variants)[k].results[0]
            table.failing[at] = result.counts["unverified_rows"]
            table.nonfinite[at] = result.counts["nonfinite_rows"] - result.counts["overflow_rows"]
            worst, row = result.extremes.value("error"), result.extremes.row("error")
            if worst is not None and row is not None:
                table.worst[at], table.worst_row[at] = worst, row
        under.results[i].table = table
