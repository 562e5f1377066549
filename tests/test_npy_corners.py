"""Corners of the .npy format: 8-bit floats, old bfloat16, fields of records, headers of every make."""

from __future__ import annotations

import itertools
import os
import pickle
import random
import tracemalloc
import warnings
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lnaudit.errors import LnauditError
from lnaudit.pipeline import Settings, run
from lnaudit.readers import files
from lnaudit.readers.discover import find_sites
from lnaudit.readers.npy import load_parameter, open_npy
from lnaudit.readers.sites import SiteOptions

from .test_npy import MAGIC, axis_choices, check, described, saved, values

E4M3, E5M2, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16
CODES = np.arange(256, dtype=np.uint8).reshape(8, 32)


def refusal(path, **options):
    with pytest.raises(LnauditError) as caught:
        open_npy(path, **options)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 800
    return message


def write(path, descr, shape, data, order=False):
    path.write_bytes(described(descr, shape, order) + data)


# 8-bit floats


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize(
    ("dtype", "stored", "option"),
    [
        (E5M2, None, None),
        (E5M2, None, "e5m2"),
        (E5M2, "u1", "float8_e5m2"),
        (E4M3, None, "float8_e4m3fn"),
        (E4M3, None, "fp8_e4m3"),
        (E4M3, "V1", "e4m3fn"),
        (E4M3, "u1", "e4m3"),
        (E4M3, "i1", "e4m3fn"),
        (E4M3, E5M2, "e4m3fn"),
    ],
)
def test_every_code_of_an_8_bit_float(tmp_path, dtype, stored, option, order):
    x = CODES.view(dtype)
    np.save(tmp_path / "x.npy", np.asarray(x if stored is None else x.view(stored), order=order))
    for axis in (-1, 0, (0, 1)):
        check(tmp_path / "x.npy", x, axis, 50, dtype=option)
    assert open_npy(tmp_path / "x.npy", dtype=option).dtype == dtype


def test_what_an_8_bit_float_is_taken_for_is_said(tmp_path):
    np.save(tmp_path / "e5m2.npy", CODES.view(E5M2))
    np.save(tmp_path / "e4m3.npy", CODES.view(E4M3))
    assert open_npy(tmp_path / "e5m2.npy").notes == (
        "1-byte float elements: taken as float8_e5m2 (--dtype float8_e4m3fn if they are not)",
    )
    assert open_npy(tmp_path / "e4m3.npy", dtype="e4m3").notes == ("elements <V1 read as float8_e4m3fn (--dtype)",)


@pytest.mark.parametrize(
    "name",
    ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "int4"],
)
def test_one_byte_of_anything_is_not_guessed(tmp_path, name):
    np.save(tmp_path / "x.npy", np.ones((2, 3), getattr(ml_dtypes, name)))
    assert refusal(tmp_path / "x.npy") == (
        "elements of type <V1; if they are float8: --dtype float8_e4m3fn or --dtype float8_e5m2"
    )


@pytest.mark.parametrize("option", ["tf32", "tfloat32"])
def test_tfloat32_has_no_elements_of_its_own(tmp_path, option):
    np.save(tmp_path / "x.npy", np.zeros((2, 3), np.float32))
    message = "--dtype: tfloat32 values are stored as float32; name that, or leave it out"
    for refused in (lambda: SiteOptions(dtype=option), lambda: open_npy(tmp_path / "x.npy", dtype=option)):
        with pytest.raises(LnauditError) as caught:
            refused()
        assert message.removeprefix("--dtype: ") in str(caught.value)


def test_8_bit_floats_have_a_byte(tmp_path):
    np.save(tmp_path / "x.npy", values((2, 3), "bfloat16"))
    assert refusal(tmp_path / "x.npy", dtype="e5m2") == (
        "elements of 2 bytes (<V2) cannot be read as float8_e5m2, which has 1; give a --dtype of their size"
    )


@pytest.mark.parametrize(("dtype", "option"), [(E4M3, "e4m3"), (E5M2, None)])
def test_8_bit_floats_are_audited_like_the_same_numbers_in_float32(tmp_path, monkeypatch, dtype, option):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(5).normal(3, 20, (40, 48)).astype(dtype)
    x[3, 4] = np.nan
    x[5] = np.nan
    x[7] = 0
    x[9, 1] = np.inf  # NaN in e4m3fn
    turned = np.repeat(np.arange(1, 9), 6).reshape(8, 6).astype(dtype)  # constant along the default axis
    reports = []
    for folder, a, b in (("narrow", x, turned), ("wide", x.astype(np.float32), turned.astype(np.float32))):
        Path(folder).mkdir()
        np.save(f"{folder}/x.npy", a)
        np.save(f"{folder}/turned.npy", b)
        found = find_sites([folder], SiteOptions(dtype=option if folder == "narrow" else None))
        reports.append(run(found.open(), Settings()).to_dict())
    narrow, wide = reports
    assert [site.pop("dtype") for site in narrow["sites"]] == [np.dtype(dtype).name] * 2
    assert wide["sites"][1]["input"]["nan"] == np.isnan(x.astype(np.float32)).sum()
    assert any("axis" in f["message"] for f in wide["findings"] if f["site"] == "turned")
    for site in narrow["sites"] + wide["sites"]:
        site.pop("dtype", None)
        site.pop("notes")
    assert narrow == wide


# bfloat16


@pytest.mark.parametrize(
    ("descr", "swapped", "assumed"),
    [
        ("<V2", False, True),
        ("|V2", False, True),
        ("=V2", False, True),
        ("V2", False, True),
        (">V2", True, True),
        ("<g2", False, False),
        (">g2", True, False),
        ("bfloat16", False, False),
    ],
)
def test_bfloat16_of_every_writer_and_byte_order(tmp_path, descr, swapped, assumed):
    x = values((4, 6), "bfloat16")
    bits = x.view(np.uint16)
    write(tmp_path / "x.npy", descr, (4, 6), (bits.astype(">u2") if swapped else bits.astype("<u2")).tobytes())
    for axis in (-1, 0):
        check(tmp_path / "x.npy", x, axis, 12)
    assert bool(open_npy(tmp_path / "x.npy").notes) == assumed


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"])
def test_header_that_names_the_format(tmp_path, name):
    x = values((3, 4)).astype(getattr(ml_dtypes, name, name))
    write(tmp_path / "x.npy", name, (3, 4), x.tobytes())
    check(tmp_path / "x.npy", x, -1, 8)
    assert open_npy(tmp_path / "x.npy").notes == ()


@pytest.mark.parametrize(
    "descr", ["<f", "f", "<V", "<f4 ", " <f4", "<f٤", "f4,f4", "(2,)f4", "<L4", "", "<", "4", "<f4x"]
)
def test_element_types_that_are_none(tmp_path, descr):
    raw = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': (2, 2), }}".encode()
    (tmp_path / "x.npy").write_bytes(MAGIC + b"\x03\x00" + len(raw).to_bytes(4, "little") + raw + bytes(64))
    assert refusal(tmp_path / "x.npy") == f"unknown element type {descr!r}; convert to float32 and save again"


# fields


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


def compare(path, x, fields, budget, axes=None):
    np.save(path, x)
    for names in fields:
        expected = pick(x, names)
        native = expected.astype(expected.dtype.newbyteorder("=") if expected.dtype != BF16 else BF16)
        for axis in axes or axis_choices(expected.ndim):
            check(path, native, axis, budget, field=".".join(names))


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


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("name", RECORDS)
def test_every_field_axis_and_order(tmp_path, name, order):
    for shape in ((7,), (3, 4)):
        x, fields = filled(shape, RECORDS[name], order)
        compare(tmp_path / "x.npy", x, fields, 24)


def test_padding_is_skipped(tmp_path):
    aligned = np.dtype([("a", "u1"), ("h", "f8", (3,)), ("c", "u1")], align=True)
    apart = np.dtype({"names": ["g", "h"], "formats": ["f2", ("f4", (3,))], "offsets": [6, 16], "itemsize": 40})
    for dtype in (aligned, apart):
        x, fields = filled((6,), dtype)
        compare(tmp_path / "x.npy", x, fields, 9)
        assert "('', '|V" in (tmp_path / "x.npy").read_bytes().decode("latin-1")


def test_padding_that_is_nested_or_repeated(tmp_path):
    descr = [("", "|V3", (2,)), ("o", [("", "|V2"), ("h", "<f4", (2,))], (2,)), ("", [("", "|V5")])]
    x, _ = filled((4,), [("p", "V6"), ("o", [("q", "V2"), ("h", "<f4", (2,))], (2,)), ("r", "V5")])
    write(tmp_path / "x.npy", descr, (4,), x.tobytes())
    for axis in axis_choices(3):
        check(tmp_path / "x.npy", x["o"]["h"], axis, 6, field="o.h")
    assert "(fields o.h)" in refusal(tmp_path / "x.npy")


def test_titles_are_names_too(tmp_path):
    x, _ = filled((4,), [(("hidden state", "h"), "f4", (3,)), (("outer", "o"), [(("inner", "i"), "f4")])])
    np.save(tmp_path / "x.npy", x)
    for field in ("h", "hidden state"):
        check(tmp_path / "x.npy", x["h"], -1, 6, field=field)
    for field in ("o.i", "outer.inner"):
        check(tmp_path / "x.npy", x["o"]["i"], -1, 6, field=field)


@pytest.mark.parametrize("name", ["é", "шум", "a.b", "a b", ""])
def test_names_of_every_kind(tmp_path, name):
    x, _ = filled((3,), [("k", "i2"), ("h", "f4", (4,))])
    written = name or "x"
    x.dtype.names = ("k", written)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "Stored array in format 3.0"
        np.save(tmp_path / "x.npy", x)
    if not name:
        raw = (tmp_path / "x.npy").read_bytes()
        (tmp_path / "x.npy").write_bytes(raw.replace(b"('x',", b"('' ,"))
    assert (tmp_path / "x.npy").read_bytes()[6] == (3 if name == "шум" else 1)
    check(tmp_path / "x.npy", x[written], -1, 8, field=name)


def test_a_record_alone_is_a_row(tmp_path):
    x, _ = filled((), [("id", "i4"), ("h", "f4", (5,))])
    np.save(tmp_path / "x.npy", x)
    check(tmp_path / "x.npy", x["h"], -1, 8, field="h")
    assert refusal(tmp_path / "x.npy", field="id").startswith("holds a single number (0 dimensions)")


ELEMENTS = st.sampled_from(["<f2", ">f4", "<f8", ">f2", "u1", ">i4", "V3", "S2", "U1"])
SHAPES = st.sampled_from([(), (), (1,), (2,), (3,), (2, 2), (1, 3)])


def records(inner):
    return st.lists(st.tuples(inner, SHAPES), min_size=1, max_size=4).map(
        lambda entries: [(f"{chr(97 + i)}", entry, shape) for i, (entry, shape) in enumerate(entries)]
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    record=records(ELEMENTS | records(ELEMENTS | records(ELEMENTS))),
    align=st.booleans(),
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    order=st.sampled_from("CF"),
    budget=st.integers(1, 60),
    data=st.data(),
)
def test_any_record(tmp_path, record, align, shape, order, budget, data):
    x, fields = filled(tuple(shape), np.dtype(record, align=align), order)
    np.save(tmp_path / "x.npy", x)
    for names in fields[:3]:
        expected = pick(x, names)
        axis = tuple(data.draw(st.lists(st.integers(0, expected.ndim - 1), min_size=1, unique=True)))
        native = expected.astype(expected.dtype.newbyteorder("="))
        check(tmp_path / "x.npy", native, axis, budget, field=".".join(names))


@pytest.mark.parametrize("near", [1, 20, 1 << 13])
@pytest.mark.parametrize("scratch", [1, 100, 1 << 18])
def test_reading_fields_through_gaps_changes_nothing(tmp_path, monkeypatch, near, scratch):
    monkeypatch.setattr("lnaudit.readers.files.NEAR", near)
    monkeypatch.setattr("lnaudit.readers.npy.NEAR", near)
    monkeypatch.setattr("lnaudit.readers.files._SCRATCH", scratch)
    x, fields = filled((3, 4), RECORDS["nested twice"])
    compare(tmp_path / "x.npy", x, fields, 10)


def test_the_field_is_noted(tmp_path):
    x, _ = filled((4,), [("id", "i4"), ("h", BF16, (6,))])
    np.save(tmp_path / "x.npy", x)
    rows = open_npy(tmp_path / "x.npy", field="h")
    assert rows.notes == (
        "field h of a structured array",
        "2-byte void elements: taken as bfloat16 (--dtype float16 if they are not)",
    )
    assert rows.along(0).notes == rows.notes


def test_field_bits_read_as_another_format(tmp_path):
    x = np.zeros(8, [("id", "i4"), ("h", "u1", (32,))])
    x["h"] = CODES
    np.save(tmp_path / "x.npy", x)
    check(tmp_path / "x.npy", CODES.view(E4M3), -1, 64, field="h", dtype="e4m3")


FIELD_REFUSALS = [
    ([("id", "i4"), ("h", "f4", (3,))], None, "structured array (fields id, h); audit one of them: --field h"),
    ([("id", "i4"), ("k", "i2")], None, "structured array (fields id, k); audit one of them: --field id"),
    (
        [(f"f{i}", "f4") for i in range(9)],
        None,
        "structured array (fields f0, f1, f2, f3, f4 and 4 more); audit one of them: --field f0",
    ),
    ([("hidden", "f4"), ("id", "i4")], "hiden", "has no field 'hiden'; did you mean hidden?"),
    ([("hidden", "f4"), ("id", "i4")], "q", "has no field 'q'; choose from hidden, id"),
    ([("o", [("a", "f4"), ("b", "f4")])], "o", "has no field 'o'; choose from o.a, o.b"),
    ([("o", [("a", "f4"), ("b", "f4")])], "a", "has no field 'a'; choose from o.a, o.b"),
    ([("a.b", "f4"), ("a", [("b", "f4")])], "a.b", "has 2 fields 'a.b'; save one of them alone as an array"),
    ([("id", "i4"), ("h", "f4")], "id", "int32 elements; convert to float32 and save again"),
    ([("id", "S4"), ("h", "f4")], "id", "string elements (|S4); convert to float32 and save again"),
    (
        [("id", "i2"), ("h", "f4")],
        "id",
        "int16 elements; if they are the bits of bfloat16: --dtype bfloat16",
    ),
    ([("h", "f4", (0,)), ("id", "i4")], "h", "is empty: shape (4, 0); nothing to audit"),
    ("f4", "h", "has no fields (elements <f4); leave --field out"),
    (BF16, "h", "has no fields (elements <V2); leave --field out"),
]


@pytest.mark.parametrize(("dtype", "field", "reason"), FIELD_REFUSALS)
def test_fields_that_cannot_be_audited(tmp_path, dtype, field, reason):
    np.save(tmp_path / "x.npy", np.zeros(4, dtype))
    assert refusal(tmp_path / "x.npy", field=field) == reason


def test_hostile_names_of_fields_stay_on_one_line(tmp_path):
    write(tmp_path / "x.npy", [("a\n\x1b[31m", "<f4"), ("b" * 5000, "<f4")], (2,), bytes(64))
    assert refusal(tmp_path / "x.npy").startswith(r"structured array (fields a\n\x1b[31m, bbb")
    assert (
        refusal(tmp_path / "x.npy", field="\r\n")
        == r"has no field '\r\n'; choose from a\n\x1b[31m, " + "b" * 92 + "..."
    )


def test_objects_in_records_are_never_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "trapped"),)

    (tmp_path / "x.npy").write_bytes(described("|O", (1,)) + pickle.dumps([Trap()]))
    (tmp_path / "y.npy").write_bytes(described([("h", "<f4"), ("o", "|O")], (1,)) + pickle.dumps([Trap()]))
    for path, field in (("x.npy", None), ("y.npy", None), ("y.npy", "h")):
        assert refusal(tmp_path / path, field=field).startswith("object array (ragged list or dict), never loaded")
    assert not (tmp_path / "trapped").exists()


@pytest.mark.parametrize(
    "descr",
    [
        [],
        [("", "|V4")],
        [["h", "<f4"]],
        [("h",)],
        [("h", "<f4", (2,), 1)],
        [("h", "<f4", (-2,))],
        [("h", "<f4", (True,))],
        [("h", "<f4", "x")],
        [("h", "<f4", (1,) * 65)],
        [(b"h", "<f4")],
        [(("t", "h", "x"), "<f4")],
        [((1, "h"), "<f4")],
        [("h", [])],
        [("h", ["<f4"])],
        ("<f4", (2,)),
    ],
    ids=str,
)
def test_records_that_are_none(tmp_path, descr):
    write(tmp_path / "x.npy", descr, (2,), bytes(999))
    assert refusal(tmp_path / "x.npy", field="h").startswith("has a broken header: ")


def test_memory_for_fields_is_bounded_by_the_budget(tmp_path):
    budget = 1 << 14
    for gap, rows in ((4, 20_000), (9000, 400)):
        np.save(tmp_path / "x.npy", np.zeros(rows, [("gap", f"V{gap}"), ("h", "f4", (64,))]))
        for axis in (-1, 0):
            site = open_npy(tmp_path / "x.npy", axis=axis, field="h")
            tracemalloc.start()
            seen = sum(block.size for _, block in site.blocks(budget))
            site.take(np.array([0, site.rows - 1]))
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert seen == rows * 64
            assert peak < 2 * 4 * budget * 4 + 2 * budget * 4 + (1 << 19)


def test_of_records_far_apart_only_the_field_is_read(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", np.zeros(50, [("gap", "V9000"), ("h", "f4", (64,))]))
    rows = open_npy(tmp_path / "x.npy", field="h")
    sizes = []
    read_at = files.read_at

    def counted(file, offset, buffer):
        sizes.append(len(buffer))
        read_at(file, offset, buffer)

    monkeypatch.setattr("lnaudit.readers.files.read_at", counted)
    list(rows.blocks(1 << 16))
    assert sizes == [256] * 50


def test_field_of_a_record_file_that_is_cut(tmp_path):
    raw = saved(filled((5,), [("id", "i4"), ("h", "f4", (6,))])[0])
    (tmp_path / "x.npy").write_bytes(raw[:-1])
    assert refusal(tmp_path / "x.npy", field="h") == (
        f"has {len(raw) - 1} of the {len(raw)} bytes its header promises; write the dump again"
    )
    (tmp_path / "x.npy").write_bytes(raw + b"more")
    assert open_npy(tmp_path / "x.npy", field="h").unread_bytes == 4


def test_the_option_reaches_every_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("plain.npy", np.ones((3, 4), np.float32))
    x, _ = filled((3,), [("id", "i4"), ("h", "f4", (4,))])
    np.save("records.npy", x)
    plain, records_ = find_sites(["."], SiteOptions(field="h")).open()
    assert plain.reason == "has no fields (elements <f4); leave --field out"
    np.testing.assert_array_equal(records_.rows.take(np.arange(3)), x["h"])


# weights and biases


@pytest.mark.parametrize(
    ("stored", "option", "meant"),
    [
        (CODES[0].view(E4M3), "e4m3", E4M3),
        (CODES[0], "e4m3", E4M3),
        (CODES[0].view(E5M2), None, E5M2),
        (CODES[0].view(E5M2), "bfloat16", E5M2),
        (values((32,), "bfloat16"), "e4m3", BF16),
        (values((32,), "bfloat16"), "float16", np.float16),
        (values((32,), "<f2"), "bfloat16", np.float16),
        (values((32,), "<f8"), "e4m3", np.float64),
    ],
)
def test_parameters_that_do_not_say_what_they_are(tmp_path, stored, option, meant):
    np.save(tmp_path / "w.npy", stored)
    np.testing.assert_array_equal(
        load_parameter(tmp_path / "w.npy", (32,), dtype=option), stored.view(meant).astype(np.float64)
    )


def test_parameters_are_no_records(tmp_path):
    np.save(tmp_path / "w.npy", np.zeros(3, [("h", "f4"), ("g", "f4")]))
    with pytest.raises(LnauditError) as caught:
        load_parameter(tmp_path / "w.npy", (3,), "w.npy")
    assert str(caught.value) == "w.npy: structured array (fields h, g); save one field alone as an array"


# headers


def npy(text, version, data, encoding="latin-1"):
    raw = text.encode(encoding)
    return MAGIC + bytes([version, 0]) + len(raw).to_bytes(2 if version == 1 else 4, "little") + raw + data


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(
    "text",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr':'<f4','fortran_order':False,'shape':(2,3)}\n",
        '  \t{"shape": (2, 3,), "fortran_order": False, "descr": "<f4"}',
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n      \n",
        "{'descr': '<f4',\n 'fortran_order': False,\n 'shape': (0x2, 0b11)}" + " " * 9900,
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}  # of a writer who talks",
    ],
    ids=lambda text: str(text)[:50],
)
def test_headers_as_python_allows_them(tmp_path, version, text):
    data = values((2, 3)).tobytes()
    (tmp_path / "x.npy").write_bytes(npy(text, version, data))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            expected = np.load(tmp_path / "x.npy")
        except ValueError:
            assert version == 3  # numpy mends the second line only for older ones
            expected = values((2, 3))
    np.testing.assert_array_equal(expected, values((2, 3)))
    check(tmp_path / "x.npy", expected, -1, 3)


@pytest.mark.parametrize(
    ("descr", "shape", "field"),
    [("'<f4'", "(2L, 3L)", None), ("'<f4'", "(2L, 3)", None), ("[('h', '<f4', (3L,))]", "(2L,)", "h")],
)
def test_long_integers_of_python_2(tmp_path, descr, shape, field):
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    (tmp_path / "x.npy").write_bytes(npy(text, 1, values((2, 3)).tobytes()))
    with pytest.warns(UserWarning, match="Python 2"):
        expected = np.load(tmp_path / "x.npy")
    check(tmp_path / "x.npy", expected if field is None else expected[field], -1, 3, field=field)


@pytest.mark.parametrize(
    ("version", "characters", "letter"), [(1, 10_000, "n"), (2, 10_000, "n"), (1, 10_000, "é"), (3, 10_000, "ш")]
)
def test_length_of_a_header_is_counted_as_numpy_does(tmp_path, version, characters, letter):
    encoding = "utf-8" if version == 3 else "latin-1"
    for more, readable in ((0, True), (1, False)):
        start, end = "{'descr': [('", "', '<f4', (3,))], 'fortran_order': False, 'shape': (2,)}"
        name = letter * (characters + more - len(start) - len(end))
        data = values((2, 3)).tobytes()
        (tmp_path / "x.npy").write_bytes(npy(start + name + end, version, data, encoding))
        if readable:
            assert np.load(tmp_path / "x.npy").dtype.names == (name,)
            check(tmp_path / "x.npy", values((2, 3)), -1, 3, field=name)
        else:
            with pytest.raises(ValueError, match=r"Header info length \(10001\)"):
                np.load(tmp_path / "x.npy")
            assert "limit 10,000 characters; write the dump again" in refusal(tmp_path / "x.npy", field=name)


def test_versions_that_are_not_known(tmp_path):
    for major, minor in ((0, 0), (1, 1), (2, 7), (4, 0), (255, 255)):
        (tmp_path / "x.npy").write_bytes(MAGIC + bytes([major, minor]) + bytes(200))
        assert refusal(tmp_path / "x.npy") == (
            f"has version {major}.{minor} of the .npy format; versions 1 to 3 are read"
        )


BROKEN = [
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'shape': (3, 2)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), **{}}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'x': 1}",
    "{'descr': '<f4', 'fortran_order': False, 'Shape': (2, 3)}",
    "{'descr': '<f4', 'fortran_order': False}",
    "{'descr', 'fortran_order', 'shape'}",
    "{'descr': '<f4', 'fortran_order': None, 'shape': (2, 3)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': 6}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (6)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (np.int64(2), 3)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, -3)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -0.0)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2.0, 3)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808, 1)}",
    f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({'1, ' * 65})}}",
    f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({'9' * 5000},)}}",
    f"{{'descr': {'[' * 300 + ']' * 300}, 'fortran_order': False, 'shape': (2,)}}",
    f"{{'descr': {'[(' * 90}'<f4'{')]' * 90}, 'fortran_order': False, 'shape': (2,)}}",
    f"{{'descr': '<f4', 'fortran_order': False, 'shape': {'(' * 4000}{')' * 4000}}}",
    f"{{'descr': {'1+' * 4000}1, 'fortran_order': False, 'shape': (2,)}}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)",
    "('<f4', False, (2, 3))",
    "# nothing",
    "{'descr': '\\N{nothing}', 'fortran_order': False, 'shape': (2, 3)}",
    "[x for x in (1,)]",
]


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: text[-60:])
@pytest.mark.parametrize("version", [1, 3])
def test_broken_headers(tmp_path, text, version):
    (tmp_path / "x.npy").write_bytes(npy(text, version, bytes(64)))
    assert refusal(tmp_path / "x.npy").startswith("has a broken header: ")


def test_header_that_is_not_utf_8(tmp_path):
    text = "{'descr': [('é', '<f4')], 'fortran_order': False, 'shape': (2,)}"
    (tmp_path / "x.npy").write_bytes(npy(text, 3, bytes(64)))
    with pytest.raises(UnicodeDecodeError):
        np.load(tmp_path / "x.npy")
    assert refusal(tmp_path / "x.npy", field="é").startswith(r"has a broken header: {'descr': [('\xe9',")


@pytest.mark.parametrize(
    ("descr", "shape"),
    [
        ("<f4", (2**62,) * 64),
        ("<f4", (2**63 - 1,)),
        ("|V999999999999999999", (5, 2)),
        ("<U999999999999999999", (3,)),
        ([("h", "<f4", (2**62,) * 64)], (2,)),
        ([("h", "<f4"), ("v", "|V999999999999999999")], (2**40,)),
    ],
    ids=str,
)
def test_sizes_that_no_file_has(tmp_path, descr, shape):
    write(tmp_path / "x.npy", descr, shape, bytes(64))
    assert refusal(tmp_path / "x.npy", field="h") == "promises more bytes than a file can have; write the dump again"


@pytest.mark.parametrize(
    ("descr", "shape", "reason"),
    [
        ("|V0", (2**62,), "elements of type |V0; convert to float32 and save again"),
        ("|S0", (2**62,), "string elements (|S0); convert to float32 and save again"),
        ("<f0", (2**62,), "elements of type <f0; convert to float32 and save again"),
        ("<f4", (2**62, 0), f"is empty: shape ({2**62}, 0); nothing to audit"),
        ([("h", "<f4", (2**62, 0))], (2,), f"is empty: shape (2, {2**62}, 0); nothing to audit"),
        ("<f4", (1,) * 63 + (0,), "is empty: shape (1, 1, 1, "),
        ([("h", "<f4", (1,) * 40)], (1,) * 40, "has 80 dimensions; numpy has up to 64"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_nothing_that_is_called_much(tmp_path, descr, shape, reason):
    write(tmp_path / "x.npy", descr, shape, bytes(64))
    assert refusal(tmp_path / "x.npy", field="h" if isinstance(descr, list) else None).startswith(reason)


def test_as_many_dimensions_as_numpy_has(tmp_path):
    for order, shape in itertools.product("CF", ((1,) * 62 + (3, 4), (3, *(1,) * 62, 4), (2, 1) * 5 + (1,) * 54)):
        x = np.asarray(values(shape), order=order)
        np.save(tmp_path / "x.npy", x)
        for axis in (-1, 0, (0, 63), 2):
            check(tmp_path / "x.npy", x, axis, 4)


def test_records_in_records_in_records(tmp_path):
    for depth in (1, 20, 60):
        dtype = np.dtype("<f4")
        for _ in range(depth):
            dtype = np.dtype([("k", "u1"), ("n", dtype)])
        x = np.zeros((3, 2), dtype)
        path = ("n",) * depth
        pick(x, path)[...] = values((3, 2))
        np.save(tmp_path / "x.npy", x)
        check(tmp_path / "x.npy", values((3, 2)), -1, 2, field=".".join(path))


def test_no_memory_for_what_a_header_claims(tmp_path):
    shape = (2**62,) * 60
    deep = "<f4"
    for _ in range(40):
        deep = [("n", deep, (9,) * 60)]
    wide = [(f"f{i}", "<f4", (2**62,) * 9) for i in range(30)]
    many = [("o", [(f"{i}", "<f4") for i in range(500)], (1,) * 64)]
    for descr in ("<f4", deep, wide, many):
        write(tmp_path / "x.npy", descr, shape, bytes(64))
        tracemalloc.start()
        assert refusal(tmp_path / "x.npy", field="f1")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 4 << 20


SEEDS = [
    (saved(values((2, 3, 4))), None),
    (saved(np.asfortranarray(values((2, 3, 4), ">f8"))), None),
    (saved(values((6, 4), "<f2")), None),
    (saved(values((6, 4), "bfloat16")), None),
    (saved(filled((3, 2), RECORDS["nested"])[0]), "m.b"),
    (saved(filled((3, 2), RECORDS["numbers"], "F")[0]), "b"),
]


def mutated(rng, raw):
    raw = bytearray(raw)
    for _ in range(rng.randint(1, 2)):
        end = min(len(raw), 10 + raw[8]) if len(raw) > 8 else len(raw)
        i, j = rng.randrange(end), rng.randrange(end)
        change = rng.choice(["put", "insert", "drop", "copy", "byte"])
        if change == "put":
            raw[i] = rng.choice(b"0123456789<>=|fVgOiuSMUd'\"(),[]{}: LTrueFalse\\x-+.h#*")
        elif change == "insert":
            raw[i:i] = bytes([rng.choice(b"0123456789<>|fVgO'(),[]{} -L")])
        elif change == "drop":
            del raw[i]
        elif change == "copy":
            raw[j : j + 8] = raw[i : i + 8]
        else:
            raw[i] = rng.randrange(256)
    return bytes(raw)


@pytest.mark.parametrize("seed", range(3))
def test_mutated_headers_are_read_as_numpy_reads_them_or_refused(tmp_path, seed):
    rng, path, same = random.Random(seed), tmp_path / "x.npy", 0
    for _ in range(500):
        raw, field = rng.choice(SEEDS)
        path.write_bytes(mutated(rng, raw))
        try:
            rows = open_npy(path, field=field)
        except LnauditError as error:
            rows, message = None, str(error)
        else:
            message = ""
            read = [block for _, block in rows.blocks(5)]
            assert sum(map(np.size, read)) == rows.rows * rows.features
        assert message.isprintable()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = np.load(path, mmap_mode="r")
            expected = pick(expected, field.split(".") if field else ())
        except Exception:  # numpy has a dozen for broken headers
            continue
        if rows is None:
            plain = expected.dtype.str in ("<f2", "<f4", "<f8", ">f2", ">f4", ">f8") and expected.size and expected.ndim
            assert not plain or "unknown element type" in message
            continue
        expected = expected.view(BF16) if expected.dtype == np.dtype("V2") else expected
        assert rows.shape == expected.shape
        np.testing.assert_array_equal(
            np.concatenate(read).reshape(expected.shape).astype(np.float64), expected.astype(np.float64)
        )
        same += 1
    assert same > 5


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    fields=st.fixed_dictionaries(
        {
            "descr": st.recursive(
                st.sampled_from(["<f4", ">f2", "|V1", "<f1", "|O", "<U9", "<g2", "", "h"]) | st.integers() | st.none(),
                lambda inner: (
                    st.lists(inner, max_size=3)
                    | st.tuples(st.text(max_size=3), inner)
                    | st.lists(st.tuples(st.sampled_from("ab"), inner, st.just((2,))), max_size=3)
                ),
                max_leaves=6,
            ),
            "fortran_order": st.booleans(),
            "shape": st.lists(st.integers(0, 3), max_size=3).map(tuple) | st.integers() | st.text(max_size=3),
        }
    ),
    field=st.sampled_from([None, "a", "b", "a.a"]),
)
def test_any_header_gives_rows_or_one_line(tmp_path, fields, field):
    raw = repr(fields).encode()
    (tmp_path / "x.npy").write_bytes(MAGIC + b"\x03\x00" + len(raw).to_bytes(4, "little") + raw + bytes(2000))
    try:
        rows = open_npy(tmp_path / "x.npy", field=field)
    except LnauditError as error:
        rows, message = None, str(error)
    assert rows or message.isprintable()
    if rows:
        assert sum(block.size for _, block in rows.blocks(7)) == rows.rows * rows.features
