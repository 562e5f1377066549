"""A kernel on rows by the compiled loops: what `numpy_engine` finds, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic import Workspace, round_number, rounded
from ..formats import Format
from ..kernels import Kernel
from . import elements, interpreter
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
    T, n = kernel.stages(fmt).T, len(rows.x)
    finish = covers_inverse(fmt, kernel, plan.rms)  # other ways to invert a root are numpy's
    found, failed, cast = _emulate(rows, fmt, kernel, plan, ws, counted=T not in known, finish=finish)
    if cast is not None:
        known[T] = cast
    affine, points = plan.weight is not None or plan.bias is not None, elements.no_points(n)
    by_elements = bool(plan.points) and (affine or plan.by_elements)
    if finish:
        counted = _count_failed(rows, found, failed, known[T], fmt, kernel, plan)
    if affine or by_elements or not finish:
        centered = _centered(found, known[T], rows.d, fmt, kernel, plan)
        run_at = partial(_elements, rows, centered, fmt, kernel, plan)
        if not finish:
            at_epsilon = run_at(plan.epsilon, meant=plan.model_epsilon)
            found["error"] = at_epsilon.error
            counted = _counts(at_epsilon)
        elif affine:
            counted |= _outputs(rows, centered, plan.epsilon, failed, fmt, kernel, plan)
        if by_elements:
            points = elements.at_points(centered, fmt, kernel, plan, n, run_at)
    return KernelStatistics(**found, **counted, **points)


def _count_failed(
    rows: Rows,
    found: dict[str, Array],
    failed: Array,
    cast: CastStatistics,
    fmt: Format,
    kernel: Kernel,
    plan: Plan,
) -> dict[str, Array]:
    """Return NaN and Inf of the cores of the rows that failed, which have no error, as those of the output too."""
    nan, inf = np.zeros((2, len(failed)), np.int64)
    if failed.any():
        sums = {name: column[failed] for name, column in found.items()}
        centered = _centered(sums, pick(cast, failed), rows.d, fmt, kernel, plan)
        core = replace(plan, weight=None, bias=None)
        part = _elements(rows.some(failed), centered, fmt, kernel, core, plan.epsilon)
        nan[failed], inf[failed] = part.core_nan, part.core_inf
        found["error"][failed] = np.nan
    overflow = np.zeros(len(failed), bool)
    return {"core_nan": nan, "core_inf": inf, "output_nan": nan, "output_inf": inf, "affine_overflow": overflow}


def _emulate(
    rows: Rows, fmt: Format, kernel: Kernel, plan: Plan, ws: Workspace, *, counted: bool, finish: bool
) -> tuple[dict[str, Array], Array, CastStatistics | None]:
    """Return statistics of rows by name, which have NaN or Inf in the core, and what the cast does if it is counted."""
    at, n, real, size = kernel.stages(fmt), len(rows.x), rows.x.dtype.type, rows.given.shape[1]
    carrier, padded = np.dtype(at.T.carrier), rows.x.shape[1]
    held, means = rows.x.dtype.name, bool(plan.points)
    steps = steps_of(fmt, kernel, held, rms=plan.rms, features=plan.features, means=means, finish=finish)
    serial = steps.serial or steps.square_serial
    at_once = LANES if serial else max(1, min(LANES, AT_ONCE // padded // (carrier.itemsize + rows.x.itemsize + 8)))
    found, failed = np.empty((len(emulation.FOUND), size)), np.zeros(n, bool)
    cast, counts = np.empty((len(casts.FOUND), size)) if counted else None, np.zeros(4, np.int64)
    epsilon = carrier.type(round_number(plan.epsilon, at.epsilon) if finish else 0)
    x = rows.x.reshape(-1)
    room = _room(x, at_once, padded, at.T.carrier, steps, ws)
    emulation.emulate(
        x, rows.d, at_once, steps, epsilon, real(at.T.smallest_normal), rows.given, room, found, failed, cast, counts
    )
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


def _room(x: Array, at_once: int, padded: int, carrier: str, steps: emulation.Steps, ws: Workspace) -> emulation.Room:
    size = (at_once * padded,)
    return emulation.Room(
        h=x if emulation.in_place.py_func(steps) else ws.array("h", size, carrier),
        v_hat=ws.array("v_hat", size, carrier),
        v=ws.array("v", size, "float64"),
        v_low=ws.array("v_low", size if steps.low else (0,), "float64"),
        terms=ws.array("terms", size if steps.square_serial else (padded,), carrier),
        sums=ws.array("sums", (LANES,), carrier),
        means=ws.array("means", (LANES,), carrier),
        inverses=ws.array("inverses", (LANES,), carrier),
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
    at, n, carrier = kernel.stages(fmt), len(rows.x), kernel.stages(fmt).T.carrier
    steps, inverse = _last_steps(rows, centered, epsilon, fmt, kernel, plan)
    failed = ~np.isfinite(interpreter.core_maximum(centered, inverse, fmt, kernel, plan.rms))
    rho, rho_low = rows.root(epsilon if meant is None else meant)
    error, total, square = rows.empty(), rows.empty(), rows.empty()
    nan, inf = rows.empty(np.int64), rows.empty(np.int64)
    loops.cores(
        *steps, () if at.output is at.normalized else how(at.output, carrier), failed, np.finfo(carrier).max,
        rows.column(references.A), rows.column(references.B), rho, rho_low,
        flag(fmt.precision == 53), flag(meant is None), error, total, square, nan, inf,
    )  # fmt: skip
    outputs = {"output_nan": nan, "output_inf": inf, "affine_overflow": np.zeros(n, bool)}
    if plan.weight is not None or plan.bias is not None:
        outputs = _outputs(rows, centered, epsilon, failed, fmt, kernel, plan)
    return elements.Elements(
        error=np.where(failed, np.nan, error),
        core_nan=nan,
        core_inf=inf,
        core_sum=total,
        core_square=square,
        **outputs,
    )


def _last_steps(
    rows: Rows, centered: interpreter.Centered, epsilon: float, fmt: Format, kernel: Kernel, plan: Plan
) -> tuple[tuple[Any, ...], Array]:
    """Return how `loops` bring rows to the normalized values, and their inverse."""
    at, carrier = kernel.stages(fmt), kernel.stages(fmt).T.carrier
    _, inverses = interpreter.inverse(centered.variance, (epsilon,), fmt, kernel)
    inverse = inverses[0].astype(carrier, copy=False)
    casts_to, diff = how(at.T, rows.x.dtype.name), () if plan.rms else how(at.diff, carrier)
    divides = flag(kernel.inverse == "div")
    return (rows.x, rows.d, casts_to, centered.mean, diff, inverse, divides, how(at.normalized, carrier)), inverse


def _outputs(
    rows: Rows, centered: interpreter.Centered, epsilon: float, failed: Array, fmt: Format, kernel: Kernel, plan: Plan
) -> dict[str, Array]:
    """Return NaN and Inf of the outputs with weight and bias, and in which rows only these are to blame."""
    at, carrier = kernel.stages(fmt), kernel.stages(fmt).T.carrier
    steps, _ = _last_steps(rows, centered, epsilon, fmt, kernel, plan)
    nan, inf = rows.empty(np.int64), rows.empty(np.int64)
    weight, bias = (_parameter(p, at.affine, rows.x.shape[1]) for p in (plan.weight, plan.bias))
    hows = how(at.affine, carrier), how(at.output, carrier)
    loops.outputs(*steps, *hows, weight, bias, np.finfo(carrier).max, nan, inf)
    return {"output_nan": nan, "output_inf": inf, "affine_overflow": (nan + inf > 0) & ~failed}


def _counts(found: elements.Elements) -> dict[str, Array]:
    names = ("core_nan", "core_inf", "output_nan", "output_inf", "affine_overflow")
    return {name: getattr(found, name) for name in names}


def _parameter(parameter: Array | None, fmt: Format, padded: int) -> Array:
    """Return weight or bias rounded to a format, with zeros at the end; empty if there is none."""
    if parameter is None:
        return np.zeros(0, fmt.carrier)
    held = np.zeros(padded, fmt.carrier)
    held[: len(parameter)] = rounded(parameter, fmt)
    return held
