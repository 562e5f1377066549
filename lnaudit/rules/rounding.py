"""Rules about rounding: cancellation, noise, and errors that a whole row shares."""

from __future__ import annotations

from typing import Any

from ..wording import share, short
from .base import ResultFacts, rule

FEW = 0.01  # of the rows: more of them are an error even where none is far beyond its limit


@rule("LN201", "negative-variance", ResultFacts)
def negative_variance(facts: ResultFacts) -> dict[str, Any] | None:
    """E[x^2] - E[x]^2 comes out below zero.

    What it does: counts rows whose variance is negative before any clamp; an error where the root of it is NaN.
    Why is this bad: the one-pass formula subtracts two large numbers; what is left is their rounding. A clamp takes
    the NaN away, not the wrong scale.
    What to do: a two-pass or Welford kernel.
    """
    rows, counts = facts.result.primary["LN201"], facts.result.counts
    negative = counts["variance_negative_rows"]
    if not negative:
        return None
    lowest = facts.result.extremes.value("-variance")
    return {
        "severity": "error" if rows else "note",
        "title": f"negative variance in {share(negative, counts['finite_rows'])}"
        + (f", NaN in {rows:,}" if rows else ""),
        "message": f"The one-pass formula subtracts two large numbers: the variance goes down to "
        f"{short(-lowest if lowest is not None else None)}.",
        "rows": rows or negative,
        "row": facts.result.extremes.row("code LN201" if rows else "-variance"),
        "measured": -lowest if lowest is not None else None,
        "limit": 0.0,
    }


def _deviation(facts: ResultFacts, code: str, what: str, why: str) -> dict[str, Any] | None:
    rows, total = facts.result.primary[code], facts.result.counts["finite_rows"]
    if not rows or not facts.exceeding:
        return None
    error, over = facts.result.extremes.beside(f"code {code}"), facts.result.extremes.value(f"code {code}")
    # the row that is furthest beyond its own limit, which the cast may have widened
    limit = error / over if error is not None and over else facts.limit
    return {
        "severity": "error" if code in facts.errors else "warning",
        "title": f"{what} above the limit in {share(rows, total)}: {short(error)}, limit {short(limit)}",
        "message": why,
        "rows": rows,
        "row": facts.result.extremes.row(f"code {code}"),
        "measured": error,
        "limit": limit,
    }


@rule("LN202", "rounding-error", ResultFacts, share=FEW)
def rounding_error(facts: ResultFacts) -> dict[str, Any] | None:
    """The row error is above the limit, and its elements do not share it.

    What it does: compares the RMS error of a row, before the final rounding, with the tolerance or twice what the
    cast alone costs; an error above five limits or in more than 1 % of the rows.
    Why is this bad: rounding of mean and differences, amplified by 1/std: part of the output is noise.
    What to do: a kernel with float32 inside, a wider format; a larger epsilon only hides it.
    """
    return _deviation(
        facts, "LN202", "row error", "Rounding inside the kernel, amplified by 1/std: part of the output is noise."
    )


@rule("LN204", "scale-error", ResultFacts, share=FEW)
def scale_error(facts: ResultFacts) -> dict[str, Any] | None:
    """The row error is above the limit because the whole row is scaled wrongly.

    What it does: the same as LN202 where the variance or 1/std is what is wrong.
    Why is this bad: a scale error is coherent: it does not average out over features or layers.
    What to do: sum in float32 or by halves, hold the variance and 1/std in float32, or hold epsilon exactly.
    """
    largest = facts.result.extremes.value("scale_error")
    return _deviation(
        facts,
        "LN204",
        "row error",
        f"The whole row is scaled wrongly, by up to {short(100 * largest if largest is not None else None)} %: "
        "variance, epsilon or 1/std is off, not single elements.",
    )
