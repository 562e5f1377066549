"""Files of every make for the tests of the .npy reader, and what it says of those that it refuses."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from lnaudit.errors import LnauditError
from lnaudit.readers.npy import open_npy

from .test_npy import described

E4M3, E5M2, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16
CODES = np.arange(256, dtype=np.uint8).reshape(8, 32)
RECORDS = {
    "sub-array": [("id", "i4"), ("h", "f4", (6,))],
    "numbers": [("a", "f2"), ("b", ">f8"), ("c", "<f4")],
    "words": [("text", "S5"), ("word", "U3"), ("when", "M8[ns]"), ("flag", "?"), ("z", "c8"), ("h", "f4", (2, 3))],
    "nested": [("id", "u1"), ("m", [("a", "<f2", (2,)), ("b", ">f4")], (3,)), ("h", "f8")],
    "nested twice": [("o", [("i", [("x", "f4", (2,)), ("k", "u1")], (2,))], (2,)), ("p", "V7")],
    "bfloat16": [("k", "u1"), ("h", BF16, (5,))],
    "alone": [("h", "f4", (4,))],
    "array of arrays": [("h", ("f4", (2,)), (3,))],
    "one of one": [("h", "f4", (1,)), ("g", "f4", (3, 1))],
}


def refusal(path, **options):
    with pytest.raises(LnauditError) as caught:
        open_npy(path, **options)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 800
    return message


def write(path, descr, shape, data, order=False):
    path.write_bytes(described(descr, shape, order) + data)


def leaves(dtype, path=()):
    """Every field of a structured dtype as a path of names."""
    for name in dtype.names:
        inner = dtype[name].base
        if inner.names:
            yield from leaves(inner, (*path, name))
        else:
            yield (*path, name)


def pick(x, path):
    """numpy's own answer."""
    for name in path:
        x = x[name]
    return x


def filled(shape, dtype, order="C"):
    """Records with different numbers in every floating-point field, and those fields."""
    x = np.zeros(shape, dtype, order)
    fields = []
    for i, path in enumerate(leaves(x.dtype)):
        part = pick(x, path)
        if part.dtype.kind == "f" or part.dtype == BF16:
            fields.append(path)
            part[...] = ((np.arange(part.size) + 7 * i) % 251 - 125).reshape(part.shape).astype(part.dtype)
        elif part.dtype.kind in "iu":
            part[...] = 85
    return x, fields
