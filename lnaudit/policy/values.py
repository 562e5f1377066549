"""The values of a policy: each function checks one and says in one line what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import LnauditError
from ..findings import SEVERITIES
from ..formats import get_format
from ..kernels import find_runtime, get_kernel
from ..rules import RULES, thresholds_of
from ..site import check_norm
from ..summary import HALF_RANGE
from ..wording import nearest

FAIL_ON = (*SEVERITIES, "never")
Reader = Callable[[Any, str], Any]


def read(table: Mapping[str, Any], known: Mapping[str, Reader], where: str = "") -> dict[str, Any]:
    """Return the values of a table, each read by the function of its key."""
    found = {}
    for key, value in table.items():
        if key not in known:
            raise LnauditError(f"unknown key {key!r}", nearest(key, known), where)
        found[key] = known[key](value, f"{where}.{key}" if where else key)
    return found


def table(value: Any, where: str) -> dict[str, Any]:
    """Return a table."""
    if not isinstance(value, dict):
        raise LnauditError(f"{value!r} is not a table", f"as in [tool.lnaudit.{where}]", where)
    return value


def number(value: Any, where: str) -> float:
    """Return a finite number >= 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not (0 <= value < math.inf):
        raise LnauditError(f"{value!r} is not a number >= 0", "as in 0.02", where)
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
        raise LnauditError(f"{value!r} is not a part of the rows", "from 0 to 1, as in 0.001", where)
    return float(value)


def tolerance(value: Any, where: str) -> tuple[float | None, dict[str, float]]:
    """Return an accepted error, or those of single formats."""
    if not isinstance(value, dict):
        return positive(value, where), {}
    return None, {_named(get_format, key, where).name: positive(item, f"{where}.{key}") for key, item in value.items()}


def texts(value: Any, where: str) -> tuple[str, ...]:
    """Return a list of texts, or one text as a list."""
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not listed or not all(isinstance(item, str) and item for item in listed):
        raise LnauditError(f"{value!r} is not a list of names", 'as in ["float16"]', where)
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
    (name,) = texts(value, where)[:1]
    return str(_named(get_kernel, name, where).name)


def kernels(value: Any, where: str) -> tuple[str, ...]:
    """Return names of kernels; `ladder` stands for all of its own."""
    found = texts(value, where)
    for name in found:
        if name != "ladder":
            _named(get_kernel, name, where)
    return found


def runtimes(value: Any, where: str) -> tuple[str, ...]:
    """Return programs with their versions."""
    found = texts(value, where)
    for text in found:
        _named(find_runtime, text, where)
    return found


def fail_on(value: Any, where: str) -> str:
    """Return the severity that makes a check fail."""
    if value not in FAIL_ON:
        raise LnauditError(f"unknown value {value!r}", f"choose from {', '.join(FAIL_ON)}", where)
    return str(value)


def prefix(value: str, where: str) -> str:
    """Return a code, or the beginning of some."""
    if not any(code.startswith(value) for code in RULES):
        raise LnauditError(f"no rule begins with {value!r}", nearest(value, RULES), where)
    return value


def prefixes(value: Any, where: str) -> tuple[str, ...]:
    """Return codes or beginnings of codes; the list may be empty."""
    return () if value == [] else tuple(prefix(text, where) for text in texts(value, where))


def thresholds(value: Any, where: str) -> dict[str, dict[str, float]]:
    """Return thresholds by rule and name."""
    found: dict[str, dict[str, float]] = {}
    for code, words in table(value, where).items():
        at = f"{where}.{code}"
        if code not in RULES:
            raise LnauditError(f"unknown rule {code!r}", nearest(code, RULES), where)
        defaults = thresholds_of(code)
        if not defaults:
            raise LnauditError(f"{code} has no threshold", "see lnaudit rule " + code, where)
        known = {name: _THRESHOLDS.get(name, number) for name in defaults}
        found[code] = read(table(words, at), known, at)
    return found


def _peak(value: Any, where: str) -> float:
    if number(value, where) < HALF_RANGE:
        raise LnauditError(f"{value!r} is below {HALF_RANGE}", "rows are looked at from there on", where)
    return float(value)


_THRESHOLDS: dict[str, Reader] = {"share": share, "peak": _peak}


def norm(value: Any, where: str) -> str:
    """Return the name of a norm."""
    return check_norm(str(value), where)


def axis(value: Any, where: str) -> int | tuple[int, ...]:
    """Return an axis or several."""
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(isinstance(item, int) and not isinstance(item, bool) for item in listed):
        raise LnauditError(f"{value!r} is no axis", "as in -1 or [1, 2]", where)
    return tuple(listed) if isinstance(value, list) else int(value)


def anchors(value: Any, where: str) -> tuple[tuple[str, str], ...]:
    """Return lines of source by patterns of site names."""
    found = []
    for pattern, place in table(value, where).items():
        name, colon, line = place.rpartition(":") if isinstance(place, str) else ("", "", "")
        if not (name and colon and line.isascii() and line.isdigit() and int(line) > 0):
            raise LnauditError(f"{place!r} is no line of a file", 'as in "src/model.py:88"', f"{where}.{pattern}")
        found.append((pattern, place))
    return tuple(found)
