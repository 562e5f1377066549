"""Values of options: comma lists, numbers, axes; each refusal is one line."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from decimal import Decimal

from ..errors import LnauditError
from ..wording import SAME

MOST_EPSILONS = 1024
DEFAULT_EPSILONS = "0,1e-12..1e-2"


def split_list(values: Sequence[str]) -> list[str]:
    """Split repeated comma lists; a part with = but no : belongs to the item before it (axes of a kernel)."""
    items: list[str] = []
    for value in values:
        start = len(items)
        for part in value.split(","):
            if "=" in part and ":" not in part and len(items) > start:
                items[-1] += f",{part.strip()}"
            elif part.strip():
                items.append(part.strip())
    return list(dict.fromkeys(items))


def number(text: str, option: str, *, above: bool = False) -> float:
    """Return a finite number >= 0, or > 0 with `above`."""
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0 or (above and value == 0):
        needed = "> 0" if above else ">= 0"
        raise LnauditError(f"{text!r} is not one number {needed}", f"as in {'0.02' if above else '1e-5'}", option)
    return value


def epsilons(text: str | None, points: str | None = None) -> tuple[tuple[float, ...], bool]:
    """Return the epsilons of a list such as ``0,1e-12..1e-2``, ascending, and whether that of a site is wanted too.

    It is where no list is given. A range includes both ends and one point a decade, or as many points as are asked
    for, in equal ratios. Of numbers within 1e-6 of each other the first counts.
    """
    default = text is None or text == "default"
    wanted = None if points is None else whole(points, MOST_EPSILONS, "--points", "as in 64", least=2)
    found: list[float] = []
    ranges = 0
    for part in filter(None, map(str.strip, (DEFAULT_EPSILONS if default else str(text)).split(","))):
        low, dots, high = part.partition("..")
        if high.startswith("."):
            raise LnauditError(f"{part!r} is not a range", "two dots, as in 1e-12..1e-2", "--eps")
        ends = [number(end, "--eps", above=bool(dots)) for end in ((low, high) if dots else (low,))]
        if dots:
            ranges += 1
            if not ends[0] < ends[1]:
                raise LnauditError(f"{part!r} is not a range", "the smaller end first, as in 1e-12..1e-2", "--eps")
            ends = _between(ends[0], ends[1], wanted)
        found += [end for end in ends if not any(math.isclose(end, known, rel_tol=SAME) for known in found)]
        if len(found) > MOST_EPSILONS:
            raise LnauditError(f"more than {MOST_EPSILONS} epsilons", "ask for fewer", "--eps")
    if not found:
        raise LnauditError("names no epsilon", "as in 0,1e-12..1e-2", "--eps")
    if wanted is not None and not ranges:
        raise LnauditError("there is no range to put points into", "as in --eps 1e-12..1e-2", "--points")
    return tuple(sorted(found)), default


def whole(text: str, most: int, option: str, example: str, least: int = 1) -> int:
    """Return an integer from least to most."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and least <= int(text) <= most):
        raise LnauditError(f"{text!r} is not a number from {least} to {most}", example, option)
    return int(text)


def _between(low: float, high: float, points: int | None) -> list[float]:
    """Return both ends and what lies between them: low times powers of ten, or points in equal ratios."""
    if points is None:
        steps = (Decimal(repr(low)).scaleb(k) for k in range(1, 700))
        return [low, *map(float, itertools.takewhile(lambda step: step < Decimal(repr(high)), steps)), high]
    first, last = math.log10(low), math.log10(high)
    inner = [10.0 ** (first + (last - first) * i / (points - 1)) for i in range(1, points - 1)]
    short = [float(f"{value:.3g}") for value in inner]
    # three digits read well; a narrow range needs them all
    apart = [low, *short, high] == sorted({low, *short, high})
    return [low, *(short if apart else inner), high]


def axes(text: str) -> int | tuple[int, ...]:
    """Return an axis or several: -1, or 1,2."""
    try:
        values = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise LnauditError(f"{text!r} is not a list of integers", "as in -1 or 1,2", "--axis") from None
    return values[0] if len(values) == 1 else values


def choice(text: str, known: Sequence[str], option: str) -> str:
    """Return one of the known words."""
    if text not in known:
        raise LnauditError(f"unknown value {text!r}", f"choose from {', '.join(known)}", option)
    return text
