"""The Kernel dataclass: the axes along which implementations of the norm differ."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ..formats import FORMATS, Format, wider

DTYPES = ("T", "float32", "float64")
# what a user may write in NAME:axis=value, and the values of each axis
AXES: dict[str, tuple[str, ...]] = {
    "sum": DTYPES,
    "square_sum": DTYPES,
    "mean": DTYPES,
    "diff": DTYPES,
    "square": DTYPES,
    "variance": ("two_pass", "one_pass", *DTYPES),
    "rstd": DTYPES,
    "normalized": DTYPES,
    "affine": DTYPES,
    "output": DTYPES,
    "reduction": ("tree", "serial"),
    "epsilon": ("T", "wide", "float32", "float64"),
    "inverse": ("div", "recip_sqrt", "rsqrt"),
    "clamp_negative": ("none", "zero", "zero-nan"),
}


@dataclass(frozen=True, kw_only=True)
class Stages:
    """The formats that the stages of a kernel round to, for one audited format."""

    sum: Format
    square_sum: Format
    mean: Format
    diff: Format
    square: Format
    variance: Format
    epsilon: Format
    rstd: Format
    normalized: Format
    affine: Format
    output: Format


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """How a program computes the norm in a format T.

    Each stage names the dtype that it rounds to: "T" (the audited format), "float32" (at least float32: T if T is
    wider) or "float64". An operation is rounded once in the widest dtype of its operands and its stage, then stored
    in the dtype of its stage.

    Parameters
    ----------
    name, stands_for, source : str
        The preset, what runs like that, and where that is written.
    sum, square_sum, mean, diff, square, variance, rstd, normalized, affine, output : str
        Stage dtypes; `variance` is also that of variance + epsilon, `rstd` that of the square root.
    algorithm : str
        "two_pass", or "one_pass": E[x^2] - E[x]^2.
    reduction : str
        "tree" (halves) or "serial" (left to right).
    epsilon : str
        The dtype that holds epsilon, rounded once from the value given. Here "float32" is float32 for every T (a
        float attribute of a double model), "wide" is float32 or T if T is wider.
    inverse : str
        "div": v / sqrt(w). "recip_sqrt": v * (1/sqrt(w)), root and reciprocal both rounded. "rsqrt": rounded once.
    clamp_negative : str
        Applied to the rounded variance: "none", "zero", or "zero-nan" (a NaN becomes 0 too).
    """

    name: str
    stands_for: str
    source: str
    sum: str = "T"
    square_sum: str = "T"
    mean: str = "T"
    diff: str = "T"
    square: str = "T"
    variance: str = "T"
    algorithm: str = "two_pass"
    reduction: str = "tree"
    epsilon: str = "T"
    rstd: str = "T"
    inverse: str = "div"
    normalized: str = "T"
    affine: str = "T"
    output: str = "T"
    clamp_negative: str = "none"

    def stages(self, fmt: Format) -> Stages:
        """Return the formats that the stages round to when the audited format is `fmt`."""
        return _stages(self, fmt)


@cache
def _stages(kernel: Kernel, fmt: Format) -> Stages:
    at_least = {"T": fmt, "float32": wider(FORMATS["float32"], fmt), "float64": FORMATS["float64"]}
    names = [field for field in Stages.__dataclass_fields__ if field != "epsilon"]
    epsilon = {"T": fmt, "wide": at_least["float32"]}.get(kernel.epsilon) or FORMATS[kernel.epsilon]
    return Stages(epsilon=epsilon, **{name: at_least[getattr(kernel, name)] for name in names})
