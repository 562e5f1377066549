"""How text is laid out for a screen: the style, safe names, wrapping, colours."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from dataclasses import dataclass

from rich.color import ColorSystem
from rich.style import Style as RichStyle

from ..wording import printable

DEFAULT_WIDTH = 100
NARROWEST = 40
WIDEST_TEXT = 100  # longer lines of prose are hard to read; tables may use the whole screen
_NO_BREAK = "\N{NO-BREAK SPACE}"  # never part of a name: `safe` escapes it
_BOUND = re.compile(r"[^ ]+")

_COLORS = {
    "fail": RichStyle(color="red", bold=True),
    "error": RichStyle(color="red", bold=True),
    "warn": RichStyle(color="yellow"),
    "warning": RichStyle(color="yellow"),
    "pass": RichStyle(color="green"),
    "note": RichStyle(color="cyan"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Style:
    """What a renderer may assume about the place where its text is read; formats for machines ignore it.

    Attributes
    ----------
    width : int
        Columns; less than 40 counts as 40.
    color : bool
        Verdicts and severities in colour.
    ascii : bool
        Escape every character of a name that is not ASCII; without it only those that cannot be printed.
    curves : bool
        Block characters can be shown.
    quiet : bool
        Only what fails or warns, and the totals.
    """

    width: int = DEFAULT_WIDTH
    color: bool = False
    ascii: bool = False
    curves: bool = True
    quiet: bool = False

    @property
    def columns(self) -> int:
        """Columns for tables."""
        return max(NARROWEST, self.width)

    @property
    def text_columns(self) -> int:
        """Columns for prose."""
        return min(self.columns, WIDEST_TEXT)

    def safe(self, text: str) -> str:
        """Escape what a screen would not show as itself: control characters, line ends, undecodable bytes."""
        return printable(text, ascii_only=self.ascii)

    def paint(self, word: str, kind: str = "") -> str:
        """Colour a verdict or a severity; `kind` is the verdict if the word is not."""
        if not self.color:
            return word
        return _COLORS[(kind or word).lower()].render(word, color_system=ColorSystem.STANDARD)

    def wrap(self, text: str, first: str = "", rest: str = "", width: int = 0) -> list[str]:
        """Break prose into lines behind the indents; never in a word, such as a path, in "9.4 %", or where bound."""
        width = width or self.text_columns
        room = width - len(rest)
        lines = textwrap.wrap(
            _BOUND.sub(lambda m: m[0] if len(m[0]) <= room else unbound(m[0]), text.replace(" %", f"{_NO_BREAK}%")),
            width,
            initial_indent=first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return [unbound(line) for line in lines]


DEFAULT_STYLE = Style()


def terminal_width() -> int:
    """Return the columns to use on stdout: COLUMNS, else those of the terminal, else 100."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or DEFAULT_WIDTH
    except (OSError, ValueError, AttributeError):
        # stdout is a file, a pipe, or an object that only looks like a stream
        return DEFAULT_WIDTH


def bound(text: str) -> str:
    """Keep the words of a text on one line when it is wrapped."""
    return text.replace(" ", _NO_BREAK)


def unbound(text: str) -> str:
    """Undo `bound`."""
    return text.replace(_NO_BREAK, " ")
