"""The numpy engine: row statistics of a block, the specification in code.

A block of whole rows is cut into sub-blocks; each is turned features first, shape (d, n), so that every operation, sums
included, runs along contiguous memory. Buffers of the workspace are named by what they hold; "step" (the carrier) and
"wide" (float64) hold whatever the current step works on and is done with before the next.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic import Workspace, lane_extremes, lane_sum, round_in_place, rounded
from ..double_double import two_product
from ..formats import FORMATS, Format
from . import interpreter
from .reference import Reference, center
from .rows import CastStatistics, InputStatistics, KernelStatistics, Plan, RowStatistics, join

Array = NDArray[Any]
# elements of a sub-block: few enough for the cache, many enough that an operation outlasts the call and threads do not
# queue for the interpreter (measured: 2^17 25, 2^18 35, 2^19 42, 2^20 41 million elements a second on two cores)
SUB_BLOCK = 1 << 19
TURNED_AT_ONCE = 8  # rows that are turned together: more of them evict each other from the first-level cache
NARROW_ROWS = 16  # fewer rows side by side waste the vector unit; from this width on a row is long enough by itself
LONG_ROW = 16_384
STATISTICS = [f.name for f in fields(interpreter.Centered) if f.name != "v"]


def rows_at_once(features: int, double_double: bool) -> int:
    """Return how many rows a sub-block holds; double-double needs twice the memory an element."""
    fitting = max(1, (SUB_BLOCK >> double_double) // features)
    return max(fitting, NARROW_ROWS) if features <= LONG_ROW else fitting


def analyse(block: Array, first_row: int, plan: Plan, ws: Workspace) -> RowStatistics:
    """Return the statistics of the finite rows of a block of shape (n, d), whose first row has index `first_row`."""
    step = rows_at_once(plan.features, _needs_double_double(plan))
    parts = [_analyse(block[i : i + step], first_row + i, plan, ws) for i in range(0, len(block), step)]
    return join(parts)


def _needs_double_double(plan: Plan) -> bool:
    return any(fmt is FORMATS["float64"] for fmt, _ in plan.results)


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
        double_double=_needs_double_double(plan),
        spare=ws.array("product", x.shape, "float64"),
    )
    statistics.mean, statistics.variance, statistics.unit = reference.mean, reference.variance, reference.unit
    if reference.variance_low is not None:
        statistics.variance_low = reference.variance_low
    rho, rho_low = reference.inverse_root(plan.model_epsilon)
    meant = np.multiply(reference.v, rho, out=ws.array("meant", x.shape, "float64"))
    meant_low = None
    if reference.v_low is not None:
        _, error = two_product(reference.v, rho)
        meant_low = error + reference.v_low * rho + reference.v * rho_low

    casts: dict[str, CastStatistics] = {}
    kernels: dict[int, KernelStatistics] = {}
    shift = reference.unit + plan.prescale
    for fmt in dict.fromkeys(fmt for fmt, _ in plan.results):
        h, cast = _cast(x, fmt, statistics, reference, rho, plan, ws)
        casts[fmt.name] = cast
        h_max, h_min = cast.h_max.astype(fmt.carrier), cast.h_min.astype(fmt.carrier)
        for i, (other, kernel) in enumerate(plan.results):
            if other is fmt:
                centered = interpreter.center(h, h_max, h_min, fmt, kernel, plan.rms, ws)
                kernels[i] = _kernel(centered, reference, shift, meant, meant_low, i, plan, ws)
    return RowStatistics(input=statistics, casts=casts, kernels=[kernels[i] for i in sorted(kernels)])


def turned(rows: Array, ws: Workspace) -> Array:
    """Return rows of shape (n, d) as (d, n) in native float32 or float64."""
    x = ws.array("x", rows.shape[::-1], "float64" if rows.dtype.itemsize == 8 else "float32")
    for i in range(0, len(rows), TURNED_AT_ONCE):
        np.copyto(x[:, i : i + TURNED_AT_ONCE], rows[i : i + TURNED_AT_ONCE].T)
    return x


def _input(x: Array, first_row: int, plan: Plan) -> tuple[Array, InputStatistics]:
    """Count and drop the rows that are not finite."""
    x_max, x_min = lane_extremes(x)
    finite = np.isfinite(x_max) & np.isfinite(x_min)
    index = np.arange(first_row, first_row + x.shape[1])
    counts: dict[str, int] = {}
    if not finite.all():
        bad = x[:, ~finite]
        nan, inf = np.isnan(bad).sum(axis=0), np.isinf(bad).sum(axis=0)
        counts = {
            "elements_nan": int(nan.sum()),
            "elements_inf": int(inf.sum()),
            "nan_rows": int((nan == len(x)).sum()),
            "partly_nan_rows": int(((nan > 0) & (nan < len(x))).sum()),
            "inf_rows": int((nan == 0).sum()),
        }
        wholly = nan == len(x)
        rows = index[~finite]
        counts["first_nan_row"] = int(rows[wholly][0]) if wholly.any() else -1
        counts["first_nonfinite_row"] = int(rows[~wholly][0]) if not wholly.all() else -1
        x, x_max, x_min, index = np.ascontiguousarray(x[:, finite]), x_max[finite], x_min[finite], index[finite]
    x_max, x_min = x_max.astype(np.float64), x_min.astype(np.float64)
    nothing = np.zeros(len(index))
    return x, InputStatistics(
        index=index,
        x_max=x_max,
        x_min=x_min,
        mean=nothing,
        variance=nothing,
        variance_low=nothing,
        unit=nothing.astype(np.int64),
        constant=((x_max == 0) & (x_min == 0)) if plan.rms else (x_max == x_min),
        **counts,
    )


def cast_rows(x: Array, fmt: Format, prescale: int, ws: Workspace) -> Array:
    """Round rows to a format once, from the file's own dtype; shape (d, n), in the format's carrier."""
    if prescale:
        x = np.ldexp(x.astype(np.float64), prescale)
    if x.dtype == fmt.carrier and fmt.precision in (24, 53):
        return x
    h = ws.array("wide_cast", x.shape, x.dtype.name)
    np.copyto(h, x)
    round_in_place(h, fmt, ws)
    if h.dtype != fmt.carrier:
        narrow = ws.array("cast", x.shape, fmt.carrier)
        np.copyto(narrow, h, casting="same_kind")
        return narrow
    return h


def _cast(
    x: Array, fmt: Format, rows: InputStatistics, reference: Reference, rho: Array, plan: Plan, ws: Workspace
) -> tuple[Array, CastStatistics]:
    h = cast_rows(x, fmt, plan.prescale, ws)
    # rounding is monotone: the extremes of h are the rounded extremes of x
    ends = rounded(np.ldexp(np.stack([rows.x_max, rows.x_min]), plan.prescale), fmt).astype(np.float64)
    finite = np.isfinite(ends[0]) & np.isfinite(ends[1])
    constant = (ends == 0).all(axis=0) if plan.rms else ends[0] == ends[1]
    cast = CastStatistics(h_max=ends[0], h_min=ends[1], finite=finite, constant=constant & finite, error=np.zeros(0))
    cast.overflow = 0 if finite.all() else int(np.isinf(h[:, ~finite]).sum())
    zeros, cast.subnormal = _count_small(h, fmt, ws)
    cast.nonzero = x.size - (zeros if h is x or not zeros else int(np.count_nonzero(x == 0)))
    if h is x:
        cast.error = np.zeros(len(finite))
        return h, cast
    cast.underflow = zeros - (x.size - cast.nonzero)
    cast.error = _cast_error(h, x, cast, reference, rho, plan, ws)
    return h, cast


def _count_small(h: Array, fmt: Format, ws: Workspace) -> tuple[int, int]:
    """Count zeros and subnormal numbers; the bits of magnitudes are ordered as the magnitudes are."""
    integer = f"int{8 * h.itemsize}"
    smallest_normal = np.array(fmt.smallest_normal, h.dtype).view(integer)
    bits = ws.array("bits", h.shape, integer)
    np.bitwise_and(h.view(integer), np.iinfo(integer).max, out=bits)
    small = int(np.count_nonzero(np.less(bits, smallest_normal, out=ws.array("small", h.shape, "bool"))))
    zeros = int(np.count_nonzero(bits == 0)) if small else 0
    return zeros, small - zeros


def _cast_error(
    h: Array, x: Array, cast: CastStatistics, reference: Reference, rho: Array, plan: Plan, ws: Workspace
) -> Array:
    """RMS of exact LN of h minus exact LN of x: the closed form of design 4 with v_h - v = c - mean(c), c = h - x."""
    d = plan.features
    c = ws.array("wide", x.shape, "float64")
    shift = plan.prescale + reference.unit
    if shift.any():
        np.subtract(np.ldexp(h.astype(np.float64), -shift), np.ldexp(x.astype(np.float64), -reference.unit), out=c)
    elif h.dtype == x.dtype:
        # the rounding error of a shorter significand is itself a number of the carrier
        np.copyto(c, np.subtract(h, x, out=ws.array("step", x.shape, x.dtype.name)))
    else:
        np.subtract(h, x, out=c, dtype=np.float64)
    if not plan.rms:
        np.subtract(c, lane_sum(c) / d, out=c)
    product = ws.array("product", x.shape, "float64")
    D = lane_sum(np.multiply(c, c, out=product)) / d
    S = lane_sum(np.multiply(c, reference.v, out=product)) / d
    q = reference.variance
    epsilon = np.ldexp(plan.model_epsilon, -2 * reference.unit)
    rho_h = 1.0 / np.sqrt(np.maximum(q + 2 * S + D, 0.0) + epsilon)
    rho_h = np.where(np.isfinite(rho_h), rho_h, 0.0)
    difference = rho_h - rho
    error = np.sqrt(np.maximum(difference**2 * q + 2 * difference * rho_h * S + rho_h**2 * D, 0.0))
    error = np.where(cast.constant, np.sqrt(q) * rho, error)
    return np.where(cast.finite, error, np.nan)


def _kernel(
    centered: interpreter.Centered,
    reference: Reference,
    shift: Array,
    meant: Array,
    meant_low: Array | None,
    i: int,
    plan: Plan,
    ws: Workspace,
) -> KernelStatistics:
    fmt, kernel = plan.results[i]
    d, n = meant.shape
    v = ws.array("wide", meant.shape, "float64")
    np.copyto(v, centered.v)
    if shift.any():
        np.ldexp(v, -shift, out=v)
    product = ws.array("product", meant.shape, "float64")
    A = lane_sum(np.multiply(v, v, out=product)) / d
    np.subtract(v, reference.v, out=v)
    if reference.v_low is not None and fmt is FORMATS["float64"]:
        np.subtract(v, reference.v_low, out=v)
    D = lane_sum(np.multiply(v, v, out=product)) / d
    if fmt is FORMATS["float64"]:
        S = lane_sum(np.multiply(v, reference.v, out=product)) / d
    else:
        # from A = q + 2 S + D, to 1e-16 of the largest of them: far below what these formats resolve
        S = ((A - reference.variance) - D) / 2

    _, inverse = interpreter.inverse(centered.variance, (plan.epsilon,), fmt, kernel)
    normalized = interpreter.normalize(centered.v, inverse[0], fmt, kernel, ws)
    core = interpreter.core(normalized, fmt, kernel, ws)
    np.copyto(product, core)
    np.subtract(product, meant, out=product)
    if meant_low is not None and fmt is FORMATS["float64"]:
        np.subtract(product, meant_low, out=product)
    error = np.sqrt(lane_sum(np.multiply(product, product, out=product)) / d)
    if np.isinf(error).any():
        error = _huge_error(core, meant, error)
    failed = ~np.isfinite(interpreter.core_maximum(centered.diff, inverse[0], fmt, kernel))
    core_nan, core_inf = _count_nonfinite(core, failed)
    output_nan, output_inf, affine_overflow = core_nan, core_inf, np.zeros(n, bool)
    if plan.weight is not None or plan.bias is not None:
        y = interpreter.output(normalized, plan.weight, plan.bias, fmt, kernel, ws)
        finite = np.isfinite(y)
        some = np.ones(n, bool) if not finite.all() else np.zeros(n, bool)
        output_nan, output_inf = _count_nonfinite(y, some)
        if some.any():
            defined = np.isfinite(plan.weight if plan.weight is not None else 1.0) & np.isfinite(
                plan.bias if plan.bias is not None else 0.0
            )
            affine_overflow = ~finite[np.broadcast_to(defined, d)].all(axis=0) & ~failed
    return KernelStatistics(
        **{name: getattr(centered, name).astype(np.float64) for name in STATISTICS},
        D=D,
        S=S,
        A=A,
        error=np.where(failed, np.nan, error),
        core_nan=core_nan,
        core_inf=core_inf,
        output_nan=output_nan,
        output_inf=output_inf,
        affine_overflow=affine_overflow,
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
