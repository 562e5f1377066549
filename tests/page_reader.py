"""Reads a page for the tests: all of it, or what it says of one site."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "img", "hr"}


class Reader(HTMLParser):
    """Reads a page and refuses elements that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), "an attribute twice"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        (self.scripts if self.open and self.open[-1] in ("script", "style") else self.texts).append(data)

    @property
    def ids(self) -> list[str]:
        return [attributes["id"] or "" for _, attributes in self.elements if "id" in attributes]

    @property
    def links(self) -> list[str]:
        return [attributes["href"] or "" for tag, attributes in self.elements if tag == "a"]

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())


def cells(text, site):
    """The cells of a site in the overview, the title first."""
    overview = text.partition('<section id="overview"')[2].partition("</section>")[0]
    line = next(line for line in overview.split("<tr")[1:] if site in line).partition("</tr>")[0]
    found = (part for _, part in re.findall(r"<(t[dh])[^>]*>(.*?)</\1>", line))
    return [" ".join(html.unescape(re.sub("<[^>]+>", " ", part)).split()) for part in found]


def section(text, site):
    found = next(part for part in text.split('<section class="site"')[1:] if site in part.partition("</h3>")[0])
    return found.partition("</section>")[0]


def words_of(text, site):
    return section(text, site).partition('data-words="')[2].partition('"')[0]
