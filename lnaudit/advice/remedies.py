"""Remedies: another epsilon, a pre-scale, a kernel, a format - each run before it is offered (design 6)."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator
from dataclasses import replace

from ..formats import FORMATS, WIDER, Format
from ..kernels import Kernel
from ..summary import HALF_RANGE, Summary
from ..wording import epsilon as epsilon_text
from ..wording import magnitude, percent
from .trials import Codes, Offer, Trials
from .window import Choice, distortion, held, recommend

STEPS_UP = 40  # more than the significands and the 1-2-5 grid can tell apart
LARGEST_SHIFT = 1100  # powers of two: more than the exponents of float64 in one direction
# what a power of two can cure: everything that comes of the range
CURED_BY_SCALE = ("LN102", "LN106")


def offer(trials: Trials, fmt: Format, kernel: Kernel, choice: Choice, ills: Codes) -> list[Offer]:
    """Return what cures a result that has these findings, cheapest first."""
    attempts = (
        _other_epsilon(trials, fmt, kernel, choice, ills),
        _prescale(trials, fmt, kernel, ills),
        _other_kernel(trials, fmt, kernel, ills),
        _wider_format(trials, fmt, kernel, ills),
    )
    return [attempt for attempt in attempts if attempt is not None]


def weakest_clean_kernel(trials: Trials, fmt: Format) -> tuple[str | None, bool]:
    """Return the first kernel of the ladder without an error finding, and whether all rows were run to find it."""
    whole = True
    for kernel in trials.ladder:
        trial = trials.run(fmt, kernel)
        whole = whole and trials.whole(trial)
        if "error" not in trials.codes(trial).values():
            return kernel.name, whole
    return None, whole


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
    if "error" not in ills.values() and not any(code in ills for code in CURED_BY_SCALE):
        return None
    unscaled = trials.run(fmt, kernel, sample=True)
    if _peak(unscaled) > HALF_RANGE:
        down = _largest_shift_down(trials, fmt, kernel)
        return None if down is None else _shifted(trials, fmt, kernel, ills, down)
    if not _held_below_normal(unscaled, fmt, kernel):
        return None
    for k in _shifts_up(trials, fmt, kernel):
        # the witness rows first: they are few
        if _shifted(trials, fmt, kernel, ills, k, sample=True) is not None:
            offer = _shifted(trials, fmt, kernel, ills, k)
            if offer is not None:
                return offer
    return None


def _shifted(trials: Trials, fmt: Format, kernel: Kernel, ills: Codes, k: int, *, sample: bool = False) -> Offer | None:
    """Offer a pre-scale by 2^k with the epsilon that suits it, if there is one and it cures."""
    choice = recommend(_scaled(trials, fmt, kernel, k, sample), 0)
    if choice.epsilon is None:
        return None
    trial = trials.run(fmt, kernel, epsilon=choice.epsilon, prescale=k, sample=sample)
    effective = trial.plan.effective(choice.epsilon)
    detail = f"scale the input by 2^{k}, with epsilon {epsilon_text(choice.epsilon)} on the scaled rows"
    if 0 < effective < math.inf:
        detail += f" (acts as {magnitude(effective)})"
    values = {"k": k, "epsilon": choice.epsilon, "effective_epsilon": effective}
    return trials.offer(ills, "prescale", detail, trial, **values)


def _largest_shift_down(trials: Trials, fmt: Format, kernel: Kernel) -> int | None:
    """Return the largest k < 0 for which everything held stays within half of its range, if there is one."""

    def fits(down: int, sample: bool) -> bool:
        return _peak(_scaled(trials, fmt, kernel, -down, sample)) <= HALF_RANGE

    # the witness rows first: they are few; then the others must agree, within three steps
    tried = range(1, LARGEST_SHIFT + 1)
    first = bisect.bisect_left(tried, True, key=lambda down: fits(down, True))
    return next((-down for down in tried[first : first + 4] if fits(down, False)), None)


def _held_below_normal(summary: Summary, fmt: Format, kernel: Kernel) -> bool:
    """Whether an element, a variance or epsilon is less than a normal number: else a scale upward changes nothing."""
    result, stages = summary.results[0], kernel.stages(fmt)
    lowest = result.extremes.value("-variance of the cast")
    return (
        result.counts["underflow"] + result.counts["subnormal"] > 0
        or held(summary.plan.epsilon, fmt, kernel)[1] != "normal"
        or (lowest is not None and -lowest < stages.variance.smallest_normal)
    )


def _shifts_up(trials: Trials, fmt: Format, kernel: Kernel) -> Iterator[int]:
    """Yield the k > 0 worth a try: from where the cast keeps something to where something passes half of its range."""

    def keeps_something(up: int) -> bool:
        counts = _scaled(trials, fmt, kernel, up, True).results[0].counts
        return counts["underflow"] < counts["nonzero"] or counts["nonzero"] == 0

    first = bisect.bisect_left(range(1, LARGEST_SHIFT + 1), True, key=keeps_something) + 1
    for up in range(first, min(first + STEPS_UP, LARGEST_SHIFT)):
        if _peak(_scaled(trials, fmt, kernel, up, True)) > HALF_RANGE:
            return
        yield up


def _scaled(trials: Trials, fmt: Format, kernel: Kernel, k: int, sample: bool = False) -> Summary:
    return trials.run(fmt, kernel, prescale=k, sample=sample)


def _peak(summary: Summary) -> float:
    peak = summary.results[0].extremes.value("peak")
    return 0.0 if peak is None else peak


def _other_kernel(trials: Trials, fmt: Format, kernel: Kernel, ills: Codes) -> Offer | None:
    def offers() -> Iterator[Offer | None]:
        if kernel.algorithm == "one_pass":
            two_pass = replace(kernel, algorithm="two_pass", name=_with_two_passes(kernel.name), proven="")
            detail = f"a two-pass variance (kernel {two_pass.name})"
            yield trials.offer(ills, "kernel", detail, trials.run(fmt, two_pass), kernel=two_pass.name)
        for other in trials.ladder:
            if other.name != kernel.name:
                # a flag of the hardware stays what it is
                trial = trials.run(fmt, replace(other, flush_subnormals=kernel.flush_subnormals))
                detail = f"kernel {other.name}: {other.stands_for}"
                yield trials.offer(ills, "kernel", detail, trial, kernel=other.name)

    return _best(offers(), ills)


def _with_two_passes(name: str) -> str:
    """Return the name of the same kernel with a two-pass variance."""
    if "one_pass" in name:
        return name.replace("one_pass", "two_pass")
    return f"{name}{',' if ':' in name else ':'}variance=two_pass"


def _wider_format(trials: Trials, fmt: Format, kernel: Kernel, ills: Codes) -> Offer | None:
    def offers() -> Iterator[Offer | None]:
        for name in WIDER[fmt.name]:
            detail = f"{name} instead of {fmt.name}, same kernel"
            yield trials.offer(
                ills, "format", detail, trials.run(FORMATS[name], trials.row(FORMATS[name], kernel)), format=name
            )

    return _best(offers(), ills)


def _best(offers: Iterator[Offer | None], ills: Codes) -> Offer | None:
    """Return the first that cures everything; failing that, the first that cures most."""
    best: Offer | None = None
    for offer in offers:
        if offer is not None and (best is None or len(offer.cures) > len(best.cures)):
            best = offer
            if len(best.cures) == len(ills) or "error" in ills.values():
                break
    return best
