"""Rules about epsilon as the kernel holds it."""

from __future__ import annotations

from typing import Any

from .. import wording
from ..advice.window import GRID, held, left_on_zero_row
from ..formats import Format
from ..wording import share, short
from .base import ResultFacts, rule

HARDLY_BETTER = 0.9  # of the error at the model's epsilon: not worth a word


@rule("LN301", "epsilon-rounds-to-zero", ResultFacts)
def epsilon_rounds_to_zero(facts: ResultFacts) -> dict[str, Any] | None:
    """Variance plus epsilon is zero in the kernel's arithmetic.

    What it does: an error for rows that are divided by zero; a latent warning where no row of the data is, but a zero
    row would be because epsilon > 0 is rounded to 0 (itself, or where variance + epsilon is stored).
    Why is this bad: a zero or constant row (padding, a dead channel) gives 0/0 = NaN.
    What to do: an epsilon that the format can hold, or a kernel that holds it in float32.
    """
    rows, fmt, epsilon = facts.result.primary["LN301"], facts.fmt, facts.epsilon
    total = facts.result.counts["finite_rows"]
    place, how = _how_lost(facts)
    if rows:
        return {
            "severity": "error",
            "title": f"variance + epsilon is 0 in {share(rows, total)}: NaN or Inf",
            "message": how,
            "rows": rows,
            "row": facts.result.first.row("code LN301"),
            "measured": 0.0,
            "limit": place.smallest,
        }
    if epsilon == 0 or left_on_zero_row(epsilon, fmt, facts.kernel) != 0:
        return None
    return {
        "severity": "warning",
        "latent": True,
        "title": "no row of this file needs it",
        "message": f"{how} No row of this file is lost by that; a zero or constant row (padding, a dead channel) gives "
        "0/0 = NaN.",
        "measured": 0.0,
        "limit": place.smallest,
    }


def _how_lost(facts: ResultFacts) -> tuple[Format, str]:
    """Say where epsilon becomes 0, and in which format."""
    fmt, kernel, epsilon = facts.fmt, facts.kernel, facts.epsilon
    at = kernel.stages(fmt)
    lost = held(epsilon, fmt, kernel)[0] == 0
    place = at.epsilon if lost else at.plus_epsilon
    if kernel.epsilon_place == "none":
        return place, "This kernel adds no epsilon: nothing keeps a variance of 0 from being divided by."
    if epsilon == 0:
        return place, "At epsilon 0 nothing keeps the variance, when it rounds to 0, from being divided by."
    where = "" if lost else ", where variance + epsilon is stored"
    text = (
        f"{wording.epsilon(epsilon)} becomes 0 in {place.name}{where}; its smallest number is {short(place.smallest)}."
    )
    return place, text


@rule("LN302", "epsilon-subnormal", ResultFacts)
def epsilon_subnormal(facts: ResultFacts) -> dict[str, Any] | None:
    """The kernel holds epsilon as a subnormal number.

    What it does: looks at the rounded epsilon only.
    Why is this bad: hardware and compilers that flush subnormal numbers turn it into 0.
    What to do: an epsilon that is a normal number in the format, if the data allow it.
    """
    value, kind = held(facts.epsilon, facts.fmt, facts.kernel)
    if kind != "subnormal":
        return None
    stage = facts.kernel.stages(facts.fmt).epsilon
    message = (
        f"{wording.epsilon(facts.epsilon)} is a subnormal number in {stage.name}; hardware that flushes those "
        "makes it 0."
    )
    robust = facts.choice.robust if facts.choice is not None else None
    if robust is not None:
        plan = facts.site.summary.plan
        cost = float(facts.site.input.distortion[plan.tried.index(robust)])
        message += f" {wording.epsilon(robust)} is immune, and no row would change by more than {short(100 * cost)} %."
    return {
        "severity": "note",
        "latent": True,
        "title": "epsilon is held as a subnormal number",
        "message": message,
        "measured": value,
        "limit": stage.smallest_normal,
        "remedy": f"epsilon {wording.epsilon(robust)}" if robust is not None else "",
    }


@rule("LN304", "no-safe-epsilon", ResultFacts)
def no_safe_epsilon(facts: ResultFacts) -> dict[str, Any] | None:
    """None of the tried epsilons is safe.

    What it does: stands beside the error that it explains.
    Why is this bad: changing epsilon is no cure here; it can only hide the failure by making the output small.
    What to do: see the remedies of the error.
    """
    choice = facts.choice
    if choice is None or choice.epsilon is not None or not facts.errors:
        return None
    message = (
        f"Tried {wording.epsilon(GRID[0])} to {wording.epsilon(GRID[-1])}; what stands in the way: {choice.reason}."
    )
    if choice.best_effort is not None:
        plan, worst = facts.site.summary.plan, facts.result.table.worst
        least = float(worst[plan.tried.index(choice.best_effort)])
        if not least >= HARDLY_BETTER * worst[0]:
            message += f" The least bad is {wording.epsilon(choice.best_effort)}, with an error of {short(least)}."
    return {"severity": "note", "title": "no epsilon is safe", "message": message}
