"""Values of options: comma lists, numbers, axes; each refusal is one line."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..errors import LnauditError


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
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0 or (above and value == 0):
        needed = "> 0" if above else ">= 0"
        raise LnauditError(f"{text!r} is not one number {needed}", f"as in {'0.02' if above else '1e-5'}", option)
    return value


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
