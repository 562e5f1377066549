"""Families as users name them: NAME or NAME:parameter=value,parameter=value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from ..errors import LnauditError
from ..formats import Format, get_format
from ..wording import nearest
from .table import FAMILIES, Family, Span, Value, shortest

DTYPES = ("float16", "bfloat16", "float32", "float64")
MAX_ELEMENTS = 1 << 31  # 8 GiB of float32: beyond it a typing error is likelier than a wish
_SHOWN = 60  # characters of the user's text that an error repeats


@dataclass(frozen=True, kw_only=True)
class FamilySpec:
    """A family with all of its parameters.

    Attributes
    ----------
    family : Family
    parameters : tuple of (name, value)
        The family's own, in the order of its defaults.
    rows, features, seed : int
        The seed is 0 where the family is not random.
    format : Format
        Of the elements.
    """

    family: Family
    parameters: tuple[tuple[str, Value], ...]
    rows: int
    features: int
    seed: int
    format: Format

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the array."""
        return self.rows, self.features

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the array."""
        name = self.format.name
        return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)

    @property
    def label(self) -> str:
        """The full text, which `parse_family` reads back: the seed if it matters, the dtype if it is not float32."""
        items = [f"{name}={_text(value)}" for name, value in self.parameters]
        items += [f"rows={self.rows}", f"features={self.features}"]
        items += [f"seed={self.seed}"] if self.family.random else []
        items += [f"dtype={self.format.name}"] if self.format.name != "float32" else []
        return f"{self.family.name}:{','.join(items)}"


def parse_family(text: str) -> FamilySpec:
    """Read a family as users name it: NAME or NAME:parameter=value,parameter=value.

    Parameters
    ----------
    text : str
        Such as ``near-constant:offset=5,spread=1e-3,rows=64``. Every family takes rows, features, seed and dtype
        beside its own parameters.

    Raises
    ------
    LnauditError
        If the family or a parameter is unknown, a value makes no sense, or the array would be too large.
    """
    try:
        return _parse(text)
    except LnauditError as error:
        raise LnauditError(error.what, error.remedy, _printable(text.strip())) from None


def _parse(text: str) -> FamilySpec:
    name, _, items = (piece.strip() for piece in text.partition(":"))
    if name not in FAMILIES:
        raise LnauditError(f"unknown family {_quoted(name)}", nearest(name, FAMILIES))
    family = FAMILIES[name]
    given = _given(items, family)
    parameters = {key: _value(key, given.get(key), default) for key, default in family.defaults.items()}
    default_rows = family.rows if isinstance(family.rows, int) else family.rows(**parameters)
    rows = _integer("rows", given.get("rows"), default_rows, least=1)
    features = _integer("features", given.get("features"), family.features, least=1)
    seed = _integer("seed", given.get("seed"), 0)
    if rows * features > MAX_ELEMENTS:
        what = f"{rows} rows of {features} features are {rows * features:,} elements, limit {MAX_ELEMENTS:,}"
        raise LnauditError(what, "ask for fewer")
    family.check(rows, features, **parameters)
    return FamilySpec(
        family=family,
        parameters=tuple(parameters.items()),
        rows=rows,
        features=features,
        seed=seed if family.random else 0,
        format=_format(given.get("dtype", "float32")),
    )


def _given(items: str, family: Family) -> dict[str, str]:
    """Return the parameters that the user names, as text."""
    known = (*family.defaults, "rows", "features", "seed", "dtype")
    given: dict[str, str] = {}
    for item in filter(None, map(str.strip, items.split(","))):
        key, _, value = (piece.strip() for piece in item.partition("="))
        if key not in known:
            raise LnauditError(f"unknown parameter {_quoted(key)} of {family.name}", nearest(key, known))
        if key in given:
            raise LnauditError(f"{key} is given twice", "name each parameter once")
        given[key] = value
    return given


def _value(name: str, text: str | None, default: Value) -> Value:
    if text is None:
        return default
    if isinstance(default, Span):
        return _span(name, text, default)
    return _integer(name, text, default) if isinstance(default, int) else _number(name, text, default)


def _integer(name: str, text: str | None, default: int, *, least: int = 0) -> int:
    if text is None:
        return default
    # 18 digits: products of two still print on a line
    if not (text.isascii() and text.isdigit() and len(text) <= 18 and int(text) >= least):
        raise LnauditError(
            f"{name}: {_quoted(text)} is not an integer from {least} to 10^18", f"as in {name}={default}"
        )
    return int(text)


def _number(name: str, text: str, default: float) -> float:
    value = as_number(text)
    if not math.isfinite(value):
        raise LnauditError(f"{name}: {_quoted(text)} is not a finite number", f"as in {name}={_text(default)}")
    return value


def _span(name: str, text: str, default: Span) -> Span:
    low, dots, high = text.partition("..")
    span = Span(as_number(low), as_number(high if dots else low))
    if not 0 < span.low <= span.high < math.inf:
        what = f"{name}: {_quoted(text)} is not a number > 0 or a range of such, the smaller first"
        raise LnauditError(what, f"as in {name}={default}")
    return span


def as_number(text: str) -> float:
    """Return a number, NaN if the text is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _format(name: str) -> Format:
    try:
        fmt = get_format(name)
    except LnauditError:
        fmt = None
    if fmt is None or fmt.name not in DTYPES:
        raise LnauditError(f"dtype: {_quoted(name)} is not known", f"choose from {', '.join(DTYPES)}")
    return fmt


def _printable(text: str) -> str:
    """Return the text for an error: one line, not too long."""
    shown = text if text.isprintable() else ascii(text)[1:-1]
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 3]}..."


def _quoted(text: str) -> str:
    return f"'{_printable(text)}'"


def _text(value: Value) -> str:
    """Write a parameter so that it reads back as the same number: 5, 3000, 1e-3, 1e-6..1e3."""
    if isinstance(value, float) and 1 <= abs(value) < 1e5:
        return np.format_float_positional(value, trim="-")
    return shortest(value) if isinstance(value, float) else str(value)
