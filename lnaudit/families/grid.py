"""Families two of whose parameters take many values: a grid of families, as a map of verdicts needs it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from ..errors import LnauditError
from .specification import FamilySpec, as_number, parse_family
from .table import FAMILIES, shortest

STEPS = (1, 2, 5)  # of each power of ten
MOST_CELLS = 2_500


@dataclass(frozen=True, kw_only=True)
class FamilyGrid:
    """A grid of families.

    Attributes
    ----------
    text : str
        The family without the two parameters, as `parse_family` reads it.
    names : (str, str)
        The two parameters: first the one along a row of the grid, then the one along a column.
    values : (tuple of float, tuple of float)
        What they take, ascending.
    """

    text: str
    names: tuple[str, str]
    values: tuple[tuple[float, ...], tuple[float, ...]]

    def cells(self) -> Iterator[FamilySpec]:
        """Yield the families row by row."""
        name, _, rest = self.text.partition(":")
        for second, first in itertools.product(self.values[1], self.values[0]):
            cell = (f"{self.names[0]}={shortest(first)}", f"{self.names[1]}={shortest(second)}")
            yield parse_family(f"{name}:{','.join(filter(None, (*cell, rest)))}")


def parse_grid(text: str) -> FamilyGrid | None:
    """Read a family with two ranges, as in ``near-constant:offset=1..1e4,spread=1e-3..10``.

    A range holds both ends and 1, 2 and 5 times the powers of ten between them. None if there is no range.

    Raises
    ------
    LnauditError
        If there is one range, or more than two, or one that cannot be read, or there are too many cells.
    """
    name, _, items = (piece.strip() for piece in text.partition(":"))
    family = FAMILIES.get(name)
    if family is None:
        return None
    ranges: dict[str, str] = {}
    others = []
    for item in filter(None, map(str.strip, items.split(","))):
        key, _, value = (piece.strip() for piece in item.partition("="))
        if ".." in value and isinstance(family.defaults.get(key), float):
            ranges[key] = value
        else:
            others.append(item)
    if not ranges:
        return None
    if len(ranges) != 2:
        raise LnauditError(f"{len(ranges)} of its parameters have a range", "two make a map, none a family", text)
    first, second = ((key, _values(key, value, text)) for key, value in ranges.items())
    if len(first[1]) * len(second[1]) > MOST_CELLS:
        what = f"{len(first[1])} times {len(second[1])} values are more than {MOST_CELLS:,}"
        raise LnauditError(what, "ask for narrower ranges", text)
    return FamilyGrid(
        text=f"{name}:{','.join(others)}".rstrip(":"), names=(first[0], second[0]), values=(first[1], second[1])
    )


def _values(key: str, value: str, text: str) -> tuple[float, ...]:
    low, _, high = value.partition("..")
    start, end = as_number(low), as_number(high)
    if not 0 < start < end < float("inf"):
        what = f"{key}={value} is not a range of numbers > 0, the smaller first"
        raise LnauditError(what, f"as in {key}=1e-3..10", text)
    first, last = (Decimal(repr(number)).adjusted() for number in (start, end))
    between = (float(Decimal(step).scaleb(k)) for k in range(first, last + 1) for step in STEPS)
    return (start, *(number for number in between if start < number < end), end)
