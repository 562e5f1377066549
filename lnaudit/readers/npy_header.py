"""The header of a .npy file, read without numpy: nothing is unpickled and no word of it is trusted."""

from __future__ import annotations

import ast
import math
import os
import re
import sys
import warnings
from dataclasses import dataclass
from io import FileIO
from typing import Any

from ..errors import LnauditError
from .files import printable, read_at

MAGIC = b"\x93NUMPY"
# numpy's own limit for a header that ast.literal_eval may see
_HEADER_LIMIT = 10_000
_KEYS = {"descr", "fortran_order", "shape"}
_ELEMENT = re.compile(r"([<>=|]?)([a-zA-Z?])(\d*)(?:\[.*\])?")
# what some writers say instead of <V2
_BFLOAT16_NAMES = ("bfloat16", "<g2")
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_PICKLE = tuple(b"\x80" + bytes([protocol]) for protocol in range(2, 6))


@dataclass(frozen=True, kw_only=True)
class NpyHeader:
    """What a .npy file says about its array, checked against the length of the file.

    Attributes
    ----------
    descr : str
        The element type as written, printable.
    kind, itemsize : str, int
        numpy's letter for the kind of element ("f", "i", "u", "V", ...; "bfloat16" where the file says so), its bytes.
    swapped : bool
        The elements are in the other byte order than this machine's.
    fortran_order : bool
        The first axis is the fastest.
    shape : tuple of int
        All at least 1.
    offset : int
        Where the array starts, in bytes.
    unread_bytes : int
        Bytes after the array.
    """

    descr: str
    kind: str
    itemsize: int
    swapped: bool
    fortran_order: bool
    shape: tuple[int, ...]
    offset: int
    unread_bytes: int


def read_header(file: FileIO) -> NpyHeader:
    """Read and check the header of an open .npy file.

    Raises
    ------
    LnauditError
        If this is no .npy file, its header makes no sense, its elements have no fixed size, or it is shorter than its
        header promises.
    """
    length = os.fstat(file.fileno()).st_size
    fields, offset = _fields(file, length)
    shape, fortran_order = fields["shape"], fields["fortran_order"]
    kind, itemsize, order = _element(fields["descr"])
    if not shape:
        raise LnauditError("holds a single number (0 dimensions)", "save the whole array")
    if 0 in shape:
        raise LnauditError(f"is empty: shape {shape}", "nothing to audit")
    promised = offset + math.prod(shape) * itemsize
    if promised >= 2**63:
        raise LnauditError("promises more bytes than a file can have", "write the dump again")
    if length < promised:
        raise LnauditError(f"has {length:,} of the {promised:,} bytes its header promises", "write the dump again")
    return NpyHeader(
        descr=_short(fields["descr"]),
        kind=kind,
        itemsize=itemsize,
        swapped=order == (">" if sys.byteorder == "little" else "<"),
        fortran_order=fortran_order,
        shape=shape,
        offset=offset,
        unread_bytes=length - promised,
    )


def _fields(file: FileIO, length: int) -> tuple[dict[str, Any], int]:
    """Return the three fields, the shape and the order checked, and the offset of the array."""
    if length == 0:
        raise LnauditError("is empty (0 bytes)", "write the dump again")
    start = _bytes(file, 0, min(length, 12))
    if not start.startswith(MAGIC) and not MAGIC.startswith(start):
        if start.startswith(_ZIP):
            raise LnauditError("is a zip or .npz archive, not a .npy file", "save each of its arrays as .npy")
        if start.startswith(_PICKLE):
            raise LnauditError("is a pickle, not a .npy file, and never loaded", "save the array with numpy.save")
        raise LnauditError("is not a .npy file", "save the array with numpy.save")
    cut = LnauditError(f"ends within its header ({length:,} bytes)", "write the dump again")
    if length < 10:
        raise cut
    major = start[6]
    if major not in (1, 2, 3):
        raise LnauditError(f"has version {major}.{start[7]} of the .npy format", "versions 1 to 3 are read")
    before = 10 if major == 1 else 12
    size = int.from_bytes(start[8:before], "little")
    if size > _HEADER_LIMIT:
        raise LnauditError(f"has a header of {size:,} bytes, limit {_HEADER_LIMIT:,}", "write the dump again")
    if length < before + size:
        raise cut
    raw = _bytes(file, before, size)
    text = raw.decode("utf-8" if major == 3 else "latin-1", errors="backslashreplace")
    return _parse(text), before + size


def _bytes(file: FileIO, offset: int, size: int) -> bytes:
    buffer = bytearray(size)
    read_at(file, offset, memoryview(buffer))
    return bytes(buffer)


def _parse(text: str) -> dict[str, Any]:
    broken = LnauditError(f"has a broken header: {_short(text.strip())}", "write the dump again")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fields = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise broken from None
    if not isinstance(fields, dict) or fields.keys() != _KEYS:
        raise broken
    shape = fields["shape"]
    if not isinstance(shape, tuple) or not all(type(n) is int and 0 <= n < 2**63 for n in shape):
        raise broken
    if not isinstance(fields["fortran_order"], bool):
        raise broken
    return fields


def _element(descr: object) -> tuple[str, int, str]:
    """Return kind, bytes and byte order of an element, without numpy's parser."""
    if isinstance(descr, list):
        names = ", ".join(_short(str(field[0])) for field in descr[:4] if isinstance(field, tuple) and field)
        raise LnauditError(f"structured array (fields {names})", "save one field alone as an array")
    if descr in _BFLOAT16_NAMES:
        return "bfloat16", 2, "<"
    match = _ELEMENT.fullmatch(descr) if isinstance(descr, str) else None
    if not match:
        raise LnauditError(f"unknown element type {_short(repr(descr))}", "convert to float32 and save again")
    order, kind, digits = match.groups()
    if kind == "O":
        raise LnauditError(
            "object array (ragged list or dict), never loaded: it would need unpickling", "save one array per key"
        )
    # an element count of four digits is already no number
    return ("b" if kind == "?" else kind), int(digits[:4] or 1), order


def _short(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= 120 else f"{shown[:117]}..."
