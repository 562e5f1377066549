"""Rules about the way back: what the norm does to gradients, from the closed form of its Jacobian."""

from __future__ import annotations

from typing import Any

from .. import wording
from ..theory import largest_finite, lipschitz_bound
from ..wording import share, short
from .base import ResultFacts, SiteFacts, Threshold, ends_at, rule


@rule(
    "LN401",
    "high-gain",
    SiteFacts,
    "warning",
    gain=Threshold(default=1e3, meaning="gain of a row that is not constant, at most"),
)
def high_gain(facts: SiteFacts) -> dict[str, Any] | None:
    """The norm multiplies gradients more than a thousandfold.

    What it does: Takes the operator norm of the Jacobian over non-constant rows, 1/sqrt(variance + epsilon) from three
    features on.
    Why is this bad: Nearly dead rows dominate the update; in half precision their gradients overflow.
    Example:
        lnaudit synth normal:std=1e-4 -o x.npy
        lnaudit scan x.npy --eps 1e-12
    What to do: Find out why these rows are so small; a larger epsilon bounds the gain by 1/sqrt(epsilon).
    References:
        tensorflow/tensorflow#21929: stacked norms train to NaN at epsilon 1e-12, not at 1e-3
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


@rule("LN402", "gradient-overflow", ResultFacts, "error", "warning")
def gradient_overflow(facts: ResultFacts) -> dict[str, Any] | None:
    """A gradient overflows on its way back through the norm.

    What it does: Compares loss scale (--loss-scale) x max|weight| x gain of each row with the range of the format; an
    error over non-constant rows, a latent warning if only constant ones (padding) are concerned, whose gain is
    1/sqrt(epsilon).
    Why is this bad: Inf in the backward pass although the forward pass is fine.
    Example:
        lnaudit synth normal:std=1e-2 -o x.npy
        lnaudit scan x.npy --format float16 --loss-scale 1024
    What to do: A larger epsilon, a smaller loss scale, or a backward pass with more range.
    References:
        AI-Hypercomputer/maxtext#5294: padding whose gradients explode
        tenstorrent/tt-metal#55585: NaN in the backward pass of zero rows
        Micikevicius et al., Mixed Precision Training (arXiv:1710.03740), section 3.2: loss scaling
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
