"""Rules about the input of a site: they change no verdict."""

from __future__ import annotations

from typing import Any

from ..engine.rows import ALREADY
from ..wording import counted, share
from .base import SiteFacts, Threshold, portion, rule


@rule("LN001", "non-finite-input", SiteFacts, "error", "note")
def non_finite_input(facts: SiteFacts) -> dict[str, Any] | None:
    """Rows that hold NaN or Inf before the norm.

    What it does: Counts rows that are partly NaN or hold Inf (error), and rows that are NaN throughout (note: often
    padding on purpose). They are left out of every other count.
    Why is this bad: One NaN or Inf makes the whole row NaN in every format; the cause lies before the norm.
    Example:
        python -c "import numpy as np; np.save('x.npy', [[1, 2, 3], [1, np.nan, 3]])"
        lnaudit scan x.npy
    What to do: Find the first layer whose output is not finite.
    References:
        huggingface/transformers#5651: Inf of a feed-forward layer becomes NaN in the next norm
        jonathanking/sidechainnet#42: NaN that marks padding
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


@rule("LN002", "zero-rows", SiteFacts, "note")
def zero_rows(facts: SiteFacts) -> dict[str, Any] | None:
    """Rows that are all zero.

    What it does: Counts them apart, so that padding does not look like a collapse.
    Why is this bad: They are harmless while variance + epsilon is above 0 in the kernel; otherwise they give 0/0 = NaN
    (LN301).
    Example:
        lnaudit synth zeros -o x.npy
        lnaudit scan x.npy
    What to do: Nothing, if they are padding.
    References:
        deepspeedai/DeepSpeed#581: NaN where the padding is zero
    """
    return _count(facts, "zero_rows", "all zero", "zero")


@rule("LN003", "constant-rows", SiteFacts, "note")
def constant_rows(facts: SiteFacts) -> dict[str, Any] | None:
    """Rows whose elements are all equal.

    What it does: Counts them, zero rows included, where some are not zero. For RMSNorm only zero rows are
    constant, and LN002 speaks of those.
    Why is this bad: Their exact output is the bias, so they carry nothing through the norm; the gain of their gradients
    is the largest there is, 1/sqrt(epsilon).
    Example:
        lnaudit synth constant:value=5 -o x.npy
        lnaudit scan x.npy
    What to do: Check the axis if there are many.
    References:
        microsoft/onnxruntime#21935: NaN from a constant row
        pytorch/pytorch#108072: constant rows that do not come out as 0
    """
    if facts.input.counts["constant_rows"] == facts.input.counts["zero_rows"]:
        return None  # said by LN002
    return _count(facts, "constant_rows", "constant", "constant")


@rule("LN004", "degenerate-axis", SiteFacts, "warning", share=portion(0.5, "of the rows that are not zero"))
def degenerate_axis(facts: SiteFacts) -> dict[str, Any] | None:
    """The axis has one element, or rows along it are constant.

    What it does: Fires on one element, and where most rows that are not zero are constant while the first rows along
    another axis are not.
    Why is this bad: The file has probably another layout (NCHW or NHWC) than the axis says.
    Example:
        lnaudit synth ramp:rows=64 -o x.npy
        lnaudit scan x.npy --axis 0
    What to do: Pass the axes that the norm reduces, as in --axis 1 or --axis 2,3.
    References:
        facebookresearch/ConvNeXt#136, keras-team/tf-keras#173: norms over another axis than was meant
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


@rule("LN005", "unread-bytes", SiteFacts, "warning")
def unread_bytes(facts: SiteFacts) -> dict[str, Any] | None:
    """The file goes on after its array.

    What it does: Compares the size of the file with what its header promises.
    Why is this bad: Two arrays appended to one file, or a header that was not updated: part of the dump is not audited.
    Example:
        lnaudit synth normal -o x.npy
        python -c "with open('x.npy', 'ab') as file: file.write(b'more')"
        lnaudit scan x.npy
    What to do: Write one array a file.
    References:
        NumPy documentation, numpy.save: what is saved to an open file is appended to its end
    """
    if not facts.unread_bytes:
        return None
    was = "was" if facts.unread_bytes == 1 else "were"
    return {
        "severity": "warning",
        "title": f"{counted(facts.unread_bytes, 'byte')} after the array {was} not read",
        "message": "The file is longer than its header says; what follows the array is not audited.",
        "measured": float(facts.unread_bytes),
        "limit": 0.0,
        "remedy": "write one array a file",
    }


@rule("LN006", "non-finite-parameters", SiteFacts, "error")
def non_finite_parameters(facts: SiteFacts) -> dict[str, Any] | None:
    """NaN or Inf in the weight or bias.

    What it does: Counts them; the rows are judged as if these features did not matter.
    Why is this bad: Every row gets NaN or Inf at these features, and the norm is only where it is noticed first.
    Example:
        lnaudit synth normal:features=3 -o x.npy
        python -c "import numpy as np; np.save('weight.npy', [1, np.nan, 1])"
        lnaudit scan x.npy --weight weight.npy
    What to do: Look at the checkpoint, or at the update that wrote them.
    References:
        tensorflow/models#10426: the norm is blamed, its weight was NaN
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


@rule(
    "LN007",
    "already-normalized",
    SiteFacts,
    "note",
    share=portion(0.99, "of the rows that are not constant"),
    mean=Threshold(default=ALREADY[0], meaning="mean of such a row, at most"),
    variance=Threshold(default=ALREADY[1], meaning="distance of its variance from 1, at most"),
)
def already_normalized(facts: SiteFacts) -> dict[str, Any] | None:
    """The rows look like the output of a norm.

    What it does: Fires when the mean is within 1e-3 of 0 and the variance within 1 % of 1 in 99 % of the rows that are
    not constant (for RMSNorm the mean square within 1 % of 1).
    Why is this bad: What leaves a norm says nothing about what enters it; the audit is of the wrong tensor.
    Example:
        lnaudit synth checkerboard:m=1 -o x.npy
        lnaudit scan x.npy
    What to do: Dump the input, with a forward pre-hook.
    References:
        PyTorch documentation, torch.nn.Module.register_forward_pre_hook
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
