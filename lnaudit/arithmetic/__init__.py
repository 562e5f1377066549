"""Rounding, sums, roots and fused multiply-add exactly as IEEE 754 hardware of a format performs them.

Values of a format live in float32 or float64 arrays (``Format.carrier``). For precision p <= 11, + - * / sqrt of two
values of the format in its carrier, rounded once more, equal the operation rounded once: 2p + 2 <= 24 (Figueroa, "When
is double rounding innocuous?", SIGNUM Newsletter 30(3), 1995).
"""

from __future__ import annotations

from .fma import fma
from .hardware import check_hardware, quiet
from .roots import reciprocal_root_once
from .rounding import flushed_operand, round_in_place, round_number, round_to, rounded
from .sums import FUSED_REDUCTIONS, REDUCTIONS, lane_extremes, lane_sum, serial_fma_sum, serial_sum, tree_sum
from .workspace import Array, Workspace

__all__ = [
    "FUSED_REDUCTIONS",
    "REDUCTIONS",
    "Array",
    "Workspace",
    "check_hardware",
    "flushed_operand",
    "fma",
    "lane_extremes",
    "lane_sum",
    "quiet",
    "reciprocal_root_once",
    "round_in_place",
    "round_number",
    "round_to",
    "rounded",
    "serial_fma_sum",
    "serial_sum",
    "tree_sum",
]
