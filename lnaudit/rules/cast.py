"""Rules about the cast to the format: what no kernel of that format can undo."""

from __future__ import annotations

from typing import Any

from ..wording import share, short
from .base import ResultFacts, ends_at, rule


@rule("LN101", "cast-overflow", ResultFacts)
def cast_overflow(facts: ResultFacts) -> dict[str, Any] | None:
    """Values beyond the range of the format before the norm begins.

    What it does: counts rows that the cast to the format makes Inf.
    Why is this bad: Inf in a row makes LayerNorm NaN throughout, RMSNorm one NaN among zeros; no epsilon helps.
    What to do: keep the tensor that enters the norm in a wider format, or scale it down before the cast.
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


@rule("LN102", "cast-underflow", ResultFacts, share=0.01)
def cast_underflow(facts: ResultFacts) -> dict[str, Any] | None:
    """Values that the cast rounds to zero, and the norm suffers.

    What it does: fires when more than 1 % of the nonzero elements become 0 and the cast alone costs more than the
    accepted row error.
    Why is this bad: the norm amplifies small rows, and with them what the cast has cut off.
    What to do: scale the tensor up before the cast (and epsilon with it), or keep it in a wider format.
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


@rule("LN203", "cast-destroys-variance", ResultFacts)
def cast_destroys_variance(facts: ResultFacts) -> dict[str, Any] | None:
    """The cast takes away what the norm would have normalized.

    What it does: an error for rows that the cast makes constant though they are not; a warning where the exact norm
    of the cast row differs from that of the row by more than the accepted error.
    Why is this bad: the format's spacing at the row's offset is wider than the row's spread. No kernel and no epsilon
    can bring the spread back.
    What to do: take the offset off before the cast, or keep the tensor in a wider format.
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
