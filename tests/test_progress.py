"""The progress bar: on a terminal only, after a second, over all sites, with rate and remaining time."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest

from lnaudit.cli import progress
from lnaudit.readers.discover import find_sites
from lnaudit.readers.sites import SiteOptions
from lnaudit.site import ArrayRows, NotAudited, Site


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds, to be put forward."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Put a terminal in the place of stderr; within a test, for its capture begins after the fixtures."""
    stderr = Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("TTY_COMPATIBLE", raising=False)
    return stderr


def site(name: str, rows: int) -> Site:
    return Site(name=name, source=name, rows=ArrayRows(np.zeros((rows, 1000), np.float32)))


def last_line(terminal: Terminal) -> str:
    return terminal.getvalue().replace("\r", "\n").splitlines()[-1]


def test_rate_and_remaining_time_are_those_of_all_sites(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = at_a_terminal(monkeypatch)
    # 4, 8 and 28 MB, and one that cannot be opened
    sizes = [4_000_128, 8_000_128, 0, 28_000_128]
    sites = [site("a", 1000), site("[red]b", 2000), NotAudited(source="c", reason="broken"), site("d", 7000)]
    with progress.progress_bar(sizes) as (bar, advance):
        followed = bar.follow(sites)
        next(followed)
        clock[0] += 0.5
        advance(1_000_000)
        assert terminal.getvalue() == ""
        next(followed)
        clock[0] += 1.5
        advance(1_000_000)
        # 8 of 40 MB in 2 s: 32 MB more take 8 s
        assert bar._bar is not None
        bar._bar.refresh()
        line = last_line(terminal)
        for part in ("[red]b (2 of 4)", "8.0/40.0 MB", "4 MB/s", "0:08 left"):
            assert part in line, (part, line)
        next(followed)
        next(followed)
        clock[0] += 1.0
        advance(7_000_000)
        bar._bar.refresh()
        assert "40.0/40.0 MB" in last_line(terminal)
        assert "0:00 left" in last_line(terminal)
        assert list(followed) == []


def test_what_comes_from_a_pipe_is_counted_when_it_is_there(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = at_a_terminal(monkeypatch)
    with progress.progress_bar([0]) as (bar, advance):
        followed = bar.follow([site("pipe", 1000)])
        next(followed)
        clock[0] += 2.0
        advance(500_000)
        assert bar._bar is not None
        bar._bar.refresh()
        assert "2.0/4.0 MB" in last_line(terminal)
        assert "of 1" not in last_line(terminal)


def test_nothing_is_shown_where_nobody_looks(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    with progress.progress_bar([4_000_000]) as (bar, advance):
        for _ in bar.follow([site("a", 1000)]):
            clock[0] += 60.0
            advance(1_000_000)
    assert log.getvalue() == ""


def test_sizes_are_those_of_the_files_in_their_order(tmp_path: Path) -> None:
    for name, rows in (("a", 1), ("b", 20)):
        np.save(tmp_path / f"{name}.npy", np.zeros((rows, 8), np.float32))
    found = find_sites([str(tmp_path / "b.npy"), "-", str(tmp_path / "nothing.npy"), str(tmp_path)], SiteOptions())
    assert found.sizes() == [128 + 640, 0, 0, 128 + 32]


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.4, "0:00"), (59.6, "1:00"), (125.0, "2:05"), (3599.7, "1:00:00"), (90061.0, "25:01:01")]
)
def test_time_is_a_clock(seconds: float, shown: str) -> None:
    assert progress._clock(seconds) == shown
