"""From a picture to a file: SVG as text, PNG as bytes; the same bytes every time."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .library import LOCK, load_figure
from .picture import Picture
from .style import RC, TITLE
from .svg import clean
from .text import fitting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TITLE_HEIGHT = 0.36  # inches
_LONGEST_TITLE_PER_INCH = 10  # characters of usual width
_PAPER = "#ffffff"  # of a PNG, which cannot ask what is around it; on it ink is black


def to_svg(picture: Picture, *, inline: bool = False) -> str:
    """Draw a picture as SVG with text as text.

    Parameters
    ----------
    picture : Picture
        What to draw.
    inline : bool
        A piece of an HTML page, without title: no prolog, ids that do not clash, ink in the colour of the page's text.
        Otherwise a file, which reads on white and on dark.

    Raises
    ------
    LnauditError
        If matplotlib is not installed.
    """
    with _drawn(picture, titled=not inline) as figure:
        stream = io.StringIO()
        figure.savefig(stream, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return clean(stream.getvalue(), picture, inline=inline)


def to_png(picture: Picture, *, dpi: float = 150) -> bytes:
    """Draw a picture with its title as PNG on white, with nothing in it that changes from day to day.

    Raises
    ------
    LnauditError
        If matplotlib is not installed.
    """
    with _drawn(picture, titled=True) as figure:
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=dpi, metadata={"Software": None}, facecolor=_PAPER)
    return stream.getvalue()


@contextmanager
def _drawn(picture: Picture, *, titled: bool) -> Iterator[Figure]:
    """Draw in our style, whatever that of the program around us, and leave that as it was."""
    make = load_figure()
    from matplotlib import style

    with LOCK, style.context(["default", RC]), warnings.catch_warnings():
        # the font of the PNG lacks it; in SVG the reader's own font is used
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        width, height = picture.size
        if not titled:
            figure = make(figsize=(width, height))
            picture.draw(figure)
        else:
            figure = make(figsize=(width, height + _TITLE_HEIGHT))
            heading, body = figure.subfigures(2, 1, squeeze=False, height_ratios=[_TITLE_HEIGHT, height])[:, 0]
            title = fitting(picture.title, int(_LONGEST_TITLE_PER_INCH * width))
            heading.text(0.12 / width, 0.35, title, fontsize=TITLE, fontweight="bold", va="center")
            picture.draw(body)
        yield figure
