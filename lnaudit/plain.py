"""Dataclasses as the plain objects of a JSON document, and back; what comes from outside is not trusted."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

SIGNIFICANT_DIGITS = 6
LARGEST_COUNT = 1 << 63
DEEPEST = 32
WORDS = ("nan", "inf", "-inf")  # of the numbers that JSON lacks


def to_plain(value: Any, exact_names: Collection[str] = (), exact: bool = False) -> Any:
    """Return what JSON can hold: NaN and Inf as words, numbers to 6 digits but for those under a name in the list."""
    if is_dataclass(value):
        return {f.name: to_plain(getattr(value, f.name), exact_names, f.name in exact_names) for f in fields(value)}
    if isinstance(value, dict):
        return {str(key): to_plain(item, exact_names, exact or key in exact_names) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(item, exact_names, exact) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
        return float(value) if exact else float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    return value


def from_plain(kind: Any, value: Any, where: str = "") -> Any:
    """Return what `to_plain` made of something of that type: a dataclass, list, dict, union, str, bool, int or float.

    Of an annotated type the annotation is what the value can be.
    Keys that are not known are passed over, for a later version may add some; the words of numbers are numbers again.

    Raises
    ------
    ValueError
        If it is something else; the message names the key.
    """
    if kind is Any:
        return _anything(value)
    if get_origin(kind) is Annotated:
        kind, words = get_args(kind)
        if value not in words:
            raise ValueError(f"{where or 'it'} is none of {', '.join(words)}")
    if get_origin(kind) in (Union, UnionType):
        return from_plain(_arm(get_args(kind), value), value, where)
    if is_dataclass(kind):
        return _record(kind, value, where)
    if get_origin(kind) is list and isinstance(value, list):
        (item,) = get_args(kind)
        return [from_plain(item, entry, f"{where}[{i}]") for i, entry in enumerate(value)]
    if get_origin(kind) is dict and isinstance(value, dict):
        return {key: from_plain(get_args(kind)[1], entry, f"{where}.{key}") for key, entry in value.items()}
    if kind is float and _suits(float, value):
        return float(value)
    if kind in (str, bool, int, NoneType) and _suits(kind, value):
        return value
    raise ValueError(f"{where or 'it'} is not what it should be")


def _record(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{where or 'it'} is no object")
    hints, found = _hints(kind), {}
    for f in fields(kind):
        if f.name in value:
            found[f.name] = from_plain(hints[f.name], value[f.name], f"{where}.{f.name}" if where else f.name)
        elif f.default is MISSING and f.default_factory is MISSING:
            raise ValueError(f"{where or 'it'} lacks {f.name!r}")
    return kind(**found)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _arm(arms: tuple[Any, ...], value: Any) -> Any:
    """Return the first type of a union that a value can be, whole numbers as such where there is a choice."""
    return next((arm for arm in arms if _suits(arm, value)), arms[0])


def _suits(kind: Any, value: Any) -> bool:
    kind = get_origin(kind) or kind
    if kind is float:
        return value in WORDS if isinstance(value, str) else isinstance(value, float) or _suits(int, value)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST_COUNT
    return isinstance(value, kind)


def _anything(value: Any, depth: int = 0) -> Any:
    if depth > DEEPEST:
        raise ValueError("something is nested too deep")
    if isinstance(value, dict):
        return {key: _anything(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_anything(item, depth + 1) for item in value]
    return float(value) if isinstance(value, str) and value in WORDS else value
