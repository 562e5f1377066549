"""A picture: what is drawn, what it says in words, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import LnauditError

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

    Canvas = Figure | SubFigure

_REPORT_EXTRA = ("jinja2", "matplotlib", "uniplot")


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """The data behind a picture as text: a heading a column, a row of as many cells for everything drawn."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """A picture that can be drawn.

    Attributes
    ----------
    name : str
        What kind of picture it is: window, depth, curves, response or map.
    title : str
        One line above it; names of sites in it are safe to print and may be long.
    description : str
        What is to be seen, in one or two sentences with numbers, for those who cannot see it.
    table : Table
        The numbers that are drawn.
    draw : callable
        Draws on an empty matplotlib figure, or a part of one, of that size.
    size : tuple of float
        Width and height in inches.
    """

    name: str
    title: str
    description: str
    table: Table
    draw: Callable[[Canvas], None]
    size: tuple[float, float]


@contextmanager
def report_extra(source: str = "") -> Iterator[None]:
    """Import libraries of the extra `report` inside this: a missing one is an error of one line that says so.

    Raises
    ------
    LnauditError
        If one of them is not installed; `source` is the option that needs it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if missing not in _REPORT_EXTRA:
            raise
        what = f"{missing} is not installed, and pictures need the extra report"
        raise LnauditError(what, "pip install 'lnaudit[report]'", source) from None
