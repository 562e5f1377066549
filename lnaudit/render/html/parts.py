"""What a page is made of: plain data for the template, which only lays it out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...report import Document
from ..style import Style, unbound
from ..totals import total

LONGEST_LABEL = 100  # characters of a name in a table; the section of the site has all of them
_TAIL = 30
_LONGEST_FIGURE = 32
_SLUG = re.compile(r"[^a-z0-9]+")
_LONGEST_SLUG = 40
_COUNTED = re.compile(r"(\d[\d,]* (?:FAIL|warn|pass)\b)")


class _Unwrapped(Style):
    """A style whose lines are never broken: the browser does that."""

    @property
    def columns(self) -> int:
        """No screen is that wide."""
        return 1 << 30

    @property
    def text_columns(self) -> int:
        """Prose is not broken either."""
        return self.columns


UNWRAPPED = _Unwrapped()


def said(text: str) -> str:
    """Return a text as a page shows it: what is no printable character is escaped."""
    return UNWRAPPED.safe(text)


def label(name: str, most: int = LONGEST_LABEL) -> str:
    """Return a name for a table; of a very long one its beginning and its end."""
    shown = said(name)
    return shown if len(shown) <= most else f"{shown[: most - _TAIL - 3]}...{shown[-_TAIL:]}"


class Anchors:
    """Hands out ids that are unique whatever the names are: a letter, a counter, and something readable."""

    def __init__(self) -> None:
        self._count = 0

    def new(self, name: str) -> str:
        """Return an id that has not been there before."""
        self._count += 1
        slug = _SLUG.sub("-", name.lower()).strip("-")[:_LONGEST_SLUG].strip("-")
        return f"s{self._count}-{slug}" if slug else f"s{self._count}"


@dataclass(frozen=True, slots=True)
class Mark:
    """A word or two set apart from the text around; kind: colours it; aside: it takes weight from a verdict."""

    text: str
    kind: str
    aside: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One cell; scope: of a heading, "col" or "row" and their groups; verdict: colours it; below: smaller lines."""

    text: str
    below: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()
    verdict: str = ""
    href: str = ""
    scope: str = ""
    span: int = 1
    down: int = 1

    @property
    def prose(self) -> bool:
        """Whether its text may be broken into lines: figures may not."""
        return len(self.text) > _LONGEST_FIGURE


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One line of a table; of: the id of the site that it is about."""

    cells: tuple[Cell, ...]
    of: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table; wide: its first column stays in sight while the others scroll."""

    caption: str
    head: tuple[Row, ...]
    rows: tuple[Row, ...]
    wide: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A picture as SVG, what it shows, and its data."""

    title: str
    description: str
    svg: str
    table: Table


@dataclass(frozen=True, kw_only=True, slots=True)
class Help:
    """What cures a finding: for which emulations where not for all, a sentence, remedies with their costs."""

    about: str
    lead: str
    remedies: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """A finding, told once for all emulations that have it.

    rule: the id of its explanation; aside: "known" or "accepted" where it does not count; reason: why it is accepted.
    """

    severity: str
    code: str
    name: str
    rule: str
    about: str
    title: str
    message: str
    aside: str
    measured: tuple[str, ...]
    helps: tuple[Help, ...] = ()
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """The section of one site; words: what a search for it may name; remarks: what stands below its tables."""

    id: str
    name: str
    source: str
    marks: tuple[Mark, ...]
    facts: tuple[str, ...]
    words: str
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    findings: tuple[Told, ...] = ()
    latent: tuple[Told, ...] = ()
    accepted: tuple[Told, ...] = ()
    remarks: tuple[str, ...] = ()
    more: tuple[Table, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Todo:
    """One thing to do: in which emulations, what is wrong and what helps, for these sites (name, id)."""

    about: str
    what: str
    remedy: str
    severity: str
    sites: tuple[tuple[str, str], ...]
    more: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Explained:
    """A rule of the appendix: headings with their paragraphs; a list of commands is an example."""

    id: str
    code: str
    name: str
    severities: str
    summary: str
    sections: tuple[tuple[str, tuple[str, ...], bool], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """Everything that the template shows; total: pieces of the sentence, each with the verdict that colours it."""

    kind: str
    version: str
    total: tuple[tuple[str, str], ...]
    sentences: tuple[str, ...]
    assumed: tuple[tuple[str, str], ...]
    todos: tuple[Todo, ...]
    overview: Table | None
    epsilon: Table | None
    not_audited: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    legend: tuple[str, ...]
    sections: tuple[Section, ...]
    maps: tuple[Figure, ...] = ()
    rules: tuple[Explained, ...] = ()


def headings(*texts: str) -> Row:
    """Return a line of column headings."""
    return Row(cells=tuple(Cell(text=text, scope="col") for text in texts))


def plain(caption: str, texts: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> Table:
    """Return a table of texts, whose first column names the lines."""
    lines = (
        Row(cells=tuple(Cell(text=text, scope="" if i else "row") for i, text in enumerate(cells))) for cells in rows
    )
    return Table(caption=caption, head=(headings(*texts),), rows=tuple(lines))


def total_parts(report: Document) -> tuple[tuple[str, str], ...]:
    """Return the sentence that counts sites and verdicts in pieces, each with the verdict that colours it."""
    pieces = _COUNTED.split(unbound(total(report)))
    return tuple((text, text.split()[-1].lower() if i % 2 else "") for i, text in enumerate(pieces) if text)
