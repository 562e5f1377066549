"""Rules about the range of the format: overflow and underflow inside the norm."""

from __future__ import annotations

import math
from typing import Any

from .. import wording
from ..advice.window import held
from ..summary import HALF_RANGE
from ..theory import largest_finite
from ..wording import share, short
from .base import ResultFacts, Threshold, ends_at, rule


def _first_operation(facts: ResultFacts, code: str) -> str:
    found = {op: n for (c, op), n in facts.result.operations.items() if c == code}
    # of a point of a sweep only how many rows have the code is known
    return max(found, key=lambda op: (found[op], op), default="")


def _overflow(facts: ResultFacts, code: str) -> tuple[str, float | None, float | None]:
    """Say what overflowed first in the rows of a code: text, measured magnitude, limit."""
    at, name = facts.kernel.stages(facts.fmt), _first_operation(facts, code)
    q, d = facts.site.input.variance.max, facts.site.summary.plan.features
    v = "x" if facts.site.summary.plan.rms else "(x-mean)"
    if name in ("sum", "mean"):
        largest = facts.site.input.extremes.value("max_abs")
        text = f"|x| is up to {short(largest)} and the sum of {d:,} of them does not fit: {ends_at(at.sum)}"
        return text, largest, at.sum.max
    if name == "square":
        largest = facts.result.extremes.value("diff")
        if largest is not None and math.isfinite(largest * largest):
            return f"{v}^2 reaches {short(largest * largest)}, {ends_at(at.square)}", largest * largest, at.square.max
    if name == "variance" and q * d > at.square_sum.max:
        return (
            f"the sum of {d:,} squares reaches {short(q * d)}, {ends_at(at.square_sum)}",
            q * d,
            at.square_sum.max,
        )
    if name == "variance":
        return f"the variance reaches {short(q)}, {ends_at(at.variance)}", q, at.variance.max
    return f"first bad operation: {name}", None, None


@rule("LN103", "variance-overflow", ResultFacts, "error")
def variance_overflow(facts: ResultFacts) -> dict[str, Any] | None:
    """A statistic overflows, and the output is NaN or Inf.

    What it does: Counts rows whose core is not finite because a sum, mean, difference or variance is not.
    Why is this bad: The layer's output is lost, and NaN spreads through everything after it.
    Example:
        lnaudit synth constant:value=1000 -o x.npy
        lnaudit scan x.npy --format float16 --kernel native
    What to do: Sum and square in float32, scale the input down, or use a format with more range.
    References:
        microsoft/onnxruntime#28442: NaN from layer 23 of a decoder in float16
        Micikevicius et al., Mixed Precision Training (arXiv:1710.03740), section 3.3: large sums belong in float32
    """
    rows = facts.result.primary["LN103"]
    if not rows:
        return None
    text, measured, limit = _overflow(facts, "LN103")
    return {
        "severity": "error",
        "title": f"{share(rows, facts.result.counts['finite_rows'])} are NaN or Inf",
        "message": f"{text[0].upper()}{text[1:]}. The statistics are not finite, and so is the output. "
        f"First bad operation: {_first_operation(facts, 'LN103')}.",
        "rows": rows,
        "row": facts.result.extremes.row("code LN103"),
        "measured": measured,
        "limit": limit,
    }


@rule("LN104", "collapsed-rows", ResultFacts, "error")
def collapsed_rows(facts: ResultFacts) -> dict[str, Any] | None:
    """Rows with spread whose normalized values are all zero.

    What it does: Counts non-constant rows whose core is zero throughout though the exact one is not, by more than the
    accepted error.
    Why is this bad: An infinite variance divides everything to 0. There is no NaN and no Inf, so checks for them see
    nothing: the layer returns its bias, whatever the input.
    Example:
        lnaudit synth normal:std=20 -o x.npy
        lnaudit scan x.npy --format float16 --kernel native
    What to do: Square and sum in float32, scale the input down, or use a format with more range.
    References:
        microsoft/onnxruntime#31626: an encoder without NaN or Inf that returns only biases
        ml-explore/mlx#4228: zeros from a feature map in float16
    """
    rows, counts = facts.result.primary["LN104"], facts.result.counts
    if not rows:
        return None
    silent = "; no NaN, no Inf" if counts["nan"] == counts["inf"] == 0 else ""
    text, measured, limit = _overflow(facts, "LN104")
    infinite = counts["variance_nonfinite_rows"] > counts["overflow_rows"]
    because = "the variance is Inf, and x/Inf = 0" if infinite else "every normalized value rounds to 0"
    return {
        "severity": "error",
        "title": f"{share(rows, counts['finite_rows'])} come out all zero{silent}",
        "message": f"{text}: {because}. The layer returns its bias and no NaN check sees it."
        + ("" if measured is None else f" First bad operation: {_first_operation(facts, 'LN104')}."),
        "rows": rows,
        "row": facts.result.extremes.row("code LN104"),
        "measured": measured,
        "limit": limit,
    }


@rule("LN105", "variance-underflow", ResultFacts, "note")
def variance_underflow(facts: ResultFacts) -> dict[str, Any] | None:
    """The emulated variance is 0 though the row has spread.

    What it does: Counts such rows; one that suffers from it has a code of its own.
    Why is this bad: Epsilon alone sets the scale, and at epsilon 0 the row is divided by zero.
    Example:
        lnaudit synth normal:std=1e-5 -o x.npy
        lnaudit scan x.npy --format float16 --kernel native
    What to do: Nothing by itself; look at the row error.
    References:
        facebookresearch/xformers#96: a step of a norm underflows in float16
        tenstorrent/tt-metal#55159: squares that leave the range of float32
    """
    rows = facts.result.counts["variance_zero_rows"]
    if not rows:
        return None
    square = facts.kernel.stages(facts.fmt).square
    emptied = facts.result.counts["destroyed_rows"]
    vanish = (
        "The one-pass formula subtracts two equal numbers."
        if facts.kernel.algorithm == "one_pass"
        else f"Squares below {short(square.smallest)} vanish in {square.name}."
    )
    return {
        "severity": "note",
        "title": f"the variance of {share(rows, facts.result.counts['finite_rows'])} becomes 0",
        "message": vanish if emptied < rows else "The cast has already made these rows constant.",
        "rows": rows,
        "row": facts.result.first.row("zero variance"),
        "measured": facts.site.input.variance.min,
        "limit": square.smallest,
    }


@rule(
    "LN106",
    "low-headroom",
    ResultFacts,
    "warning",
    peak=Threshold(
        default=HALF_RANGE, meaning="of the range may be used; rows are looked at from there on", least=HALF_RANGE
    ),
)
def low_headroom(facts: ResultFacts) -> dict[str, Any] | None:
    """A row that survives comes close to the end of the range.

    What it does: Takes the largest magnitude that the kernel holds (input, sum, |v|, square, sum of squares, variance)
    of a row without an error, as a share of the range of the dtype that holds it; fires above a half.
    Why is this bad: The next batch may overflow.
    Example:
        lnaudit synth checkerboard:m=9 -o x.npy
        lnaudit scan x.npy --format float16 --kernel native
    What to do: Scale the input down, or use a format with more range.
    References:
        NVIDIA/TensorRT#4493: the builder warns that a norm in float16 may overflow
        huggingface/transformers#9487: activations are clamped below the end of the range
    """
    extremes = facts.result.extremes
    name = max(extremes.names("healthy peak: "), key=lambda n: extremes.value(n) or 0.0, default="")
    peak = extremes.value(name)
    most = facts.threshold("LN106", "peak")
    if peak is None or peak <= most:
        return None
    reach = f"reaches {100 * peak:.0f} % of the range" if peak <= 1 else "has passed the range"
    return {
        "severity": "warning",
        "title": f"a row that survives {reach}",
        "message": f"It is {name.removeprefix('healthy peak: ')} that comes so far. Twice as much would overflow; "
        f"another batch may hold that. max |x| is {short(facts.site.input.extremes.value('max_abs'))}.",
        "rows": 1,
        "row": extremes.row(name),
        "measured": peak,
        "limit": most,
    }


@rule("LN107", "affine-overflow", ResultFacts, "error")
def affine_overflow(facts: ResultFacts) -> dict[str, Any] | None:
    """Weight and bias make a sound row overflow.

    What it does: Counts rows whose output is not finite while core, weight and bias are.
    Why is this bad: The statistics look healthy; only the output with the real parameters shows it.
    Example:
        lnaudit synth normal -o x.npy
        python -c "import numpy as np; np.save('weight.npy', np.full(768, 3e4))"
        lnaudit scan x.npy --weight weight.npy --format float16
    What to do: Apply weight and bias in float32 and clip, or fold a power of two into the next layer.
    References:
        huggingface/transformers#36822: weights so large that the outputs pass 65504
    """
    rows, plan = facts.result.counts["affine_overflow_rows"], facts.site.summary.plan
    if not rows:
        return None
    largest = largest_finite(plan.weight)
    return {
        "severity": "error",
        "title": f"weight * u + bias overflows in {share(rows, facts.result.counts['finite_rows'])}",
        "message": f"The normalized values are finite; max |weight| is {short(largest)}, {ends_at(facts.fmt)}.",
        "rows": rows,
        "row": facts.result.first.row("affine"),
        "measured": float(facts.result.counts["affine_inf"] + facts.result.counts["affine_nan"]),
        "limit": 0.0,
    }


def _epsilon_overflows(facts: ResultFacts) -> str:
    kind = held(facts.epsilon, facts.fmt, facts.kernel)[1]
    stage = facts.kernel.stages(facts.fmt).epsilon
    return f"Epsilon {wording.epsilon(facts.epsilon)} overflows in {stage.name}. " if kind == "overflow" else ""


@rule("LN108", "non-finite-output", ResultFacts, "error")
def non_finite_output(facts: ResultFacts) -> dict[str, Any] | None:
    """The core is NaN or Inf though every statistic is finite.

    What it does: Counts rows whose normalized values overflow or are 0/0 at the last operations.
    Why is this bad: The output is lost.
    Example:
        lnaudit synth bump:offset=60000,height=32,rows=1,features=64 -o x.npy
        lnaudit scan x.npy --format float16 --kernel fused:variance=one_pass --eps 1e-8
    What to do: A larger epsilon where the variance is tiny, or a kernel that keeps 1/std in float32.
    References:
        microsoft/onnxruntime#28463: NaN from finite rows whose one-pass variance is lost
    """
    rows = facts.result.primary["LN108"]
    if not rows:
        return None
    return {
        "severity": "error",
        "title": f"{share(rows, facts.result.counts['finite_rows'])} are NaN or Inf",
        "message": f"Sum, mean and variance are finite. {_epsilon_overflows(facts)}"
        f"First bad operation: {_first_operation(facts, 'LN108')}.",
        "rows": rows,
        "row": facts.result.extremes.row("code LN108"),
        "measured": facts.site.input.extremes.value("max_abs"),
    }
