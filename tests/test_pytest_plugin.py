"""The pytest plugin, as a user's test run sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

# runs in this process import these once
from lnaudit import api, gathering, testing  # noqa: F401
from lnaudit.report import Report

pytest_plugins = ["pytester"]
INSTALLED = any(entry.value == "lnaudit.pytest_plugin" for entry in entry_points(group="pytest11"))
TESTS = """
import numpy as np
import pytest

X = np.random.default_rng(0).standard_normal((8, 64))

def test_stable(lnaudit_check):
    assert lnaudit_check(X, epsilon=1e-6).sites[0].name == "test_stable"

@pytest.mark.parametrize("scale", [1, 500])
def test_scaled(lnaudit_check, scale):
    lnaudit_check(X * scale)

def test_two(lnaudit_check):
    lnaudit_check(X)
    lnaudit_check(X, format="bfloat16")
    lnaudit_check(X, name="block.ln1")
"""
NAMES = [
    "test_scaled[1]",
    "test_scaled[500]",
    "test_stable",
    "test_a.py::test_two",
    "test_a.py::test_two (2)",
    "block.ln1",
]


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with tests; what this run was told does not count there."""
    for name in [name for name in os.environ if name.startswith(("PYTEST_", "COV_"))]:
        monkeypatch.delenv(name)
    pytester.makepyfile(test_a=TESTS)
    return pytester


def run(project: pytest.Pytester, *words: str, process: bool = False) -> pytest.RunResult:
    """Run its tests with warnings as errors; the plugin comes by its entry point, or by name where there is none."""
    named = () if INSTALLED else ("-p", "lnaudit.pytest_plugin")
    start = project.runpytest_subprocess if process else project.runpytest_inprocess
    return start("-W", "error", "-p", "no:cacheprovider", *named, *words)


def document(project: pytest.Pytester, name: str = "run.json") -> dict[str, Any]:
    text = (project.path / name).read_text()
    return dict(json.loads(text, parse_constant=lambda constant: pytest.fail(f"bare {constant}")))


def test_a_check_that_fails_reads_like_an_assertion(project: pytest.Pytester) -> None:
    done = run(project)
    done.assert_outcomes(passed=3, failed=1)
    done.stdout.fnmatch_lines(
        [
            ">*lnaudit_check(X * scale)",
            "E*LayerNorm of test_scaled[[]500[]] is not stable in float16 under native: 8 of 8 rows*",
            "E*Failing rows: 8 / 8 (100 %)",
            "*- lnaudit: 6 checks, 1 failed -*",
        ]
    )
    done.stdout.no_fnmatch_line("*testing.py*")  # frames of lnaudit are hidden
    assert not list(project.path.glob("*.json"))


def test_the_report_of_the_run_is_a_run_of_lnaudit(project: pytest.Pytester) -> None:
    done = run(project, "--lnaudit-report", "run.json")
    done.stdout.fnmatch_lines(["*- lnaudit: 6 checks, 1 failed, report: run.json -*"])
    found = document(project)
    assert (found["schema_version"], found["kind"]) == (1, "scan")
    assert [site["name"] for site in found["sites"]] == NAMES
    assert [site["source"].partition("::")[0] for site in found["sites"]] == ["test_a.py"] * 6
    assert found["summary"] == {"sites": 6, "fail": 1, "warn": 0, "pass": 5}
    assert {f["site"] for f in found["findings"] if f["severity"] == "error"} == {"test_scaled[500]"}
    assert found["config"]["tolerance"] == 0.02
    assert "epsilon" not in found["config"]  # the tests do not agree on it
    assert Report.from_dict(found).to_dict() == found
    assert [p.name for p in project.path.glob(".lnaudit*")] == []


def test_the_report_does_not_depend_on_the_order_or_the_workers(project: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    run(project, "--lnaudit-report", "run.json")
    done = run(project, "--lnaudit-report", "two.json", "-n", "2", process=True)
    done.assert_outcomes(passed=3, failed=1)
    done.stdout.fnmatch_lines(["*- lnaudit: 6 checks, 1 failed, report: two.json -*"])
    assert (project.path / "two.json").read_bytes() == (project.path / "run.json").read_bytes()
    run(
        project,
        "--lnaudit-report",
        "three.json",
        *(f"test_a.py::{n}" for n in ("test_two", "test_scaled", "test_stable")),
    )
    assert (project.path / "three.json").read_bytes() == (project.path / "run.json").read_bytes()


def test_sites_of_several_files_have_names_of_their_own(project: pytest.Pytester) -> None:
    project.makepyfile(test_b=TESTS)
    run(project, "--lnaudit-report", "run.json")
    names = [site["name"] for site in document(project)["sites"]]
    assert len(set(names)) == len(names) == 12
    assert "test_b.py::test_two block.ln1" in names


def test_what_a_fixture_checks_counts_too(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_a="""
        import numpy as np
        import pytest

        @pytest.fixture
        def checked(lnaudit_check):
            lnaudit_check(np.eye(4), name="before")
            yield
            lnaudit_check(np.full((2, 4), np.nan), name="after")

        def test_between(checked):
            pass
        """
    )
    done = run(project, "--lnaudit-report", "run.json")
    done.assert_outcomes(passed=1, errors=1)
    found = document(project)
    assert [site["name"] for site in found["sites"]] == ["before", "after"]
    assert [failure["source"] for failure in found["not_audited"]] == ["test_a.py::test_between"]


def test_bad_arguments_are_errors_and_no_checks(project: pytest.Pytester) -> None:
    project.makepyfile(test_a="def test_bad(lnaudit_check):\n    lnaudit_check([[1, 2]], format='float12')\n")
    done = run(project)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["E*LnauditError: *unknown format 'float12'*"])
    done.stdout.no_fnmatch_line("*lnaudit: * check*")


def test_properties_for_junit(project: pytest.Pytester) -> None:
    run(project, "--junitxml", "junit.xml").assert_outcomes(passed=3, failed=1)
    found = {
        case.get("name"): [(p.get("name"), p.get("value")) for p in case.iter("property")]
        for case in ElementTree.parse(project.path / "junit.xml").iter("testcase")
    }
    assert found["test_scaled[500]"] == [
        ("lnaudit_name", "test_scaled[500]"),
        ("lnaudit_verdict", "fail"),
        ("lnaudit_failing_rows", "8"),
        ("lnaudit_error_max", "1.0"),
    ]
    assert [value for name, value in found["test_two"] if name == "lnaudit_name"] == [
        "test_two",
        "test_two",
        "block.ln1",
    ]


@pytest.mark.parametrize(
    ("path", "said"),
    [("nowhere/run.json", "is in a folder that does not exist"), (".", "is a folder")],
)
def test_a_path_that_cannot_be_written_is_refused_before_the_tests(
    project: pytest.Pytester, path: str, said: str
) -> None:
    done = run(project, "--lnaudit-report", path)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert f"lnaudit: --lnaudit-report {path}: {said}; name a file that can be written" in done.stderr.str()
    assert "Traceback" not in done.stderr.str() + done.stdout.str()


@pytest.mark.parametrize(
    ("failing", "code"), [(False, pytest.ExitCode.USAGE_ERROR), (True, pytest.ExitCode.TESTS_FAILED)]
)
def test_a_folder_that_vanishes_is_no_traceback(project: pytest.Pytester, failing: bool, code: int) -> None:
    (project.path / "there").mkdir()
    project.makepyfile(test_a=f"def test_it():\n    import os\n    os.rmdir('there')\n    assert not {failing}\n")
    done = run(project, "--lnaudit-report", "there/run.json")
    assert done.ret == code
    done.stdout.fnmatch_lines(
        ["ERROR: lnaudit: --lnaudit-report there/run.json: cannot be written (no such file or directory)*"]
    )
    done.stdout.no_fnmatch_line("*INTERNALERROR*")


def test_a_run_without_checks(project: pytest.Pytester) -> None:
    project.makepyfile(test_a="def test_it():\n    pass\n")
    done = run(project)
    done.stdout.no_fnmatch_line("*lnaudit:*")
    done = run(project, "--lnaudit-report", "run.json")
    done.stdout.fnmatch_lines(["*- lnaudit: 0 checks, 0 failed, report: run.json -*"])
    assert document(project)["summary"]["sites"] == 0
    run(project, "--collect-only", "--lnaudit-report", "other.json")
    assert not (project.path / "other.json").exists()


def test_a_test_that_is_run_again_is_counted_once(project: pytest.Pytester) -> None:
    project.makeconftest(
        """
        import pytest
        from _pytest.runner import runtestprotocol

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_protocol(item, nextitem):
            for _ in range(2):
                for report in runtestprotocol(item, nextitem=nextitem, log=False):
                    item.ihook.pytest_runtest_logreport(report=report)
            return True
        """
    )
    run(project, "--lnaudit-report", "run.json")
    assert [site["name"] for site in document(project)["sites"]] == NAMES


def test_without_the_plugin(project: pytest.Pytester) -> None:
    if not INSTALLED:
        pytest.skip("lnaudit is not installed")
    done = run(project, "-p", "no:lnaudit")
    done.assert_outcomes(errors=4)
    done.stdout.fnmatch_lines(["E*fixture 'lnaudit_check' not found"])


def test_pytest_loads_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\n\n\ndef test_it(request):\n"
        "    assert 'lnaudit.pytest_plugin' in sys.modules\n"
        "    heavy = {'numpy', 'ml_dtypes', 'numba', 'rich', 'typer'} & set(sys.modules)\n"
        "    own = {name for name in sys.modules if name.startswith('lnaudit.')}\n"
        "    assert not heavy | own - {'lnaudit.pytest_plugin', 'lnaudit.version'}\n"
    )
    words = ["-p", "lnaudit.pytest_plugin", "-p", "no:cacheprovider", "-q"]
    # other plugins may import what they like
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(Path(__file__).parent.parent)}
    environment.pop("PYTEST_ADDOPTS", None)
    command = [sys.executable, "-m", "pytest", *words]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
