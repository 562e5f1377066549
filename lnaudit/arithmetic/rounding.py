"""One rounding to a format, to nearest even, of float32 and float64 arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import ml_dtypes  # noqa: F401  (registers bfloat16 and float8 as numpy dtypes)
import numpy as np

from ..formats import FORMATS, Format, get_format
from .hardware import quiet
from .workspace import Array, Workspace

Rounding = Callable[[Array, Workspace], None]
# dtypes of at most 24 bits that are taken as they are, without the way over float64
NARROW = ("float16", "bfloat16", "float32", "float8_e4m3fn", "float8_e5m2")


def round_in_place(x: Array, fmt: Format, ws: Workspace) -> None:
    """Round a float32 or float64 array to `fmt` once, to nearest even, where it stands.

    Overflow gives Inf (NaN in a format without infinity), underflow is gradual (in a flushing format what is rounded to
    a subnormal number becomes zero), NaN stays NaN (the payload of a NaN must not be all low bits: results of
    arithmetic never are).
    """
    rounding = rounding_of(fmt, x.itemsize)
    if rounding is not None:
        rounding(x, ws)


@cache
def rounding_of(fmt: Format, itemsize: int) -> Rounding | None:
    """Return how values in a carrier of so many bytes are rounded to a format; None if they are already."""
    steps = [_to_nearest(fmt, itemsize)]
    if not fmt.infinity:
        steps.append(_overflow_to_nan(fmt, itemsize))
    if fmt.flushes:
        steps.append(_flush(fmt, itemsize))
    return _in_turn([step for step in steps if step is not None])


def _in_turn(steps: list[Rounding]) -> Rounding | None:
    if len(steps) < 2:
        return steps[0] if steps else None

    def rounding(x: Array, ws: Workspace) -> None:
        for step in steps:
            step(x, ws)

    return rounding


def _to_nearest(fmt: Format, itemsize: int) -> Rounding | None:
    if fmt.precision == 53 or (itemsize == 4 and fmt.precision == 24):
        return None
    if itemsize == 8 and fmt.precision == 24:
        return _round_to_float32
    if itemsize == 4 and fmt.emin == FORMATS["float32"].emin:
        return _round_bits(fmt)
    return _round_by_addition(fmt, itemsize)


def _round_to_float32(x: Array, ws: Workspace) -> None:
    x[...] = x.astype(np.float32)


def bits_constants(fmt: Format) -> tuple[Any, Any, Any]:
    """Return shift, half a unit less one, and mask with which float32 is rounded to a shorter significand."""
    shift = 24 - fmt.precision
    return np.uint32(shift), np.uint32((1 << (shift - 1)) - 1), np.uint32((0xFFFFFFFF >> shift) << shift)


def _round_bits(fmt: Format) -> Rounding:
    """Round float32 to a shorter significand with the same exponents: add half a unit (less one if even), cut."""
    shift, half, mask = bits_constants(fmt)
    one = np.uint32(1)

    def rounding(x: Array, ws: Workspace) -> None:
        source, bits = x.view(np.uint32), ws.array("bits", x.shape, "uint32")
        np.right_shift(source, shift, out=bits)
        np.bitwise_and(bits, one, out=bits)
        np.add(bits, half, out=bits)
        np.add(bits, source, out=bits)
        np.bitwise_and(bits, mask, out=source)

    return rounding


def _layout(itemsize: int) -> tuple[int, int, Any, Any]:
    """Return bits of the fraction, exponent bias, integer type and real type of a carrier."""
    return (23, 127, np.int32, np.float32) if itemsize == 4 else (52, 1023, np.int64, np.float64)


def addition_constants(fmt: Format, itemsize: int) -> tuple[Any, ...]:
    """Return lowest and highest exponent bits, lift to the bits of the constant that is added, and two scales."""
    mantissa, bias, signed, real = _layout(itemsize)
    # below emin the spacing stays (subnormal numbers); beyond emax + 1 everything overflows anyway
    lowest, highest = signed((fmt.emin + bias) << mantissa), signed((fmt.emax + 1 + bias) << mantissa)
    lift = signed(((mantissa - fmt.precision + 1) << mantissa) | (1 << (mantissa - 1)))
    # what rounds to 2^(emax + 1) or more overflows the carrier when it is scaled up
    return lowest, highest, lift, real(2.0 ** (bias - fmt.emax)), real(2.0 ** (fmt.emax - bias))


def _round_by_addition(fmt: Format, itemsize: int) -> Rounding:
    """Round by adding and subtracting 1.5 * 2^k: at exponent e the sum has the spacing that the format has there."""
    mantissa, bias, signed, real = _layout(itemsize)
    integer = f"int{8 * itemsize}"
    exponents = signed((2 * bias + 1) << mantissa)
    lowest, highest, lift, up, down = addition_constants(fmt, itemsize)
    overflows = signed((fmt.emax + bias) << mantissa)  # what is smaller cannot

    def rounding(x: Array, ws: Workspace) -> None:
        bits = ws.array("bits", x.shape, integer)
        np.bitwise_and(x.view(signed), exponents, out=bits)
        np.clip(bits, lowest, highest, out=bits)
        largest = bits.max(initial=lowest)
        np.add(bits, lift, out=bits)
        constant = bits.view(real)
        np.add(x, constant, out=x)
        np.subtract(x, constant, out=x)
        if largest >= overflows:
            np.multiply(x, up, out=x)
            np.multiply(x, down, out=x)

    return rounding


def _overflow_to_nan(fmt: Format, itemsize: int) -> Rounding:
    """Write NaN where a rounded magnitude is beyond the largest finite number."""
    real = _layout(itemsize)[3]
    largest = real(fmt.max)

    def rounding(x: Array, ws: Workspace) -> None:
        size = np.abs(x, out=ws.array("bits", x.shape, f"float{8 * itemsize}"))
        np.copyto(x, real(np.nan), where=np.greater(size, largest, out=ws.array("mask", x.shape, "bool")))

    return rounding


def _flush(fmt: Format, itemsize: int) -> Rounding | None:
    """Write zero of its sign for a subnormal number; the bits of magnitudes are ordered as the magnitudes are."""
    _, bias, signed, real = _layout(itemsize)
    if fmt.emin <= -bias:
        return None  # the carrier holds no number so small
    smallest, magnitude = real(fmt.smallest_normal).view(signed), np.iinfo(signed).max

    def rounding(x: Array, ws: Workspace) -> None:
        bits = ws.array("bits", x.shape, f"int{8 * itemsize}")
        np.bitwise_and(x.view(signed), magnitude, out=bits)
        np.multiply(x, real(0), out=x, where=np.less(bits, smallest, out=ws.array("mask", x.shape, "bool")))

    return rounding


def flushed_operand(x: Array, fmt: Format) -> Array:
    """Return numbers as an operation of a format reads them: subnormal ones as zero of their sign where it flushes.

    The result is x itself where nothing changes.
    """
    if not fmt.flushes:
        return x
    small = (np.abs(x) < fmt.smallest_normal) & (x != 0)
    return np.where(small, np.copysign(x.dtype.type(0), x), x) if small.any() else x


def rounded(x: Array, *formats: Format) -> Array:
    """Return a small array rounded to one format after the other, in the carrier of the last.

    The result is x itself where nothing changes.
    """
    result, ws = x, Workspace()
    for fmt in dict.fromkeys(formats):
        if rounding_of(fmt, result.itemsize) is not None:
            result = np.array(result, order="C") if result is x else result
            round_in_place(result, fmt, ws)
        result = result.astype(fmt.carrier, copy=False)
    return result


def round_to(x: object, format: str | Format) -> Array:
    """Round numbers to a format once, to nearest even.

    Parameters
    ----------
    x : array_like of float, any shape
        Values of float32 and of the 16-bit and 8-bit formats are taken as they are, everything else as float64.
    format : str
        A name or alias of `lnaudit formats`.

    Returns
    -------
    ndarray
        The rounded numbers in a float32 array, float64 for the format float64. Overflow gives Inf, in float8_e4m3fn
        NaN.
    """
    fmt = get_format(format)
    values = np.asarray(x)
    values = values.astype(np.float32 if values.dtype.name in NARROW else np.float64)
    with quiet():
        result = rounded(np.where(np.isnan(values), values.dtype.type(np.nan), values), fmt)
        return result.reshape(values.shape).astype(np.float64 if fmt.precision == 53 else np.float32, copy=False)


@cache
def round_number(value: float, fmt: Format) -> float:
    """Round one number to a format."""
    with quiet():
        return float(rounded(np.array([value], np.float64), fmt)[0])
