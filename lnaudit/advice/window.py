"""The window of safe epsilons of an emulation, and the one to use (design 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from ..arithmetic import quiet, round_number
from ..engine.interpreter import inverse
from ..formats import Format
from ..kernels import Kernel
from ..summary import Summary
from ..summary.parts import weighted_quantile
from ..theory import collapse_ratio
from ..wording import SAME

GRID = (*(float(f"{m}e{k}") for k in range(-14, -1) for m in (1, 2, 5)), 0.1)
# epsilons that circulate for float16: nextafter(0), the converters' floor, smallest normal, and two round numbers
CONSTANTS = (6e-8, 1e-7, 6.1e-5, 1e-4, 1e-3)
AT_ONCE = 1 << 15  # bins
HELD_WITHIN = 0.01  # a recommended epsilon is held to 1 % or to the format's unit roundoff


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The epsilon to use, before it is verified.

    epsilon is None where no candidate is safe; lower and upper are the ends of the run of safe candidates around it;
    robust is the nearest safe one that is held as a normal number; best_effort has the smallest worst F.
    """

    epsilon: float | None
    lower: float | None
    upper: float | None
    robust: float | None
    reason: str = "keeps"
    best_effort: float | None = None
    safe: tuple[float, ...] = ()


def candidates(model_epsilon: float) -> tuple[float, ...]:
    """Return the epsilons that are tried, ascending: 1, 2, 5 x 10^k from 1e-14 to 0.1 and the model's own."""
    others = [e for e in GRID if not math.isclose(e, model_epsilon, rel_tol=SAME)]
    return tuple(sorted([*others, model_epsilon]))


def held(epsilon: float, fmt: Format, kernel: Kernel) -> tuple[float, str]:
    """Return epsilon as the kernel holds it, 0 if it adds none, and its class there: normal, subnormal or zero."""
    stage = kernel.stages(fmt).epsilon
    value = 0.0 if kernel.epsilon_place == "none" else round_number(epsilon, stage)
    return value, stage.held_as(value)


@cache
def left_on_zero_row(epsilon: float, fmt: Format, kernel: Kernel) -> float:
    """Return what the kernel has for variance + epsilon in a row whose variance is 0."""
    with quiet():
        zero = np.zeros(1, kernel.stages(fmt).variance.carrier)
        return float(inverse(zero, (epsilon,), fmt, kernel)[0][0, 0])


def choose(
    safe: tuple[float, ...], tried: tuple[float, ...], model_epsilon: float, fmt: Format, kernel: Kernel
) -> Choice:
    """Choose among safe epsilons: the model's own, else the smallest above it that is held well, else one below."""
    if model_epsilon in safe:
        best: float | None = model_epsilon
    else:
        within = max(HELD_WITHIN, kernel.stages(fmt).epsilon.unit_roundoff)
        well = [e for e in safe if abs(held(e, fmt, kernel)[0] - e) <= within * e]
        above = [e for e in well if e > model_epsilon]
        normal = [e for e in above if held(e, fmt, kernel)[1] == "normal"]
        best = min(normal or above, default=max(well, default=None))
    if best is None:
        return Choice(epsilon=None, lower=None, upper=None, robust=None, safe=safe)
    at = tried.index(best)
    low = high = at
    while low > 0 and tried[low - 1] in safe:
        low -= 1
    while high + 1 < len(tried) and tried[high + 1] in safe:
        high += 1
    immune = [e for e in safe if _survives_flushing(e, fmt, kernel)]
    robust = min(immune, key=lambda e: abs(math.log(e / best)), default=None)
    return Choice(epsilon=best, lower=tried[low], upper=tried[high], robust=robust, safe=safe)


def _survives_flushing(epsilon: float, fmt: Format, kernel: Kernel) -> bool:
    """Whether epsilon is a normal number where the kernel holds it, and where it stores variance + epsilon."""
    stored = kernel.stages(fmt).plus_epsilon.held_as(left_on_zero_row(epsilon, fmt, kernel))
    return held(epsilon, fmt, kernel)[1] == stored == "normal"


def recommend(summary: Summary, i: int) -> Choice:
    """Return the choice for result i of a summary whose plan holds the candidates of its model epsilon.

    A candidate is safe if the kernel holds it as a number > 0 and no row with finite input and cast is not finite or
    deviates from what the model means by more than its limit.
    """
    plan, result = summary.plan, summary.results[i]
    fmt, kernel = plan.results[i]
    tried = candidates(plan.model_epsilon)
    at = {epsilon: plan.tried.index(epsilon) for epsilon in tried}
    failing = {e: int(result.table.failing[at[e]]) for e in tried}
    rows = result.counts["finite_cast_rows"]
    destroyed = result.primary["LN203"]
    if rows == 0 or destroyed == rows:
        # the cast has already lost every row: no epsilon is advised for that
        return Choice(epsilon=None, lower=None, upper=None, robust=None, reason="cast")
    safe = tuple(e for e in tried if failing[e] == 0 and 0 < held(e, fmt, kernel)[0] < math.inf)
    choice = choose(safe, tried, plan.model_epsilon, fmt, kernel)
    reason = _reason(summary, i, choice)
    worst = {e: float(result.table.worst[at[e]]) for e in tried if result.table.nonfinite[at[e]] == 0}
    best_effort = min(worst, key=lambda e: worst[e], default=None) if choice.epsilon is None else None
    return Choice(
        epsilon=choice.epsilon,
        lower=choice.lower,
        upper=choice.upper,
        robust=choice.robust,
        safe=safe,
        reason=reason,
        best_effort=best_effort,
    )


def _reason(summary: Summary, i: int, choice: Choice) -> str:
    """Say what is wrong at the model's epsilon (design 6)."""
    plan, counts = summary.plan, summary.results[i].counts
    if choice.epsilon == plan.model_epsilon:
        return "keeps"
    overflowed = counts["variance_nonfinite_rows"] > counts["overflow_rows"]
    negative = summary.results[i].primary["LN201"] > 0
    if choice.epsilon is None and plan.results[i][1].epsilon_place == "none":
        return "epsilon-lost"
    if choice.epsilon is None:
        return "overflow" if overflowed else "negative-variance" if negative else "rounding-noise"
    if held(plan.model_epsilon, *plan.results[i])[0] == 0:
        return "zero-rows" if counts["zero_over_zero_rows"] else "epsilon-lost"
    if negative:
        return "negative-variance"
    return "non-finite" if counts["nonfinite_rows"] > counts["overflow_rows"] else "rounding-noise"


def common_choice(
    safe_sets: dict[str, tuple[float, ...]], model_epsilon: float, fmt: Format, kernel: Kernel
) -> tuple[Choice, list[str]]:
    """Return one epsilon for several sites with the same model epsilon, and the sites that bind its window."""
    tried = candidates(model_epsilon)
    safe = tuple(e for e in tried if all(e in mine for mine in safe_sets.values()))
    choice = choose(safe, tried, model_epsilon, fmt, kernel)
    if choice.lower is None or choice.upper is None:
        return choice, [name for name, mine in safe_sets.items() if not mine] or list(safe_sets)
    below = tried[max(0, tried.index(choice.lower) - 1)]
    above = tried[min(len(tried) - 1, tried.index(choice.upper) + 1)]
    binding = [
        name
        for name, mine in safe_sets.items()
        if (below != choice.lower and below not in mine) or (above != choice.upper and above not in mine)
    ]
    return choice, binding


def distortion(summary: Summary, epsilon: float) -> dict[str, float | None]:
    """Return quantiles of |sqrt(q/(q+epsilon)) - sqrt(q/(q+eps0))| over non-constant rows, from the histogram of q."""
    q, counts = summary.input.variance.centres()
    if not len(q):
        return {"p50": None, "p99": None}
    effective, cost = summary.plan.effective(epsilon), np.empty_like(q)
    for start in range(0, len(q), AT_ONCE):  # of many bins the steps in between would take much memory
        part = slice(start, start + AT_ONCE)
        meant = np.sqrt(collapse_ratio(q[part], summary.plan.model_epsilon))
        cost[part] = np.abs(np.sqrt(collapse_ratio(q[part], effective)) - meant)
    return {"p50": weighted_quantile(cost, counts, 0.5), "p99": weighted_quantile(cost, counts, 0.99)}
