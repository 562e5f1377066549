"""Trials: emulations of a site run again, to search remedies and to prove them before they are offered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..formats import Format
from ..kernels import KERNELS, LADDER, Kernel
from ..site import ArrayRows, Rows
from ..summarize import Summarizer
from ..summary import Summary
from ..wording import short
from .window import candidates

ALL_ROWS_BELOW = 1 << 22  # elements: smaller sites are run again in full
PROOF_ELEMENTS = 1 << 18  # of a larger one
# codes of the findings about a result that are errors or warnings -> severity
Codes = dict[str, str]
Judge = Callable[[Summary, int], Codes]


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A verified remedy: what to change, which codes that cures, the rows it was run on, the largest row error."""

    kind: str
    detail: str
    verified: str
    rows: int
    error_max: float | None
    cures: tuple[str, ...]
    values: dict[str, Any] = field(default_factory=dict)


class Trials:
    """Runs emulations of a site again and remembers them.

    A search looks at the witness rows, which are few. What is about to be offered is then run on all rows, on a large
    site on the witnesses and rows evenly spread between them; what the audit itself has run on all rows is not run
    again.
    """

    def __init__(
        self,
        rows: Rows,
        summary: Summary,
        judge: Judge,
        summarizer: Summarizer,
        *,
        on_hardware: Callable[[Kernel], Kernel] = lambda kernel: kernel,
        complete: bool = False,
    ) -> None:
        # the kernels that are known, as the hardware of the audit runs them
        self.ladder = tuple(on_hardware(KERNELS[name]) for name in LADDER)
        self._rows = rows
        self._main = summary
        self._judge = judge
        self._summarizer = summarizer
        self._known: dict[tuple[str, Kernel, float, int, bool], Summary] = {}
        self._complete = complete or rows.rows * rows.features < ALL_ROWS_BELOW

    @cached_property
    def _witness_rows(self) -> Rows:
        return ArrayRows(self._rows.take(self._main.witness_rows()))

    @cached_property
    def _proof_rows(self) -> Rows:
        if self._complete:
            return self._rows
        spread = np.arange(0, self._rows.rows, -(-self._rows.rows * self._rows.features // PROOF_ELEMENTS))
        return ArrayRows(self._rows.take(np.union1d(self._main.witness_rows(), spread)))

    def row(self, fmt: Format, kernel: Kernel) -> Kernel:
        """Return the row of a kernel for the rows of this site in another format."""
        return kernel.at(fmt, self._main.plan.rms, self._main.plan.features)

    def run(
        self, fmt: Format, kernel: Kernel, *, epsilon: float | None = None, prescale: int = 0, sample: bool = False
    ) -> Summary:
        """Emulate one result at an epsilon (the model's by default); `sample` asks for the witness rows only."""
        plan = self._main.plan
        epsilon = plan.model_epsilon if epsilon is None else epsilon
        if (fmt, kernel) in plan.results and epsilon == plan.epsilon and prescale == 0:
            return self._main.only(plan.results.index((fmt, kernel)))
        key = (fmt.name, kernel, epsilon, prescale, sample)
        if key not in self._known:
            trial = replace(
                plan,
                results=((fmt, kernel),),
                epsilon=epsilon,
                epsilons=candidates(plan.model_epsilon) if prescale else (),
                prescale=prescale,
                variants=plan.variants if sample else (),
            )
            rows = self._witness_rows if sample else self._proof_rows
            self._known[key] = self._summarizer.summarize(rows, trial)
        return self._known[key]

    def verified(self, summary: Summary) -> str | bool:
        """Say on which rows a trial holds: no NaN or Inf, and every row's error within its limit."""
        if summary.results[0].counts["unverified_rows"]:
            return False
        return "all-rows" if self.whole(summary) else "witness-rows"

    def whole(self, summary: Summary) -> bool:
        """Whether a trial was run on all rows."""
        return summary.input.counts["finite_rows"] == self._main.input.counts["finite_rows"]

    def codes(self, summary: Summary) -> Codes:
        """Return what the rules find wrong with a trial."""
        return self._judge(summary, 0)

    def offer(self, ills: Codes, kind: str, detail: str, trial: Summary, **values: Any) -> Offer | None:
        """Offer a trial if it is verified, cures something and brings no new error; curing a warning, no new warning.

        What is verified has no failing row but those that the cast has lost, so only errors of the cast may remain.
        """
        left = self.codes(trial)
        cured = tuple(code for code in ills if code not in left)
        new = {severity for code, severity in left.items() if ills.get(code) != severity}
        worse = "error" in new or ("error" not in ills.values() and bool(new))
        verified = self.verified(trial)
        if not verified or not cured or worse:
            return None
        result, fmt = trial.results[0], trial.plan.results[0][0]
        cost, error = result.extremes.value("cast_error") or 0.0, result.extremes.value("error") or 0.0
        limit = trial.plan.limit_of(fmt)
        if error > 1.1 * cost + limit + fmt.unit_roundoff:
            return None  # within twice the cast's cost, but far beyond it: no cure
        if cost > limit:
            detail += f" (what the cast costs remains: up to {short(cost)})"
        return Offer(
            kind=kind,
            detail=detail,
            verified=str(verified),
            rows=result.counts["finite_cast_rows"],
            error_max=result.extremes.value("error"),
            cures=cured,
            values=values,
        )
