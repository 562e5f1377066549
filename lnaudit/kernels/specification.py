"""Kernels as users name them: NAME or NAME:axis=value,axis=value."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..errors import LnauditError
from ..wording import joined, nearest
from .model import AXES, DTYPES, Kernel


def get_kernel(text: str | Kernel) -> Kernel:
    """Return the kernel of a name with overrides, such as ``native:reduction=serial,variance=one_pass``.

    Raises
    ------
    LnauditError
        If the name, an axis or a value is unknown.
    """
    from . import KERNELS, LADDER

    if isinstance(text, Kernel):
        return text
    if not isinstance(text, str):
        raise LnauditError(f"unknown kernel {text!r}", f"choose from {', '.join(KERNELS)}", "--kernel")
    name, _, overrides = text.strip().partition(":")
    if name not in KERNELS:
        if name.lower() == "ladder":
            what = f"{text!r}: ladder stands for {joined(LADDER)} as they are"
            raise LnauditError(what, "name one of them", "--kernel")
        raise LnauditError(f"unknown kernel {name!r}", nearest(name, KERNELS), "--kernel")
    kernel = KERNELS[name]
    changes: dict[str, str] = {}
    for item in filter(None, overrides.split(",")):
        axis, _, value = item.partition("=")
        if axis not in AXES:
            raise LnauditError(f"unknown axis {axis!r} of kernel {name}", nearest(axis, AXES), "--kernel")
        if value not in AXES[axis]:
            raise LnauditError(f"{axis}={value} is not known", f"choose from {', '.join(AXES[axis])}", "--kernel")
        # `variance` names a stage and the algorithm; their values do not meet
        field = "algorithm" if axis == "variance" and value not in DTYPES else axis
        changes[field] = value
        if axis == "sum" and "square_sum" not in overrides:
            changes["square_sum"] = value
        if axis == "reduction" and "square_reduction" not in overrides:
            changes["square_reduction"] = ""
    if not changes:
        return kernel
    changes.update(name=text.strip(), stands_for=f"{name} with {overrides}", proven="")
    rows = tuple(replace(variant, row=_changed(variant.row, changes)) for variant in kernel.variants)
    return replace(_changed(kernel, changes), variants=rows)


def _changed(kernel: Kernel, changes: dict[str, Any]) -> Kernel:
    return replace(kernel, **changes)
