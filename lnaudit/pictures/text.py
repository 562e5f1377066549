"""How names and figures are worded in pictures."""

from __future__ import annotations

import math

from .. import wording
from ..report import Recommendation, SiteFigures
from ..wording import SAME

LONGEST_NAME = 44  # characters of a site in a picture; the table has all of it
# the ends of the grid of epsilons that are tried: beyond them nothing is known
LOWEST_TRIED, HIGHEST_TRIED = 1e-14, 0.1


def safe(name: str) -> str:
    """Escape what no picture shows as itself: control characters, line ends, undecodable bytes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in name)


def shorten(name: str, most: int = LONGEST_NAME) -> str:
    """Return a name that is safe to draw and not longer than that: of a longer one the start and the end."""
    text = safe(name)
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}\N{HORIZONTAL ELLIPSIS}{text[-end:]}"


def site_title(site: SiteFigures) -> str:
    """Name a site, with its norm unless that is layer norm."""
    return safe(site.name) + (f" ({site.norm})" if site.norm != "layer" else "")


def opens_below(lower: float) -> bool:
    """Whether a window of epsilons begins where the grid does: it may go on."""
    return lower <= LOWEST_TRIED * (1 + SAME)


def opens_above(upper: float) -> bool:
    """Whether a window of epsilons ends where the grid does: it may go on."""
    return upper >= HIGHEST_TRIED * (1 - SAME)


def window_text(recommendation: Recommendation) -> str:
    """Write the window of safe epsilons: 5e-8..5e-3, with <= or >= at an end of the grid."""
    lower, upper = recommendation.lower, recommendation.upper
    if lower is None or upper is None:
        return "none"
    start = f"{'<=' * opens_below(lower)}{wording.epsilon(lower)}"
    end = f"{'>=' * opens_above(upper)}{wording.epsilon(upper)}"
    return "all tried" if opens_below(lower) and opens_above(upper) else f"{start}..{end}"


def use_text(recommendation: Recommendation) -> str:
    """Write which epsilon to use: keep, a number or none; a question mark if it was not verified."""
    if recommendation.epsilon is None:
        return "none"
    text = "keep" if recommendation.reason == "keeps" else wording.epsilon(recommendation.epsilon)
    return text if recommendation.verified else f"{text}?"


def headroom_text(headroom: float | None) -> str:
    """Write what the largest magnitude leaves of the range of the format; "over" if it is far out of it."""
    if headroom is None or math.isnan(headroom):
        return "-"
    return "over" if headroom < -1 else wording.percent(headroom)


def joined(parts: list[str]) -> str:
    """Join words as prose does: a, b and c."""
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)
