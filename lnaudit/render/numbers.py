"""What is said about epsilons in a table: the window, the one to use."""

from __future__ import annotations

from ..report import Recommendation
from ..wording import SAME, epsilon

# the ends of the grid of epsilons that are tried: beyond them nothing is known
LOWEST_TRIED, HIGHEST_TRIED = 1e-14, 0.1


def epsilon_range(lower: float | None, upper: float | None) -> str:
    """Write the window of safe epsilons; at an end of the grid it may go on."""
    if lower is None or upper is None:
        return "none"
    opens, ends = lower <= LOWEST_TRIED * (1 + SAME), upper >= HIGHEST_TRIED * (1 - SAME)
    if opens and ends:
        return "all tried"
    if lower == upper:
        return f"{'<=' * opens}{'>=' * ends}{epsilon(lower)}"
    return f"{'<=' * opens}{epsilon(lower)}..{'>=' * ends}{epsilon(upper)}"


def advice(recommendation: Recommendation) -> str:
    """Write the epsilon to use: keep, a number or none; a question mark if it was not verified."""
    if recommendation.epsilon is None:
        return "none"
    text = "keep" if recommendation.reason == "keeps" else epsilon(recommendation.epsilon)
    return text if recommendation.verified else f"{text}?"
