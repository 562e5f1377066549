"""Remedies: another epsilon, a pre-scale, a kernel, a format - each run before it is offered (design 6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..formats import FORMATS, WIDER, Format
from ..kernels import KERNELS, LADDER, Kernel
from ..site import Rows
from ..summarize import summarize, summarize_rows
from ..summary import Summary
from .window import Choice, candidates, recommend

Array = NDArray[Any]
ALL_ROWS_BELOW = 1 << 22  # elements: smaller sites are run again in full
HALF_RANGE = 0.5
LARGEST_SHIFT = 24
# the severities that a trial must be free of, by the worst severity that it is to cure
Judge = Callable[[Summary, int], str | None]


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A verified remedy: what to change, on how many rows it was run, and the largest row error there."""

    kind: str
    detail: str
    verified: str
    rows: int
    error_max: float | None
    values: dict[str, Any] = field(default_factory=dict)


class Trials:
    """Runs emulations of a site again, on all its rows or on the witness rows of a large site; remembers them."""

    def __init__(self, rows: Rows, summary: Summary, judge: Judge) -> None:
        self._rows = rows
        self._plan = summary.plan
        self._judge = judge
        self._known: dict[tuple[str, Kernel, float, int, bool], Summary] = {}
        self.complete = rows.rows * rows.features < ALL_ROWS_BELOW
        self._witnesses = summary.witness_rows()

    def run(
        self, fmt: Format, kernel: Kernel, *, epsilon: float | None = None, prescale: int = 0, sample: bool = False
    ) -> Summary:
        """Emulate one result at an epsilon (the model's by default); `sample` asks for the witness rows only."""
        epsilon = self._plan.model_epsilon if epsilon is None else epsilon
        sample = sample or not self.complete
        key = (fmt.name, kernel, epsilon, prescale, sample)
        if key not in self._known:
            plan = replace(
                self._plan,
                results=((fmt, kernel),),
                epsilon=epsilon,
                epsilons=candidates(self._plan.model_epsilon) if prescale else (),
                prescale=prescale,
            )
            self._known[key] = (
                summarize_rows(self._rows, self._witnesses, plan) if sample else summarize(self._rows, plan)
            )
        return self._known[key]

    def verified(self, summary: Summary) -> str | bool:
        """Say on which rows a trial holds: no NaN or Inf, and every row's error within its limit."""
        if summary.results[0].counts["unverified_rows"]:
            return False
        return "all-rows" if self.complete else "witness-rows"

    def worst_severity(self, summary: Summary) -> str | None:
        """Return the worst severity of a trial's findings."""
        return self._judge(summary, 0)

    def cures(self, summary: Summary, severity: str) -> bool:
        """Whether a trial is verified and free of findings as bad as `severity`."""
        found = self.worst_severity(summary)
        bad = found == "error" or (severity == "warning" and found == "warning")
        return not bad and bool(self.verified(summary))

    def offer(self, kind: str, detail: str, summary: Summary, **values: Any) -> Offer:
        """Make an offer of a trial."""
        return Offer(
            kind=kind,
            detail=detail,
            verified=str(self.verified(summary)),
            rows=summary.results[0].counts["finite_cast_rows"],
            error_max=summary.results[0].extremes.value("error"),
            values=values,
        )


def offer(trials: Trials, fmt: Format, kernel: Kernel, choice: Choice, model_epsilon: float, severity: str) -> list[Offer]:
    """Return what cures a result whose worst finding has this severity, cheapest first."""
    attempts = (
        _other_epsilon(trials, fmt, kernel, choice, model_epsilon),
        _prescale(trials, fmt, kernel, model_epsilon) if severity == "error" else None,
        _other_kernel(trials, fmt, kernel, severity),
        _wider_format(trials, fmt, kernel, severity),
    )
    return [attempt for attempt in attempts if attempt is not None]


def weakest_clean_kernel(trials: Trials, fmt: Format) -> str | None:
    """Return the first kernel of the ladder without an error finding, None if there is none."""
    for name in LADDER:
        if trials.worst_severity(trials.run(fmt, KERNELS[name])) != "error":
            return name
    return None


def _other_epsilon(trials: Trials, fmt: Format, kernel: Kernel, choice: Choice, model_epsilon: float) -> Offer | None:
    if choice.epsilon is None or choice.epsilon == model_epsilon:
        return None
    trial = trials.run(fmt, kernel, epsilon=choice.epsilon)
    if not trials.verified(trial):
        return None
    return trials.offer("epsilon", f"epsilon {_short(choice.epsilon)}", trial, epsilon=choice.epsilon)


def _prescale(trials: Trials, fmt: Format, kernel: Kernel, model_epsilon: float) -> Offer | None:
    """Try x * 2^k before the cast: down while anything held passes half of its range, else up until it is cured."""
    shifts: list[int] = []
    if _peak(trials.run(fmt, kernel, sample=True)) > HALF_RANGE:
        for k in range(-1, -LARGEST_SHIFT - 1, -1):
            # the witness rows first: they are few, and all rows must agree
            if all(_peak(_scaled(trials, fmt, kernel, k, sample)) <= HALF_RANGE for sample in (True, False)):
                shifts = [k]
                break
    else:
        for k in range(1, LARGEST_SHIFT + 1):
            trial = _scaled(trials, fmt, kernel, k, True)
            if _peak(trial) > HALF_RANGE:
                break
            if recommend(trial, 0).epsilon is not None:
                shifts = [k]
                break
    for k in shifts:
        choice = recommend(_scaled(trials, fmt, kernel, k), 0)
        if choice.epsilon is None:
            continue
        trial = trials.run(fmt, kernel, epsilon=choice.epsilon, prescale=k)
        if trials.verified(trial) and not trial.results[0].counts["overflow_rows"]:
            effective = float(np.ldexp(choice.epsilon, -2 * k))
            detail = (
                f"scale the input by 2^{k}, with epsilon {_short(choice.epsilon)} on the scaled rows "
                f"(acts as {_short(effective)})"
            )
            return trials.offer("prescale", detail, trial, k=k, epsilon=choice.epsilon, effective_epsilon=effective)
    return None


def _scaled(trials: Trials, fmt: Format, kernel: Kernel, k: int, sample: bool = False) -> Summary:
    return trials.run(fmt, kernel, prescale=k, sample=sample)


def _peak(summary: Summary) -> float:
    peak = summary.results[0].extremes.value("peak")
    return 0.0 if peak is None else peak


def _other_kernel(trials: Trials, fmt: Format, kernel: Kernel, severity: str) -> Offer | None:
    for name in LADDER:
        if name != kernel.name:
            trial = trials.run(fmt, KERNELS[name])
            if trials.cures(trial, severity):
                return trials.offer("kernel", f"kernel {name}: {KERNELS[name].stands_for}", trial, kernel=name)
    return None


def _wider_format(trials: Trials, fmt: Format, kernel: Kernel, severity: str) -> Offer | None:
    for name in WIDER[fmt.name]:
        trial = trials.run(FORMATS[name], kernel)
        if trials.cures(trial, severity):
            return trials.offer("format", f"{name} instead of {fmt.name} (kernel {kernel.name})", trial, format=name)
    return None


def _short(epsilon: float) -> str:
    mantissa, _, exponent = f"{epsilon:.3g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa

