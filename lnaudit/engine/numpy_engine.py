"""The numpy engine: row statistics of a block, the specification in code.

A block of whole rows is cut into sub-blocks; each is turned features first, shape (d, n), so that every operation, sums
included, runs along contiguous memory. Buffers of the workspace are named by what they hold; "step" (the carrier) and
"wide" (float64) hold whatever the current step works on and is done with before the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic import Workspace, lane_extremes, lane_sum
from ..formats import Format
from ..kernels import Kernel
from . import elements, interpreter
from .cast import analyse_cast
from .reference import ExactCore, Reference, center, exact_core
from .rows import CastStatistics, InputStatistics, KernelStatistics, Plan, RowStatistics, held_in, join

Array = NDArray[Any]
# elements of a sub-block: few enough for the cache, many enough that an operation outlasts the call and threads do not
# queue for the interpreter (measured: 2^17 25, 2^18 35, 2^19 42, 2^20 41 million elements a second on two cores)
SUB_BLOCK = 1 << 19
TURNED_AT_ONCE = 8  # rows that are turned together: more of them evict each other from the first-level cache
NARROW_ROWS = 16  # fewer rows side by side waste the vector unit; from this width on a row is long enough by itself
LONG_ROW = 16_384
FAR = 2.0**20  # times q: where a mean square so much larger than that of the row leaves too few digits for the rest
STATISTICS = ("total", "mean", "diff", "square", "square_sum", "raw_variance", "variance")


def rows_at_once(features: int, double_double: bool) -> int:
    """Return how many rows a sub-block holds; double-double needs twice the memory an element."""
    fitting = max(1, (SUB_BLOCK >> double_double) // features)
    return max(fitting, NARROW_ROWS) if features <= LONG_ROW else fitting


def analyse(block: Array, first_row: int, plan: Plan, ws: Workspace) -> RowStatistics:
    """Return the statistics of the finite rows of a block of shape (n, d), whose first row has index `first_row`."""
    step = rows_at_once(plan.features, plan.needs_double_double)
    parts = [_analyse(block[i : i + step], first_row + i, plan, ws) for i in range(0, len(block), step)]
    return join(parts)


def _analyse(rows: Array, first_row: int, plan: Plan, ws: Workspace) -> RowStatistics:
    x = turned(rows, ws)
    x, statistics = _input(x, first_row, plan)
    exact = ws.array("exact", x.shape, "float64")
    np.copyto(exact, x)
    amax = np.maximum(np.abs(statistics.x_max), np.abs(statistics.x_min))
    reference = center(
        exact,
        rms=plan.rms,
        constant=statistics.constant,
        amax=amax,
        double_double=plan.needs_double_double,
        narrow=x.itemsize < 8,
        spare=ws.array("product", x.shape, "float64"),
    )
    statistics.mean, statistics.mean_low = reference.mean, reference.mean_low
    statistics.variance, statistics.unit = reference.variance, reference.unit
    if reference.variance_low is not None:
        statistics.variance_low, statistics.precise = reference.variance_low, True
    meant = exact_core(reference, plan.model_epsilon, ws.array("meant", x.shape, "float64"))

    casts: dict[Format, CastStatistics] = {}
    kernels: dict[int, KernelStatistics] = {}
    for fmt in dict.fromkeys(kernel.stages(fmt).T for fmt, kernel in plan.results):
        h, cast = analyse_cast(x, fmt, statistics, reference, plan, ws)
        casts[fmt] = cast
        h_max, h_min = cast.h_max.astype(fmt.carrier), cast.h_min.astype(fmt.carrier)
        for i, (audited, kernel) in enumerate(plan.results):
            if kernel.stages(audited).T is fmt:
                centered = interpreter.center(h, h_max, h_min, audited, kernel, plan.rms, ws)
                kernels[i] = _kernel(centered, reference, meant, i, plan, ws)
    return RowStatistics(input=statistics, casts=casts, kernels=[kernels[i] for i in sorted(kernels)])


def turned(rows: Array, ws: Workspace) -> Array:
    """Return rows of shape (n, d) as (d, n) in native float32 or float64."""
    x = ws.array("x", rows.shape[::-1], held_in(rows.dtype))
    for i in range(0, len(rows), TURNED_AT_ONCE):
        np.copyto(x[:, i : i + TURNED_AT_ONCE], rows[i : i + TURNED_AT_ONCE].T)
    return x


def _input(x: Array, first_row: int, plan: Plan) -> tuple[Array, InputStatistics]:
    """Count and drop the rows that are not finite."""
    x_max, x_min = lane_extremes(x)
    finite = np.isfinite(x_max) & np.isfinite(x_min)
    statistics = input_statistics(x_max, x_min, finite, first_row, plan, lambda: x[:, ~finite])
    return (x if finite.all() else np.ascontiguousarray(x[:, finite])), statistics


def input_statistics(
    x_max: Array, x_min: Array, finite: Array, first_row: int, plan: Plan, others: Callable[[], Array]
) -> InputStatistics:
    """Return what follows from the extremes of rows; others: gives those that are not finite, shape (d, n)."""
    index = np.arange(first_row, first_row + len(finite))
    counts: dict[str, Any] = {}
    if not finite.all():
        bad = others()
        nan, inf = np.isnan(bad).sum(axis=0), np.isinf(bad).sum(axis=0)
        wholly, rows = nan == len(bad), index[~finite]
        counts = {
            "elements_nan": int(nan.sum()),
            "elements_inf": int(inf.sum()),
            "nan_rows": int(wholly.sum()),
            "partly_nan_rows": int(((nan > 0) & ~wholly).sum()),
            "inf_rows": int((nan == 0).sum()),
            "first_nan_row": int(rows[wholly][0]) if wholly.any() else -1,
            "first_nonfinite_row": int(rows[~wholly][0]) if not wholly.all() else -1,
        }
        x_max, x_min, index = x_max[finite], x_min[finite], index[finite]
    x_max, x_min = x_max.astype(np.float64), x_min.astype(np.float64)
    nothing = np.zeros(len(index))
    return InputStatistics(
        index=index,
        x_max=x_max,
        x_min=x_min,
        mean=nothing,
        mean_low=nothing,
        variance=nothing,
        variance_low=nothing,
        unit=nothing.astype(np.intc),
        constant=((x_max == 0) & (x_min == 0)) if plan.rms else (x_max == x_min),
        **counts,
    )


def _kernel(
    centered: interpreter.Centered, reference: Reference, meant: ExactCore, i: int, plan: Plan, ws: Workspace
) -> KernelStatistics:
    fmt, kernel = plan.results[i]

    def run_at(epsilon: float) -> elements.Elements:
        exact = exact_core(reference, epsilon, ws.array("meant at a point", centered.v.shape, "float64"))
        return elements.run(centered, exact, epsilon, fmt, kernel, plan, ws, moments=True)

    moments = _moments(centered.v, reference, fmt, plan, ws)
    found = elements.run(centered, meant, plan.epsilon, fmt, kernel, plan, ws)
    return kernel_statistics(centered, moments, found, fmt, kernel, plan, run_at)


def kernel_statistics(
    centered: interpreter.Centered,
    moments: tuple[Array, Array, Array, Array],
    found: elements.Elements,
    fmt: Format,
    kernel: Kernel,
    plan: Plan,
    run_at: Callable[[float], elements.Elements],
) -> KernelStatistics:
    """Put together what was found about rows in an emulation; moments: D, S, A and the mean of v_hat."""
    D, S, A, v_mean = moments
    return KernelStatistics(
        **{name: getattr(centered, name).astype(np.float64) for name in STATISTICS},
        D=D,
        S=S,
        A=A,
        error=found.error,
        core_nan=found.core_nan,
        core_inf=found.core_inf,
        output_nan=found.output_nan,
        output_inf=found.output_inf,
        affine_overflow=found.affine_overflow,
        v_mean=v_mean,
        **elements.at_points(centered, fmt, kernel, plan, len(D), run_at),
    )


def _moments(
    v_hat: Array, reference: Reference, fmt: Format, plan: Plan, ws: Workspace
) -> tuple[Array, Array, Array, Array]:
    """Return mean((v_hat-v)^2), mean((v_hat-v) v), mean(v_hat^2), mean(v_hat), v_hat in units of the scaled row."""
    d = len(v_hat)
    v = ws.array("wide", v_hat.shape, "float64")
    np.copyto(v, v_hat)
    unscale = reference.unit + plan.prescale
    if unscale.any():
        np.ldexp(v, -unscale, out=v)
    product = ws.array("product", v.shape, "float64")
    A = lane_sum(np.multiply(v, v, out=product)) / d
    v_mean = lane_sum(v) / d if plan.points else np.zeros(v.shape[1])
    np.subtract(v, reference.v, out=v)
    if reference.v_low is not None and fmt.precision == 53:
        np.subtract(v, reference.v_low, out=v)
    D = lane_sum(np.multiply(v, v, out=product)) / d
    if fmt.precision == 53:
        S = lane_sum(np.multiply(v, reference.v, out=product)) / d
    else:
        # from A = q + 2 S + D, to 1e-16 of the largest of them: far below what these formats resolve
        S = ((A - reference.variance) - D) / 2
        far = A > FAR * reference.variance
        if far.any():
            S[far] = lane_sum(np.ascontiguousarray(v[:, far] * reference.v[:, far])) / d
    return D, S, A, v_mean
