"""Rules about the input of a site: they change no verdict."""

from __future__ import annotations

import math
from typing import Any

from .. import wording
from ..wording import share, short
from .base import SiteFacts, rule


@rule("LN001", "non-finite-input", SiteFacts)
def non_finite_input(facts: SiteFacts) -> dict[str, Any] | None:
    """Rows that hold NaN or Inf before the norm.

    What it does: counts rows with some NaN, with Inf, and rows that are NaN throughout (often padding on purpose).
    Why is this bad: one NaN or Inf makes the whole row NaN in every format; the cause lies before the norm.
    What to do: find the first layer whose output is not finite. Rows that are wholly NaN are only noted.
    """
    counts = facts.input.counts
    partly, inf, nan = counts["partly_nan_rows"], counts["inf_rows"], counts["nan_rows"]
    if partly + inf + nan == 0:
        return None
    parts = [f"{n:,} {what}" for n, what in ((partly, "partly NaN"), (inf, "with Inf"), (nan, "wholly NaN")) if n]
    bad = partly + inf > 0
    return {
        "severity": "error" if bad else "note",
        "title": f"rows that are not finite before the norm: {', '.join(parts)}",
        "message": "They are left out of all counts below; the norm is not to blame."
        if bad
        else "Wholly NaN rows are usually padding; they are left out of all counts below.",
        "rows": partly + inf + nan,
        "row": facts.input.first.row("nonfinite" if bad else "nan"),
        "measured": float(counts["nan"] + counts["inf"]),
        "limit": 0.0,
        "remedy": "look at what produces these rows" if bad else "",
    }


def _count(facts: SiteFacts, key: str, text: str, first: str) -> dict[str, Any] | None:
    rows = facts.input.counts[key]
    if not rows:
        return None
    return {
        "severity": "note",
        "title": f"{share(rows, facts.input.counts['finite_rows'])} are {text}",
        "message": "Their exact output is the bias for every epsilon > 0; at epsilon 0 it is 0/0. They are no failure.",
        "rows": rows,
        "row": facts.input.first.row(first),
    }


@rule("LN002", "zero-rows", SiteFacts)
def zero_rows(facts: SiteFacts) -> dict[str, Any] | None:
    """Rows that are all zero.

    What it does: counts them apart, so that padding does not look like a collapse.
    Why is this bad: harmless while epsilon is held as a number above 0; otherwise they give 0/0 = NaN.
    What to do: nothing, if they are padding.
    """
    return _count(facts, "zero_rows", "all zero", "zero")


@rule("LN003", "constant-rows", SiteFacts)
def constant_rows(facts: SiteFacts) -> dict[str, Any] | None:
    """Rows whose elements are all equal (zero rows included; for RMSNorm zero rows only).

    What it does: counts them apart.
    Why is this bad: they carry no information through the norm; their gradient is largest, 1/sqrt(epsilon).
    What to do: check the axis if there are many.
    """
    if facts.input.counts["constant_rows"] == facts.input.counts["zero_rows"]:
        return None  # said by LN002
    return _count(facts, "constant_rows", "constant", "constant")


@rule("LN004", "degenerate-axis", SiteFacts, share=0.5)
def degenerate_axis(facts: SiteFacts) -> dict[str, Any] | None:
    """The normalized axis has one element, or most rows along it are constant while along another they are not.

    What it does: compares with the rows of other axes in the first block.
    Why is this bad: the file has probably another layout (NCHW or NHWC) than the axis says.
    What to do: pass the axes that the norm reduces, as in --axis 1 or --axis 2,3.
    """
    features = facts.summary.plan.features
    axes = ",".join(map(str, facts.axes))
    if features == 1:
        lost = "Every core is 1, 0 or -1" if facts.summary.plan.rms else "Every row is constant: the output is the bias"
        title, message = f"axis {axes} has one element", f"{lost}."
    elif facts.better_axis is not None and _mostly_constant(facts):
        rows, zero = facts.input.counts["constant_rows"], facts.input.counts["zero_rows"]
        title = f"{share(rows - zero, facts.input.counts['finite_rows'])} are constant along axis {axes}"
        message = f"Along axis {facts.better_axis} they are not: is that the axis that the norm reduces?"
    else:
        return None
    remedy = f"--axis {facts.better_axis}" if facts.better_axis is not None else "--axis"
    return {"severity": "warning", "title": title, "message": message, "remedy": remedy}


def _mostly_constant(facts: SiteFacts) -> bool:
    counts = facts.input.counts
    nonzero = counts["finite_rows"] - counts["zero_rows"]
    return counts["constant_rows"] - counts["zero_rows"] > facts.threshold("LN004", "share") * nonzero


@rule("LN005", "unread-bytes", SiteFacts)
def unread_bytes(facts: SiteFacts) -> dict[str, Any] | None:
    """The file goes on after its array.

    What it does: compares the size of the file with what its header promises.
    Why is this bad: two arrays appended to one file, or a header that was not updated: part of the dump is not audited.
    What to do: write one array a file.
    """
    if not facts.unread_bytes:
        return None
    return {
        "severity": "warning",
        "title": f"{facts.unread_bytes:,} bytes after the array were not read",
        "message": "The file is longer than its header says; what follows the array is not audited.",
        "measured": float(facts.unread_bytes),
        "limit": 0.0,
        "remedy": "write one array a file",
    }


@rule("LN006", "non-finite-parameters", SiteFacts)
def non_finite_parameters(facts: SiteFacts) -> dict[str, Any] | None:
    """NaN or Inf in the weight or bias.

    What it does: counts them; the statistics of the rows are judged without them.
    Why is this bad: every row gets NaN or Inf at these features, and the norm is only where it is noticed first.
    What to do: look at the checkpoint or at the update that wrote them.
    """
    bad = {"weight": facts.weight_nonfinite, "bias": facts.bias_nonfinite}
    parts = [f"{name}: {n:,} non-finite of {facts.summary.plan.features:,}" for name, n in bad.items() if n]
    if not parts:
        return None
    return {
        "severity": "error",
        "title": "; ".join(parts),
        "message": "The parameters themselves hold NaN or Inf: the norm only passes them on.",
        "measured": float(sum(bad.values())),
        "limit": 0.0,
        "remedy": "repair the parameters",
    }


@rule("LN007", "already-normalized", SiteFacts, share=0.99)
def already_normalized(facts: SiteFacts) -> dict[str, Any] | None:
    """The rows look like the output of a norm.

    What it does: fires when mean and variance are within 1e-3 of 0 and 1 % of 1 in 99 % of the non-constant rows (for
    RMSNorm the mean square alone).
    Why is this bad: what leaves a norm says nothing about what enters it; the audit is of the wrong tensor.
    What to do: dump the input, with a forward pre-hook.
    """
    counts = facts.input.counts
    rows, varying = counts["normalized_rows"], counts["varying_rows"]
    least = facts.threshold("LN007", "share")
    if not varying or rows < least * varying:
        return None
    return {
        "severity": "note",
        "title": f"{share(rows, counts['finite_rows'])} are already normalized",
        "message": "Dump what enters the norm, not what leaves it.",
        "rows": rows,
        "measured": rows / varying,
        "limit": least,
    }


@rule("LN305", "epsilon-mismatch", SiteFacts)
def epsilon_mismatch(facts: SiteFacts) -> dict[str, Any] | None:
    """Another program's epsilon (--compare-eps) would change the output.

    What it does: compares sqrt(q/(q+eps)) of each row under both epsilons with the tolerance.
    Why is this bad: ports, converters and fused kernels replace epsilon silently; small rows then change their scale.
    What to do: carry the model's epsilon over.
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


@rule("LN303", "epsilon-dominates-variance", SiteFacts, share=0.01)
def epsilon_dominates_variance(facts: SiteFacts) -> dict[str, Any] | None:
    """The variance is below epsilon in more than 1 % of the non-constant rows.

    What it does: compares the exact variance with the model's epsilon.
    Why is this bad: epsilon, not the data, sets the scale of these outputs; another epsilon changes the model.
    What to do: be sure that epsilon is the one the model was trained with.
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
