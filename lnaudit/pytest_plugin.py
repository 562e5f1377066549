"""The pytest plugin: the fixture `lnaudit_check`, and `--lnaudit-report` for one report of all checks of a run.

It is loaded by every run of pytest in an environment that has lnaudit, so nothing else of lnaudit is imported before a
test asks for the fixture. What the checks of a test report travels with the reports of its phases, which pytest-xdist
sends from its workers to the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .report import Report

OPTION = "--lnaudit-report"
_CHECKS = "lnaudit_checks"  # attribute of the report of a phase of a test
_done = pytest.StashKey[list[dict[str, Any]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("lnaudit").addoption(
        OPTION, metavar="PATH", help="Write what all lnaudit_check of this run report as one JSON document."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register what gathers the reports, but on workers of pytest-xdist, which send them."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Gathering(config), "lnaudit_gathering")


@pytest.fixture
def lnaudit_check(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """Return a function that asserts that a norm is stable: `lnaudit.testing.assert_layernorm_stable`.

    The name is that of the test where none is given. The audit becomes part of the report of the run, and its worst
    verdict, failing rows and greatest error become properties of the test, as in JUnit XML.
    """
    node = request.node

    def check(x: Any, **arguments: Any) -> Report:
        __tracebackhide__ = True
        from .testing import UnstableNormError, assert_layernorm_stable

        try:
            report = assert_layernorm_stable(x, **{"name": node.name, **arguments})
        except UnstableNormError as error:
            _record(node, error.report, failed=True)
            raise
        _record(node, report, failed=False)
        return report

    return check


def _record(node: pytest.Item, report: Report, *, failed: bool) -> None:
    from .plain import to_plain

    site = report.sites[0]
    errors = [result.error["max"] for result in site.results if result.error["max"] is not None]
    # not by record_property, which warns in every run that writes JUnit XML of the default family
    node.user_properties += [
        ("lnaudit_name", site.name),
        ("lnaudit_verdict", "not audited" if report.not_audited else site.verdict),
        ("lnaudit_failing_rows", max(result.failing_rows for result in site.results)),
        ("lnaudit_error_max", to_plain(max(errors, default=None))),
    ]
    node.stash.setdefault(_done, []).append({"failed": failed, "document": report.to_dict()})


@pytest.hookimpl(hookwrapper=True)  # that of pytest 7 too: it is loaded by whichever there is
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Give what was checked in a phase of a test to its report."""
    outcome = yield
    checks = item.stash.get(_done, [])
    if checks:
        setattr(outcome.get_result(), _CHECKS, checks)
        item.stash[_done] = []


class _Gathering:
    """Gathers the reports of all checks, writes them at the end of the run and says so."""

    def __init__(self, config: pytest.Config) -> None:
        self.checks: dict[str, dict[str, list[dict[str, Any]]]] = {}
        self.said = self.error = ""
        self.asked = config.getoption("lnaudit_report")
        self.path: Path | None = None
        if self.asked and not config.getoption("collectonly"):
            self.path = config.invocation_params.dir / self.asked
            if not self.path.parent.is_dir() or self.path.is_dir():
                what = "is a folder" if self.path.is_dir() else "is in a folder that does not exist"
                raise pytest.UsageError(f"lnaudit: {OPTION} {self.asked}: {what}; name a file that can be written")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a phase checked; that of a test that is run again replaces it."""
        if report.when == "setup":
            self.checks.pop(report.nodeid, None)
        if hasattr(report, _CHECKS):
            self.checks.setdefault(report.nodeid, {})[str(report.when)] = getattr(report, _CHECKS)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report."""
        if self.path is None:
            return
        try:
            self._write(self.path)
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            self.error = f"lnaudit: {OPTION} {self.asked}: cannot be written ({reason}); name another place"
            if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def _write(self, path: Path) -> None:
        from .gathering import gathered
        from .render import render_json
        from .writing import replacing

        text = render_json(gathered({nodeid: self._of(nodeid) for nodeid in self.checks}))
        with replacing(path, "x", encoding="utf-8") as file:
            file.write(text)
        self.said = f", report: {self.asked}"

    def _of(self, nodeid: str) -> list[dict[str, Any]]:
        return [check["document"] for checks in self.checks[nodeid].values() for check in checks]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say in one line how many checks there were and where the report is."""
        failed = [check["failed"] for phases in self.checks.values() for checks in phases.values() for check in checks]
        if self.error:
            terminalreporter.write_line(f"ERROR: {self.error}", red=True)
        if failed or self.path is not None:
            noun = "check" if len(failed) == 1 else "checks"
            terminalreporter.write_sep("-", f"lnaudit: {len(failed)} {noun}, {sum(failed)} failed{self.said}")
