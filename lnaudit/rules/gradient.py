"""Rules about the way back: what the norm does to gradients, from the closed form of its Jacobian."""

from __future__ import annotations

from typing import Any

from .. import wording
from ..theory import largest_finite, lipschitz_bound
from ..wording import share, short
from .base import ResultFacts, SiteFacts, ends_at, rule


@rule("LN401", "high-gain", SiteFacts, gain=1e3)
def high_gain(facts: SiteFacts) -> dict[str, Any] | None:
    """The norm multiplies gradients of some row by more than a thousand.

    What it does: takes the operator norm of the Jacobian over non-constant rows, 1/sqrt(variance + epsilon) from three
    features on.
    Why is this bad: nearly dead rows dominate the update; in half precision their gradients overflow.
    What to do: find out why these rows are so small; a larger epsilon bounds the gain by 1/sqrt(epsilon).
    """
    gain = facts.input.gain.max if facts.input.gain.count else 0.0
    limit = facts.threshold("LN401", "gain")
    if not gain > limit:
        return None
    epsilon = facts.summary.plan.model_epsilon
    return {
        "severity": "warning",
        "title": f"gradients grow by up to {short(gain)}",
        "message": f"The smallest variance is {short(facts.input.variance.min)}, epsilon {wording.epsilon(epsilon)}: "
        "1/sqrt of their sum is the gain of that row.",
        "rows": 1,
        "row": facts.input.extremes.row("gain"),
        "measured": gain,
        "limit": limit,
        "remedy": "look at what makes these rows so small",
    }


@rule("LN402", "gradient-overflow", ResultFacts)
def gradient_overflow(facts: ResultFacts) -> dict[str, Any] | None:
    """A gradient of the given norm overflows the format on its way back through the norm.

    What it does: compares loss scale x max|weight| x gain of each row with the range of the format; an error over
    non-constant rows, a latent warning if only constant ones (padding) are concerned, whose gain is 1/sqrt(epsilon).
    Why is this bad: Inf in the backward pass although the forward pass is fine.
    What to do: a larger epsilon, a smaller loss scale, or a backward pass with more range.
    """
    counts, plan = facts.result.counts, facts.site.summary.plan
    rows, constant = counts["gradient_overflow_rows"], counts["gradient_overflow_constant_rows"]
    if not rows + constant:
        return None
    # at a constant row the gain is 1/sqrt(epsilon), the Lipschitz constant of the core
    gain = facts.site.input.gain.max if rows else lipschitz_bound(facts.epsilon)
    reached = plan.loss_scale * largest_finite(plan.weight) * gain
    where = share(rows or constant, counts["finite_rows"]) + ("" if rows else ", all of them constant")
    return {
        "severity": "error" if rows else "warning",
        "latent": not rows,
        "title": f"gradients overflow in {where}",
        "message": f"An upstream gradient of norm {short(plan.loss_scale)} times max |weight| times the gain reaches "
        f"{short(reached)}; {ends_at(facts.fmt)}.",
        "rows": rows or constant,
        "row": facts.site.input.extremes.row("gain") if rows else facts.site.input.first.row("constant"),
        "measured": reached,
        "limit": facts.fmt.max,
    }
