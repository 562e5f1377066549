"""Files as the readers see them: opened only when regular, read into buffers, every failure one clear line."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Sequence
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import LnauditError

# Two pieces of a file this close (bytes) are read together: a system call costs about as much as copying 8 KiB.
NEAR = 1 << 13
_SCRATCH = 1 << 18


def printable(text: str) -> str:
    """Return the text with control characters, line ends and undecodable bytes escaped: one line, safe to print."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def failure(error: OSError | ValueError) -> str:
    """Say in half a sentence why a path could not be used."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "does not exist"
    if isinstance(error, PermissionError):
        return "cannot be read (permission denied)"
    if isinstance(error, OSError):
        return f"cannot be read ({printable(error.strerror or type(error).__name__).lower()})"
    return "is not a file name"


def open_file(path: Path, source: str) -> FileIO:
    """Open a regular file, unbuffered; pipes and devices are refused before they can block.

    Raises
    ------
    LnauditError
        If it is missing, unreadable, or no regular file.
    """
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


def read_box(file: FileIO, offset: int, box: Sequence[tuple[int, int, int]], out: NDArray[Any]) -> None:
    """Read a rectangular piece of an array that lies in C order in a file.

    Parameters
    ----------
    file : FileIO
        Open for reading.
    offset : int
        Where the array starts, in bytes.
    box : sequence of (size, first, last)
        For each axis, slowest first: its size and the half-open range that is wanted.
    out : ndarray
        One-dimensional, contiguous, with as many elements as the box; filled in C order.
    """
    axes = [(1, 0, 1), (1, 0, 1)]
    for size, first, last in box:
        above, lo, hi = axes[-1]
        if (first, last) == (0, size):
            axes[-1] = above * size, lo * size, hi * size
        elif hi - lo == 1:
            axes[-1] = above * size, lo * size + first, lo * size + last
        else:
            axes.append((size, first, last))
    # what is left: spans of `width` elements, `count` of them at a fixed pitch, and axes around these
    *outer, (size, first, last), (pitch, start, stop) = axes
    count, width = last - first, stop - start
    view = out.data.cast("B")
    item = out.itemsize
    together = max(1, min(count, _SCRATCH // (pitch * item))) if pitch * item <= NEAR else 1
    scratch = np.empty(together * pitch if together > 1 else 0, out.dtype)
    done = 0
    for index in itertools.product(*(range(lo, hi) for _, lo, hi in outer)):
        row = 0
        for i, (n, _, _) in zip(index, outer, strict=True):
            row = row * n + i
        row = row * size + first
        for i in range(0, count, together):
            n = min(together, count - i)
            at = offset + ((row + i) * pitch + start) * item
            if n == 1:
                read_at(file, at, view[done * item : (done + width) * item])
            else:
                used = (n - 1) * pitch + width
                read_at(file, at, scratch[:used].data.cast("B"))
                out[done : done + n * width].reshape(n, width)[:] = scratch[: n * pitch].reshape(n, pitch)[:, :width]
            done += n * width
