"""Synthetic families: activations by formula, for sweeps without a dump and for files of known content."""

from __future__ import annotations

from .arrays import blocks, generate, site_of
from .grid import FamilyGrid, parse_grid
from .specification import DTYPES, MAX_ELEMENTS, FamilySpec, parse_family
from .table import FAMILIES, Family

__all__ = [
    "DTYPES",
    "FAMILIES",
    "MAX_ELEMENTS",
    "Family",
    "FamilyGrid",
    "FamilySpec",
    "blocks",
    "generate",
    "parse_family",
    "parse_grid",
    "site_of",
]
