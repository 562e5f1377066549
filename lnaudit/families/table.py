"""The families as data: parameters with their defaults, one generator function each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import LnauditError
from ..site import Array


@dataclass(frozen=True, slots=True)
class Span:
    """A range of positive numbers, both ends included."""

    low: float
    high: float

    def __str__(self) -> str:
        return "..".join(shortest(end) for end in dict.fromkeys((self.low, self.high)))


Value = int | float | Span


def shortest(value: float) -> str:
    """Write a number so that it reads back as the same, in as few characters as that takes."""
    exponent = np.format_float_scientific(value, trim="-", exp_digits=1).replace("e+", "e")
    return min(np.format_float_positional(value, trim="-"), exponent, key=len)


@dataclass(frozen=True, kw_only=True)
class Part:
    """Some consecutive rows of a family: what a generator function has to make in one go.

    Attributes
    ----------
    first, rows : int
        Index of the first row, number of rows.
    features : int
        Elements of a row.
    of : int
        Number of rows of the whole.
    random : numpy.random.Generator
        The one that all parts draw from, in order.
    """

    first: int
    rows: int
    features: int
    of: int
    random: np.random.Generator

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the array that is to be made."""
        return self.rows, self.features

    @property
    def indices(self) -> range:
        """The rows in the numbering of the whole."""
        return range(self.first, self.first + self.rows)


@dataclass(frozen=True, kw_only=True, eq=False)
class Family:
    """A family of activations.

    Attributes
    ----------
    name, description : str
        The name and one sentence.
    defaults : dict of str to int, float or Span
        The family's own parameters. The type of the default is what a user's value is read as.
    generator : callable
        Takes a Part and the parameters by name; returns float64, of the shape of the part.
    check : callable
        Takes rows, features and the parameters by name; raises LnauditError if they do not go together.
    rows : int or callable
        The default, or what gives it from the parameters.
    features : int
        The default.
    random : bool
        Whether the seed matters.
    """

    name: str
    description: str
    generator: Callable[..., Array]
    defaults: dict[str, Value]
    check: Callable[..., None] = lambda rows, features, **parameters: None
    rows: int | Callable[..., int] = 64
    features: int = 768
    random: bool = False


def _near_constant(part: Part, *, offset: float, spread: float) -> Array:
    return offset + spread * part.random.standard_normal(part.shape)


def _bump(part: Part, *, offset: float, height: float) -> Array:
    x = np.full(part.shape, offset)
    if part.first == 0:
        x[0, 0] += height
    return x


def _antisymmetric(part: Part, *, t: Span) -> Array:
    low, high, last = math.log10(t.low), math.log10(t.high), part.of - 1
    # by exponents, so that whole decades come out as a user would write them; the ends as they were given
    ends = {0: t.low, last: t.high}
    sizes = [ends[i] if i in ends else 10.0 ** (low + (high - low) * i / last) for i in part.indices]
    return np.multiply.outer(sizes, (-1.0, 0.0, 1.0))


def _decades(*, t: Span) -> int:
    """One row a decade of t, both ends included."""
    return 1 if t.low == t.high else 1 + max(1, round(math.log10(t.high) - math.log10(t.low)))


def _check_antisymmetric(rows: int, features: int, *, t: Span) -> None:
    if features != 3:
        raise LnauditError(f"features={features}, but its rows are (-t, 0, t)", "leave features out")
    if rows == 1 and t.low != t.high:
        raise LnauditError(f"one row cannot hold both ends of t={t}", "ask for two rows or more, or for one t")


def _constant(part: Part, *, value: float) -> Array:
    return np.full(part.shape, value)


def _zeros(part: Part) -> Array:
    return np.zeros(part.shape)


def _normal(part: Part, *, mean: float, std: float) -> Array:
    return mean + std * part.random.standard_normal(part.shape)


def _outlier(part: Part, *, count: int, size: float) -> Array:
    # the same features in every row, as the outlier dimensions of trained transformers
    # (Kovaleva et al., "BERT Busters", ACL 2021)
    x = part.random.standard_normal(part.shape)
    x[:, :count] = size
    return x


def _check_outlier(rows: int, features: int, *, count: int, size: float) -> None:
    if count > features:
        raise LnauditError(f"count={count}, but a row has {features} elements", f"give a count up to {features}")


def _checkerboard(part: Part, *, m: float) -> Array:
    odd = np.add.outer(np.array(part.indices), np.arange(part.features)) % 2
    return np.where(odd, -m, m)


def _ramp(part: Part, *, start: float, step: float) -> Array:
    return np.tile(start + step * np.arange(part.features), (part.rows, 1))


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(
            name="near-constant",
            description="offset + spread * N(0, 1): large values that hardly differ.",
            generator=_near_constant,
            defaults={"offset": 5.0, "spread": 1e-3},
            random=True,
        ),
        Family(
            name="bump",
            description="Every element is offset; the first element of the first row is higher by height.",
            generator=_bump,
            defaults={"offset": 5.0, "height": 1e-3},
            rows=4,
            features=8,
        ),
        Family(
            name="antisymmetric",
            description="Rows (-t, 0, t), t from one end to the other in equal ratios; by default a row a decade.",
            generator=_antisymmetric,
            check=_check_antisymmetric,
            defaults={"t": Span(1e-6, 1e3)},
            rows=_decades,
            features=3,
        ),
        Family(
            name="constant",
            description="Every element is value.",
            generator=_constant,
            defaults={"value": 5.0},
        ),
        Family(
            name="zeros",
            description="Every element is 0, as in padding.",
            generator=_zeros,
            defaults={},
        ),
        Family(
            name="normal",
            description="mean + std * N(0, 1): what a healthy norm layer sees.",
            generator=_normal,
            defaults={"mean": 0.0, "std": 1.0},
            random=True,
        ),
        Family(
            name="outlier",
            description="N(0, 1), but the first count elements of each row are size.",
            generator=_outlier,
            check=_check_outlier,
            defaults={"count": 1, "size": 3000.0},
            random=True,
        ),
        Family(
            name="checkerboard",
            description="+m and -m in turns along rows and columns: at m=256 the squares overflow float16.",
            generator=_checkerboard,
            defaults={"m": 256.0},
        ),
        Family(
            name="ramp",
            description="start + i * step at element i of each row: steps that vanish beside the values.",
            generator=_ramp,
            defaults={"start": 1000.0, "step": 1e-3},
        ),
    )
}
