"""Files as the readers see them: opened only when regular, read into buffers, every failure one clear line."""

from __future__ import annotations

import itertools
import math
import os
import stat
import weakref
from collections.abc import Sequence
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import LnauditError
from ..wording import printable

# Two pieces of a file this close (bytes) are read together: a system call costs about as much as copying 8 KiB.
NEAR = 1 << 13
_SCRATCH = 1 << 18


def shortened(text: str) -> str:
    """Return the text printable and short enough for a line."""
    shown = printable(text)
    return shown if len(shown) <= 120 else f"{shown[:117]}..."


def failure(error: OSError | ValueError) -> str:
    """Say in half a sentence why a path could not be used."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "does not exist"
    if isinstance(error, PermissionError):
        return "cannot be read (permission denied)"
    if isinstance(error, OSError):
        return f"cannot be read ({printable(error.strerror or type(error).__name__).lower()})"
    return "is not a file name"


class Spool:
    """A temporary file without a name, gone with its last reader; for one thread: its readers share a position."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)

    def open(self) -> FileIO:
        """Open it for reading."""
        return FileIO(os.dup(self._descriptor))


def open_file(path: Path | Spool, source: str) -> FileIO:
    """Open a regular file, unbuffered; pipes and devices are refused before they can block.

    Raises
    ------
    LnauditError
        If it is missing, unreadable, or no regular file.
    """
    if isinstance(path, Spool):
        return path.open()
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode):
            return FileIO(path)
    except (OSError, ValueError) as error:
        raise LnauditError(failure(error), source=source) from None
    if stat.S_ISDIR(mode):
        raise LnauditError("is a directory", "a file is expected here", source)
    raise LnauditError("is not a regular file", "write it to disk first", source)


def read_at(file: FileIO, offset: int, buffer: memoryview) -> None:
    """Fill the buffer with the bytes at that offset.

    Raises
    ------
    LnauditError
        If the file ends before the buffer is full, or cannot be read.
    """
    try:
        file.seek(offset)
        while buffer:
            n = file.readinto(buffer)
            if not n:
                raise LnauditError("ended while it was read", "is a program still writing it?")
            buffer = buffer[n:]
    except OSError as error:
        raise LnauditError(failure(error)) from None


def read_box(file: FileIO, offset: int, axes: Sequence[tuple[int, int]], out: NDArray[Any]) -> None:
    """Read elements that lie at fixed distances in a file.

    Parameters
    ----------
    file : FileIO
        Open for reading.
    offset : int
        Where the first one is, in bytes.
    axes : sequence of (pitch, count)
        Slowest first: bytes from one to the next, and how many.
    out : ndarray
        One-dimensional, contiguous, with as many elements; filled in this order.
    """
    item = out.itemsize
    merged = _merged([*axes, (1, item)])
    apart = next(i for i, (pitch, _) in enumerate(merged) if pitch <= NEAR)
    outer, close = merged[:apart], merged[apart:]
    size = math.prod(n for _, n in close) // item
    for i, index in enumerate(itertools.product(*(range(n) for _, n in outer))):
        first = offset + sum(k * pitch for k, (pitch, _) in zip(index, outer, strict=True))
        piece = out[i * size : (i + 1) * size]
        if len(close) == 1:
            read_at(file, first, piece.data.cast("B"))
        else:
            _read_through(file, first, close, piece)


def _read_through(file: FileIO, offset: int, axes: Sequence[tuple[int, int]], out: NDArray[Any]) -> None:
    """Read spans that lie close together, with the gaps between them; the last axis is that of the bytes of a span."""
    (pitch, count), *rest = axes
    extent = 1 + sum(distance * (n - 1) for distance, n in rest)
    together = max(1, min(count, _SCRATCH // pitch))
    scratch = np.empty((together - 1) * pitch + extent, np.uint8)
    strides = [*(distance for distance, _ in axes[:-1]), out.itemsize]
    wanted = out.reshape(count, *(n for _, n in rest[:-1]), rest[-1][1] // out.itemsize)
    for i in range(0, count, together):
        part = wanted[i : i + together]
        read_at(file, offset + i * pitch, scratch[: (len(part) - 1) * pitch + extent].data)
        part[:] = np.ndarray(part.shape, out.dtype, scratch, 0, strides)


def _merged(axes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Leave out axes of one, and make one of two where the one continues the other; the last has pitch 1."""
    merged: list[tuple[int, int]] = []
    for pitch, count in axes:
        if merged and merged[-1][0] == pitch * count:
            merged[-1] = pitch, merged[-1][1] * count
        elif count > 1 or pitch == 1:
            merged.append((pitch, count))
    return merged
