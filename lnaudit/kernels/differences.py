"""How kernels differ from each other, axis by axis."""

from __future__ import annotations

from .model import AXES, Kernel, Variant

_LEADERS = {
    "plus_epsilon": "variance",
    "square_sum": "sum",
    "square_reduction": "reduction",
    "apply": "inverse",
}


def differences(kernel: Kernel, other: Kernel) -> dict[str, str]:
    """Return the axes in which a kernel differs from another, with its own values, as users write them."""
    found: dict[str, str] = {}
    for axis in AXES:
        if axis != "variance" and value_of(kernel, axis) != value_of(other, axis):
            found[axis] = value_of(kernel, axis)
    if kernel.algorithm != other.algorithm:
        found["variance"] = kernel.algorithm
    if kernel.variance != other.variance:
        found["variance"] = f"{kernel.algorithm} in {kernel.variance}"
    # what follows another axis need not be told
    for axis, leader in (
        ("plus_epsilon", "variance"),
        ("square_sum", "sum"),
        ("square_reduction", "reduction"),
        ("apply", "inverse"),
    ):
        if axis in found and leader in found and _follows(kernel, axis):
            del found[axis]
    return found


def value_of(kernel: Kernel, axis: str) -> str:
    """Return the value of an axis, defaults filled in."""
    filled = {
        "apply": kernel.association,
        "square_reduction": kernel.order_of_squares,
        "plus_epsilon": kernel.plus_epsilon or kernel.variance,
        "variance": f"{kernel.algorithm}, stored in {kernel.variance}",
    }
    return str(filled.get(axis) or getattr(kernel, axis))


def _follows(kernel: Kernel, axis: str) -> bool:
    if axis == "apply":
        return not kernel.apply
    if axis == "square_reduction":
        return not kernel.square_reduction
    if axis == "plus_epsilon":
        return not kernel.plus_epsilon
    return kernel.square_sum == kernel.sum


def condition(variant: Variant) -> str:
    """Say when a row of a program counts."""
    parts = [
        ", ".join(variant.formats),
        {"rms": "RMSNorm", "layer": "LayerNorm"}.get(variant.norm, ""),
        f"fewer than {variant.below} features" if variant.below else "",
    ]
    return ", ".join(filter(None, parts)) or "else"
