"""Rules about epsilon: as the kernel holds it, and beside the variance."""

from __future__ import annotations

import math
from typing import Any

from .. import wording
from ..advice.window import GRID, held, left_on_zero_row
from ..formats import Format
from ..wording import share, short
from .base import ResultFacts, SiteFacts, portion, rule

HARDLY_BETTER = 0.9  # of the error at the model's epsilon: not worth a word


@rule("LN301", "epsilon-rounds-to-zero", ResultFacts, "error", "warning")
def epsilon_rounds_to_zero(facts: ResultFacts) -> dict[str, Any] | None:
    """Variance + epsilon is zero in the kernel's arithmetic.

    What it does: An error for rows that are divided by zero; a latent warning where no row of the data is, but a zero
    row would be because epsilon > 0 is rounded to 0 (itself, or where variance + epsilon is stored).
    Why is this bad: A zero or constant row (padding, a dead channel) gives 0/0 = NaN.
    Example:
        lnaudit synth zeros -o x.npy
        lnaudit scan x.npy --format float16 --kernel native --eps 1e-12
    What to do: An epsilon that the format can hold, or a kernel that holds it in float32.
    References:
        pytorch/pytorch#41527: NaN from a zero row at epsilon 1e-12 in float16
        deepspeedai/DeepSpeed#581: sums in float32, but variance + epsilon is stored in float16
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


@rule("LN302", "epsilon-subnormal", ResultFacts, "note")
def epsilon_subnormal(facts: ResultFacts) -> dict[str, Any] | None:
    """The kernel holds epsilon as a subnormal number.

    What it does: Looks at the rounded epsilon only.
    Why is this bad: Hardware and compilers that flush subnormal numbers turn it into 0.
    Example:
        lnaudit synth normal -o x.npy
        lnaudit scan x.npy --format float16 --kernel native --eps 1e-5
    What to do: An epsilon that is a normal number in the format, if the data allow it; --ftz shows what happens if not.
    References:
        gpuweb/gpuweb#3421: WGSL leaves it to the device whether subnormal numbers are flushed
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


@rule("LN304", "no-safe-epsilon", ResultFacts, "note")
def no_safe_epsilon(facts: ResultFacts) -> dict[str, Any] | None:
    """None of the tried epsilons is safe.

    What it does: Stands beside the error that it explains.
    Why is this bad: Changing epsilon is no cure here; it can only hide the failure by making the output small.
    Example:
        lnaudit synth normal:std=20 -o x.npy
        lnaudit scan x.npy --format float16 --kernel native
    What to do: See the remedies of the error.
    References:
        keras-team/keras#22586: epsilon is blamed, but the input has overflowed in the cast
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


@rule("LN305", "epsilon-mismatch", SiteFacts, "warning")
def epsilon_mismatch(facts: SiteFacts) -> dict[str, Any] | None:
    """Another program's epsilon would change the output.

    What it does: Compares sqrt(q/(q+epsilon)) of each row, q its variance, under the model's epsilon and that of
    --compare-eps; they may differ by the tolerance.
    Why is this bad: Ports, converters and fused kernels replace epsilon silently; small rows then change their scale.
    Example:
        lnaudit synth normal:std=1e-2 -o x.npy
        lnaudit scan x.npy --eps 1e-12 --compare-eps 1e-5
    What to do: Carry the model's epsilon over.
    References:
        microsoft/onnxconverter-common#153: a converter that raises 1e-12 to 1e-7
        microsoft/onnxruntime#2680: cuDNN raises epsilon silently
    """
    plan, extremes = facts.summary.plan, facts.input.extremes
    rows, drift, other = facts.input.counts["mismatch_rows"], extremes.value("drift"), plan.compare_epsilon
    if not rows or other is None:
        return None
    smallest = facts.input.variance.min
    change = math.sqrt((smallest + plan.model_epsilon) / (smallest + other)) - 1 if smallest + other > 0 else math.inf
    return {
        "severity": "warning",
        "title": f"epsilon {wording.epsilon(other)} would move {share(rows, facts.input.counts['varying_rows'])}",
        "message": f"Instead of the model's {wording.epsilon(plan.model_epsilon)} it moves rows by up to "
        f"{short(drift)} of the normalized scale (limit {short(plan.tolerance)}); the smallest row changes its "
        f"scale by {wording.percent(change)}.",
        "rows": rows,
        "row": extremes.row("drift"),
        "measured": drift,
        "limit": plan.tolerance,
        "remedy": f"carry epsilon {wording.epsilon(plan.model_epsilon)} over",
    }


@rule(
    "LN303",
    "epsilon-dominates-variance",
    SiteFacts,
    "warning",
    share=portion(0.01, "of the rows that are not constant"),
)
def epsilon_dominates_variance(facts: SiteFacts) -> dict[str, Any] | None:
    """The variance is below epsilon in too many rows.

    What it does: Compares the exact variance with the model's epsilon; fires at more than 1 % of the rows that are
    not constant.
    Why is this bad: Epsilon, not the data, sets the scale of these outputs; another epsilon changes the model.
    Example:
        lnaudit synth normal:std=1e-3 -o x.npy
        lnaudit scan x.npy --eps 1e-5
    What to do: Be sure that epsilon is the one the model was trained with.
    References:
        pytorch/pytorch#189581: accumulation is blamed, epsilon is twice the variance
        ggml-org/llama.cpp#5453: with 1.5-bit weights a larger epsilon lowers the perplexity
    """
    counts, plan = facts.input.counts, facts.summary.plan
    rows, varying = counts["epsilon_dominated_rows"], counts["varying_rows"]
    most = facts.threshold("LN303", "share")
    if rows <= most * varying:
        return None
    smallest = facts.input.variance.min
    return {
        "severity": "warning",
        "title": f"variance below epsilon in {rows:,} of {varying:,} non-constant rows",
        "message": f"Variances go down to {short(smallest)}, epsilon is {wording.epsilon(plan.model_epsilon)}: there "
        "epsilon, not the data, sets the scale of the output. Another epsilon is another model.",
        "rows": rows,
        "row": facts.input.extremes.row("-variance"),
        "measured": rows / varying,
        "limit": most,
        "remedy": "keep the epsilon that the model was trained with",
    }
