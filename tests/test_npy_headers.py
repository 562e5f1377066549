"""Corners of the .npy format: headers of every make."""

from __future__ import annotations

import itertools
import random
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lnaudit.errors import LnauditError
from lnaudit.readers.npy import open_npy

from .npy_files import BF16, RECORDS, filled, pick, refusal, write
from .test_npy import MAGIC, check, saved, values


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
