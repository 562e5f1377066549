"""Summary: what remains of the rows of a site, in constant size; merging is exact and order-independent."""

from __future__ import annotations

from .codes import DEVIATIONS, OPERATIONS, PRIMARY_CODES
from .fold_result import HALF_RANGE
from .folding import fold
from .model import EpsilonTable, InputSummary, ResultSummary, Summary
from .parts import Extremes, Histogram
from .saved import from_plain, to_plain

__all__ = [
    "DEVIATIONS",
    "HALF_RANGE",
    "OPERATIONS",
    "PRIMARY_CODES",
    "EpsilonTable",
    "Extremes",
    "Histogram",
    "InputSummary",
    "ResultSummary",
    "Summary",
    "fold",
    "from_plain",
    "to_plain",
]
