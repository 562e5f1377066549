"""The floating-point formats as data: four facts each, every other constant derived."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .errors import LnauditError


@dataclass(frozen=True, kw_only=True, eq=False)
class Format:
    """A binary floating-point format.

    Parameters
    ----------
    name : str
        The name, also the name of its numpy or ml_dtypes dtype.
    precision : int
        Bits of the significand, the implicit one included.
    emin, emax : int
        Exponents of the smallest normal number and of the largest finite one.
    aliases : tuple of str
        Other names under which users know it.
    """

    name: str
    precision: int
    emin: int
    emax: int
    aliases: tuple[str, ...] = ()

    @cached_property
    def unit_roundoff(self) -> float:
        """Largest relative error of one rounding to nearest: 2**-precision."""
        return 2.0**-self.precision

    @cached_property
    def smallest_subnormal(self) -> float:
        """Smallest positive number."""
        return 2.0 ** (self.emin - self.precision + 1)

    @cached_property
    def smallest_normal(self) -> float:
        """Smallest positive number with full precision."""
        return 2.0**self.emin

    @cached_property
    def max(self) -> float:
        """Largest finite number."""
        return (2.0 - 2.0 ** (1 - self.precision)) * 2.0**self.emax

    @property
    def carrier(self) -> str:
        """The numpy dtype whose arrays hold values of this format exactly: float32 or float64."""
        return "float32" if self.precision <= 24 else "float64"

    def held_as(self, value: float) -> str:
        """Say whether a number of this format is "zero", "subnormal" or "normal"."""
        if value == 0:
            return "zero"
        return "subnormal" if abs(value) < self.smallest_normal else "normal"


FORMATS: dict[str, Format] = {
    fmt.name: fmt
    for fmt in (
        Format(name="float16", precision=11, emin=-14, emax=15, aliases=("fp16", "half", "f16")),
        Format(name="bfloat16", precision=8, emin=-126, emax=127, aliases=("bf16",)),
        Format(name="float32", precision=24, emin=-126, emax=127, aliases=("fp32", "float", "f32")),
        Format(name="float64", precision=53, emin=-1022, emax=1023, aliases=("fp64", "double", "f64")),
    )
}
_BY_NAME = {alias: fmt for fmt in FORMATS.values() for alias in (fmt.name, *fmt.aliases)}
# from narrow to wide, by what a user would try next
WIDER: dict[str, tuple[str, ...]] = {
    "float16": ("bfloat16", "float32", "float64"),
    "bfloat16": ("float32", "float64"),
    "float32": ("float64",),
    "float64": (),
}


def get_format(name: str | Format) -> Format:
    """Return the format of that name or alias.

    Raises
    ------
    LnauditError
        If there is none.
    """
    if isinstance(name, Format):
        return name
    key = name.strip().lower() if isinstance(name, str) else ""
    if key in ("json", "table"):
        raise LnauditError(f"{key} is an output: --output-format {key}", source="--format")
    if key not in _BY_NAME:
        raise LnauditError(f"unknown format {name!r}", f"choose from {', '.join(FORMATS)}", "--format")
    return _BY_NAME[key]


def wider(a: Format, b: Format) -> Format:
    """Return the one of two formats that has more precision."""
    return a if a.precision >= b.precision else b
