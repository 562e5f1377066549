"""Runs a kernel row on numbers: one small function a stage, each operation rounded once (design 3).

Layout: features first, shape (d, n). Values stand in the carrier of their format.
"""

from __future__ import annotations

from .apply import core, core_maximum, inverse, normalize, output, shift_of
from .moments import Centered, Ends, center, from_sums, mean_of
from .operate import operate, store

__all__ = [
    "Centered",
    "Ends",
    "center",
    "core",
    "core_maximum",
    "from_sums",
    "inverse",
    "mean_of",
    "normalize",
    "operate",
    "output",
    "shift_of",
    "store",
]
