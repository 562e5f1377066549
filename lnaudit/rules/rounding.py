"""Rules about rounding: cancellation, noise, and errors that a whole row shares."""

from __future__ import annotations

from typing import Any

from ..wording import share, short
from .base import FACTOR, ResultFacts, Threshold, portion, rule

FEW = "of the rows: more of them are an error even where none is far beyond its limit"
FAR = "times its limit: a row so far beyond it is an error even if it is the only one"


@rule("LN201", "negative-variance", ResultFacts, "error", "note")
def negative_variance(facts: ResultFacts) -> dict[str, Any] | None:
    """E[x^2] - E[x]^2 comes out below zero.

    What it does: Counts rows whose variance is negative before any clamp; an error where the root of it is NaN.
    Why is this bad: The one-pass formula subtracts two large numbers; what is left is their rounding. A clamp takes
    the NaN away, not the wrong scale.
    Example:
        lnaudit synth ramp:start=40000,step=1,features=4 -o x.npy
        lnaudit scan x.npy --format float32 --kernel native-serial:variance=one_pass
    What to do: A two-pass or Welford kernel.
    References:
        microsoft/onnxruntime#28463: NaN from 40000, 40001, 40002, 40003 in float32
        google/flax#1545: NaN from the root of a variance just below 0
        Chan, Golub, LeVeque, Algorithms for Computing the Sample Variance, The American Statistician 37 (1983) 242-247
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


@rule(
    "LN202",
    "rounding-error",
    ResultFacts,
    "error",
    "warning",
    share=portion(0.01, FEW),
    factor=Threshold(default=FACTOR, meaning=FAR, least=1.0),
)
def rounding_error(facts: ResultFacts) -> dict[str, Any] | None:
    """The row error is above the limit: noise in its elements.

    What it does: Compares the RMS error of a row, before the final rounding, with the tolerance or twice what the cast
    alone costs; an error if a row exceeds its limit five times or more than 1 % of the rows exceed it.
    Why is this bad: Rounding of mean and differences, amplified by 1/std: part of the output is noise.
    Example:
        lnaudit synth ramp:start=10000,step=1e-3,features=16 -o x.npy
        lnaudit scan x.npy --format float32 --kernel native
    What to do: A kernel with float32 inside, a wider format; a larger epsilon only hides it.
    References:
        tracel-ai/burn#5607: rows with a large mean in float32
    """
    return _deviation(
        facts, "LN202", "row error", "Rounding inside the kernel, amplified by 1/std: part of the output is noise."
    )


@rule(
    "LN204",
    "scale-error",
    ResultFacts,
    "error",
    "warning",
    share=portion(0.01, FEW),
    factor=Threshold(default=FACTOR, meaning=FAR, least=1.0),
)
def scale_error(facts: ResultFacts) -> dict[str, Any] | None:
    """The whole row is scaled wrongly, beyond the limit.

    What it does: The same as LN202 where the variance or 1/std is what is wrong.
    Why is this bad: A scale error is coherent: it does not average out over features or layers.
    Example:
        lnaudit synth normal:features=4096 -o x.npy
        lnaudit scan x.npy --norm rms --format float16 --kernel native-serial
    What to do: Sum in float32 or by halves, hold the variance and 1/std in float32, or hold epsilon exactly.
    References:
        amd/IRON#139: 1/std in bfloat16, and an error that grows with depth
        jax-ml/ml_dtypes#63: a sum in bfloat16 that stops at 256
    """
    largest = facts.result.extremes.value("scale_error")
    return _deviation(
        facts,
        "LN204",
        "row error",
        f"The whole row is scaled wrongly, by up to {short(100 * largest if largest is not None else None)} %: "
        "variance, epsilon or 1/std is off, not single elements.",
    )
