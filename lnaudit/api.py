"""The Python API: the same engine as the command line, on arrays."""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arithmetic import Workspace, quiet
from .engine.output import output_of
from .errors import LnauditError
from .formats import DEFAULT_FORMATS, Format, get_format
from .kernels import Kernel, get_kernel
from .pipeline import Settings, run
from .policy import POLICY, Policy
from .report import Recommendation, Report
from .site import ArrayRows, Site, check_norm

Array = NDArray[Any]
FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")
BLOCK = 1 << 20
_OPTION = re.compile(r"--([a-z]+)(?: (-?\d+))?")


def in_python(text: str, **named: str) -> str:
    """Return a text that names arguments where it names options; named: those that are not called as their options."""
    return _OPTION.sub(lambda m: named.get(m[1], m[1]) + (f"={m[2]}" if m[2] else ""), text)


@contextmanager
def blaming_arguments(**named: str) -> Iterator[None]:
    """Let errors name arguments, as `in_python` does."""
    try:
        yield
    except LnauditError as error:
        raise LnauditError(error.what, in_python(error.remedy, **named), in_python(error.source, **named)) from None


def _array(x: ArrayLike) -> Array:
    values = _numbers(x, "the array")
    if values.dtype.name not in FLOATS:
        values = _as_float64(values, "the array")
    if values.ndim == 0 or values.size == 0:
        raise LnauditError(f"an array of shape {values.shape} holds no rows", "pass at least one row")
    return values


def _numbers(x: ArrayLike, what: str) -> Array:
    """Return an array of what has numbers: lists, arrays, tensors of torch on any device, whatever offers DLPack."""
    try:
        if isinstance(x, getattr(sys.modules.get("torch"), "Tensor", ())):
            return _of_torch(x)
        if hasattr(x, "__dlpack__") and not hasattr(x, "__array__"):
            return np.from_dlpack(cast(Any, x))
        return np.asarray(x)
    except ValueError as error:
        raise LnauditError(f"{what} is not rectangular ({error})", "pass rows of one length") from None
    except (TypeError, RuntimeError, BufferError) as error:
        reason = " ".join(str(error).split())[:120]
        raise LnauditError(f"{what} cannot be read as an array ({reason})", "pass a numpy array") from None


def _of_torch(x: Any) -> Array:
    """Return the elements of a tensor; those that numpy has no name for go through their bits."""
    torch, name = sys.modules["torch"], str(x.dtype).removeprefix("torch.")
    if name not in FLOATS or hasattr(np, name):
        return np.asarray(x.numpy(force=True))
    dtype = np.dtype(getattr(ml_dtypes, name))
    bits = x.detach().cpu().view(torch.int16 if dtype.itemsize == 2 else torch.uint8)
    return np.asarray(bits.numpy().view(dtype))


def _as_float64(values: Array, what: str) -> Array:
    if values.dtype.kind not in "biuf" and values.dtype.name not in FLOATS:
        raise LnauditError(f"{what} has elements of type {values.dtype}", f"use one of {', '.join(FLOATS)}")
    with quiet():
        return values.astype(np.float64)


def site_of(
    x: ArrayLike,
    epsilon: float,
    axis: int | tuple[int, ...],
    norm: str,
    weight: ArrayLike | None,
    bias: ArrayLike | None,
    name: str,
) -> Site:
    """Return the site that the arguments of `audit` describe."""
    check_norm(norm, "--norm")
    rows = ArrayRows(_array(x), check_axis(axis))
    shape = tuple(rows.shape[a] for a in rows.axes)
    return Site(
        name=name,
        source=name,
        rows=rows,
        norm=norm,
        epsilon=check_number(epsilon, "epsilon"),
        epsilon_source="option",
        weight=_parameter(weight, shape, "weight"),
        bias=_parameter(bias, shape, "bias"),
    )


def check_number(value: float, name: str, *, above: bool = False) -> float:
    """Return a finite float >= 0 (> 0 with `above`); raise LnauditError for anything else."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (0 <= number < math.inf) or (above and number == 0):
        raise LnauditError(f"{name} {value!r} is not a number {'> 0' if above else '>= 0'}", "give a finite number")
    return number


def check_axis(axis: int | tuple[int, ...]) -> int | tuple[int, ...]:
    """Return an axis or a tuple of axes as plain integers; raise LnauditError for anything else."""
    try:
        if isinstance(axis, (tuple, list)):
            return tuple(map(operator.index, axis))
        return operator.index(axis)
    except TypeError:
        raise LnauditError(f"axis {axis!r} is not an integer or a tuple of integers", "as in -1 or (1, 2)") from None


def _parameter(values: ArrayLike | None, shape: tuple[int, ...], name: str) -> Array | None:
    if values is None:
        return None
    found = _as_float64(_numbers(values, name), name)
    if found.shape != shape and found.shape != (math.prod(shape),):
        raise LnauditError(f"{name} has shape {found.shape}, the reduced axes have {shape}", "pass one of that shape")
    return found.reshape(-1)


def _choices(values: str | Sequence[str] | None, option: str) -> list[str] | None:
    if values is None or isinstance(values, str):
        return None if values is None else [values]
    try:
        listed = list(values)
    except TypeError:
        what = f"{values!r} is not a name or a list of names"
        raise LnauditError(what, f"see lnaudit {option}s", f"--{option}") from None
    if not listed:
        raise LnauditError("is empty", "name at least one, or leave it out", f"--{option}")
    return listed


def audit(
    x: ArrayLike,
    *,
    epsilon: float = 1e-5,
    axis: int | tuple[int, ...] = -1,
    norm: str = "layer",
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    formats: str | Sequence[str] | None = None,
    kernels: str | Sequence[str] | None = None,
    tolerance: float = 0.02,
    name: str = "array",
) -> Report:
    """Audit what enters a norm.

    Parameters
    ----------
    x : array_like, shape (..., d) for axis -1
        float16, float32, float64, or bfloat16, float8_e4m3fn, float8_e5m2 of ml_dtypes or torch; other numbers are
        taken as float64. Anything with `__array__` or `__dlpack__`; tensors of torch on any device.
    epsilon : float
        The model's epsilon, >= 0: its exact output is what the model means.
    axis : int or tuple of int
        Exactly the axes that are reduced.
    norm : str
        "layer" or "rms".
    weight, bias : array_like, optional
        Of the shape of the reduced axes.
    formats, kernels : str or sequence of str, optional
        As in `lnaudit formats` and `lnaudit kernels`; by default all formats, native everywhere and fused where the
        format is narrower than float32.
    tolerance : float
        Accepted RMS error of a row, in units of the normalized output.
    name : str
        How the report calls the array.

    Returns
    -------
    Report
        With `.sites`, `.findings` and `.to_dict()`.

    Raises
    ------
    LnauditError
        If the array or an argument cannot be audited.
    """
    with blaming_arguments(format="formats", kernel="kernels"):
        site = site_of(x, epsilon, axis, norm, weight, bias, name)
        return audit_under(POLICY, site, formats, kernels, tolerance)


def audit_under(
    policy: Policy,
    site: Site,
    formats: str | Sequence[str] | None,
    kernels: str | Sequence[str] | None,
    tolerance: float,
) -> Report:
    """Audit a site under a policy."""
    names, kernel_names = _choices(formats, "format"), _choices(kernels, "kernel")
    settings = Settings(
        policy=policy,
        formats=DEFAULT_FORMATS if names is None else tuple(dict.fromkeys(map(get_format, names))),
        kernels=None if kernel_names is None else tuple(dict.fromkeys(map(get_kernel, kernel_names))),
        tolerance=check_number(tolerance, "tolerance", above=True),
        config={"epsilon": site.epsilon, "norm": site.norm, "tolerance": float(tolerance)},
    )
    return run([site], settings)


@blaming_arguments()
def layer_norm(
    x: ArrayLike,
    *,
    format: str | Format = "float32",
    kernel: str | Kernel = "native",
    epsilon: float = 1e-5,
    axis: int | tuple[int, ...] = -1,
    norm: str = "layer",
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
) -> Array:
    """Return what a kernel outputs, bit by bit.

    Parameters
    ----------
    x, epsilon, axis, norm, weight, bias
        As in `audit`; x is rounded to the format once, from its own dtype.
    format, kernel : str
        One of each.

    Returns
    -------
    ndarray, shape of x
        The output of the kernel in a float32 array, float64 for the format float64.
    """
    fmt, named = get_format(format), get_kernel(kernel)
    site = site_of(x, epsilon, axis, norm, weight, bias, "array")
    rows, ws = site.rows, Workspace()
    row = named.at(fmt, norm == "rms", rows.features)
    flat = np.empty((rows.rows, rows.features), row.stages(fmt).output.array_dtype)
    with quiet():
        for start, block in rows.blocks(BLOCK):
            flat[start : start + len(block)] = output_of(
                block, fmt, row, epsilon=site.epsilon, rms=norm == "rms", weight=site.weight, bias=site.bias, ws=ws
            ).T
    order = (*(a for a in range(len(rows.shape)) if a not in rows.axes), *rows.axes)
    return flat.reshape([rows.shape[a] for a in order]).transpose(np.argsort(order))


def recommend_epsilon(
    x: ArrayLike,
    *,
    format: str,
    kernel: str = "native",
    epsilon: float = 1e-5,
    axis: int | tuple[int, ...] = -1,
    norm: str = "layer",
    tolerance: float = 0.02,
) -> Recommendation:
    """Return the epsilon to use for these rows in a format, with its window, cost and verification.

    Parameters are those of `audit`, with one format and one kernel. `Recommendation.epsilon` is None where none that
    was tried is safe.
    """
    if not (isinstance(format, str) and isinstance(kernel, str)):
        raise LnauditError("format and kernel must each be one name", "see lnaudit formats, lnaudit kernels")
    with blaming_arguments():
        site = site_of(x, epsilon, axis, norm, None, None, "array")
        report = audit_under(POLICY, site, format, kernel, tolerance)
    return report.sites[0].results[0].recommendation


__all__ = ["audit", "layer_norm", "recommend_epsilon"]
