"""The .npy reader: rows of a file in blocks, with reads that never exceed the block budget by more than a constant."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import LnauditError
from ..memory import Recycled
from ..site import Array, Rows, cut, normalize_axes
from ..wording import printable
from .elements import element_dtype, parameter_dtype
from .files import NEAR, Spool, open_file, read_box, shortened
from .npy_header import Layout, read_header

# A strip of a layout whose rows are scattered over the file holds this many blocks: spans four times as long for
# four times the memory.
_STRIP_BLOCKS = 4
# the most elements that take() holds beside its result
_TAKE_ELEMENTS = 1 << 20


def open_npy(
    path: Path | Spool,
    *,
    axis: int | tuple[int, ...] = -1,
    dtype: str | None = None,
    field: str | None = None,
    source: str = "",
) -> NpyRows:
    """Open a .npy file; only its header is read.

    Parameters
    ----------
    path : Path or Spool
        The file.
    axis : int or tuple of int
        The reduced axes; those of a field come after those of the array.
    dtype : str, optional
        Format of the elements, whatever the header says; it must have their size.
    field : str, optional
        The field of a structured array that is read, as if the file held it alone.
    source : str
        What error messages call the file.

    Raises
    ------
    LnauditError
        If the file cannot be audited.
    """
    source = printable(source)
    try:
        with open_file(path, "") as file:
            header = read_header(file)
        layout = header.layout(field)
        found, note = element_dtype(layout.element, dtype)
        chosen = "" if field is None else f"field {shortened(field)} of a structured array"
        one_row = "one-dimensional: read as one row" if len(layout.shape) == 1 else ""
        notes = tuple(filter(None, (chosen, note, one_row)))
        return NpyRows(path, layout, axis, found, notes, source, header.unread_bytes)
    except LnauditError as error:
        raise LnauditError(error.what, error.remedy, source) from None


def load_parameter(
    path: Path, features_shape: tuple[int, ...], source: str = "", *, dtype: str | None = None
) -> NDArray[np.float64]:
    """Read a weight or bias: a .npy file of the shape of the reduced axes, or flat.

    Parameters
    ----------
    path : Path
        The file.
    features_shape : tuple of int
        Shape of the reduced axes.
    source : str
        What error messages call it.
    dtype : str, optional
        Format of the elements where the file does not say what they are.

    Returns
    -------
    ndarray of float64
        Flat, in C order.

    Raises
    ------
    LnauditError
        If it cannot be read or has another shape.
    """
    try:
        with open_file(path, "") as file:
            header = read_header(file)
        if header.record.structured:
            raise LnauditError(header.record.described, "save one field alone as an array")
        if header.shape not in (features_shape, (math.prod(features_shape),)):
            shape = shortened(str(header.shape))
            raise LnauditError(f"shape {shape} does not fit the reduced axes, shape {features_shape}")
        layout = header.layout()
        found = parameter_dtype(layout.element, dtype)
        rows = NpyRows(path, layout, tuple(range(len(header.shape))), found)
        return np.asarray(rows.take(np.zeros(1, np.intp))[0], dtype=np.float64)
    except LnauditError as error:
        raise LnauditError(error.what, error.remedy, printable(source)) from None


class NpyRows(Rows):
    """Rows of a .npy file, read when asked for.

    Every read opens the file anew, so that readers may run side by side.
    """

    def __init__(
        self,
        path: Path | Spool,
        layout: Layout,
        axis: int | tuple[int, ...],
        dtype: np.dtype[Any],
        notes: tuple[str, ...] = (),
        source: str = "",
        unread_bytes: int = 0,
    ) -> None:
        self.shape = layout.shape
        self.dtype = dtype
        self.axis, self.axes = axis, normalize_axes(axis, len(self.shape))
        self.notes = notes
        self.unread_bytes = unread_bytes
        self._path = path
        self._layout = layout
        self._source = source
        # neighbouring axes of one kind count as one where the second continues the first
        sizes: list[int] = []
        strides: list[int] = []
        reduced: list[bool] = []
        for a, (size, stride) in enumerate(zip(layout.shape, layout.strides, strict=True)):
            if reduced and reduced[-1] == (a in self.axes) and strides[-1] == size * stride:
                sizes[-1] *= size
                strides[-1] = stride
            else:
                sizes.append(size)
                strides.append(stride)
                reduced.append(a in self.axes)
        self._sizes, self._strides = sizes, strides
        self._row_axes = [a for a, r in enumerate(reduced) if not r]
        self._reduced_axes = [a for a, r in enumerate(reduced) if r]
        self._slowest_first = sorted(range(len(sizes)), key=lambda a: -strides[a])

    def along(self, axis: int) -> NpyRows:
        """Return the rows of the same file along another axis."""
        return NpyRows(self._path, self._layout, axis, self.dtype, self.notes, self._source, self.unread_bytes)

    def blocks(self, max_elements: int) -> Iterator[tuple[int, Array]]:
        """Yield blocks of at most `max_elements` elements, at least one row.

        Where the rows are scattered over the file, blocks are views of a strip of at most four blocks.
        """
        sizes = [self._sizes[a] for a in self._row_axes]
        whole_rows = self._slowest_first == [*self._row_axes, *self._reduced_axes]
        budget = max_elements if whole_rows else _STRIP_BLOCKS * max(max_elements, self.features)
        start, memory = 0, Recycled()
        with open_file(self._path, self._source) as file:
            for box in _boxes(sizes, self.features, budget):
                yield from cut(self._read(file, box, memory), len(sizes), max_elements, start)
                start += math.prod(last - first for first, last in box)

    def take(self, indices: Array) -> Array:
        """Return these rows; neighbours are read together.

        Raises
        ------
        IndexError
            If a row does not exist.
        """
        if len(indices) and not 0 <= indices[0] <= indices[-1] < self.rows:
            raise IndexError(f"rows {indices[0]} to {indices[-1]} of {self.rows}")
        sizes = [self._sizes[a] for a in self._row_axes]
        outer, inner = np.divmod(np.asarray(indices, dtype=np.intp), sizes[-1] if sizes else 1)
        taken, memory = np.empty((len(indices), self.features), self.dtype), Recycled()
        with open_file(self._path, self._source) as file:
            for i, j in self._runs(outer, inner):
                box = [(int(k), int(k) + 1) for k in np.unravel_index(outer[i], tuple(sizes[:-1]))]
                if sizes:
                    box.append((int(inner[i]), int(inner[j - 1]) + 1))
                rows = self._read(file, box, memory).reshape(-1, self.features)
                taken[i:j] = rows[inner[i:j] - inner[i]]
        return taken

    def _runs(self, outer: Array, inner: Array) -> Iterator[tuple[int, int]]:
        """Cut the positions of ascending rows where the next row is far away in the file or memory would run out."""
        near, most = 1, max(1, _TAKE_ELEMENTS // self.features)
        if self._row_axes:
            near = max(1, NEAR // self._strides[self._row_axes[-1]])
        i = 0
        for j in range(1, len(inner)):
            if outer[j] != outer[i] or inner[j] - inner[j - 1] > near or inner[j] - inner[i] >= most:
                yield i, j
                i = j
        if len(inner):
            yield i, len(inner)

    def _read(self, file: FileIO, box: Sequence[tuple[int, int]], memory: Recycled) -> Array:
        """Return all elements of a box of rows, the axes of the rows first."""
        ranges = [(0, size) for size in self._sizes]
        for a, bounds in zip(self._row_axes, box, strict=True):
            ranges[a] = bounds
        lengths = [last - first for first, last in ranges]
        start = self._layout.offset + sum(r[0] * stride for r, stride in zip(ranges, self._strides, strict=True))
        raw = memory.aligned(math.prod(lengths) * self.dtype.itemsize).view(f"u{self.dtype.itemsize}")
        try:
            read_box(file, start, [(self._strides[a], lengths[a]) for a in self._slowest_first], raw)
        except LnauditError as error:
            raise LnauditError(error.what, error.remedy, self._source) from None
        if self._layout.element.swapped:
            raw.byteswap(inplace=True)
        x = raw.view(self.dtype).reshape([lengths[a] for a in self._slowest_first])
        return x.transpose([self._slowest_first.index(a) for a in (*self._row_axes, *self._reduced_axes)])


def _boxes(sizes: Sequence[int], features: int, budget: int) -> Iterator[list[tuple[int, int]]]:
    """Cut the axes of the rows into boxes of consecutive rows, at most `budget` elements or one row each."""
    if not sizes:
        yield []
        return
    inner = [features * math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    split = next((i for i, elements in enumerate(inner) if elements <= budget), len(sizes) - 1)
    step = max(1, budget // inner[split])
    whole = [(0, size) for size in sizes[split + 1 :]]
    for outer in itertools.product(*map(range, sizes[:split])):
        for first in range(0, sizes[split], step):
            yield [*((i, i + 1) for i in outer), (first, min(first + step, sizes[split])), *whole]
