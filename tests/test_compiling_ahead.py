"""What compiles in two processes: each kernel in one of them, found by both, and nothing mistaken for another."""

from __future__ import annotations

import json
import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from lnaudit import compiling_ahead as ahead
from lnaudit.engine.rows import Plan
from lnaudit.formats import FORMATS
from lnaudit.kernels import KERNELS
from lnaudit.pipeline import Settings
from lnaudit.site import ArrayRows, Site

pytest.importorskip("numba", reason="numba is not installed")

FLOAT32 = np.dtype(np.float32)


def plan(*results: tuple[str, str], **words: Any) -> Plan:
    at = tuple((FORMATS[fmt], KERNELS[kernel].at(FORMATS[fmt], False, 32)) for fmt, kernel in results)
    return Plan(results=at, norm="layer", features=32, model_epsilon=1e-5, epsilon=1e-5, **words)


def default_plan() -> Plan:
    return Settings().plan(Site(name="a", source="a", rows=ArrayRows(np.zeros((2, 32), np.float32))))


def test_every_kernel_is_compiled_once_and_those_that_cast_alike_by_one_process() -> None:
    asked = default_plan()
    here, there = ahead._halves(asked)
    assert sorted(map(asked.results.index, (*here, *there))) == list(range(len(asked.results)))
    casts = [{kernel.stages(fmt).T for fmt, kernel in half} for half in (here, there)]
    assert casts[0]
    assert casts[1]
    assert not casts[0] & casts[1]


def test_long_rows_are_not_run_to_compile() -> None:
    row, short = ahead._short(replace(default_plan(), features=1 << 30), "float32")
    assert row.shape == (1, short.features)
    assert short.results == default_plan().results


def test_what_the_compiled_engine_does_not_run_is_nobodys() -> None:
    assert ahead._halves(plan(("float16", "torch-cpu"), ("bfloat16", "native"))) == (
        (),
        plan(("bfloat16", "native")).results,
    )


@pytest.fixture
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LNAUDIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(ahead, "_first", threading.Lock())
    return tmp_path / "cache"


def test_the_other_process_leaves_its_kernels_where_they_are_found(cold: Path) -> None:
    words = {"norm": "layer", "features": 32, "model_epsilon": 1e-5, "epsilon": 1e-5, "epsilons": [0.0], "points": []}
    process = ahead._started(json.dumps({"dtype": "float32", "plan": words, "results": [("float32", "native")]}))
    assert process is not None
    with process:
        assert process.wait(timeout=100) == 0
    assert len(list(cold.rglob("*emulate*.nbc"))) == 1
    assert not list(cold.rglob("*reference*.nbc"))  # the first process has it


@pytest.mark.exhaustive
def test_two_processes_compile_what_one_does(cold: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, found = default_plan(), []
    monkeypatch.setenv("LNAUDIT_CACHE_DIR", str(tmp_path / "one"))
    alone = "from lnaudit import compiling_ahead as a, pipeline, site; import numpy as np\n"
    alone += "s = site.Site(name='a', source='a', rows=site.ArrayRows(np.zeros((2, 32), np.float32)))\n"
    for call, folder in (("_compile(p, 'float32')", tmp_path / "one"), ("compile_ahead(p, np.dtype('f4'))", cold)):
        monkeypatch.setenv("LNAUDIT_CACHE_DIR", str(folder))
        subprocess.run([ahead.sys.executable, "-c", f"{alone}p = pipeline.Settings().plan(s)\na.{call}"], check=True)
        found.append(sorted(path.name for path in folder.rglob("*emulate*.nbc")))
    assert len(found[0]) == len(asked.results)
    assert found[0] == found[1]


@pytest.mark.parametrize("why", ["one kernel", "weight", "warm", "no folder", "no interpreter", "frozen", "no process"])
def test_one_process_compiles_where_two_cannot(why: str, cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = default_plan()
    if why == "one kernel":
        asked = plan(("float16", "native"))
    elif why == "weight":
        asked = plan(("float16", "native"), ("bfloat16", "native"), weight=np.ones(32))
    elif why == "warm":
        ahead.cache_folder().mkdir(parents=True)
        (ahead.cache_folder() / "some.nbi").touch()
    elif why == "no folder":
        cold.write_text("a file")
    elif why == "no interpreter":
        monkeypatch.setattr(ahead.sys, "executable", "")
    elif why == "frozen":
        monkeypatch.setattr(ahead.sys, "frozen", True, raising=False)
    started = mock.Mock(side_effect=OSError)
    with mock.patch.object(ahead.subprocess, "Popen", started), mock.patch.object(ahead, "_compile") as compiled:
        ahead.compile_ahead(asked, FLOAT32)
    assert started.called == (why == "no process")
    assert not compiled.called


def test_the_other_process_does_not_outlive_this_one(cold: Path) -> None:
    words = {"norm": "layer", "features": 32, "model_epsilon": 1e-5, "epsilon": 1e-5}
    results = [(fmt, "native") for fmt in FORMATS]
    process = ahead._started(json.dumps({"dtype": "float32", "plan": words, "results": results}))
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(timeout=100) == 1
    assert len(list(cold.rglob("*emulate*.nbc"))) < len(results)


def test_a_process_that_ends_at_once_is_no_error(cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead.sys, "executable", "/bin/false")
    with mock.patch.object(ahead, "_compile") as compiled:
        ahead.compile_ahead(replace(default_plan(), epsilon=np.float32(1e-5)), FLOAT32)
        calls = compiled.call_count  # none if its end was seen before anything was said to it
        ahead.compile_ahead(default_plan(), FLOAT32)  # nothing is there yet, but it would be in vain again
    assert compiled.call_count == calls <= 1


def test_what_is_said_to_a_process_that_has_ended_is_no_error(cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead.sys, "executable", "/bin/false")
    assert ahead._started(" " * (1 << 20)) is None  # more than a pipe holds


def test_the_other_process_ends_with_this_one(cold: Path) -> None:
    process = mock.MagicMock()
    process.__exit__.return_value = False
    with (
        mock.patch.object(ahead, "_started", return_value=process),
        mock.patch.object(ahead, "_compile", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        ahead.compile_ahead(default_plan(), FLOAT32)
    process.kill.assert_called_once()


def test_a_process_that_never_ends_is_not_waited_for(cold: Path) -> None:
    process = mock.MagicMock()
    process.wait.side_effect = subprocess.TimeoutExpired("lnaudit", 30)
    with mock.patch.object(ahead, "_started", return_value=process), mock.patch.object(ahead, "_compile"):
        ahead.compile_ahead(default_plan(), FLOAT32)
    process.wait.assert_called_once_with(ahead.PATIENCE)
    process.kill.assert_called_once()


def _twice(x: Any) -> Any:
    return x[0] + x[0]


def test_code_in_the_file_of_another_type_is_compiled_anew(cold: Path) -> None:
    from lnaudit.engine.compiled.compiling import compiled

    small, large = np.array([1.5], np.float32), np.array([2**60 + 1], np.int64)
    first = compiled(_twice)
    assert (first(small), first(large)) == (3, 2**61 + 2)
    one, two = sorted(cold.rglob("*_twice*.nbc"))
    kept = one.read_bytes(), two.read_bytes()
    one.write_bytes(kept[1])
    two.write_bytes(kept[0])
    again = compiled(_twice)
    assert (again(small), again(large)) == (3, 2**61 + 2)
    mended = compiled(_twice)
    assert (mended(small), mended(large)) == (3, 2**61 + 2)
    assert sum(mended.stats.cache_hits.values()) == 2
