"""The header of a .npy file, read without numpy: nothing is unpickled and no word of it is trusted."""

from __future__ import annotations

import ast
import math
import os
import re
import warnings
from dataclasses import dataclass
from io import FileIO
from typing import Any

from ..errors import LnauditError
from ..wording import counted
from .elements import Element
from .fields import MOST_DIMENSIONS, Record, c_strides, is_shape, parse_record
from .files import read_at, shortened

MAGIC = b"\x93NUMPY"
# numpy's own limit, in characters, for a header that ast.literal_eval may see
_HEADER_LIMIT = 10_000
_KEYS = {"descr", "fortran_order", "shape"}
# Python 2 wrote long integers as 184L
_LONG = re.compile(r"(?<=[0-9])L(?=[,)])")
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_PICKLE = tuple(b"\x80" + bytes([protocol]) for protocol in range(2, 6))


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Where the elements of an array lie in a file: (i, j, ...) at offset + i * strides[0] + j * strides[1] + ...

    Attributes
    ----------
    element : Element
        What they are.
    shape, strides : tuple of int
        Sizes, all at least 1; bytes.
    offset : int
        Bytes.
    """

    element: Element
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


@dataclass(frozen=True, kw_only=True)
class NpyHeader:
    """What a .npy file says about its array, checked against the length of the file.

    Attributes
    ----------
    record : Record
        What it is an array of.
    fortran_order : bool
        The first axis is the fastest.
    shape : tuple of int
        Without the shapes of fields.
    offset : int
        Where the array starts, in bytes.
    unread_bytes : int
        Bytes after the array.
    """

    record: Record
    fortran_order: bool
    shape: tuple[int, ...]
    offset: int
    unread_bytes: int

    def layout(self, name: str | None = None) -> Layout:
        """Return where the elements of a field lie, or those of an array without fields.

        Raises
        ------
        LnauditError
            If there is no such field, or nothing in it.
        """
        field = self.record.field(name)
        strides = c_strides(self.shape[::-1] if self.fortran_order else self.shape, self.record.itemsize)
        shape = self.shape + field.shape
        if not shape:
            raise LnauditError("holds a single number (0 dimensions)", "save the whole array")
        if 0 in shape:
            raise LnauditError(f"is empty: shape {shortened(str(shape))}", "nothing to audit")
        if len(shape) > MOST_DIMENSIONS:
            raise LnauditError(f"has {len(shape)} dimensions", f"numpy has up to {MOST_DIMENSIONS}")
        return Layout(
            element=field.element,
            shape=shape,
            strides=(strides[::-1] if self.fortran_order else strides) + field.strides,
            offset=self.offset + field.offset,
        )


def read_header(file: FileIO) -> NpyHeader:
    """Read and check the header of an open .npy file.

    Raises
    ------
    LnauditError
        If this is no .npy file, its header makes no sense, its elements have no fixed size, or it is shorter than its
        header promises.
    """
    length = os.fstat(file.fileno()).st_size
    text, offset = _text(file, length)
    fields, record = _parse(text)
    promised = offset + math.prod(fields["shape"]) * record.itemsize
    if promised >= 2**63:
        raise LnauditError("promises more bytes than a file can have", "write the dump again")
    if length < promised:
        raise LnauditError(f"has {length:,} of the {promised:,} bytes its header promises", "write the dump again")
    return NpyHeader(
        record=record,
        fortran_order=fields["fortran_order"],
        shape=fields["shape"],
        offset=offset,
        unread_bytes=length - promised,
    )


def _text(file: FileIO, length: int) -> tuple[str, int]:
    """Return the header and the offset of the array."""
    if length == 0:
        raise LnauditError("is empty (0 bytes)", "write the dump again")
    start = _bytes(file, 0, min(length, 12))
    if not start.startswith(MAGIC) and not MAGIC.startswith(start):
        if start.startswith(_ZIP):
            raise LnauditError("is a zip or .npz archive, not a .npy file", "save each of its arrays as .npy")
        if start.startswith(_PICKLE):
            raise LnauditError("is a pickle, not a .npy file, and never loaded", "save the array with numpy.save")
        raise LnauditError("is not a .npy file", "save the array with numpy.save")
    cut = LnauditError(f"ends within its header ({counted(length, 'byte')})", "write the dump again")
    if length < 10:
        raise cut
    major, minor = start[6:8]
    if major not in (1, 2, 3) or minor != 0:
        raise LnauditError(f"has version {major}.{minor} of the .npy format", "versions 1 to 3 are read")
    before = 10 if major == 1 else 12
    size = int.from_bytes(start[8:before], "little")
    too_long = LnauditError(
        f"has a header of {size:,} bytes, limit {_HEADER_LIMIT:,} characters", "write the dump again"
    )
    # a character of UTF-8 takes up to four bytes
    if size > (4 * _HEADER_LIMIT if major == 3 else _HEADER_LIMIT):
        raise too_long
    if length < before + size:
        raise cut
    raw = _bytes(file, before, size)
    try:
        text = raw.decode("utf-8" if major == 3 else "latin-1")
    except UnicodeDecodeError:
        raise _broken(raw.decode("utf-8", errors="backslashreplace")) from None
    if len(text) > _HEADER_LIMIT:
        raise too_long
    return text, before + size


def _bytes(file: FileIO, offset: int, size: int) -> bytes:
    buffer = bytearray(size)
    read_at(file, offset, memoryview(buffer))
    return bytes(buffer)


def _broken(text: str) -> LnauditError:
    return LnauditError(f"has a broken header: {shortened(text.strip())}", "write the dump again")


def _parse(text: str) -> tuple[dict[str, Any], Record]:
    """Return the three words of the header, checked, and what its `descr` means."""
    try:
        tree = _tree(text.strip(" \t\r\n"))
        fields = ast.literal_eval(tree)
        # a key that is given twice is one too many
        if not isinstance(tree, ast.Dict) or len(tree.keys) != len(_KEYS) or fields.keys() != _KEYS:
            raise ValueError("other keys")
        if not is_shape(fields["shape"]) or not isinstance(fields["fortran_order"], bool):
            raise ValueError("no shape or order")
        return fields, parse_record(fields["descr"])
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise _broken(text) from None


def _tree(text: str) -> ast.expr:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text, mode="eval").body
        except SyntaxError:
            return ast.parse(_LONG.sub("", text), mode="eval").body
