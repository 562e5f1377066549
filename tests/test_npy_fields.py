"""Corners of the .npy format: fields of records."""

from __future__ import annotations

import os
import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lnaudit.readers import files
from lnaudit.readers.discover import find_sites
from lnaudit.readers.npy import open_npy
from lnaudit.readers.sites import SiteOptions

from .npy_files import BF16, CODES, E4M3, RECORDS, filled, pick, refusal, write
from .test_npy import axis_choices, check, described, saved


def compare(path, x, fields, budget, axes=None):
    np.save(path, x)
    for names in fields:
        expected = pick(x, names)
        native = expected.astype(expected.dtype.newbyteorder("=") if expected.dtype != BF16 else BF16)
        for axis in axes or axis_choices(expected.ndim):
            check(path, native, axis, budget, field=".".join(names))


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
