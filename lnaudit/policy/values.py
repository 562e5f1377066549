"""The values of a policy: each function checks one and says in one line what is wrong with it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from ..errors import LnauditError
from ..findings import SEVERITIES
from ..formats import get_format
from ..kernels import find_runtime, get_kernel
from ..readers.files import shortened
from ..rules import RULES, Threshold, code_of
from ..site import check_norm
from ..wording import nearest

FAIL_ON = (*SEVERITIES, "never")
MOST_DIGITS = 9  # of a line number
MOST_AXES = 64  # an array has
Reader = Callable[[Any, str], Any]


def shown(value: Any) -> str:
    """Return a value as it is said to be wrong, short enough for a line."""
    return shortened(repr(value))


def read(table: Mapping[str, Any], known: Mapping[str, Reader], where: str = "") -> dict[str, Any]:
    """Return the values of a table, each read by the function of its key."""
    found = {}
    for key, value in table.items():
        if key not in known:
            raise LnauditError(f"unknown key {shown(key)}", nearest(key, known), where)
        found[key] = known[key](value, f"{where}.{key}" if where else key)
    return found


def table(value: Any, where: str) -> dict[str, Any]:
    """Return a table."""
    if not isinstance(value, dict):
        raise LnauditError(f"{shown(value)} is not a table", "give it keys and values", where)
    return value


def named_tables(value: Any, where: str, known: Collection[str] = ()) -> dict[str, dict[str, Any]]:
    """Return tables by the patterns of sites that they are about."""
    found = {pattern: table(words, f"{where}.{pattern}") for pattern, words in table(value, where).items()}
    for pattern, words in found.items():
        for key in words.keys() - set(known):
            no_table(words[key], where, pattern, key)
    return found


def no_table(value: Any, where: str, *names: str) -> None:
    """Refuse a table where none belongs: what TOML makes of a name with dots and no quotes."""
    if isinstance(value, dict):
        name = shortened(".".join(names))
        raise LnauditError("is a table in a table", f'quote a name with dots: "{name}"', f"{where}.{name}")


def number(value: Any, where: str) -> float:
    """Return a finite number >= 0."""
    # an integer may be too large for a float
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= sys.float_info.max:
        raise LnauditError(f"{shown(value)} is not a number >= 0", "as in 0.02", where)
    return float(value)


epsilon = number


def positive(value: Any, where: str) -> float:
    """Return a finite number > 0."""
    if number(value, where) == 0:
        raise LnauditError("0 accepts no rounding at all", "as in 0.02", where)
    return float(value)


def share(value: Any, where: str) -> float:
    """Return a part of the rows, from 0 to 1."""
    if number(value, where) > 1:
        raise LnauditError(f"{shown(value)} is not a part of the rows", "from 0 to 1, as in 0.001", where)
    return float(value)


def tolerance(value: Any, where: str) -> tuple[float | None, dict[str, float]]:
    """Return an accepted error, or those of single formats."""
    if not isinstance(value, dict):
        return positive(value, where), {}
    found: dict[str, float] = {}
    for key, item in value.items():
        name = _named(get_format, key, where).name
        if name in found:
            raise LnauditError(f"names {name} twice", "say it once", where)
        found[name] = positive(item, f"{where}.{key}")
    return None, found


def texts(value: Any, where: str, example: str = "float16") -> tuple[str, ...]:
    """Return a list of texts, or one text as a list."""
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not listed or not all(isinstance(item, str) and item for item in listed):
        raise LnauditError(f"{shown(value)} is not a list of names", f'as in ["{example}"]', where)
    return tuple(listed)


def _named(find: Callable[[str], Any], name: Any, where: str) -> Any:
    try:
        return find(name)
    except LnauditError as error:
        raise LnauditError(error.what, error.remedy, where) from None


def formats(value: Any, where: str) -> tuple[str, ...]:
    """Return names of formats."""
    return tuple(_named(get_format, name, where).name for name in texts(value, where))


def kernel(value: Any, where: str) -> str:
    """Return the name of a kernel."""
    if not isinstance(value, str):
        raise LnauditError(f"{shown(value)} is not the name of a kernel", 'as in "fused"', where)
    return str(_named(get_kernel, value, where).name)


def kernels(value: Any, where: str) -> tuple[str, ...]:
    """Return names of kernels; `ladder` stands for all of its own."""
    found = texts(value, where, "fused")
    for name in found:
        if name != "ladder":
            _named(get_kernel, name, where)
    return found


def runtimes(value: Any, where: str) -> tuple[str, ...]:
    """Return programs with their versions."""
    found = texts(value, where, "torch==2.13")
    for text in found:
        _named(find_runtime, text, where)
    return found


def fail_on(value: Any, where: str) -> str:
    """Return the severity that makes a check fail."""
    if value not in FAIL_ON:
        raise LnauditError(f"unknown value {shown(value)}", f"choose from {', '.join(FAIL_ON)}", where)
    return str(value)


def prefix(value: str, where: str) -> str:
    """Return a code, that of a name, or the beginning of some."""
    code = code_of(value)
    if not code or not any(known.startswith(code) for known in RULES):
        raise LnauditError(f"no rule begins with {shown(value)}", _nearest_rule(value), where)
    return code


def _nearest_rule(value: str) -> str:
    """Suggest the code or name that was probably meant, or all codes."""
    suggested = nearest(value, (rule.name for rule in RULES.values()))
    return suggested if suggested.endswith("?") else nearest(value, RULES)


def codes(table: Mapping[str, Any], where: str, read: Callable[[str, str], str] = prefix) -> list[tuple[str, Any]]:
    """Return the entries of a table by codes of rules, none of them said twice."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        code = read(key, where)
        if code in found:
            raise LnauditError(f"names {code} twice", "say it once", where)
        found[code] = value
    return list(found.items())


def selected(value: Any, where: str) -> tuple[str, ...]:
    """Return codes or beginnings of codes, at least one: where nothing is looked for nothing is found."""
    return tuple(dict.fromkeys(prefix(text, where) for text in texts(value, where, "LN1")))


def ignored(value: Any, where: str) -> tuple[str, ...]:
    """Return codes or beginnings of codes; the list may be empty."""
    return () if value == [] else selected(value, where)


def thresholds(value: Any, where: str) -> dict[str, dict[str, float]]:
    """Return thresholds by rule and name."""
    found: dict[str, dict[str, float]] = {}
    for code, words in codes(table(value, where), where, _rule):
        at = f"{where}.{code}"
        settable = RULES[code].thresholds
        if not settable:
            raise LnauditError(f"{code} has no threshold", "see lnaudit rule " + code, where)
        found[code] = read(table(words, at), {name: partial(_within, one) for name, one in settable.items()}, at)
    return found


def _rule(value: str, where: str) -> str:
    """Return the code of a rule."""
    code = code_of(value)
    if code not in RULES:
        raise LnauditError(f"unknown rule {shown(value)}", _nearest_rule(value), where)
    return code


def _within(threshold: Threshold, value: Any, where: str) -> float:
    found, least, most = number(value, where), threshold.least, threshold.most
    if not least <= found <= most:
        remedy = f"from {least:g} on" if most == math.inf else f"from {least:g} to {most:g}"
        raise LnauditError(f"{shown(value)} is too {'small' if found < least else 'large'}", remedy, where)
    return found


def norm(value: Any, where: str) -> str:
    """Return the name of a norm."""
    return check_norm(str(value), where)


def axis(value: Any, where: str) -> int | tuple[int, ...]:
    """Return an axis or several."""
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(type(item) is int and abs(item) < MOST_AXES for item in listed):
        raise LnauditError(f"{shown(value)} is no axis", "as in -1 or [1, 2]", where)
    return tuple(listed) if isinstance(value, list) else int(value)


def anchors(value: Any, where: str) -> tuple[tuple[str, str], ...]:
    """Return lines of source by patterns of site names."""
    found = []
    for pattern, place in table(value, where).items():
        no_table(place, where, pattern, *(place if isinstance(place, dict) else ()))
        name, colon, line = place.rpartition(":") if isinstance(place, str) else ("", "", "")
        number_of_line = line.isascii() and line.isdigit() and len(line) <= MOST_DIGITS and int(line) > 0
        if not (name and colon and number_of_line):
            raise LnauditError(f"{shown(place)} is no line of a file", 'as in "src/model.py:88"', f"{where}.{pattern}")
        found.append((pattern, place))
    return tuple(found)
