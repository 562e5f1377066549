"""What the elements of a .npy file are: its own word for it, or the user's."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from ..errors import LnauditError
from ..formats import FORMATS, get_format
from .npy_header import NpyHeader

_DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name) for name in FORMATS
}
_FLOATS = {2: "float16", 4: "float32", 8: "float64"}
_REFUSED = {
    "b": "boolean",
    "c": "complex",
    "S": "string",
    "a": "string",
    "U": "string",
    "M": "date",
    "m": "time difference",
}


def dtype_named(name: str) -> np.dtype[Any]:
    """Return the dtype that `--dtype NAME` means.

    Raises
    ------
    LnauditError
        If no format has that name.
    """
    try:
        return _DTYPES[get_format(name).name]
    except LnauditError:
        remedy = f"choose from {', '.join(FORMATS)}"
        raise LnauditError(f"unknown element type {name!r}", remedy, "--dtype") from None


def element_dtype(header: NpyHeader, override: str | None) -> tuple[np.dtype[Any], str]:
    """Return the dtype of a file's elements in native byte order, and what had to be assumed ("" if nothing).

    Parameters
    ----------
    header : NpyHeader
        What the file says.
    override : str or None
        The `--dtype` that the user gives.

    Raises
    ------
    LnauditError
        If they are no floating-point numbers of a known format.
    """
    kind, size, descr = header.kind, header.itemsize, header.descr
    if override is not None and kind in ("i", "u", "f", "V", "bfloat16"):
        dtype = dtype_named(override)
        if dtype.itemsize != size:
            raise LnauditError(
                f"elements of {size} bytes ({descr}) cannot be read as {dtype.name}, which has {dtype.itemsize}",
                "give a --dtype of their size",
            )
        if kind == "f" and dtype.kind == "f":
            return dtype, ""
        return dtype, f"elements {descr} read as {dtype.name} (--dtype)"
    if kind == "bfloat16":
        return _DTYPES["bfloat16"], ""
    if kind == "f" and size in _FLOATS:
        return _DTYPES[_FLOATS[size]], ""
    if kind == "V" and size == 2:
        return _DTYPES["bfloat16"], "2-byte void elements: taken as bfloat16 (--dtype float16 if they are not)"
    if kind in "iu":
        remedy = "if they are the bits of bfloat16: --dtype bfloat16" if size == 2 else ""
        what = f"{'u' if kind == 'u' else ''}int{8 * size} elements"
        raise LnauditError(what, remedy or "convert to float32 and save again")
    what = f"{_REFUSED[kind]} elements ({descr})" if kind in _REFUSED else f"elements of type {descr}"
    raise LnauditError(what, "convert to float32 and save again")
