"""What the elements of a .npy file are: its own word for it, or the user's."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from ..errors import LnauditError
from ..formats import FORMATS, get_format
from ..wording import counted
from .files import shortened

_DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(getattr(ml_dtypes, name, name)) for name in FORMATS if name != "tfloat32"
}
# What a header writes, without the byte order: the format that it is, and what is assumed in saying so. A new type of
# element is a line here. Some writers write the name of a format.
_KNOWN: dict[str, tuple[str, str]] = {
    "f2": ("float16", ""),
    "f4": ("float32", ""),
    "f8": ("float64", ""),
    # the package bfloat16 of GreenWaves
    "g2": ("bfloat16", ""),
    # ml_dtypes
    "V2": ("bfloat16", "2-byte void elements: taken as bfloat16 (--dtype float16 if they are not)"),
    "f1": ("float8_e5m2", "1-byte float elements: taken as float8_e5m2 (--dtype float8_e4m3fn if they are not)"),
    **{name: (name, "") for name in _DTYPES},
}
# what may hold the bits of a format without saying which
_FLOAT8 = "--dtype float8_e4m3fn or --dtype float8_e5m2"
_BITS = {
    "V1": f"if they are float8: {_FLOAT8}",
    **dict.fromkeys(("u1", "i1"), f"if they are the bits of float8: {_FLOAT8}"),
    **dict.fromkeys(("u2", "i2"), "if they are the bits of bfloat16: --dtype bfloat16"),
}
_REFUSED = {
    "b": "boolean",
    "c": "complex",
    "S": "string",
    "a": "string",
    "U": "string",
    "M": "date",
    "m": "time difference",
}
_ELEMENT = re.compile(r"([<>=|]?)([?OVSaUbiufgcmM])([0-9]{0,18})(?:\[.*\])?")


@dataclass(frozen=True, kw_only=True)
class Element:
    """An element as a header describes it.

    Attributes
    ----------
    descr : str
        As written, printable.
    code : str
        Without the byte order, as in "f4", or the name of a format.
    itemsize : int
        Bytes.
    swapped : bool
        In the other byte order than this machine's.
    """

    descr: str
    code: str
    itemsize: int
    swapped: bool = False


def parse_element(descr: object) -> Element:
    """Read the description of an element, without numpy's parser.

    Raises
    ------
    LnauditError
        If it is none whose size is known.
    """
    match = _ELEMENT.fullmatch(descr) if isinstance(descr, str) else None
    if isinstance(descr, str) and descr in _DTYPES:
        order, code, size = "<", descr, _DTYPES[descr].itemsize
    elif match and match[2] == "O":
        raise LnauditError(
            "object array (ragged list or dict), never loaded: it would need unpickling", "save one array per key"
        )
    elif match and (match[3] or match[2] == "?"):
        order, kind, digits = match.groups()
        code = "b1" if kind == "?" else kind + digits
        # a character of U takes four bytes
        size = int(digits or 1) * (4 if kind == "U" else 1)
    else:
        raise LnauditError(f"unknown element type {shortened(repr(descr))}", "convert to float32 and save again")
    swapped = order == (">" if sys.byteorder == "little" else "<")
    return Element(descr=shortened(str(descr)), code=code, itemsize=size, swapped=swapped)


def is_float(element: Element) -> bool:
    """Whether it says itself that it is a floating-point number of a known format."""
    return element.code in _KNOWN


def dtype_named(name: str) -> np.dtype[Any]:
    """Return the dtype that `--dtype NAME` means.

    Raises
    ------
    LnauditError
        If no format has that name, or none that elements are stored in.
    """
    try:
        fmt = get_format(name).name
    except LnauditError:
        raise LnauditError(f"unknown element type {name!r}", f"choose from {', '.join(_DTYPES)}", "--dtype") from None
    if fmt not in _DTYPES:
        raise LnauditError(f"{fmt} values are stored as float32", "name that, or leave it out", "--dtype")
    return _DTYPES[fmt]


def element_dtype(element: Element, override: str | None) -> tuple[np.dtype[Any], str]:
    """Return the dtype of elements in native byte order, and what had to be assumed ("" if nothing).

    Parameters
    ----------
    element : Element
        What the file says.
    override : str or None
        The `--dtype` that the user gives.

    Raises
    ------
    LnauditError
        If they are no floating-point numbers of a known format.
    """
    code, descr = element.code, element.descr
    if override is not None and (is_float(element) or code[0] in "iufV"):
        dtype = dtype_named(override)
        if dtype.itemsize != element.itemsize:
            raise LnauditError(
                f"elements of {counted(element.itemsize, 'byte')} ({descr}) cannot be read as {dtype.name}, "
                f"which has {dtype.itemsize}",
                "give a --dtype of their size",
            )
        said = _KNOWN.get(code) == (dtype.name, "")
        return dtype, "" if said else f"elements {descr} read as {dtype.name} (--dtype)"
    if is_float(element):
        name, note = _KNOWN[code]
        return _DTYPES[name], note
    if code[0] in "iu":
        what = f"{'u' if code[0] == 'u' else ''}int{8 * element.itemsize} elements"
    elif code[0] in _REFUSED:
        what = f"{_REFUSED[code[0]]} elements ({descr})"
    else:
        what = f"elements of type {descr}"
    raise LnauditError(what, _BITS.get(code, "convert to float32 and save again"))


def parameter_dtype(element: Element, override: str | None) -> np.dtype[Any]:
    """Return the dtype of a weight or bias: the user's word counts where its file leaves open what it holds."""
    certain = _KNOWN.get(element.code, ("", "assumed"))[1] == ""
    if override is not None and (certain or dtype_named(override).itemsize != element.itemsize):
        override = None
    return element_dtype(element, override)[0]
