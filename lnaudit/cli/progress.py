"""A progress bar on stderr, after a second, on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from ..site import Site
from ..summarize import Progress

T = TypeVar("T")
PATIENCE = 1.0  # seconds


class Bar:
    """Counts elements of the current site and shows a bar once the run has taken a second."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._shown = sys.stderr.isatty()
        self._bar: object | None = None
        self._name, self._total, self._done = "", 0, 0

    def follow(self, sites: Iterable[T]) -> Iterator[T]:
        """Pass sites on and note which one is being audited."""
        for site in sites:
            if isinstance(site, Site):
                self._name, self._total, self._done = site.name, site.rows.rows * site.rows.features, 0
            yield site

    def advance(self, elements: int) -> None:
        """Take note of elements that are done."""
        self._done += elements
        if not self._shown or time.monotonic() - self._started < PATIENCE:
            return
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import Progress as RichProgress

        if not isinstance(self._bar, RichProgress):
            self._bar = RichProgress(console=Console(stderr=True), transient=True)
            self._bar.start()
            self._bar.add_task("")
        self._bar.update(self._bar.task_ids[0], description=escape(self._name), total=self._total, completed=self._done)

    def close(self) -> None:
        """Take the bar off the screen."""
        from rich.progress import Progress as RichProgress

        if isinstance(self._bar, RichProgress):
            self._bar.stop()


@contextmanager
def progress_bar() -> Iterator[tuple[Bar, Progress]]:
    """Yield a bar and the callback that moves it."""
    bar = Bar()
    try:
        yield bar, bar.advance
    finally:
        bar.close()
