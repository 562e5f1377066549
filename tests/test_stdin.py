"""A dump on standard input: read once, stored without a name, called what the user says."""

from __future__ import annotations

import gc
import io
import json
import os
import subprocess
import sys
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from lnaudit.errors import LnauditError
from lnaudit.readers.discover import find_sites
from lnaudit.readers.sites import SiteOptions
from lnaudit.readers.stdin import spool_stdin

from .test_npy import REFUSED, described, saved, values


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def pipe(monkeypatch):
    """Put bytes, or what a raw stream gives, on standard input."""

    def fill(content):
        raw = io.BytesIO(content) if isinstance(content, bytes) else io.BufferedReader(content)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(raw))

    return fill


def look(*paths, **options):
    return list(find_sites(paths, SiteOptions(**options)).open())


def run(*args, command=(sys.executable, "-W", "error", "-m", "lnaudit", "scan"), **options):
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "FORCE_COLOR", "GITHUB_ACTIONS")}
    environment |= options.pop("env", {})
    return subprocess.run([*command, *args], capture_output=True, env=environment, timeout=120, **options)


# names


@pytest.mark.parametrize(
    ("options", "name", "source"),
    [
        ({}, "stdin", "stdin"),
        ({"stdin_name": "acts.npy"}, "acts", "acts.npy"),
        ({"stdin_name": "./dumps/layer.0.npy"}, "layer.0", "./dumps/layer.0.npy"),
        ({"stdin_name": "gone/anything"}, "anything", "gone/anything"),
    ],
)
def test_a_pipe_is_called_as_the_user_says(here, pipe, options, name, source):
    pipe(saved(values((4, 3))))
    (site,) = look("-", **options)
    assert (site.name, site.source) == (name, source)
    np.testing.assert_array_equal(site.rows.take(np.arange(4)), values((4, 3)))
    pipe(b"")
    (failed,) = look("-", **options)
    assert (failed.source, failed.reason) == (source, "is empty (0 bytes); write the dump again")


@pytest.mark.parametrize("name", ["", "/", "."])
def test_names_that_are_none(name):
    with pytest.raises(LnauditError, match=r"^--stdin-name: .* is no name; as in acts.npy$"):
        SiteOptions(stdin_name=name)


def test_names_are_unique_and_in_the_order_of_the_paths(here, pipe):
    for name in ("d/acts.npy", "z.npy"):
        Path(name).parent.mkdir(exist_ok=True)
        np.save(name, values((4, 3)))
    pipe(saved(values((5, 3))))
    sites = look("z.npy", "-", "d", stdin_name="e/acts.npy")
    assert [(site.name, len(site.rows.take(np.arange(4)))) for site in sites] == [
        ("z", 4),
        ("e/acts", 4),
        ("d/acts", 4),
    ]
    assert sites[1].rows.rows == 5


def test_twice_is_read_once(here, pipe):
    pipe(saved(values((4, 3))))
    (site,) = look("-", "-")
    assert site.rows.rows == 4


def test_files_called_minus_are_files(here, pipe):
    pipe(saved(values((4, 3))))
    np.save("x.npy", values((9, 3)))
    Path("-").mkdir()
    os.replace("x.npy", "-/x.npy")
    assert [site.rows.rows for site in look("./-")] == [9]
    assert [site.rows.rows for site in look("*")] == [9]
    assert [site.rows.rows for site in look("-")] == [4]


def test_no_manifest_governs_a_pipe(here, pipe):
    np.save("x.npy", values((9, 3)))
    Path("manifest.json").write_text(json.dumps({"sites": [{"name": "n", "file": "x.npy", "epsilon": 1e-3}]}))
    pipe(saved(values((4, 3))))
    found = find_sites(["-"], SiteOptions(stdin_name="x.npy"))
    (site,) = found.open()
    assert (site.epsilon_source, site.rows.rows, found.notes) == ("default", 4, ())


# what is read


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_in_a_file_is_refused_in_a_pipe(pipe, case):
    content, reason = REFUSED[case]
    pipe(content)
    (failed,) = look("-")
    assert failed.reason == reason


@pytest.mark.parametrize("order", "CF")
def test_options_and_axes_hold_for_a_pipe(pipe, order):
    x = np.zeros((3, 4), [("id", "i4"), ("h", "u2", (5,))], order)
    x["h"] = values((3, 4, 5), "bfloat16").view(np.uint16)
    for axis in (-1, 0, (0, 2)):
        pipe(saved(x) + b"rest")
        (site,) = look("-", field="h", dtype="bf16", axis=axis)
        assert (site.rows.shape, site.rows.dtype.name, site.rows.unread_bytes) == ((3, 4, 5), "bfloat16", 4)
        axes = sorted(a % 3 for a in np.atleast_1d(axis))
        expected = np.moveaxis(values((3, 4, 5)), axes, range(-len(axes), 0)).reshape(site.rows.rows, -1)
        np.testing.assert_array_equal(site.rows.take(np.arange(site.rows.rows)), expected)


def test_readers_do_not_disturb_each_other(pipe):
    x = values((50, 4))
    pipe(saved(x))
    (site,) = look("-")
    at = 0
    for first, block in site.rows.blocks(12):
        np.testing.assert_array_equal(site.rows.take(np.array([0, 49])), x[[0, 49]])
        np.testing.assert_array_equal(site.rows.along(0).take(np.array([2]))[0], x[:, 2])
        np.testing.assert_array_equal(block, x[first : first + len(block)])
        at += len(block)
    assert at == 50


class Stream(io.RawIOBase):
    """A header and zeros, made as they are read; endless if there is no length."""

    def __init__(self, start, length):
        self.rest, self.length, self.given = start, length, 0

    def readable(self):
        return True

    def readinto(self, buffer):
        n = min(len(buffer), 1 << 16, self.length - self.given)
        buffer[:n] = (self.rest[:n] + bytes(n))[:n]
        self.rest = self.rest[n:]
        self.given += n
        return n


def test_memory_does_not_grow_with_the_pipe(pipe):
    start = described("<f4", (1 << 16, 256))
    stream = Stream(start, len(start) + (1 << 26))
    pipe(stream)
    tracemalloc.start()
    (site,) = look("-")
    assert sum(block.size for _, block in site.rows.blocks(1 << 16)) == 1 << 24
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert stream.given == len(start) + (1 << 26)
    assert peak < 4 << 20


def test_what_is_no_dump_is_not_stored_to_its_end(pipe):
    stream = Stream(b"y\n" * 100, 1 << 60)
    pipe(stream)
    (failed,) = look("-")
    assert failed.reason == "is not a .npy file; save the array with numpy.save"
    assert stream.given < 1 << 24


def test_the_stored_file_is_gone_with_its_last_reader(pipe):
    pipe(saved(values((4, 3))))
    spool = spool_stdin()
    descriptor = spool._descriptor
    with spool.open() as reader:
        assert os.fstat(descriptor).st_nlink == 0
        del spool
        gc.collect()
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
        reader.seek(0)
        assert reader.read() == saved(values((4, 3)))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_no_room_to_store_it(pipe, monkeypatch):
    monkeypatch.setattr("tempfile.TemporaryFile", partial(open, "/dev/full", "wb"))
    pipe(saved(values((4, 3))))
    (failed,) = look("-")
    assert failed.reason == "cannot be stored (no space left on device); name a folder with room for it in TMPDIR"


def test_a_pipe_that_cannot_be_read(pipe):
    class Broken(io.RawIOBase):
        def readable(self):
            return True

        def readinto(self, buffer):
            raise OSError(5, "Input/output error")

    pipe(Broken())
    (failed,) = look("-")
    assert failed.reason == "cannot be read (input/output error)"


# the program


def test_a_terminal_is_one_line():
    pty = pytest.importorskip("pty")
    primary, secondary = pty.openpty()
    try:
        done = run("-", "--stdin-name", "acts.npy", stdin=secondary)
    finally:
        os.close(primary)
        os.close(secondary)
    assert (done.returncode, done.stderr) == (2, b"lnaudit: acts.npy: is a terminal; pipe a .npy file into it\n")


def test_a_closed_standard_input_is_one_line():
    command = ("bash", "-c", f"{sys.executable} -m lnaudit scan - <&-")
    done = run(command=command)
    assert (done.returncode, done.stderr) == (2, b"lnaudit: stdin: is closed; pipe a .npy file into it\n")


def test_a_writer_that_dies_is_one_line(here):
    raw = saved(values((40, 64)))
    done = run("-", input=raw[:5000])
    reason = f"has 5,000 of the {len(raw):,} bytes its header promises; write the dump again"
    assert (done.returncode, done.stderr.decode()) == (2, f"lnaudit: stdin: {reason}\n")


def test_a_pipe_gives_the_report_of_the_file_and_leaves_nothing(here):
    rng = np.random.default_rng(0)
    x = np.zeros(30, [("id", "i4"), ("h", ">f4", (64,))])
    x["h"] = rng.normal(2, 3, (30, 64))
    np.save("acts.npy", x)
    (here / "tmp").mkdir()
    options = ("--field", "h", "--format", "float16", "--output-format", "json")
    pipe = run("-", "--stdin-name", "acts.npy", *options, input=saved(x), env={"TMPDIR": str(here / "tmp")})
    file = run("acts.npy", *options)
    assert (pipe.returncode, pipe.stderr) == (0, b"")
    got, expected = json.loads(pipe.stdout), json.loads(file.stdout)
    for report in (got, expected):
        report["config"].pop("stdin_name", None)
    assert got == expected
    assert got["config"]["field"] == "h"
    assert got["sites"][0]["notes"] == ["field h of a structured array"]
    assert list((here / "tmp").iterdir()) == []


def test_options_are_in_the_report_of_what_cannot_be_audited(here):
    done = run("-", "--field", "h", "--output-format", "json", input=saved(values((3, 4))))
    assert done.returncode == 2
    assert json.loads(done.stdout)["not_audited"] == [
        {"source": "stdin", "reason": "has no fields (elements <f4); leave --field out"}
    ]
