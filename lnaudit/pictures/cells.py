"""Cells coloured by verdict: each says by a word, a letter or strokes, or by none of these, what its colour says."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .style import SMALL, VERDICTS, Look, axes_at, bare

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

    from .picture import Canvas

_WORD_WIDTH, _LETTER_WIDTH, _LETTER_HEIGHT = 0.42, 0.1, 0.1  # inches that they need
_MOST_LETTERS = 1500  # more of them would make a picture large and slow
_MARGIN, _WORDS = 0.12, 1.72  # inches left and right of a legend, and of its colours
LEGEND_LINE, _CHARACTER = 0.19, 0.064  # inches of a line of it and, at most on average, of a character
DAGGER = "\N{DAGGER}"
ONE_LINE = 1.27  # inches of a cell that has word and figures beside each other; else they are in two lines
_INSET = 0.014  # inches of air around a cell


@dataclass(frozen=True, slots=True)
class Grid:
    """Verdicts row by row, None where there is no cell; the width and height of a cell in inches.

    texts: what is in a cell after the word. words: without texts, the word where it has room, else the letter.
    marked: column and row of cells that have a dagger beside the word.
    """

    verdicts: Sequence[Sequence[str | None]]
    wide: float
    tall: float
    texts: Sequence[Sequence[str]] | None = None
    words: bool = True
    marked: Collection[tuple[int, int]] = ()

    @property
    def stroked(self) -> bool:
        """Whether there is no room, or are too many cells, for letters."""
        letters = sum(verdict in ("fail", "warn") for row in self.verdicts for verdict in row)
        return self.wide < _LETTER_WIDTH or self.tall < _LETTER_HEIGHT or letters > _MOST_LETTERS

    @property
    def explained(self) -> str:
        """Say how the verdicts can be told apart without colour."""
        absent = "; -: not judged" if any(verdict is None for row in self.verdicts for verdict in row) else ""
        if self.texts:
            return f"then the error of the worst row (1 = normalized scale){absent}"
        if self.stroked:
            return f"crossed: FAIL, one stroke: warn, empty: pass{absent.replace('-', 'no cell')}"
        letters = "" if self.words and self.wide >= _WORD_WIDTH else "F FAIL, w warn, "
        return f"{letters}empty: pass{absent}"

    def places(self, verdict: str | None) -> Iterator[tuple[int, int]]:
        """Give column and row of the cells with a verdict."""
        for y, row in enumerate(self.verdicts):
            yield from ((x, y) for x, found in enumerate(row) if found == verdict)


def draw_cells(axes: Axes, grid: Grid) -> None:
    """Draw cells of one unit each, and in them the word and the text, or as much as there is room for.

    All cells of a verdict are one shape, so that a model of hundreds of sites stays small.
    """
    for verdict, paint in VERDICTS.items():
        places = list(grid.places(verdict))
        if places:
            _shape(axes, _rectangles(places, grid), facecolor=paint.fill, alpha=paint.alpha, linewidth=0, label=verdict)
        if places and grid.stroked and not grid.texts:
            strokes = {"fail": ((0.2, 0.2, 0.8, 0.8), (0.2, 0.8, 0.8, 0.2)), "warn": ((0.2, 0.8, 0.8, 0.2),)}
            _shape(axes, _lines(places, strokes.get(verdict, ())), facecolor="none", edgecolor=paint.text)
        else:
            for x, y in places:
                _write(axes, grid, (x, y), verdict, grid.texts[y][x] if grid.texts else "")
    for x, y in () if grid.stroked else grid.places(None):
        axes.text(x + 0.5, y + 0.5, "-", ha="center", va="center_baseline", fontsize=SMALL)


def _shape(axes: Axes, path: Path, **look: Any) -> None:
    from matplotlib.patches import PathPatch

    axes.add_artist(PathPatch(path, **look))


def _write(axes: Axes, grid: Grid, place: tuple[int, int], verdict: str, text: str) -> None:
    (x, y), paint, dagger = place, VERDICTS[verdict], DAGGER * (place in grid.marked)
    look: Look = {"va": "center_baseline", "color": paint.text, "fontsize": SMALL}
    if text and grid.wide >= ONE_LINE:
        axes.text(x + 0.06 / grid.wide, y + 0.5, paint.word + dagger, fontweight="bold", **look)
        axes.text(x + 1 - 0.06 / grid.wide, y + 0.5, text, ha="right", **look)
        return
    if text:
        above, below = (0.28, 0.72) if axes.yaxis_inverted() else (0.72, 0.28)
        axes.text(x + 0.5, y + above, paint.word + dagger, ha="center", fontweight="bold", **look)
        axes.text(x + 0.5, y + below, text, ha="center", **look)
        return
    word = (paint.word if grid.words and grid.wide >= _WORD_WIDTH else paint.letter) * bool(paint.letter) + dagger
    if word:
        look["fontsize"] = min(SMALL, 72 * 0.8 * grid.tall)
        axes.text(x + 0.5, y + 0.5, word, ha="center", fontweight="bold", **look)


def _rectangles(places: Sequence[tuple[int, int]], grid: Grid) -> Path:
    from matplotlib.path import Path

    left, top = _INSET / grid.wide, _INSET / grid.tall
    corners = [(left, top), (1 - left, top), (1 - left, 1 - top), (left, 1 - top), (left, top)]
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    return Path([(x + dx, y + dy) for x, y in places for dx, dy in corners], codes * len(places))


def _lines(places: Sequence[tuple[int, int]], strokes: tuple[tuple[float, ...], ...]) -> Path:
    from matplotlib.path import Path

    ends = [(x + dx, y + dy) for x, y in places for left, top, right, foot in strokes
            for dx, dy in ((left, top), (right, foot))]  # fmt: skip
    return Path(ends or [(0, 0)], [Path.MOVETO, Path.LINETO] * (len(ends) // 2) or [Path.MOVETO])


def legend_lines(width: float, sentences: Sequence[str]) -> list[str]:
    """Return the lines of a legend beside the colours, in a figure so many inches wide."""
    room = int((width - 2 * _MARGIN - _WORDS) / _CHARACTER)
    return [line for sentence in sentences for line in textwrap.wrap(sentence, room)]


def verdict_legend(figure: Canvas, size: tuple[float, float], bottom: float, lines: Sequence[str]) -> None:
    """Explain the colours in a line, and beside them, from there downwards, what else is in a cell.

    size: of the figure; bottom: where the last line stands above its lower end; in inches.
    """
    from matplotlib.patches import Rectangle

    width, height = size[0] - 2 * _MARGIN, LEGEND_LINE * max(1, len(lines))
    y = height - LEGEND_LINE / 2
    axes = axes_at(figure, size, (_MARGIN, bottom, width, height))
    bare(axes)
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    x = 0.0
    for paint in VERDICTS.values():
        axes.add_patch(Rectangle((x, y - 0.09), 0.46, 0.18, facecolor=paint.fill, alpha=paint.alpha, linewidth=0))
        style: Look = {"fontsize": SMALL, "fontweight": "bold", "color": paint.text}
        axes.text(x + 0.23, y, paint.word, ha="center", va="center_baseline", **style)
        x += 0.56
    for number, line in enumerate(lines):
        axes.text(_WORDS, y - number * LEGEND_LINE, line, va="center_baseline", fontsize=SMALL)
