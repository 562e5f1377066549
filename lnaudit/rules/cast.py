"""Rules about the cast to the format: what no kernel of that format can undo."""

from __future__ import annotations

from typing import Any

from ..wording import share, short
from .base import ResultFacts, ends_at, portion, rule


@rule("LN101", "cast-overflow", ResultFacts, "error")
def cast_overflow(facts: ResultFacts) -> dict[str, Any] | None:
    """Values beyond the range of the format, before the norm.

    What it does: Counts rows in which the cast makes a value Inf (in float8_e4m3fn, which has no Inf, NaN).
    Why is this bad: Inf in a row makes LayerNorm NaN throughout, RMSNorm one NaN among zeros; no epsilon helps.
    Example:
        lnaudit synth outlier:size=70000 -o x.npy
        lnaudit scan x.npy --format float16
    What to do: Keep the tensor that enters the norm in a wider format, or scale it down before the cast.
    References:
        huggingface/transformers#5651: feed-forward outputs beyond 65504
        keras-team/keras#22586: values from 60000 to 70000 in a mixed_float16 layer
    """
    rows = facts.result.primary["LN101"]
    if not rows:
        return None
    largest = facts.site.input.extremes.value("max_abs")
    return {
        "severity": "error",
        "title": f"{share(rows, facts.result.counts['finite_rows'])} overflow in the cast",
        "message": f"|x| reaches {short(largest)}, {ends_at(facts.fmt)}: the row is lost before the norm begins.",
        "rows": rows,
        "row": facts.result.extremes.row("code LN101"),
        "measured": largest,
        "limit": facts.fmt.max,
    }


@rule("LN102", "cast-underflow", ResultFacts, "warning", share=portion(0.01, "of the nonzero elements may become 0"))
def cast_underflow(facts: ResultFacts) -> dict[str, Any] | None:
    """Values that the cast rounds to zero, at a cost.

    What it does: Fires when more than 1 % of the nonzero elements become 0 and the cast alone costs more than the
    accepted error in some row.
    Why is this bad: The norm amplifies small rows, and with them what the cast has cut off.
    Example:
        lnaudit synth normal:std=1e-7 -o x.npy
        lnaudit scan x.npy --format float16 --kernel fused --eps 1e-16
    What to do: Scale the tensor up before the cast (and epsilon with it), or keep it in a wider format.
    References:
        Micikevicius et al., Mixed Precision Training (arXiv:1710.03740), section 3.1: below 2^-24 float16 has only 0
    """
    counts, cost = facts.result.counts, facts.result.extremes.value("cast_error")
    least = facts.threshold("LN102", "share")
    if counts["underflow"] <= least * counts["nonzero"] or cost is None or cost <= facts.limit:
        return None
    return {
        "severity": "warning",
        "title": f"{counts['underflow']:,} of {counts['nonzero']:,} nonzero elements become 0 in the cast",
        "message": f"The smallest {facts.fmt.name} number is {short(facts.kernel.stages(facts.fmt).T.smallest)}; what "
        f"the cast cuts off costs {short(cost)} of the normalized scale in the worst row.",
        "rows": counts["costly_cast_rows"],
        "row": facts.result.extremes.row("cast_error"),
        "measured": counts["underflow"] / counts["nonzero"],
        "limit": least,
    }


@rule("LN203", "cast-destroys-variance", ResultFacts, "error", "warning")
def cast_destroys_variance(facts: ResultFacts) -> dict[str, Any] | None:
    """The cast takes away what the norm would have normalized.

    What it does: An error for rows that the cast makes constant though they are not; a warning where the exact norm
    of the cast row differs from that of the row by more than the accepted error.
    Why is this bad: The format's spacing at the row's offset is wider than the row's spread. No kernel and no epsilon
    can bring the spread back.
    Example:
        lnaudit synth near-constant:offset=1000,spread=0.1 -o x.npy
        lnaudit scan x.npy --format bfloat16
    What to do: Take the offset off before the cast, or keep the tensor in a wider format.
    References:
        tenstorrent/tt-metal#45231: rows with a large offset lose their variance in TF32
        vllm-project/vllm#40290: values of -7 to 7 beside 53760, where float16 has a spacing of 32
    """
    counts, extremes = facts.result.counts, facts.result.extremes
    rows, total = facts.result.primary["LN203"], counts["finite_rows"]
    cost = extremes.value("cast_error")
    costly = counts["costly_cast_rows"]
    if rows:
        others = (
            f" In {costly - rows:,} more the cast alone costs more than the limit, up to {short(cost)}."
            if costly > rows
            else ""
        )
        return {
            "severity": "error",
            "title": f"{share(rows, total)} become constant in the cast",
            "message": f"At |x| up to {short(facts.site.input.extremes.value('max_abs'))} the spacing of "
            f"{facts.fmt.name} is wider than the spread of these rows. No kernel and no epsilon brings it "
            f"back.{others}",
            "rows": rows,
            "row": extremes.row("code LN203"),
            "measured": extremes.value("code LN203"),
            "limit": facts.limit,
        }
    if not costly:
        return None
    return {
        "severity": "warning",
        "title": f"the cast alone costs more than the limit in {share(costly, total)}",
        "message": f"Exact arithmetic on the {facts.fmt.name} values is off by {short(cost)} of the normalized scale "
        f"in the worst row (limit {short(facts.limit)}). No kernel and no epsilon undoes that.",
        "rows": costly,
        "row": extremes.row("cast_error"),
        "measured": cost,
        "limit": facts.limit,
    }
