"""How pictures look: ink, colours that the colour-blind tell apart, markers, dashes, sizes.

Colour never stands alone: a verdict has its word or letter, a curve its dashes and marker, a band its hatching. Every
colour but those of cells with text of their own has a contrast of 3 or more on white and on near-black alike; text
outside of such cells is in ink, which becomes the colour of the text around the picture.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .text import distinct, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .picture import Canvas

INK = "#0a0b0c"  # drawn in this colour, written as currentColor
BLUE, VERMILION, GREEN, PURPLE, BROWN, GREY = "#0072b2", "#d55e00", "#009e73", "#b8649a", "#a87900", "#808080"

TITLE, TEXT, SMALL, TINY = 11.0, 9.0, 8.0, 7.0  # sizes of type in points

_LEGEND_CHARACTER = 0.066  # inches, at most on average

Dash = tuple[float, tuple[float, ...]]
Look = dict[str, Any]  # keywords of matplotlib
_COLORS = {
    "float16": VERMILION,
    "bfloat16": PURPLE,
    "float32": BLUE,
    "float64": GREEN,
    "tfloat32": BROWN,
    "float8_e4m3fn": GREY,
    "float8_e5m2": "#5b7a3a",
}
COLORS = (BLUE, VERMILION, GREEN, PURPLE, BROWN, GREY)
SOLID: Dash = (0, ())
DASHES: tuple[Dash, ...] = (SOLID, (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)), (0, (9, 2, 1, 2, 1, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*", "d", "h")
STROKES = ("x", "1", "2", "3", "4", "|", "_")  # markers without an inside


@dataclass(frozen=True, slots=True)
class VerdictPaint:
    """How a verdict looks: the word and the letter, the colour of its cell and how much of it, the colour of the text.

    Without a letter: nothing is written where there is no room for the word.
    """

    word: str
    letter: str
    fill: str
    alpha: float
    text: str


VERDICTS = {
    "fail": VerdictPaint("FAIL", "F", "#c04a00", 1.0, "#ffffff"),
    "warn": VerdictPaint("warn", "w", "#eba31a", 1.0, "#101010"),
    "pass": VerdictPaint("pass", "", GREEN, 0.22, INK),
}

# on top of matplotlib's own defaults, whatever the configuration of the user
RC: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "lnaudit",
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": TEXT,
    "text.parse_math": False,
    "text.usetex": False,
    **{f"{part}color": INK for part in ("text.", "axes.edge", "axes.label", "axes.title", "xtick.", "ytick.", "grid.")},
    "axes.facecolor": "none",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.linewidth": 0.8,
    "axes.labelsize": TEXT,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "hatch.color": VERMILION,
    "hatch.linewidth": 0.8,
    "figure.facecolor": "none",
    "figure.edgecolor": "none",
    "legend.frameon": False,
    "legend.fontsize": SMALL,
    "savefig.facecolor": "none",
    "savefig.edgecolor": "none",
    "path.simplify": False,
}


@dataclass(frozen=True, slots=True)
class Line:
    """How the curve of an emulation looks."""

    label: str
    color: str
    dash: Dash
    marker: str


def lines_of(emulations: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Line]:
    """Give each format a colour and a marker, and each kernel its dashes.

    More kernels than there are dashes begin again with other markers, so that no two curves are alike.
    """
    keys = list(dict.fromkeys(emulations))
    formats, kernels = (list(dict.fromkeys(names)) for names in zip(*keys, strict=True)) if keys else ([], [])
    styles, labels = {}, emulation_labels(keys)
    for fmt, kernel in keys:
        turn, dash = divmod(kernels.index(kernel), len(DASHES))
        marker = MARKERS[(formats.index(fmt) + turn * len(formats)) % len(MARKERS)]
        styles[fmt, kernel] = Line(labels[fmt, kernel], _COLORS.get(fmt, INK), DASHES[dash], marker)
    return styles


def emulation_label(fmt: str, kernel: str, most: int = 40) -> str:
    """Name an emulation by its format and kernel."""
    return f"{shorten(fmt, 16)} {shorten(kernel, most)}"


def emulation_labels(emulations: Iterable[tuple[str, str]], most: int = 40) -> dict[tuple[str, str], str]:
    """Name the emulations of one picture, no two alike."""
    keys = list(dict.fromkeys(emulations))
    kernels = distinct((kernel for _, kernel in keys), most)
    return {(fmt, kernel): f"{shorten(fmt, 16)} {kernels[kernel]}" for fmt, kernel in keys}


def legend_columns(texts: Iterable[str], most: int, width: float, beside: float) -> int:
    """Return how many columns of a legend so many inches wide have room; beside: inches beside the words of one."""
    longest = max(map(len, texts), default=1)
    return max(1, min(most, int(width / (beside + _LEGEND_CHARACTER * longest))))


def axes_at(figure: Canvas, size: tuple[float, float], box: tuple[float, float, float, float]) -> Axes:
    """Add axes: left, bottom, width and height in inches, of a figure of that size in inches."""
    (width, height), (left, bottom, wide, high) = size, box
    return figure.add_axes((left / width, bottom / height, wide / width, high / height))


def block(axes: Axes, ends: tuple[float, float], rows: tuple[float, float], **look: Any) -> None:
    """Draw a block from the left to the right end, from a row down to another."""
    from matplotlib.patches import Rectangle

    (left, right), (top, foot) = ends, rows
    # not add_patch, which asks for the ends in data coordinates, where those beside the axis may overflow
    axes.add_artist(Rectangle((left, top), right - left, foot - top, **{"linewidth": 0, **look}))


def bare(axes: Axes) -> None:
    """Leave nothing of axes but what is drawn in them."""
    axes.spines[:].set_visible(False)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xticks([], minor=True)
    axes.set_yticks([], minor=True)
