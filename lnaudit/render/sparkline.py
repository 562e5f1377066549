"""A curve in one line of text: a character a point, its height the logarithm of the value."""

from __future__ import annotations

import math
from collections.abc import Sequence

LOWEST, HIGHEST = 1e-8, 1.0
_BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII = "._-~=+*#"
NOT_FINITE = "x"


def sparkline(values: Sequence[float | None], *, ascii: bool) -> str:
    """Draw errors between 1e-8 and 1 on a log scale; what is not finite or not there is an x."""
    return "".join(_character(value, _ASCII if ascii else _BLOCKS) for value in values)


def _character(value: float | None, heights: str) -> str:
    if value is None or not math.isfinite(value):
        return NOT_FINITE
    if value <= LOWEST:
        return heights[0]
    share = math.log(value / LOWEST) / math.log(HIGHEST / LOWEST)
    return heights[min(len(heights) - 1, int(share * len(heights)))]
