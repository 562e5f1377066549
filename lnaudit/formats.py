"""The floating-point formats as data: four facts each, every other constant derived."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from .errors import LnauditError


@dataclass(frozen=True, kw_only=True, eq=False)
class Format:
    """A binary floating-point format.

    Parameters
    ----------
    name : str
        The name, also the name of its numpy or ml_dtypes dtype where there is one.
    precision : int
        Bits of the significand, the implicit one included.
    emin, emax : int
        Exponents of the smallest normal number and of the largest finite one.
    infinity : bool
        Without one, overflow gives NaN, which takes the place of the last significand (OCP 8-bit floating point, 2023).
    aliases : tuple of str
        Other names under which users know it.
    flushes : bool
        Subnormal numbers are read and written as zero (FTZ and DAZ).
    """

    name: str
    precision: int
    emin: int
    emax: int
    infinity: bool = True
    aliases: tuple[str, ...] = ()
    flushes: bool = False

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
    def smallest(self) -> float:
        """Smallest positive number that is not read as zero."""
        return self.smallest_normal if self.flushes else self.smallest_subnormal

    @cached_property
    def max(self) -> float:
        """Largest finite number."""
        return (2.0 - 2.0 ** (1 - self.precision) * (1 if self.infinity else 2)) * 2.0**self.emax

    @cached_property
    def carrier(self) -> str:
        """The numpy dtype in which operations on values of this format are exact enough to be rounded once more.

        float32 up to 24 bits, but for tfloat32, whose products below 2^-128 are subnormal in float32.
        """
        wide = self.precision == 53 or (self.precision, self.emin) == (11, -126)
        return "float64" if wide else "float32"

    @property
    def array_dtype(self) -> str:
        """The numpy dtype in which users are given values of this format: float32 where that holds them all."""
        return "float64" if self.precision == 53 else "float32"

    @cached_property
    def flushing(self) -> Format:
        """The same format on hardware that flushes subnormal numbers."""
        return self if self.flushes else replace(self, flushes=True)

    def held_as(self, value: float) -> str:
        """Say whether a number of this format is "zero", "subnormal" or "normal", or has passed it: "overflow"."""
        if value == 0:
            return "zero"
        if not abs(value) <= self.max:
            return "overflow"
        return "subnormal" if abs(value) < self.smallest_normal else "normal"


FORMATS: dict[str, Format] = {
    fmt.name: fmt
    for fmt in (
        Format(name="float16", precision=11, emin=-14, emax=15, aliases=("fp16", "half", "f16")),
        Format(name="bfloat16", precision=8, emin=-126, emax=127, aliases=("bf16",)),
        Format(name="float32", precision=24, emin=-126, emax=127, aliases=("fp32", "float", "f32")),
        Format(name="float64", precision=53, emin=-1022, emax=1023, aliases=("fp64", "double", "f64")),
        Format(name="tfloat32", precision=11, emin=-126, emax=127, aliases=("tf32",)),
        Format(
            name="float8_e4m3fn", precision=4, emin=-6, emax=8, infinity=False, aliases=("fp8_e4m3", "e4m3fn", "e4m3")
        ),
        Format(name="float8_e5m2", precision=3, emin=-14, emax=15, aliases=("fp8_e5m2", "e5m2")),
    )
}
# those that are audited unless others are named
DEFAULT_FORMATS: tuple[Format, ...] = tuple(FORMATS[name] for name in ("float16", "bfloat16", "float32", "float64"))
_BY_NAME = {alias: fmt for fmt in FORMATS.values() for alias in (fmt.name, *fmt.aliases)}
# from narrow to wide, by what a user would try next
WIDER: dict[str, tuple[str, ...]] = {
    "float16": ("bfloat16", "float32", "float64"),
    "bfloat16": ("float32", "float64"),
    "float32": ("float64",),
    "float64": (),
    "tfloat32": ("float32", "float64"),
    "float8_e4m3fn": ("float16", "bfloat16", "float32", "float64"),
    "float8_e5m2": ("float16", "bfloat16", "float32", "float64"),
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
    if key not in _BY_NAME:
        raise LnauditError(f"unknown format {name!r}", f"choose from {', '.join(FORMATS)}", "--format")
    return _BY_NAME[key]


def wider(a: Format, b: Format) -> Format:
    """Return the one of two formats that has more precision."""
    return a if a.precision >= b.precision else b
