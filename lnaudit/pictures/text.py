"""How names and figures are worded in pictures."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable

from .. import wording
from ..report import SiteFigures
from ..wording import printable

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
LONGEST_NAME = 44  # characters of a site in a picture; the table has all of it


def shorten(name: str, most: int = LONGEST_NAME) -> str:
    """Return a name that is safe to draw and not longer than that: of a longer one the start and the end."""
    text = printable(name)
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}{ELLIPSIS}{text[len(text) - end :]}"


def fitting(name: str, most: int) -> str:
    """Return a name as `shorten` does, but wide letters count for what they take."""
    text = shorten(name, most)
    for length in range(len(text), 0, -1):
        text = shorten(name, length)
        if _width(text) <= most:
            break
    return text


def distinct(names: Iterable[str], most: int) -> dict[str, str]:
    """Shorten names that stand in one picture; unlike names stay unlike: what those have in common goes first."""
    known = list(dict.fromkeys(names))
    texts = {name: shorten(name, most) for name in known}
    for form in (_without_beginning, _differing):
        for same in _alike(texts):
            shorter = {name: shorten(text, most) for name, text in zip(same, form(same), strict=True)}
            texts |= shorter if len(set(shorter.values())) == len(same) or form is _differing else {}
    for same in _alike(texts):
        texts |= {name: f"{shorten(name, most - 4)} #{number}" for number, name in enumerate(same, 1)}
    return texts


def _alike(texts: dict[str, str]) -> list[list[str]]:
    """Group the names that have one text."""
    groups: dict[str, list[str]] = {}
    for name, text in texts.items():
        groups.setdefault(text, []).append(name)
    return [names for names in groups.values() if len(names) > 1]


def _without_beginning(names: list[str]) -> list[str]:
    """Return of each name the first part and all from the first on that is not the same in all names."""
    parts = [_parts(name) for name in names]
    alike = next((i for i, found in enumerate(zip(*parts, strict=False)) if len(set(found)) > 1), 1)
    return [split[0] + ELLIPSIS * (alike > 1) + "".join(split[max(alike, 1) :]) for split in parts]


def _parts(name: str) -> list[str]:
    return re.findall(r"[^:,./]*[:,./]?", name)


def _differing(names: list[str]) -> list[str]:
    """Return of each name the first part, and of the others those that not all names have."""
    parts = [_parts(name) for name in names]
    shared = set.intersection(*({part.rstrip(":,./") for part in split} for split in parts))
    found = []
    for first, *others in parts:
        kept = [first, *(ELLIPSIS if part.rstrip(":,./") in shared else part for part in others if part)]
        found.append(re.sub(f"{ELLIPSIS}+", ELLIPSIS, "".join(kept)).rstrip(f"{ELLIPSIS}:,./"))
    return found


def site_title(site: SiteFigures) -> str:
    """Name a site, with its norm unless that is layer norm."""
    return printable(site.name) + (f" ({site.norm})" if site.norm != "layer" else "")


def _width(text: str) -> float:
    """Return how many letters of usual width a text takes."""
    return sum(1.8 if unicodedata.east_asian_width(c) in "WF" or c in "MWmw@%" else 1.0 for c in text)


def headroom_text(headroom: float | None) -> str:
    """Write what the largest magnitude leaves of the range of the format; "over" if it is far out of it."""
    if headroom is None or math.isnan(headroom):
        return "-"
    return "over" if headroom < -1 else wording.percent(headroom)
