"""Remedies: another epsilon, a pre-scale, a kernel, a format - each run before it is offered (design 6)."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..formats import FORMATS, WIDER, Format
from ..kernels import KERNELS, LADDER, Kernel
from ..site import ArrayRows, Rows
from ..summarize import summarize
from ..summary import Summary
from ..wording import epsilon as epsilon_text
from ..wording import magnitude, percent, short
from .window import Choice, candidates, distortion, recommend

Array = NDArray[Any]
ALL_ROWS_BELOW = 1 << 22  # elements: smaller sites are run again in full
HALF_RANGE = 0.5
LARGEST_SHIFT = 24
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
    """Runs emulations of a site again, on all its rows or on the witness rows of a large site; remembers them."""

    def __init__(self, rows: Rows, summary: Summary, judge: Judge) -> None:
        self._rows = rows
        self._plan = summary.plan
        self._judge = judge
        self._known: dict[tuple[str, Kernel, float, int, bool], Summary] = {}
        self.complete = rows.rows * rows.features < ALL_ROWS_BELOW
        self._witnesses = summary.witness_rows()
        self._sample: Rows | None = None

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
            self._known[key] = summarize(self._witness_rows() if sample else self._rows, plan)
        return self._known[key]

    def _witness_rows(self) -> Rows:
        if self._sample is None:
            self._sample = ArrayRows(self._rows.take(self._witnesses))
        return self._sample

    def verified(self, summary: Summary) -> str | bool:
        """Say on which rows a trial holds: no NaN or Inf, and every row's error within its limit."""
        if summary.results[0].counts["unverified_rows"]:
            return False
        return "all-rows" if self.complete else "witness-rows"

    def codes(self, summary: Summary) -> Codes:
        """Return what the rules find wrong with a trial."""
        return self._judge(summary, 0)

    def offer(self, ills: Codes, kind: str, detail: str, trial: Summary, **values: Any) -> Offer | None:
        """Offer a trial if it is verified and better: no error is left, and something is cured.

        Curing an error may leave a warning; curing a warning must bring no new one.
        """
        left = self.codes(trial)
        cured = tuple(code for code in ills if code not in left)
        worse = "error" in left.values() or ("error" not in ills.values() and not left.keys() <= ills.keys())
        verified = self.verified(trial)
        if not verified or not cured or worse:
            return None
        result = trial.results[0]
        cost = result.extremes.value("cast_error")
        if cost is not None and cost > trial.plan.limit_of(trial.plan.results[0][0]):
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


def offer(trials: Trials, fmt: Format, kernel: Kernel, choice: Choice, ills: Codes) -> list[Offer]:
    """Return what cures a result that has these findings, cheapest first."""
    attempts = (
        _other_epsilon(trials, fmt, kernel, choice, ills),
        _prescale(trials, fmt, kernel, ills),
        _other_kernel(trials, fmt, kernel, ills),
        _wider_format(trials, fmt, kernel, ills),
    )
    return [attempt for attempt in attempts if attempt is not None]


def weakest_clean_kernel(trials: Trials, fmt: Format) -> str | None:
    """Return the first kernel of the ladder without an error finding, None if there is none."""
    for name in LADDER:
        if "error" not in trials.codes(trials.run(fmt, KERNELS[name])).values():
            return name
    return None


def _other_epsilon(trials: Trials, fmt: Format, kernel: Kernel, choice: Choice, ills: Codes) -> Offer | None:
    if choice.epsilon is None or choice.reason == "keeps":
        return None
    trial = trials.run(fmt, kernel, epsilon=choice.epsilon)
    median, worst = distortion(trial, choice.epsilon)["p50"], float(trial.input.distortion[0])
    detail = f"epsilon {epsilon_text(choice.epsilon)}"
    if median is not None:
        detail += f": moves rows by {percent(median)} of the normalized scale (median), {percent(worst)} (worst)"
    return trials.offer(ills, "epsilon", detail, trial, epsilon=choice.epsilon)


def _prescale(trials: Trials, fmt: Format, kernel: Kernel, ills: Codes) -> Offer | None:
    """Try x * 2^k before the cast: down while anything held passes half of its range, else up until it is cured."""
    if "error" not in ills.values():
        return None
    if _peak(trials.run(fmt, kernel, sample=True)) > HALF_RANGE:
        shifts = _largest_shift_down(trials, fmt, kernel)
    else:
        shifts = _smallest_shift_up(trials, fmt, kernel)
    for k in shifts:
        choice = recommend(_scaled(trials, fmt, kernel, k), 0)
        if choice.epsilon is None:
            continue
        trial = trials.run(fmt, kernel, epsilon=choice.epsilon, prescale=k)
        effective = float(np.ldexp(choice.epsilon, -2 * k))
        detail = (
            f"scale the input by 2^{k}, with epsilon {epsilon_text(choice.epsilon)} on the scaled rows "
            f"(acts as {magnitude(effective)})"
        )
        values = {"k": k, "epsilon": choice.epsilon, "effective_epsilon": effective}
        return trials.offer(ills, "prescale", detail, trial, **values)
    return None


def _largest_shift_down(trials: Trials, fmt: Format, kernel: Kernel) -> list[int]:
    """Return the largest k < 0 for which everything held stays within half of its range, if there is one."""

    def fits(down: int, sample: bool) -> bool:
        return _peak(_scaled(trials, fmt, kernel, -down, sample)) <= HALF_RANGE

    # the witness rows first: they are few; then all rows must agree
    tried = range(1, LARGEST_SHIFT + 1)
    first = bisect.bisect_left(tried, True, key=lambda down: fits(down, True))
    found = next((down for down in tried[first:] if fits(down, False)), None)
    return [] if found is None else [-found]


def _smallest_shift_up(trials: Trials, fmt: Format, kernel: Kernel) -> list[int]:
    """Return the smallest k > 0 for which some epsilon is safe on the witness rows, if nothing overflows before."""
    for k in range(1, LARGEST_SHIFT + 1):
        trial = _scaled(trials, fmt, kernel, k, True)
        if _peak(trial) > HALF_RANGE:
            break
        if recommend(trial, 0).epsilon is not None:
            return [k]
    return []


def _scaled(trials: Trials, fmt: Format, kernel: Kernel, k: int, sample: bool = False) -> Summary:
    return trials.run(fmt, kernel, prescale=k, sample=sample)


def _peak(summary: Summary) -> float:
    peak = summary.results[0].extremes.value("peak")
    return 0.0 if peak is None else peak


def _other_kernel(trials: Trials, fmt: Format, kernel: Kernel, ills: Codes) -> Offer | None:
    offers = []
    if kernel.algorithm == "one_pass":
        two_pass = replace(kernel, algorithm="two_pass", name=kernel.name.replace("one_pass", "two_pass"))
        trial = trials.run(fmt, two_pass)
        detail = f"a two-pass variance (kernel {two_pass.name})"
        offers.append(trials.offer(ills, "kernel", detail, trial, kernel=two_pass.name))
    for name in LADDER:
        if name != kernel.name:
            trial = trials.run(fmt, KERNELS[name])
            detail = f"kernel {name}: {KERNELS[name].stands_for}"
            offers.append(trials.offer(ills, "kernel", detail, trial, kernel=name))
    return _best(offers, ills)


def _wider_format(trials: Trials, fmt: Format, kernel: Kernel, ills: Codes) -> Offer | None:
    offers = []
    for name in WIDER[fmt.name]:
        trial = trials.run(FORMATS[name], kernel)
        detail = f"{name} instead of {fmt.name}, same kernel"
        offers.append(trials.offer(ills, "format", detail, trial, format=name))
    return _best(offers, ills)


def _best(offers: list[Offer | None], ills: Codes) -> Offer | None:
    """Return the first that cures all errors and, if there are none, most of the warnings."""
    made = [offer for offer in offers if offer is not None]
    if "error" in ills.values():
        return made[0] if made else None
    return max(made, key=lambda offer: len(offer.cures), default=None)
