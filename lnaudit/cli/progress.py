"""A progress bar on stderr, after a second, on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from ..site import Site
from ..summarize import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

T = TypeVar("T")
PATIENCE = 1.0  # seconds
TOLD_EVERY = 0.1  # seconds


class Bar:
    """Counts bytes over all sites and shows how far they are, how fast, and what time is left.

    Parameters
    ----------
    sizes : sequence of int
        Bytes of each site's file; 0 where that is not known before it is opened.
    quiet : bool
        Show nothing.
    color : bool
        Colours are wanted as far as the terminal has them.
    """

    def __init__(self, sizes: Sequence[int], *, quiet: bool = False, color: bool = True) -> None:
        self._sizes = sizes
        self._started = self._told = time.monotonic()
        self._shown = not quiet and sys.stderr.isatty()
        self._color = color
        self._bar: RichProgress | None = None
        self._total, self._before, self._done = sum(sizes), 0, 0
        self._name, self._width = "", 1

    def follow(self, sites: Iterable[T]) -> Iterator[T]:
        """Pass sites on and note which one is being audited."""
        for number, site in enumerate(sites):
            size = self._sizes[number]
            if isinstance(site, Site):
                own = site.rows.rows * site.rows.features * site.rows.dtype.itemsize
                if not size:
                    self._total += own
                self._name, self._width, size = site.name, site.rows.dtype.itemsize, size or own
                if len(self._sizes) > 1:
                    self._name += f" ({number + 1} of {len(self._sizes)})"
            yield site
            # a header, a site that could not be read, a second look: all of the file counts as done
            self._before += size
            self._done = self._before

    def advance(self, elements: int) -> None:
        """Take note of elements that are done."""
        self._done += elements * self._width
        now = time.monotonic()
        if self._shown and now - self._started >= PATIENCE and now - self._told >= TOLD_EVERY:
            self._told = now
            self._show()

    def _show(self) -> None:
        from rich.markup import escape

        if self._bar is None:
            self._bar = _rich_bar(self._color)
            self._bar.add_task("", total=None, rate="", left="")
            self._bar.start()
        done = min(self._done, self._total)
        rate = self._done / (time.monotonic() - self._started)
        self._bar.update(
            self._bar.task_ids[0],
            description=escape(self._name),
            total=self._total,
            completed=done,
            rate=f"{rate / 1e6:.0f} MB/s",
            left=f"{_clock((self._total - done) / rate)} left",
        )

    def close(self) -> None:
        """Take the bar off the screen."""
        if self._bar is not None:
            self._bar.stop()


def _rich_bar(color: bool) -> RichProgress:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn
    from rich.progress import Progress as RichProgress

    return RichProgress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[left]}"),
        console=Console(stderr=True, no_color=None if color else True),
        transient=True,
    )


def _clock(seconds: float) -> str:
    """Return hours, minutes and seconds as a clock shows them."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def progress_bar(sizes: Sequence[int], *, quiet: bool = False, color: bool = True) -> Iterator[tuple[Bar, Progress]]:
    """Yield a bar and the callback that moves it."""
    bar = Bar(sizes, quiet=quiet, color=color)
    try:
        yield bar, bar.advance
    finally:
        bar.close()
