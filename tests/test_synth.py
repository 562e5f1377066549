"""`lnaudit synth`: what it writes is read back, nothing is overwritten unasked or left half-written."""

import errno
import io
import json
import os

import numpy as np
import pytest
from typer.testing import CliRunner

from lnaudit import families
from lnaudit.cli.app import app
from lnaudit.families import DTYPES, FAMILIES, generate, parse_family
from lnaudit.readers.npy import open_npy

from .program import run

SMALL = "near-constant:rows=20,features=32"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def synth(*args):
    return CliRunner().invoke(app, ["synth", *args])


def refused(done, said):
    """It ended with 2 and one line on stderr that says this."""
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("lnaudit: ")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_written_is_the_family(dtype, folder):
    spec = parse_family(f"{SMALL},dtype={dtype}")
    done = synth(spec.label, "-o", "acts.npy")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == f"wrote acts.npy: {spec.label}, shape (20, 32), {dtype}\n"
    assert os.listdir(folder) == ["acts.npy"]
    rows = open_npy(folder / "acts.npy", axis=-1)
    assert rows.dtype == spec.dtype
    assert rows.take(np.arange(20)).tobytes() == generate(spec).tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_file_is_the_one_that_numpy_writes(dtype, folder):
    spec = parse_family(f"{SMALL},dtype={dtype}")
    synth(spec.label, "-o", "acts.npy")
    expected = io.BytesIO()
    np.save(expected, generate(spec))
    assert (folder / "acts.npy").read_bytes() == expected.getvalue()


def test_a_file_of_many_blocks(folder):
    spec = parse_family("normal:rows=3000,features=200")
    assert synth(spec.label, "-o", "acts.npy").exit_code == 0
    np.testing.assert_array_equal(np.load(folder / "acts.npy"), generate(spec))


@pytest.mark.parametrize("dtype", DTYPES)
def test_scan_reads_it(dtype):
    assert synth(f"{SMALL},dtype={dtype}", "-o", "acts.npy").exit_code == 0
    done = CliRunner().invoke(app, ["scan", "acts.npy", "--format", "float32", "--output-format", "json"])
    assert done.exit_code == 0
    (site,) = json.loads(done.stdout)["sites"]
    assert (site["dtype"], site["shape"], site["rows"]) == (dtype, [20, 32], 20)


def test_as_users_run_it():
    done = run("synth", "bump:dtype=bfloat16", "-o", "acts.npy")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "wrote acts.npy: bump:offset=5,height=1e-3,rows=4,features=8,dtype=bfloat16, shape (4, 8), bfloat16\n"
    )
    done = run("scan", "acts.npy")
    assert (done.returncode, done.stderr) == (0, "")
    assert "4 rows x 8 features, bfloat16" in done.stdout


def test_a_file_is_not_overwritten_without_force(folder):
    path = folder / "acts.npy"
    path.write_bytes(b"precious")
    refused(synth(SMALL, "-o", "acts.npy"), "acts.npy: exists; --force overwrites it")
    assert path.read_bytes() == b"precious"
    assert synth(SMALL, "-o", "acts.npy", "--force").exit_code == 0
    assert np.load(path).shape == (20, 32)
    assert os.listdir(folder) == ["acts.npy"]


def test_a_file_that_appears_meanwhile_is_not_overwritten(folder, monkeypatch):
    x = generate(parse_family(SMALL))

    def slow(spec):
        yield x
        (folder / "acts.npy").write_bytes(b"precious")

    monkeypatch.setattr(families, "blocks", slow)
    refused(synth(SMALL, "-o", "acts.npy"), "acts.npy: exists")
    assert os.listdir(folder) == ["acts.npy"]
    assert (folder / "acts.npy").read_bytes() == b"precious"


@pytest.mark.parametrize(
    ("failure", "code", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 2, "acts.npy: cannot be written (no space left on device)"),
        (KeyboardInterrupt(), 130, ""),
        (MemoryError(), 1, ""),  # 3 in the program, whose main sees the exception
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("force", [False, True])
def test_nothing_half_written_is_left(failure, code, said, force, folder, monkeypatch):
    x = generate(parse_family(SMALL))

    def broken(spec):
        yield x
        raise failure

    if force:
        (folder / "acts.npy").write_bytes(b"old")
    monkeypatch.setattr(families, "blocks", broken)
    done = synth(SMALL, "-o", "acts.npy", *["--force"] * force)
    assert done.exit_code == code
    assert said in done.stderr
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [("acts.npy", b"old")] * force


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((SMALL,), "-o: no file to write; say where: lnaudit synth near-constant -o near-constant.npy"),
        (("near", "-o", "acts.npy"), "near: unknown family 'near'"),
        (("bump:rows=0", "-o", "acts.npy"), "bump:rows=0: rows: '0' is not"),
        ((SMALL, "-o", "acts"), "acts: does not end in .npy"),
        ((SMALL, "-o", "-"), "-: does not end in .npy"),
        ((SMALL, "-o", "missing/acts.npy"), "missing/acts.npy: its folder does not exist; make the folder first"),
        ((SMALL, "-o", f"{'x' * 300}.npy"), ".npy: cannot be written (file name too long)"),
        ((SMALL, "-o", "folder.npy", "--force"), "folder.npy: is a directory"),
        ((SMALL, "-o", "file.npy/acts.npy"), "file.npy/acts.npy: cannot be written (not a directory)"),
        ((SMALL, "-o", "\x1b[1m/a.npy"), r"\x1b[1m/a.npy: its folder does not exist"),
    ],
)
def test_a_refusal_is_one_line_and_exit_2(args, said, folder):
    (folder / "folder.npy").mkdir()
    (folder / "file.npy").touch()
    refused(synth(*args), said)
    assert sorted(os.listdir(folder)) == ["file.npy", "folder.npy"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_what_is_no_regular_file_is_left_alone(folder):
    os.mkfifo(folder / "pipe.npy")
    refused(synth(SMALL, "-o", "pipe.npy", "--force"), "pipe.npy: is not a regular file")


def test_a_link_is_followed(folder):
    (folder / "far").mkdir()
    (folder / "acts.npy").symlink_to(folder / "far" / "real.npy")
    assert synth(SMALL, "-o", "acts.npy").exit_code == 0
    assert (folder / "acts.npy").is_symlink()
    refused(synth(SMALL, "-o", "acts.npy"), "acts.npy: exists")
    assert os.listdir(folder / "far") == ["real.npy"]


def test_the_help_lists_every_family_with_its_parameters():
    done = synth("--help")
    assert done.exit_code == 0
    for name, family in FAMILIES.items():
        assert f"\n  {parse_family(name).label}\n      {family.description}\n" in done.stdout
    assert all(dtype in done.stdout for dtype in DTYPES)
