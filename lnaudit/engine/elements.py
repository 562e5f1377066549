"""What a kernel outputs at an epsilon, element by element."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic import Workspace, lane_sum, rounded
from ..formats import Format
from ..kernels import Kernel
from . import interpreter
from .reference import ExactCore
from .rows import Plan

NEARLY = 0.99  # of the range: what stays below cannot round beyond it

Array = NDArray[Any]


@dataclass(kw_only=True)
class Elements:
    """A core and an output in figures; arrays of shape (n,).

    error: RMS of core - exact core, NaN where the core is not finite. core_nan, core_inf, output_nan, output_inf:
    elements. affine_overflow: an output is not finite though the core and its parameters are. core_sum, core_square:
    sums of the core and of its squares, if they are asked for.
    """

    error: Array
    core_nan: Array
    core_inf: Array
    output_nan: Array
    output_inf: Array
    affine_overflow: Array
    core_sum: Array
    core_square: Array


def run(
    centered: interpreter.Centered,
    meant: ExactCore,
    epsilon: float,
    fmt: Format,
    kernel: Kernel,
    plan: Plan,
    ws: Workspace,
    *,
    moments: bool = False,
) -> Elements:
    """Run what follows the variance at an epsilon and compare it with what is meant."""
    d, n = centered.v.shape
    _, inverse = interpreter.inverse(centered.variance, (epsilon,), fmt, kernel)
    normalized = interpreter.normalize(centered, inverse[0], fmt, kernel, plan.rms, ws)
    core = interpreter.core(normalized, fmt, kernel, ws)
    product = ws.array("product", core.shape, "float64")
    np.copyto(product, core)
    core_sum = core_square = np.zeros(n)
    if moments:
        core_sum, core_square = lane_sum(product), lane_sum(product * product)
    meant.subtract_from(product, precise=fmt.precision == 53)
    error = np.sqrt(lane_sum(np.multiply(product, product, out=product)) / d)
    if np.isinf(error).any():
        error = _huge_error(core, meant.high, error)
    failed = ~np.isfinite(interpreter.core_maximum(centered, inverse[0], fmt, kernel, plan.rms))
    core_nan, core_inf = _count_nonfinite(core, failed)
    output_nan, output_inf, overflow = core_nan, core_inf, np.zeros(n, bool)
    if plan.weight is not None or plan.bias is not None:
        y = interpreter.output(centered, normalized, inverse[0], plan.weight, plan.bias, fmt, kernel, plan.rms, ws)
        finite = np.isfinite(y)
        some = np.ones(n, bool) if not finite.all() else np.zeros(n, bool)
        output_nan, output_inf = _count_nonfinite(y, some)
        if some.any():
            overflow = ~finite[np.broadcast_to(plan.defined, d)].all(axis=0) & ~failed
    return Elements(
        error=np.where(failed, np.nan, error),
        core_nan=core_nan,
        core_inf=core_inf,
        output_nan=output_nan,
        output_inf=output_inf,
        affine_overflow=overflow,
        core_sum=core_sum,
        core_square=core_square,
    )


def _huge_error(core: Array, meant: Array, error: Array) -> Array:
    """RMS of core - meant where the squares overflow: scaled by the largest difference of each row."""
    overflowed = np.isinf(error)
    difference = core[:, overflowed] - meant[:, overflowed]
    largest = np.abs(difference).max(axis=0)
    error[overflowed] = largest * np.sqrt(lane_sum(np.ascontiguousarray((difference / largest) ** 2)) / len(core))
    return error


def _count_nonfinite(values: Array, which: Array) -> tuple[Array, Array]:
    """Count NaN and Inf elements of the rows that have any."""
    nan, inf = np.zeros(values.shape[1], np.int64), np.zeros(values.shape[1], np.int64)
    if which.any():
        chosen = values[:, which]
        nan[which], inf[which] = np.isnan(chosen).sum(axis=0), np.isinf(chosen).sum(axis=0)
    return nan, inf


def at_points(
    centered: interpreter.Centered,
    fmt: Format,
    kernel: Kernel,
    plan: Plan,
    n: int,
    run_at: Callable[[float], Elements],
) -> dict[str, Array]:
    """Return what KernelStatistics holds of the points: by elements where that is asked for or the only way.

    Elsewhere only points at which weight and bias may leave the range are run, for their overflow. n: rows; run_at:
    runs an epsilon element by element, with its moments.
    """
    affine = plan.weight is not None or plan.bias is not None
    wanted = plan.by_elements or not kernel.has_closed_form(plan.rms)
    found: dict[float, Elements] = {}
    for epsilon in plan.points:
        if wanted or _may_overflow(centered, epsilon, fmt, kernel, plan):
            found[epsilon] = run_at(epsilon)
    none = np.zeros(n, bool)
    overflow = [found[e].affine_overflow if e in found else none for e in plan.points] if affine else []
    shown = list(found.values()) if wanted else []
    return {
        "point_overflow": _columns(overflow, n),
        "point_error": _columns([point.error for point in shown], n),
        "point_sum": _columns([point.core_sum for point in shown], n),
        "point_square": _columns([point.core_square for point in shown], n),
    }


def no_points(n: int) -> dict[str, Array]:
    """Return what `at_points` does of n rows where there are no points."""
    return {f"point_{name}": _columns([], n) for name in ("overflow", "error", "sum", "square")}


def _columns(columns: list[Array], n: int) -> Array:
    return np.stack(columns, axis=1) if columns else np.zeros((n, 0))


def _may_overflow(centered: interpreter.Centered, epsilon: float, fmt: Format, kernel: Kernel, plan: Plan) -> bool:
    """Whether weight and bias could take a finite core out of the range: max|core| max|weight| + max|bias| says no."""
    if plan.weight is None and plan.bias is None:
        return False
    if kernel.association not in ("div", "sub_mul", "scale_shift"):
        return True  # other orders multiply weight and 1/std first
    at = kernel.stages(fmt)
    # weight, product and sum are rounded, each by a unit roundoff at most
    margin = min(NEARLY, 1 - 4 * max(at.affine.unit_roundoff, at.output.unit_roundoff))
    end = margin * min(at.affine.max, at.output.max)
    weight, bias = (0.0 if p is None else float(np.abs(rounded(p, at.affine)).max()) for p in (plan.weight, plan.bias))
    if plan.weight is None:
        weight = 1.0
    if not weight + bias <= end:
        return True  # one that is no longer finite spoils a core of zeros too
    _, inverse = interpreter.inverse(centered.variance, (epsilon,), fmt, kernel)
    largest = interpreter.core_maximum(centered, inverse[0], fmt, kernel, plan.rms).astype(np.float64)
    return bool((np.isfinite(largest) & (largest * weight + bias > end)).any())
