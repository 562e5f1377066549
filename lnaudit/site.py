"""Site: one norm of a model with its activations. Rows: the vectors that it normalizes, read in blocks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import LnauditError

Array = NDArray[Any]
NORMS = ("layer", "rms")


def check_norm(norm: str, source: str = "") -> str:
    """Return the norm; raise LnauditError if it is none that can be audited."""
    if norm in ("group", "instance"):
        raise LnauditError(f"norm {norm!r} is not supported yet", f"only {' and '.join(NORMS)} are", source)
    if norm not in NORMS:
        raise LnauditError(f"unknown norm {norm!r}", f"choose from {', '.join(NORMS)}", source)
    return norm


def count_nonfinite(parameter: Array | None) -> int:
    """Return how many elements of a weight or bias are NaN or Inf."""
    return 0 if parameter is None else int((~np.isfinite(parameter)).sum())


def normalize_axes(axis: int | tuple[int, ...], ndim: int, source: str = "") -> tuple[int, ...]:
    """Return the reduced axes as sorted non-negative integers.

    Raises
    ------
    LnauditError
        If an axis does not exist or is named twice.
    """
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    axes = tuple(sorted(a + ndim if a < 0 else a for a in given))
    if not axes or len(set(axes)) != len(axes) or not all(0 <= a < ndim for a in axes):
        text = ",".join(map(str, given))
        remedy = f"name each once, from {-ndim} to {ndim - 1}" if ndim else "it has none"
        raise LnauditError(f"axis {text} does not fit an array of {ndim} dimensions", remedy, source)
    return axes


def cut(x: Array, leading: int, max_elements: int, start: int = 0) -> Iterator[tuple[int, Array]]:
    """Cut an array whose first `leading` axes count rows into blocks of whole rows, shape (n, features), in C order.

    Yields the index of the first row with each block. A block holds at most `max_elements` elements, at least one row.
    """
    features = math.prod(x.shape[leading:])
    if leading == 0:
        yield start, x.reshape(1, features)
        return
    inner_rows = math.prod(x.shape[1:leading])
    if inner_rows > 1 and inner_rows * features > max_elements:
        for i in range(x.shape[0]):
            yield from cut(x[i], leading - 1, max_elements, start + i * inner_rows)
        return
    step = max(1, max_elements // max(1, inner_rows * features))
    for i in range(0, x.shape[0], step):
        block = x[i : i + step]
        yield start + i * inner_rows, block.reshape(-1, features)


class Rows(ABC):
    """The rows of a site: what is normalized, whatever holds it.

    Attributes
    ----------
    shape : tuple of int
        Shape of the whole array.
    dtype : numpy.dtype
        What its elements are (float16, float32, float64; bfloat16, float8_e4m3fn, float8_e5m2 of ml_dtypes).
    axis : int or tuple of int
        The reduced axes as they were given.
    axes : tuple of int
        The reduced axes, sorted, non-negative. Rows are the C order of all other axes; the elements of a row are in
        the C order of the reduced ones.
    notes : tuple of str
        What the reader assumed, for the report.
    unread_bytes : int
        Bytes of the file after the array.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    axes: tuple[int, ...]
    axis: int | tuple[int, ...] = -1
    notes: tuple[str, ...] = ()
    unread_bytes: int = 0

    @property
    def features(self) -> int:
        """Elements of a row (d)."""
        return math.prod(self.shape[a] for a in self.axes)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return math.prod(n for a, n in enumerate(self.shape) if a not in self.axes)

    @abstractmethod
    def blocks(self, max_elements: int) -> Iterator[tuple[int, Array]]:
        """Yield (index of the first row, block of shape (n, features)) over all rows, in order.

        A block belongs to the caller until it is dropped; it may be any strided view.
        """

    @abstractmethod
    def take(self, indices: Array) -> Array:
        """Return the rows of these ascending indices, shape (len(indices), features)."""

    @abstractmethod
    def along(self, axis: int) -> Rows:
        """Return the rows of the same array along another axis."""


class ArrayRows(Rows):
    """Rows of an array in memory."""

    def __init__(self, x: Array, axis: int | tuple[int, ...] = -1) -> None:
        if x.ndim == 1:
            self.notes = ("one-dimensional: read as one row",)
        self._x = x
        self.shape = x.shape
        self.dtype = x.dtype
        self.axis, self.axes = axis, normalize_axes(axis, x.ndim)

    def along(self, axis: int) -> ArrayRows:
        """Return the rows of the same array along another axis."""
        return ArrayRows(self._x, axis)

    def _rows_first(self) -> tuple[Array, int]:
        leading = [a for a in range(self._x.ndim) if a not in self.axes]
        return self._x.transpose(*leading, *self.axes), len(leading)

    def blocks(self, max_elements: int) -> Iterator[tuple[int, Array]]:
        """Yield blocks; the array is not copied as a whole."""
        yield from cut(*self._rows_first(), max_elements)

    def take(self, indices: Array) -> Array:
        """Return a copy of these rows."""
        x, leading = self._rows_first()
        if leading == 0:
            return x.reshape(1, -1)[indices]
        return x[np.unravel_index(indices, x.shape[:leading])].reshape(len(indices), self.features)


@dataclass(frozen=True, kw_only=True)
class Site:
    """One norm of a model.

    Attributes
    ----------
    name, source : str
        How the report calls it; the path as given, with /.
    rows : Rows
        What enters the norm.
    norm : str
        "layer" or "rms".
    epsilon : float
        The model's epsilon.
    epsilon_source : str
        "option", "policy", "manifest" or "default".
    weight, bias : ndarray of float64 or None
        Flat, of length rows.features.
    kernel : str or None
        The kernel that a manifest names for it.
    overridden : tuple of str
        What the manifest says and the command line or a policy says otherwise: "axis", "epsilon", "norm", "weight",
        "bias".
    family : str or None
        The synthetic family that it is.
    """

    name: str
    source: str
    rows: Rows
    norm: str = "layer"
    epsilon: float = 1e-5
    epsilon_source: str = "default"
    weight: Array | None = None
    bias: Array | None = None
    kernel: str | None = None
    overridden: tuple[str, ...] = ()
    family: str | None = None


@dataclass(frozen=True, kw_only=True)
class NotAudited:
    """An input that gave no site: where it is, as the user can find it, and why (one line)."""

    source: str
    reason: str
