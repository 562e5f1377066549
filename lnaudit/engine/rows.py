"""Plan and row statistics: what an engine is asked, and the contract of what it answers (design 4).

All arrays have one element a row, finite input rows only, in the order of `index`. Every engine fills them bit by bit
alike. Statistics about the data are float64 in units of the *scaled row* x * 2^-unit; those of a kernel are in its
own units unless said otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ..arithmetic import quiet
from ..formats import Format
from ..kernels import Kernel

Array = NDArray[Any]
T = TypeVar("T", bound="InputStatistics | CastStatistics | KernelStatistics")
ALREADY = (1e-3, 1e-2)  # a row so close to mean 0 and variance 1 looks like the output of a norm


def held_in(dtype: np.dtype[Any]) -> str:
    """Return the dtype in which engines hold rows of a file: float64, or float32 for shorter numbers."""
    return "float64" if dtype.itemsize == 8 else "float32"


def accepted_error(tolerance: float, fmt: Format) -> float:
    """Accepted row error in a format: the tolerance, at least four unit roundoffs (a heuristic)."""
    return max(tolerance, 4 * fmt.unit_roundoff)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to emulate.

    Attributes
    ----------
    results : tuple of (Format, Kernel)
        The emulations.
    norm : str
        "layer" or "rms".
    features : int
        Elements of a row (d).
    model_epsilon : float
        The model's epsilon: its exact output is what the model means.
    epsilon : float
        The epsilon that is emulated element by element.
    epsilons : tuple of float
        Others whose fate and error are wanted by the closed form.
    tolerance : float
        Accepted error of a row, in units of the normalized output, before a format widens it.
    tolerances : tuple of (str, float)
        That of single formats, by name.
    variants : tuple of float
        Other tolerances under which the rows are judged too, for all formats.
    weight, bias : ndarray of float64, shape (features,), or None
    prescale : int
        The kernel is given x * 2^prescale.
    loss_scale : float
        Euclidean norm of the upstream gradient of a row.
    compare_epsilon : float, optional
        Another program's epsilon, whose output is compared with the model's.
    points : tuple of float
        Epsilons at each of which the rows are judged as if it were the model's own.
    by_elements : bool
        The row error at the points is taken element by element with the output rounding, not by the closed form.
    double_double : bool
        The reference is in double-double even if no result is in float64.
    already : (float, float)
        Within these of mean 0 and variance 1 a row counts as already normalized.
    """

    results: tuple[tuple[Format, Kernel], ...]
    norm: str
    features: int
    model_epsilon: float
    epsilon: float
    epsilons: tuple[float, ...] = ()
    tolerance: float = 0.02
    tolerances: tuple[tuple[str, float], ...] = ()
    variants: tuple[float, ...] = ()
    weight: Array | None = None
    bias: Array | None = None
    prescale: int = 0
    loss_scale: float = 1.0
    compare_epsilon: float | None = None
    points: tuple[float, ...] = ()
    by_elements: bool = False
    double_double: bool = False
    already: tuple[float, float] = ALREADY

    def at(self, epsilon: float) -> Plan:
        """Return the plan of a point: the same emulations with that epsilon for the model's."""
        return replace(self, model_epsilon=epsilon, epsilon=epsilon, epsilons=(), points=(), variants=())

    def under(self, tolerance: float) -> Plan:
        """Return the same plan with another accepted error for all formats."""
        return replace(self, tolerance=tolerance, tolerances=(), points=(), variants=())

    @property
    def needs_double_double(self) -> bool:
        """Whether the reference carries about 100 bits."""
        return self.double_double or any(fmt.precision == 53 for fmt, _ in self.results)

    @property
    def defined(self) -> Array:
        """Which elements of an output have a finite weight and bias; shape (features,) or ()."""
        return np.isfinite(self.weight if self.weight is not None else 1.0) & np.isfinite(
            self.bias if self.bias is not None else 0.0
        )

    @property
    def rms(self) -> bool:
        """Whether the norm is RMSNorm: no centring."""
        return self.norm == "rms"

    @property
    def tried(self) -> tuple[float, ...]:
        """All epsilons whose fate and error are worked out, the emulated one first; tables are in this order."""
        return (self.epsilon, *self.epsilons)

    def effective(self, epsilon: float) -> float:
        """What an epsilon added to scaled rows amounts to on the rows of the file: epsilon * 4^-prescale."""
        if not self.prescale:
            return epsilon
        with quiet():  # far down or up it is 0 or Inf
            return float(np.ldexp(epsilon, -2 * self.prescale))

    def limit_of(self, fmt: Format) -> float:
        """Accepted row error in a format."""
        return accepted_error(dict(self.tolerances).get(fmt.name, self.tolerance), fmt)


@dataclass(kw_only=True)
class InputStatistics:
    """The rows of the file, by the reference.

    x_max, x_min: extremes. mean, mean_low: of the scaled row (0 for RMSNorm) as a sum of two doubles. variance,
    variance_low: its q, likewise; precise: the low parts are not 0, as the float64 format needs them. unit: exponent of
    the power of two by which the reference scaled the row. constant: all elements equal (RMSNorm: all zero).
    """

    index: Array
    x_max: Array
    x_min: Array
    mean: Array
    mean_low: Array
    variance: Array
    variance_low: Array
    unit: Array
    constant: Array
    precise: bool = False
    elements_nan: int = 0
    elements_inf: int = 0
    nan_rows: int = 0
    partly_nan_rows: int = 0
    inf_rows: int = 0
    first_nan_row: int = -1
    first_nonfinite_row: int = -1

    @property
    def scaled(self) -> bool:
        """Whether the reference scaled any row."""
        return bool(self.unit.any())

    def __post_init__(self) -> None:
        # 1/sqrt(q + epsilon) by (epsilons, prescale): every emulation of these rows asks for the same few
        self.roots: dict[tuple[tuple[float, ...], int], tuple[Array, Array]] = {}


@dataclass(kw_only=True)
class CastStatistics:
    """The rows after the cast to a format.

    h_max, h_min: extremes of the cast row. finite; constant (RMSNorm: all zero). shift, D, S: mean(c) of what the cast
    adds, c = h - x (0 for RMSNorm), mean((v_h-v)^2) and mean((v_h-v) v), in units of the scaled row. error: RMS of
    exact LN of the cast row minus exact LN of the row, both at the model's epsilon, NaN where the cast is not finite.
    overflow, underflow, subnormal: elements; nonzero: elements of the file that are not 0.
    """

    h_max: Array
    h_min: Array
    finite: Array
    constant: Array
    shift: Array
    D: Array
    S: Array
    error: Array
    overflow: int = 0
    underflow: int = 0
    subnormal: int = 0
    nonzero: int = 0


@dataclass(kw_only=True)
class KernelStatistics:
    """What a kernel computes of each row.

    total, mean, diff, square, square_sum: sum of h, mean, max|v_hat|, largest square, sum of squares. raw_variance,
    variance: before and after the clamp. D, S, A: mean((v_hat-v)^2), mean((v_hat-v) v), mean(v_hat^2), v_hat in units
    of the scaled row. error: RMS of core - exact core at the model's epsilon, element by element with the output
    rounding. core_nan, core_inf, output_nan, output_inf: elements of core and of weight*core + bias. affine_overflow:
    an output is not finite though the core and its parameters are. v_mean: mean(v_hat) in units of the scaled row, 0
    if there are no points. The others have shape (n, points), or (n, 0) where nobody asks: the affine overflow at each
    point where there is a weight or bias; of points that are run by elements the row error, the sum of the core and of
    its squares.
    """

    total: Array
    mean: Array
    diff: Array
    square: Array
    square_sum: Array
    raw_variance: Array
    variance: Array
    D: Array
    S: Array
    A: Array
    error: Array
    core_nan: Array
    core_inf: Array
    output_nan: Array
    output_inf: Array
    affine_overflow: Array
    v_mean: Array
    point_overflow: Array
    point_error: Array
    point_sum: Array
    point_square: Array


@dataclass(kw_only=True)
class RowStatistics:
    """All statistics of some rows; casts: by the format that a kernel casts to."""

    input: InputStatistics
    casts: dict[Format, CastStatistics] = field(default_factory=dict)
    kernels: list[KernelStatistics] = field(default_factory=list)


def pick(statistics: T, chosen: Array) -> T:
    """Return the same statistics of some rows."""
    values: dict[str, Any] = {f.name: getattr(statistics, f.name) for f in fields(statistics)}
    values = {name: value[chosen] if isinstance(value, np.ndarray) else value for name, value in values.items()}
    picked = type(statistics)(**values)
    if isinstance(statistics, InputStatistics):
        known = {
            k: (root[:, chosen], low[:, chosen] if low.ndim else low) for k, (root, low) in statistics.roots.items()
        }
        cast(InputStatistics, picked).roots.update(known)
    return picked


def _join(parts: list[T]) -> T:
    values: dict[str, Any] = {}
    for f in fields(parts[0]):
        column = [getattr(part, f.name) for part in parts]
        if isinstance(column[0], np.ndarray):
            values[f.name] = np.concatenate(column)
        elif f.name == "precise":
            values[f.name] = column[0]
        elif f.name.startswith("first_"):
            values[f.name] = min((row for row in column if row >= 0), default=-1)
        else:
            values[f.name] = sum(column)
    return type(parts[0])(**values)


def join(parts: list[RowStatistics]) -> RowStatistics:
    """Concatenate the statistics of consecutive rows."""
    if len(parts) == 1:
        return parts[0]
    return RowStatistics(
        input=_join([part.input for part in parts]),
        casts={name: _join([part.casts[name] for part in parts]) for name in parts[0].casts},
        kernels=[_join([part.kernels[i] for part in parts]) for i in range(len(parts[0].kernels))],
    )
