"""Matplotlib, imported in one place: what notebooks and configurations set for it does not matter here."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ..errors import LnauditError
from .picture import report_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOCK = threading.RLock()  # matplotlib keeps its style in one place for all threads
_SET = ("MPLBACKEND", "MATPLOTLIBRC", "MPLCONFIGDIR")


def load_figure() -> type[Figure]:
    """Import what draws.

    Raises
    ------
    LnauditError
        If matplotlib is not installed, or does not start: it has no folder to write in, or is misled by a file.
    """
    with LOCK, report_extra():
        try:
            if "matplotlib" not in sys.modules:
                _first_import()
            from matplotlib.figure import Figure
        except (OSError, ValueError) as error:
            raise LnauditError(
                f"matplotlib does not start ({error!s:.200})",
                "give it a folder that can be written (MPLCONFIGDIR or TMPDIR) and no broken file matplotlibrc",
            ) from None
    return Figure


def _first_import() -> None:
    """Import matplotlib with its own defaults, then give the program around us what it set, as far as that is valid.

    Without a folder of its own matplotlib takes a temporary one, which it removes when the process ends.
    """
    with _environment(), _quiet():
        backend = os.environ.pop("MPLBACKEND", "")
        file = os.environ.get("MATPLOTLIBRC", "")
        os.environ["MATPLOTLIBRC"] = os.devnull
        import matplotlib as library
        import matplotlib.figure

        os.environ["MATPLOTLIBRC"] = file
        with suppress(Exception):  # whatever a broken file raises
            theirs = library.rc_params_from_file(library.matplotlib_fname(), use_default_template=False)
            library.rcParams.update(theirs)
        if backend:
            with suppress(ValueError):
                library.rcParams["backend"] = backend


@contextmanager
def _environment() -> Iterator[None]:
    """Leave the environment as it was."""
    kept = {name: os.environ.get(name) for name in _SET}
    try:
        yield
    finally:
        for name, value in kept.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep advice about folders and files from the terminal."""
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
