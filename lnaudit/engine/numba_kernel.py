"""A kernel on rows by the compiled loops: what `numpy_engine` finds, to the last bit."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic import Workspace, round_number, rounded
from ..formats import Format
from ..kernels import Kernel
from . import elements, interpreter, numpy_engine
from .compiled import casts, emulation, loops, references
from .compiled.lanes import LANES
from .compiled.rounding import how
from .compiled.steps import covers_inverse, flag, steps_of
from .numba_rows import Rows
from .rows import CastStatistics, KernelStatistics, Plan, pick

Array = NDArray[Any]
# bytes that the rows take that are worked on at once: they stay in a first-level cache
AT_ONCE = 1 << 15


def run(
    rows: Rows, known: dict[Format, CastStatistics], fmt: Format, kernel: Kernel, plan: Plan, ws: Workspace
) -> KernelStatistics:
    """Return what a kernel makes of rows; what its cast does to them is added to `known` where that is not known."""
    T, affine = kernel.stages(fmt).T, plan.weight is not None or plan.bias is not None
    # what weight and bias make of a core, and other ways to invert a root, is left to what runs one epsilon
    plain = not affine and covers_inverse(fmt, kernel, plan.rms)
    found, failed, cast = _emulate(rows, fmt, kernel, plan, ws, counted=T not in known, finish=plain)
    if cast is not None:
        known[T] = cast
    if not plain or (plan.points and plan.by_elements):
        centered = _centered(found, known[T], rows.d, fmt, kernel, plan)
        moments = found["D"], found["S"], found["A"], found["v_mean"]
        run_at = partial(_elements, rows, centered, fmt, kernel, plan)
        meant = run_at(plan.epsilon, meant=plan.model_epsilon)
        return numpy_engine.kernel_statistics(centered, moments, meant, fmt, kernel, plan, run_at)
    nan, inf = np.zeros((2, len(failed)), np.int64)
    if failed.any():
        sums = {name: column[failed] for name, column in found.items()}
        centered = _centered(sums, pick(known[T], failed), rows.d, fmt, kernel, plan)
        part = _elements(rows.some(failed), centered, fmt, kernel, plan, plan.epsilon)
        nan[failed], inf[failed] = part.core_nan, part.core_inf
        found["error"][failed] = np.nan
    return KernelStatistics(
        **found,
        core_nan=nan,
        core_inf=inf,
        output_nan=nan,
        output_inf=inf,
        affine_overflow=np.zeros(len(failed), bool),
        **elements.no_points(len(failed)),
    )


def _emulate(
    rows: Rows, fmt: Format, kernel: Kernel, plan: Plan, ws: Workspace, *, counted: bool, finish: bool
) -> tuple[dict[str, Array], Array, CastStatistics | None]:
    """Return statistics of rows by name, which have NaN or Inf in the core, and what the cast does if it is counted."""
    at, n, real, size = kernel.stages(fmt), len(rows.x), rows.x.dtype.type, rows.given.shape[1]
    carrier, padded = np.dtype(at.T.carrier), rows.x.shape[1]
    steps = steps_of(fmt, kernel, plan, rows.x.dtype.name, finish=finish)
    serial = steps.serial or steps.square_serial
    at_once = LANES if serial else max(1, min(LANES, AT_ONCE // padded // (carrier.itemsize + rows.x.itemsize + 8)))
    found, failed = np.empty((len(emulation.FOUND), size)), np.zeros(n, bool)
    cast, counts = np.empty((len(casts.FOUND), size)) if counted else None, np.zeros(4, np.int64)
    epsilon = carrier.type(round_number(plan.epsilon, at.epsilon) if finish else 0)
    emulation.emulate(
        rows.x.reshape(-1), rows.d, at_once, steps, epsilon,
        real(at.T.smallest_normal), rows.given, _room(at_once, padded, carrier, steps, ws), found, failed, cast, counts,
    )  # fmt: skip
    columns = dict(zip(emulation.FOUND, found[:, :n], strict=True))
    return columns, failed, None if cast is None else _judged(rows, cast, counts, plan)


def _judged(rows: Rows, cast: Array, counts: Array, plan: Plan) -> CastStatistics:
    """Return the statistics of a cast."""
    n = len(rows.x)
    finite, constant = np.empty(n, bool), np.empty(n, bool)
    casts.judge(rows.given, plan.model_epsilon, plan.rms, cast, finite, constant)
    overflow, subnormal, zeros, file_zeros = map(int, counts)
    return CastStatistics(
        **dict(zip(casts.FOUND, cast[:, :n], strict=True)),
        finite=finite,
        constant=constant,
        overflow=overflow,
        underflow=zeros - file_zeros,
        subnormal=subnormal,
        nonzero=n * rows.d - file_zeros,
    )


def _room(at_once: int, padded: int, carrier: np.dtype[Any], steps: emulation.Steps, ws: Workspace) -> emulation.Room:
    size = (at_once * padded,)
    return emulation.Room(
        h=ws.array("h", size, carrier.name),
        v=ws.array("v", size, "float64"),
        v_low=ws.array("v_low", size if steps.low else (0,), "float64"),
        terms=ws.array("terms", size if steps.square_serial else (padded,), carrier.name),
        sums=np.zeros(LANES, carrier),
        scalars=np.zeros(LANES, carrier),
    )


def _centered(
    found: dict[str, Array], cast: CastStatistics, d: int, fmt: Format, kernel: Kernel, plan: Plan
) -> interpreter.Centered:
    carrier = kernel.stages(fmt).T.carrier
    ends = cast.h_max.astype(carrier), cast.h_min.astype(carrier)
    total, mean, square_sum = (found[name].astype(carrier) for name in ("total", "mean", "square_sum"))
    return interpreter.from_sums(d, *ends, total, mean, square_sum, fmt, kernel, plan.rms)


def _elements(
    rows: Rows,
    centered: interpreter.Centered,
    fmt: Format,
    kernel: Kernel,
    plan: Plan,
    epsilon: float,
    meant: float | None = None,
) -> elements.Elements:
    """Run what follows the variance at an epsilon and compare it with the exact core, at that or another epsilon."""
    at, x, n = kernel.stages(fmt), rows.x, len(rows.x)
    carrier, hows = np.dtype(at.T.carrier), partial(how, carrier=at.T.carrier)
    largest = np.finfo(carrier).max
    _, inverses = interpreter.inverse(centered.variance, (epsilon,), fmt, kernel)
    inverse = inverses[0].astype(carrier, copy=False)
    failed = ~np.isfinite(interpreter.core_maximum(centered, inverse, fmt, kernel, plan.rms))
    rho, rho_low = rows.root(epsilon if meant is None else meant)
    error, total, square = rows.empty(), rows.empty(), rows.empty()
    nan, inf = rows.empty(np.int64), rows.empty(np.int64)
    output_how = () if at.output is at.normalized else hows(at.output)
    cast_how, diff_how = how(at.T, x.dtype.name), () if plan.rms else hows(at.diff)
    taken_off = rows.column(references.A), rows.column(references.B)
    steps = (x, rows.d, cast_how, centered.mean, diff_how, inverse, flag(kernel.inverse == "div"))
    loops.cores(
        *steps, hows(at.normalized), output_how, failed, largest, *taken_off, rho, rho_low,
        flag(fmt.precision == 53), flag(meant is None), error, total, square, nan, inf,
    )  # fmt: skip
    output_nan, output_inf, overflow = nan, inf, np.zeros(n, bool)
    if plan.weight is not None or plan.bias is not None:
        output_nan, output_inf = rows.empty(np.int64), rows.empty(np.int64)
        weight, bias = (_parameter(p, at.affine, x.shape[1]) for p in (plan.weight, plan.bias))
        loops.outputs(
            *steps, hows(at.normalized), hows(at.affine), hows(at.output), weight, bias, largest, output_nan, output_inf
        )
        overflow = (output_nan + output_inf > 0) & ~failed
    return elements.Elements(
        error=np.where(failed, np.nan, error),
        core_nan=nan,
        core_inf=inf,
        output_nan=output_nan,
        output_inf=output_inf,
        affine_overflow=overflow,
        core_sum=total,
        core_square=square,
    )


def _parameter(parameter: Array | None, fmt: Format, padded: int) -> Array:
    """Return weight or bias rounded to a format, with zeros at the end; empty if there is none."""
    if parameter is None:
        return np.zeros(0, fmt.carrier)
    held = np.zeros(padded, fmt.carrier)
    held[: len(parameter)] = rounded(parameter, fmt)
    return held
