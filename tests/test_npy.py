"""The .npy reader: every layout against numpy, every refusal in one clear line, memory within the budget."""

from __future__ import annotations

import io
import itertools
import math
import os
import pickle
import tracemalloc
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lnaudit.errors import LnauditError
from lnaudit.readers import READERS, files
from lnaudit.readers.npy import load_parameter, open_npy

MAGIC = b"\x93NUMPY"
SAVED = ("<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "bfloat16")


def rows_of(x, axis):
    """numpy's own answer: the reduced axes last, everything else flattened."""
    axes = (axis,) if isinstance(axis, int) else axis
    axes = sorted(a % x.ndim for a in axes)
    features = math.prod(x.shape[a] for a in axes)
    return np.moveaxis(x, axes, range(-len(axes), 0)).reshape(-1, features)


def values(shape, dtype="<f4"):
    x = np.arange(math.prod(shape), dtype=np.float64).reshape(shape) % 251 - 125
    return x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def header(text, version=1):
    raw = text.encode("latin-1")
    size = len(raw).to_bytes(2 if version == 1 else 4, "little")
    return MAGIC + bytes([version, 0]) + size + raw


def described(descr, shape, order=False):
    return header(f"{{'descr': {descr!r}, 'fortran_order': {order}, 'shape': {shape}, }}")


def check(path, x, axis, max_elements, **options):
    """Compare blocks and take with numpy."""
    rows = open_npy(path, axis=axis, **options)
    expected = rows_of(x, axis)
    assert (rows.rows, rows.features) == expected.shape
    assert rows.shape == x.shape
    assert rows.dtype.isnative
    at = 0
    for first, block in rows.blocks(max_elements):
        assert first == at
        assert block.dtype == rows.dtype
        assert block.size <= max_elements or len(block) == 1
        np.testing.assert_array_equal(block.astype(np.float64), expected[at : at + len(block)].astype(np.float64))
        at += len(block)
    assert at == len(expected)
    for step in (1, 2, 5):
        indices = np.arange(step - 1, len(expected), step)
        taken = rows.take(indices)
        assert taken.dtype == rows.dtype
        np.testing.assert_array_equal(taken.astype(np.float64), expected[indices].astype(np.float64))


def axis_choices(ndim):
    for n in range(1, ndim + 1):
        yield from itertools.combinations(range(ndim), n)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", SAVED)
def test_every_dtype_order_and_axis(tmp_path, dtype, order):
    for shape in ((7,), (5, 4), (3, 4, 5), (2, 3, 4, 5)):
        x = values(shape, dtype)
        path = tmp_path / "x.npy"
        np.save(path, np.asarray(x, order=order))
        for axis in axis_choices(x.ndim):
            check(path, x, axis, 24)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    data=st.data(),
    order=st.sampled_from("CF"),
    max_elements=st.integers(1, 400),
)
def test_any_shape_axes_and_budget(tmp_path, shape, data, order, max_elements):
    axis = tuple(data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True)))
    x = values(tuple(shape))
    path = tmp_path / "x.npy"
    np.save(path, np.asarray(x, order=order))
    check(path, x, axis, max_elements)


@pytest.mark.parametrize("near", [1, 64, 1 << 13])
@pytest.mark.parametrize("scratch", [1, 100, 1 << 18])
def test_reading_through_gaps_changes_nothing(tmp_path, monkeypatch, near, scratch):
    monkeypatch.setattr("lnaudit.readers.files.NEAR", near)
    monkeypatch.setattr("lnaudit.readers.npy.NEAR", near)
    monkeypatch.setattr("lnaudit.readers.files._SCRATCH", scratch)
    x = values((4, 5, 6, 3))
    for order in "CF":
        path = tmp_path / f"{order}.npy"
        np.save(path, np.asarray(x, order=order))
        for axis in axis_choices(x.ndim):
            check(path, x, axis, 30)


def test_spans_farther_apart_than_one_read(tmp_path):
    x = values((3, 5000))
    np.save(tmp_path / "x.npy", x)
    check(tmp_path / "x.npy", x, 0, 300)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions_of_the_format(tmp_path, version):
    x = values((4, 6))
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, x, version=version)
    (tmp_path / "x.npy").write_bytes(buffer.getvalue())
    check(tmp_path / "x.npy", x, -1, 12)


def test_one_dimension_is_one_row(tmp_path):
    np.save(tmp_path / "x.npy", values((9,)))
    rows = READERS[".npy"](tmp_path / "x.npy")
    assert (rows.rows, rows.features, rows.axes) == (1, 9, (0,))
    assert rows.notes == ("one-dimensional: read as one row",)


def test_the_same_file_along_another_axis(tmp_path):
    x = values((4, 6), "bfloat16")
    np.save(tmp_path / "x.npy", x)
    rows = open_npy(tmp_path / "x.npy")
    other = rows.along(0)
    assert (other.rows, other.features, other.notes) == (6, 4, rows.notes)
    np.testing.assert_array_equal(other.take(np.arange(6)), x.T)


def test_two_byte_void_is_bfloat16_and_says_so(tmp_path):
    x = values((4, 3), "bfloat16")
    np.save(tmp_path / "x.npy", x)
    rows = open_npy(tmp_path / "x.npy")
    assert rows.dtype == ml_dtypes.bfloat16
    assert rows.notes == ("2-byte void elements: taken as bfloat16 (--dtype float16 if they are not)",)


def test_header_that_names_bfloat16(tmp_path):
    x = values((2, 3), "bfloat16")
    (tmp_path / "x.npy").write_bytes(described("bfloat16", (2, 3)) + x.tobytes())
    check(tmp_path / "x.npy", x, -1, 100)
    assert open_npy(tmp_path / "x.npy").notes == ()


@pytest.mark.parametrize(
    ("saved", "name", "dtype"),
    [
        ("<u2", "bfloat16", ml_dtypes.bfloat16),
        ("<i2", "bf16", ml_dtypes.bfloat16),
        (">u2", "bfloat16", ml_dtypes.bfloat16),
        ("<u2", "float16", np.float16),
        ("<i4", "float32", np.float32),
        (">u8", "float64", np.float64),
        ("V2", "float16", np.float16),
        ("V4", "float32", np.float32),
        ("<f2", "bfloat16", ml_dtypes.bfloat16),
    ],
)
def test_bits_read_as_another_format(tmp_path, saved, name, dtype):
    x = values((4, 3)).astype(dtype)
    bits = x.view(f"u{x.itemsize}")
    stored = x.view(saved) if saved[0] == "V" else bits.view("<f2") if saved == "<f2" else bits.astype(saved)
    np.save(tmp_path / "x.npy", stored)
    check(tmp_path / "x.npy", x, -1, 6, dtype=name)
    assert "(--dtype)" in "".join(open_npy(tmp_path / "x.npy", dtype=name).notes) or saved == "<f2"


def test_bytes_after_the_array_are_counted(tmp_path):
    x = values((4, 3))
    np.save(tmp_path / "x.npy", x)
    with (tmp_path / "x.npy").open("ab") as file:
        file.write(b"1234567")
    assert open_npy(tmp_path / "x.npy").unread_bytes == 7
    check(tmp_path / "x.npy", x, -1, 6)


def saved(x, **kwargs):
    buffer = io.BytesIO()
    np.save(buffer, x, **kwargs)
    return buffer.getvalue()


def zipped():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("x.npy", saved(np.zeros(3)))
    return buffer.getvalue()


REFUSED = {
    "0 bytes": (b"", "is empty (0 bytes); write the dump again"),
    "one byte": (MAGIC[:1], "ends within its header (1 byte); write the dump again"),
    "magic cut": (MAGIC[:4], "ends within its header (4 bytes); write the dump again"),
    "length cut": (MAGIC + b"\x01\x00\x76", "ends within its header (9 bytes); write the dump again"),
    "header cut": (saved(np.zeros(3))[:50], "ends within its header (50 bytes); write the dump again"),
    "truncated": (
        saved(np.zeros((100, 384), np.float32))[:500],
        "has 500 of the 153,728 bytes its header promises; write the dump again",
    ),
    "version": (
        MAGIC + b"\x04\x01" + bytes(200),
        "has version 4.1 of the .npy format; versions 1 to 3 are read",
    ),
    "header limit": (
        MAGIC + b"\x02\x00" + (10_001).to_bytes(4, "little") + bytes(20_000),
        "has a header of 10,001 bytes, limit 10,000 characters; write the dump again",
    ),
    "text": (b"1.0 2.0 3.0\n", "is not a .npy file; save the array with numpy.save"),
    "npz": (zipped(), "is a zip or .npz archive, not a .npy file; save each of its arrays as .npy"),
    "pickle": (
        pickle.dumps([1.0]),
        "is a pickle, not a .npy file, and never loaded; save the array with numpy.save",
    ),
    "numbers as calls": (
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (np.int64(4), 4)}"),
        "has a broken header: {'descr': '<f4', 'fortran_order': False, 'shape': (np.int64(4), 4)}; "
        "write the dump again",
    ),
    "shape a number": (
        described("<f4", "(184)"),
        "has a broken header: {'descr': '<f4', 'fortran_order': False, 'shape': (184), }; write the dump again",
    ),
    "one number": (saved(np.float32(3)), "holds a single number (0 dimensions); save the whole array"),
    "empty": (saved(np.zeros((0, 64))), "is empty: shape (0, 64); nothing to audit"),
    "no features": (saved(np.zeros((4, 0))), "is empty: shape (4, 0); nothing to audit"),
    "huge": (
        described("<f4", (2**40, 2**40)),
        "promises more bytes than a file can have; write the dump again",
    ),
    "large": (
        described("<f8", (2**40,)) + bytes(8),
        "has 87 of the 8,796,093,022,287 bytes its header promises; write the dump again",
    ),
    "uint16": (saved(np.zeros(3, np.uint16)), "uint16 elements; if they are the bits of bfloat16: --dtype bfloat16"),
    "int16": (saved(np.zeros(3, np.int16)), "int16 elements; if they are the bits of bfloat16: --dtype bfloat16"),
    "int64": (saved(np.zeros(3, np.int64)), "int64 elements; convert to float32 and save again"),
    "uint8": (
        saved(np.zeros(3, np.uint8)),
        "uint8 elements; if they are the bits of float8: --dtype float8_e4m3fn or --dtype float8_e5m2",
    ),
    "bool": (saved(np.zeros(3, bool)), "boolean elements (|b1); convert to float32 and save again"),
    "complex": (saved(np.zeros(3, np.complex64)), "complex elements (<c8); convert to float32 and save again"),
    "string": (saved(np.array(["ab"])), "string elements (<U2); convert to float32 and save again"),
    "bytes": (saved(np.array([b"ab"])), "string elements (|S2); convert to float32 and save again"),
    "dates": (saved(np.zeros(2, "M8[ns]")), "date elements (<M8[ns]); convert to float32 and save again"),
    "void 3": (saved(np.zeros(2, "V3")), "elements of type |V3; convert to float32 and save again"),
    "float8": (
        saved(np.zeros(4, ml_dtypes.float8_e4m3fn)),
        "elements of type <V1; if they are float8: --dtype float8_e4m3fn or --dtype float8_e5m2",
    ),
    "unknown": (described("<Q", (2,)) + bytes(99), "unknown element type '<Q'; convert to float32 and save again"),
    "no type": (
        described("\n\x1b[31m", (2,)),
        "unknown element type '\\n\\x1b[31m'; convert to float32 and save again",
    ),
    "structured": (
        saved(np.zeros(4, [("h", "f4", (64,)), ("id", "i4")])),
        "structured array (fields h, id); audit one of them: --field h",
    ),
    "ragged": (
        saved(np.array([[1], [2, 3]], dtype=object), allow_pickle=True),
        "object array (ragged list or dict), never loaded: it would need unpickling; save one array per key",
    ),
    "dict": (
        saved(np.array({"a": 1}), allow_pickle=True),
        "object array (ragged list or dict), never loaded: it would need unpickling; save one array per key",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(tmp_path, case):
    content, reason = REFUSED[case]
    path = tmp_path / "x.npy"
    path.write_bytes(content)
    with pytest.raises(LnauditError) as caught:
        open_npy(path, source="dumps/x.npy")
    assert str(caught.value) == f"dumps/x.npy: {reason}"


@pytest.mark.parametrize(
    "fields",
    [
        "",
        "[1, 2]",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': [2]}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, -3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (True,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2.0,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (10**3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({'9' * 5000},)}}",
        "{[]: 1}",
        "__import__('os').abort()",
        "(" * 9000,
        "-" * 9000 + "1",
        "'\\d'",
        "\x00",
    ],
    ids=lambda text: text[:60],
)
def test_hostile_headers(tmp_path, fields):
    (tmp_path / "x.npy").write_bytes(header(fields) + bytes(64))
    with pytest.raises(LnauditError, match=r"^has a broken header: .*; write the dump again") as caught:
        open_npy(tmp_path / "x.npy")
    assert len(caught.value.what) < 200


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.integers(0, 90), change=st.binary(min_size=1, max_size=12))
def test_damaged_bytes_never_raise_anything_else(tmp_path, start, change):
    raw = bytearray(saved(np.zeros((3, 5), np.float32)))
    raw[start : start + len(change)] = change
    (tmp_path / "x.npy").write_bytes(raw)
    try:
        rows = open_npy(tmp_path / "x.npy")
    except LnauditError as error:
        message = str(error)
    else:
        message = ""
        assert sum(block.size for _, block in rows.blocks(4)) == math.prod(rows.shape)
    assert message.isprintable()


def test_missing_file(tmp_path):
    with pytest.raises(LnauditError, match=r"^d/x.npy: does not exist$"):
        open_npy(tmp_path / "x.npy", source="d/x.npy")
    (tmp_path / "f").write_text("")
    with pytest.raises(LnauditError, match=r"^does not exist$"):
        open_npy(tmp_path / "f" / "x.npy")


def test_name_that_is_none():
    with pytest.raises(LnauditError, match=r"^is not a file name$"):
        open_npy(Path("a\0b.npy"))


def test_unreadable_file(tmp_path, monkeypatch):
    (tmp_path / "x.npy").write_bytes(b"")

    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("lnaudit.readers.files.FileIO", refuse)
    with pytest.raises(LnauditError, match=r"^d: cannot be read \(permission denied\)$"):
        open_npy(tmp_path / "x.npy", source="d")


def test_directory_in_place_of_a_file(tmp_path):
    with pytest.raises(LnauditError, match=r"^is a directory; a file is expected here$"):
        open_npy(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipe_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "x.npy")
    with pytest.raises(LnauditError, match="is not a regular file"):
        open_npy(tmp_path / "x.npy")


def test_source_stays_on_one_line(tmp_path):
    with pytest.raises(LnauditError) as caught:
        open_npy(tmp_path / "x.npy", source="a\nb\x1b[31m\udcff.npy")
    assert str(caught.value) == r"a\nb\x1b[31m\udcff.npy: does not exist"


def test_dtype_of_another_size(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(3, np.float32))
    with pytest.raises(LnauditError, match=r"elements of 4 bytes \(<f4\) cannot be read as bfloat16, which has 2"):
        open_npy(tmp_path / "x.npy", dtype="bfloat16")
    np.save(tmp_path / "u.npy", np.zeros(3, np.uint8))
    with pytest.raises(LnauditError, match=r"elements of 1 byte \(\|u1\) cannot be read as bfloat16, which has 2"):
        open_npy(tmp_path / "u.npy", dtype="bfloat16")
    np.save(tmp_path / "b.npy", np.zeros(3, np.complex64))
    with pytest.raises(LnauditError, match="complex elements"):
        open_npy(tmp_path / "b.npy", dtype="float64")


def test_unknown_dtype(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(3, np.float32))
    with pytest.raises(
        LnauditError, match="unknown element type 'int4'; choose from float16, bfloat16, float32, float64, float8_"
    ):
        open_npy(tmp_path / "x.npy", dtype="int4")


@pytest.mark.parametrize("axis", [2, -3, (0, 0), (0, -2), ()])
def test_axis_that_does_not_fit(tmp_path, axis):
    np.save(tmp_path / "x.npy", values((3, 4)))
    with pytest.raises(LnauditError, match=r"^x.npy: axis .* does not fit an array of 2 dimensions"):
        open_npy(tmp_path / "x.npy", axis=axis, source="x.npy")


def test_file_that_shrinks_while_it_is_read(tmp_path):
    np.save(tmp_path / "x.npy", values((100, 4)))
    rows = open_npy(tmp_path / "x.npy", source="x.npy")
    os.truncate(tmp_path / "x.npy", 500)
    with pytest.raises(LnauditError, match=r"^x.npy: ended while it was read; is a program still writing it\?$"):
        list(rows.blocks(40))
    with pytest.raises(LnauditError, match=r"^x.npy: ended"):
        rows.take(np.array([99]))
    (tmp_path / "x.npy").unlink()
    with pytest.raises(LnauditError, match=r"^x.npy: does not exist"):
        next(rows.blocks(40))


@pytest.mark.parametrize("indices", [[-1], [3], [0, 5]])
def test_rows_that_do_not_exist(tmp_path, indices):
    np.save(tmp_path / "x.npy", values((3, 4)))
    with pytest.raises(IndexError):
        open_npy(tmp_path / "x.npy").take(np.array(indices))


def test_no_rows_and_the_same_row_twice(tmp_path):
    x = values((3, 4))
    np.save(tmp_path / "x.npy", x)
    rows = open_npy(tmp_path / "x.npy")
    assert rows.take(np.array([], int)).shape == (0, 4)
    np.testing.assert_array_equal(rows.take(np.array([1, 1, 2])), x[[1, 1, 2]])


def test_blocks_stay_valid(tmp_path):
    x = values((40, 8))
    for order in "CF":
        np.save(tmp_path / "x.npy", np.asarray(x, order=order))
        kept = [block for _, block in open_npy(tmp_path / "x.npy").blocks(32)]
        assert len(kept) > 4
        np.testing.assert_array_equal(np.concatenate(kept), x)


@pytest.mark.parametrize(
    ("shape", "order", "axis"),
    [
        ((40_000, 64), "C", -1),
        ((64, 40_000), "C", 0),
        ((40_000, 64), "F", -1),
        ((64, 40_000), "F", 0),
        ((20, 64, 2000), "C", 1),
        ((400, 100, 64), "F", -1),
        ((64, 400, 100), "C", 0),
        ((8, 400, 800), "C", (0, 2)),
    ],
)
def test_memory_is_bounded_by_the_budget(tmp_path, shape, order, axis):
    """Four blocks a strip, one block copied, scratch of 256 KiB: never the file of 10 MB."""
    np.save(tmp_path / "x.npy", np.zeros(shape, np.float32, order))
    rows = open_npy(tmp_path / "x.npy", axis=axis)
    budget = 1 << 15
    seen = 0
    tracemalloc.start()
    for _, block in rows.blocks(budget):
        seen += block.size
    rows.take(np.array([0, rows.rows - 1]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seen == math.prod(shape)
    # a strip is replaced only after the next one is read
    assert peak < 2 * 4 * budget * 4 + 2 * budget * 4 + (1 << 19)


def test_scattered_rows_are_read_in_long_spans(tmp_path, monkeypatch):
    """(features, rows): a span holds four blocks' worth of rows, so the number of reads stays small."""
    np.save(tmp_path / "x.npy", values((64, 40_000)))
    rows = open_npy(tmp_path / "x.npy", axis=0)
    reads = []
    read_at = files.read_at

    def counted(file, offset, buffer):
        reads.append(len(buffer))
        read_at(file, offset, buffer)

    monkeypatch.setattr("lnaudit.readers.files.read_at", counted)
    list(rows.blocks(1 << 16))
    assert len(reads) == 64 * math.ceil(40_000 / 4096)
    assert sum(reads) == 64 * 40_000 * 4


@pytest.mark.parametrize("order", ["C", "F"])
def test_parameter_of_the_reduced_shape_or_flat(tmp_path, order):
    w = values((3, 4), ">f4")
    np.save(tmp_path / "w.npy", np.asarray(w, order=order))
    np.save(tmp_path / "flat.npy", w.reshape(-1))
    for name in ("w.npy", "flat.npy"):
        loaded = load_parameter(tmp_path / name, (3, 4), name)
        assert loaded.dtype == np.float64
        np.testing.assert_array_equal(loaded, np.arange(12) - 125)


def test_parameter_that_does_not_fit(tmp_path):
    np.save(tmp_path / "w.npy", np.zeros((4, 3), np.float32))
    with pytest.raises(LnauditError) as caught:
        load_parameter(tmp_path / "w.npy", (3, 4), "w.npy")
    assert str(caught.value) == "w.npy: shape (4, 3) does not fit the reduced axes, shape (3, 4)"
    with pytest.raises(LnauditError, match=r"^v.npy: does not exist"):
        load_parameter(tmp_path / "v.npy", (3, 4), "v.npy")


def test_parameter_in_bfloat16_bits(tmp_path):
    w = values((5,), "bfloat16")
    np.save(tmp_path / "w.npy", w.view(np.uint16))
    np.testing.assert_array_equal(load_parameter(tmp_path / "w.npy", (5,), dtype="bfloat16"), w.astype(np.float64))
    np.save(tmp_path / "f.npy", np.ones(5, np.float32))
    np.testing.assert_array_equal(load_parameter(tmp_path / "f.npy", (5,), dtype="bfloat16"), np.ones(5))
    with pytest.raises(LnauditError, match="uint16 elements"):
        load_parameter(tmp_path / "w.npy", (5,))
