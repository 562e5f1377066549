"""Which engine runs, and the folder of compiled code: missing, read-only or damaged, it is no error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from lnaudit.engine import cache_folder as folder
from lnaudit.engine import choice
from lnaudit.engine.choice import PAYS_COLD, PAYS_WARM, Chooser, check_engine
from lnaudit.engine.rows import Plan
from lnaudit.errors import LnauditError
from lnaudit.formats import FORMATS
from lnaudit.kernels import KERNELS

from .program import run

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")


def plan(*kernels: str) -> Plan:
    results = tuple((FORMATS["float16"], KERNELS[name].at(FORMATS["float16"], False, 64)) for name in kernels)
    return Plan(results=results, norm="layer", features=64, model_epsilon=1e-5, epsilon=1e-5)


def chosen(asked: str, elements: int, *, warm: bool, installed: bool = True, kernels: tuple[str, ...] = ("native",)):
    spec = mock.Mock() if installed else None
    with (
        mock.patch.object(choice, "find_spec", return_value=spec),
        mock.patch.object(choice, "is_warm", return_value=warm),
    ):
        return Chooser().choose(asked, plan(*kernels), elements)


@pytest.mark.parametrize(
    ("elements", "warm", "installed", "engine"),
    [
        (1000, True, True, "numpy"),
        (PAYS_WARM, True, True, "numba"),
        (PAYS_WARM, False, True, "numpy"),
        (PAYS_COLD - 1, False, True, "numpy"),
        (PAYS_COLD, False, True, "numba"),
        (PAYS_COLD, True, False, "numpy"),
    ],
)
def test_auto_compiles_only_where_it_pays(elements: int, warm: bool, installed: bool, engine: str) -> None:
    assert chosen("auto", elements, warm=warm, installed=installed).name == engine


def test_what_is_asked_for_is_run() -> None:
    assert chosen("numba", 1, warm=False).name == "numba"
    assert chosen("numpy", PAYS_COLD, warm=True).name == "numpy"


def test_results_that_are_not_covered_do_not_count_and_are_named() -> None:
    assert chosen("auto", PAYS_COLD, warm=True, kernels=("torch-cpu",)).name == "numpy"
    assert "none of these kernels" in chosen("numba", 1, warm=True, kernels=("torch-cpu",)).reason
    mixed = chosen("numba", 1, warm=True, kernels=("native", "torch-cpu"))
    assert (mixed.name, mixed.reason) == ("numba", "asked for, numpy for float16 torch-cpu")


def test_many_small_sites_are_many_elements() -> None:
    chooser, quarter = Chooser(), PAYS_WARM // 4
    with mock.patch.object(choice, "is_warm", return_value=True), mock.patch.object(choice, "find_spec", mock.Mock()):
        assert [chooser.choose("auto", plan("native"), quarter).name for _ in range(5)] == ["numpy"] * 3 + ["numba"] * 2


def test_engines_that_cannot_run_are_one_line() -> None:
    with pytest.raises(LnauditError, match=r"--engine: unknown engine 'cuda'; choose from auto, numpy, numba"):
        check_engine("cuda")
    with (
        mock.patch.object(choice, "find_spec", return_value=None),
        pytest.raises(LnauditError, match=r"needs numba; pip install 'lnaudit\[fast\]'"),
    ):
        check_engine("numba")


def test_the_folder_follows_the_conventions_of_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("LNAUDIT_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for platform, parent in (
        ("linux", tmp_path / ".cache" / "lnaudit"),
        ("darwin", tmp_path / "Library" / "Caches" / "lnaudit"),
        ("win32", tmp_path / "AppData" / "Local" / "lnaudit"),
    ):
        monkeypatch.setattr(sys, "platform", platform)
        assert folder.cache_folder().parent == parent
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert folder.cache_folder().parent == tmp_path / "xdg" / "lnaudit"
    monkeypatch.setenv("LNAUDIT_CACHE_DIR", str(tmp_path / "own"))
    assert folder.cache_folder().parent == tmp_path / "own"
    assert not folder.is_warm()


def test_another_source_of_the_engine_is_another_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Compiled code holds constants of modules that are not compiled themselves."""
    monkeypatch.setattr(folder, "SOURCES", tmp_path)
    monkeypatch.setattr(folder, "_digest", folder._digest.__wrapped__)
    (tmp_path / "compiled").mkdir()
    found = []
    for name, text in (("a.py", "ROOM = 28"), ("a.py", "ROOM = 29"), ("compiled/b.py", "SPLIT = 1")):
        (tmp_path / name).write_text(text)
        found.append(folder.cache_folder())
    assert len(set(found)) == 3


def scan(path: Path, cache: Path, *words: str) -> tuple[dict[str, object], set[str]]:
    """Scan in a process of its own; return the report and which of numba's and our modules were imported."""
    code = (
        "import sys; sys.argv = ['lnaudit', *sys.argv[1:]]\n"
        "from lnaudit.__main__ import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 0, end.code\n"
        "print(sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)\n"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, "scan", str(path), "--output-format", "json", *words],
        env={**os.environ, "LNAUDIT_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout), set(run.stderr.replace("'", "").strip("[]\n").split(", "))


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "acts.npy"
    np.save(path, np.random.default_rng(3).standard_normal((40, 32)).astype(np.float32))
    return path


def test_a_small_scan_never_imports_the_compiler(small: Path, tmp_path: Path) -> None:
    _, modules = scan(small, tmp_path / "cache")
    assert "numpy" in modules
    assert not modules & {"numba", "llvmlite"}


@needs_numba
@pytest.mark.exhaustive
def test_compiled_code_is_kept_and_a_damaged_or_missing_folder_is_no_error(small: Path, tmp_path: Path) -> None:
    words = ("--engine", "numba", "--format", "float16", "--kernel", "native")
    cache = tmp_path / "cache"
    report, modules = scan(small, cache, *words)
    assert "numba" in modules
    kept = sorted(path for path in cache.rglob("*.nb?") if path.is_file())
    assert kept
    before = {path: path.stat().st_mtime_ns for path in kept}
    assert scan(small, cache, *words)[0] == report
    assert {path: path.stat().st_mtime_ns for path in kept} == before  # read, not written again
    for path in kept:
        path.write_bytes(b"nothing that could be loaded")
    assert scan(small, cache, *words)[0] == report
    not_a_folder = tmp_path / "file"
    not_a_folder.write_text("")
    assert scan(small, not_a_folder / "below", *words)[0] == report
    assert scan(small, cache, *words[2:])[0] == report


@pytest.mark.exhaustive
def test_documents_do_not_depend_on_threads_or_engine(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    path = str(tmp_path / "acts.npy")
    x = rng.standard_normal((40_000, 48)).astype(np.float32)
    x[::7] *= 1e4
    x[5, 3] = np.inf
    np.save(path, x)
    for command in (("scan", path), ("sweep", path, "--eps", "0,1e-6,1e-3", "--format", "float16,float32")):
        documents = {
            run(*command, "--output-format", "json", "--engine", engine, "--jobs", jobs).stdout
            for engine, jobs in [("numpy", "1"), ("numpy", "2"), ("numpy", "5"), ("auto", "auto")]
            + ([("numba", "1"), ("numba", "2"), ("numba", "5")] if find_spec("numba") else [])
        }
        assert len(documents) == 1
        assert json.loads(documents.pop())["kind"] == command[0]


@pytest.mark.parametrize("jobs", ["0", "-1", "1.5", "two", "", "100000", "1_0", "²"])
def test_jobs_that_are_no_number_are_one_line(jobs: str, small: Path) -> None:
    done = run("scan", str(small), "--jobs", jobs)
    said = f"lnaudit: --jobs: {jobs!r} is not a number from 1 to 1024; or auto\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_verbose_says_which_engine_and_why(small: Path) -> None:
    done = run("scan", str(small), "--engine", "numpy", "-v")
    assert (done.returncode, done.stderr) == (0, f"lnaudit: {small}: engine numpy (asked for)\n")
    assert run("scan", str(small), "--engine", "numpy").stderr == ""
    done = run("scan", str(small), "--kernel", "torch-cpu", "-v")
    assert done.stderr == f"lnaudit: {small}: engine numpy (the compiled engine has none of these kernels)\n"
    assert (
        run("sweep", "--engine", "numpy", "-v").stderr
        == "lnaudit: near-constant:offset=5,spread=1e-3,rows=64,features=768,seed=0: engine numpy (asked for)\n"
    )
