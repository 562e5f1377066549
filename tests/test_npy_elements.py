"""Corners of the .npy format: 8-bit floats, old bfloat16, parameters that do not say what they are."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from lnaudit.errors import LnauditError
from lnaudit.pipeline import Settings, run
from lnaudit.readers.discover import find_sites
from lnaudit.readers.npy import load_parameter, open_npy
from lnaudit.readers.sites import SiteOptions

from .npy_files import BF16, CODES, E4M3, E5M2, refusal, write
from .test_npy import MAGIC, check, values

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
