"""How names and figures are worded in pictures."""

from __future__ import annotations

import math

from .. import wording
from ..report import SiteFigures
from ..wording import printable

LONGEST_NAME = 44  # characters of a site in a picture; the table has all of it


def shorten(name: str, most: int = LONGEST_NAME) -> str:
    """Return a name that is safe to draw and not longer than that: of a longer one the start and the end."""
    text = printable(name)
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}\N{HORIZONTAL ELLIPSIS}{text[-end:]}"


def site_title(site: SiteFigures) -> str:
    """Name a site, with its norm unless that is layer norm."""
    return printable(site.name) + (f" ({site.norm})" if site.norm != "layer" else "")


def headroom_text(headroom: float | None) -> str:
    """Write what the largest magnitude leaves of the range of the format; "over" if it is far out of it."""
    if headroom is None or math.isnan(headroom):
        return "-"
    return "over" if headroom < -1 else wording.percent(headroom)
