"""The compiled engine: the row statistics of `numpy_engine` to the last bit, from loops over one row at a time.

What is one number a row is worked out by the same functions as there; only what touches elements is compiled. Results
that it does not cover (`coverage.covers`) are analysed by the numpy engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic import Workspace, rounded
from ..double_double import two_sum
from ..formats import Format
from ..kernels import Kernel
from . import elements, interpreter, numpy_engine
from .cast import cast_of_ends
from .compiled import loops, references
from .compiled.lanes import LANES
from .compiled.rounding import how
from .coverage import covers
from .epsilon import cast_error
from .reference import EXTREME_EXPONENT, divide, inverse_root
from .rows import CastStatistics, InputStatistics, KernelStatistics, Plan, RowStatistics

Array = NDArray[Any]


@dataclass(kw_only=True)
class _Rows:
    """Finite rows of a block: x of shape (n, padded), d elements each, and their reference v = (x - a) - b.

    root: 1/sqrt(q + epsilon) of an epsilon, as a sum of two float64.
    """

    x: Array
    d: int
    statistics: InputStatistics
    a: Array
    b: Array
    _roots: dict[float, tuple[Array, Array]] = field(default_factory=dict)

    def empty(self, dtype: Any = np.float64) -> Array:
        """Return room for a number a row."""
        return np.empty(len(self.x), dtype)

    def root(self, epsilon: float) -> tuple[Array, Array]:
        """Return 1/sqrt(q + epsilon) as a sum of two float64."""
        if epsilon not in self._roots:
            s = self.statistics
            self._roots[epsilon] = inverse_root(s.variance, s.variance_low, s.unit, epsilon)
        return self._roots[epsilon]


def analyse(block: Array, first_row: int, plan: Plan, ws: Workspace) -> RowStatistics:
    """Return the statistics of the finite rows of a block of shape (n, d), whose first row has index `first_row`."""
    covered = [covers(fmt, kernel, plan) for fmt, kernel in plan.results]
    rows = _rows(block, first_row, plan, ws) if any(covered) else None
    if rows is None:
        return numpy_engine.analyse(block, first_row, plan, ws)
    casts: dict[Format, CastStatistics] = {}
    kernels: list[KernelStatistics | None] = []
    for number, (fmt, kernel) in enumerate(plan.results):
        T = kernel.stages(fmt).T
        if covered[number] and T not in casts:
            casts[T] = _cast(rows, T, plan, ws)
        kernels.append(_kernel(rows, casts[T], fmt, kernel, plan, ws) if covered[number] else None)
    if not all(covered):
        left = tuple(result for result, done in zip(plan.results, covered, strict=True) if not done)
        others = replace(plan, results=left, double_double=plan.needs_double_double)
        rest = numpy_engine.analyse(block, first_row, others, ws)
        casts = {**rest.casts, **casts}
        remaining = iter(rest.kernels)
        kernels = [next(remaining) if found is None else found for found in kernels]
    ordered = {kernel.stages(fmt).T: casts[kernel.stages(fmt).T] for fmt, kernel in plan.results}
    return RowStatistics(
        input=rows.statistics, casts=ordered, kernels=[found for found in kernels if found is not None]
    )


def _rows(block: Array, first_row: int, plan: Plan, ws: Workspace) -> _Rows | None:
    """Return the rows that are finite and their reference; None if one is so large or small that it must be scaled."""
    d, precise = plan.features, plan.needs_double_double
    x = _padded(block)
    x_max, x_min, finite = np.empty(len(x)), np.empty(len(x)), np.empty(len(x), bool)
    a, b, variance = np.zeros(len(x)), np.zeros(len(x)), np.zeros(len(x))
    ends = (np.finfo(x.dtype).max, x_max, x_min, finite)
    if precise:
        references.ends(x, d, *ends)
    else:
        references.corrected_reference(x, d, plan.rms, *ends, a, b, variance)
    statistics = numpy_engine.input_statistics(x_max, x_min, finite, first_row, plan, lambda: x[~finite, :d].T)
    if not finite.all():
        x, a, b, variance = x[finite], a[finite], b[finite], variance[finite]
    exponents = np.frexp(np.maximum(np.abs(statistics.x_max), np.abs(statistics.x_min)))[1]
    if (np.abs(exponents) > EXTREME_EXPONENT).any():
        return None
    rows = _Rows(x=x, d=d, statistics=statistics, a=a, b=b)
    statistics.variance = variance
    if precise:
        _refer_precisely(rows, plan, ws)
    elif not plan.rms:
        # of a constant row too: what is taken off is its mean
        statistics.mean, statistics.mean_low = two_sum(a, b)
    return rows


def _padded(block: Array) -> Array:
    """Return rows in native float32 or float64, contiguous, with zeros up to a multiple of 16 elements."""
    n, d = block.shape
    dtype = np.dtype(np.float64 if block.dtype.itemsize == 8 else np.float32)
    if d % LANES == 0:
        return np.ascontiguousarray(block, dtype)
    x = np.zeros((n, -(-d // LANES) * LANES), dtype)
    x[:, :d] = block
    return x


def _refer_precisely(rows: _Rows, plan: Plan, ws: Workspace) -> None:
    s, total, low = rows.statistics, rows.empty(), rows.empty()
    room = [ws.array(name, rows.x.shape[1:], "float64") for name in ("terms", "terms_low")]
    s.precise = True
    if not plan.rms:
        references.sums_of_pairs(rows.x, rows.d, total, low, *room)
        rows.a, rows.b = divide(total, low, rows.d)
    s.mean, s.mean_low = rows.a.copy(), rows.b.copy()
    references.squares_of_pairs(rows.x, rows.d, s.constant, rows.a, rows.b, total, low, *room)
    s.variance, s.variance_low = divide(total, low, rows.d)
    # of a constant row nothing is left
    np.copyto(rows.a, s.x_max, where=s.constant)
    np.copyto(rows.b, 0.0, where=s.constant)


def _cast(rows: _Rows, fmt: Format, plan: Plan, ws: Workspace) -> CastStatistics:
    x, counts = rows.x, np.zeros(4, np.int64)
    found = cast_of_ends(rows.statistics, fmt, plan)
    found.shift, found.D, found.S = rows.empty(), rows.empty(), rows.empty()
    real, constants = x.dtype.type, how(fmt, x.dtype.name)
    normal, largest = real(fmt.smallest_normal), np.finfo(real).max
    loops.cast(
        x, rows.d, constants, rows.a, rows.b, plan.rms, found.finite, normal, largest,
        ws.array("terms", x.shape[1:], x.dtype.name), found.shift, found.D, found.S, counts,
    )  # fmt: skip
    found.overflow, found.subnormal, zeros, file_zeros = map(int, counts)
    found.underflow = zeros - file_zeros
    found.nonzero = len(x) * rows.d - file_zeros
    found.error = cast_error(rows.statistics, found, (plan.model_epsilon,))[0]
    return found


def _kernel(
    rows: _Rows, cast: CastStatistics, fmt: Format, kernel: Kernel, plan: Plan, ws: Workspace
) -> KernelStatistics:
    at, x, n = kernel.stages(fmt), rows.x, len(rows.x)
    carrier = np.dtype(at.T.carrier)
    cast_how, hows = how(at.T, x.dtype.name), partial(how, carrier=at.T.carrier)
    terms = ws.array("terms", (LANES * x.shape[1],), at.T.carrier)
    total, square_sum = (np.zeros(-(-n // LANES) * LANES, carrier) for _ in range(2))
    if not plan.rms:
        loops.totals(x, rows.d, cast_how, hows(at.sum), _flag(kernel.reduction == "serial"), terms, total)
    mean = interpreter.mean_of(total[:n], rows.d, fmt, kernel, plan.rms).astype(carrier, copy=False)
    D, S, A, M = (rows.empty() for _ in range(4))
    diff_how = () if plan.rms else hows(at.diff)
    square = at.square if at.square.precision < at.square_sum.precision else at.square_sum
    of_h = _flag(kernel.algorithm == "one_pass" and not plan.rms)
    low = fmt.precision == 53
    loops.squares(
        x, rows.d, cast_how, mean, diff_how, hows(square), hows(at.square_sum),
        _flag(kernel.order_of_squares == "serial"), of_h, rows.a, rows.b, _flag(low), _flag(bool(plan.points)),
        terms, square_sum, D, S, A, M,
    )  # fmt: skip
    if not low:
        q = rows.statistics.variance
        S = ((A - q) - D) / 2
        far = np.flatnonzero(A > numpy_engine.FAR * q)
        if len(far):
            loops.products(x, rows.d, far, cast_how, mean, diff_how, rows.a, rows.b, S)
    ends = cast.h_max.astype(carrier), cast.h_min.astype(carrier)
    centered = interpreter.from_sums(rows.d, *ends, total[:n], mean, square_sum[:n], fmt, kernel, plan.rms)
    run_at = partial(_elements, rows, centered, cast_how, diff_how, fmt, kernel, plan)
    v_mean = M if plan.points else np.zeros(n)
    return numpy_engine.kernel_statistics(
        centered, (D, S, A, v_mean), run_at(plan.epsilon, meant=plan.model_epsilon), fmt, kernel, plan, run_at
    )


def _elements(
    rows: _Rows,
    centered: interpreter.Centered,
    cast_how: Any,
    diff_how: Any,
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
    steps = (x, rows.d, cast_how, centered.mean, diff_how, inverse, _flag(kernel.inverse == "div"))
    loops.cores(
        *steps, hows(at.normalized), output_how, failed, largest, rows.a, rows.b, rho, rho_low,
        _flag(fmt.precision == 53), _flag(meant is None), error, total, square, nan, inf,
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


def _flag(wanted: bool) -> tuple[int, ...]:
    """Return what asks the loops for something, or leaves it out."""
    return (0,) if wanted else ()


def _parameter(parameter: Array | None, fmt: Format, padded: int) -> Array:
    """Return weight or bias rounded to a format, with zeros at the end; empty if there is none."""
    if parameter is None:
        return np.zeros(0, fmt.carrier)
    held = np.zeros(padded, fmt.carrier)
    held[: len(parameter)] = rounded(parameter, fmt)
    return held
