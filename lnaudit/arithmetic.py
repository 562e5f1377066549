"""Rounding and sums exactly as IEEE 754 hardware of a format performs them.

Values of float16, bfloat16 and float32 live in float32 arrays, values of float64 in float64 arrays (their carriers).
For precision p <= 11, + - * / sqrt of two values of the format in float32, rounded once more, equal the operation
rounded once: 2p + 2 <= 24 (Figueroa, "When is double rounding innocuous?", SIGNUM Newsletter 30(3), 1995).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import ml_dtypes  # noqa: F401  (registers bfloat16 as a numpy dtype)
import numpy as np
from numpy.typing import NDArray

from .double_double import reciprocal_root
from .errors import LnauditError
from .formats import FORMATS, Format, get_format

Array = NDArray[Any]
FLOAT32, FLOAT64 = FORMATS["float32"], FORMATS["float64"]


@contextmanager
def quiet() -> Iterator[None]:
    """Emulated overflow, underflow and invalid operations are findings, never warnings."""
    with np.errstate(all="ignore"):
        yield


def check_hardware() -> None:
    """Refuse to run where a library has switched this thread's processor to flush subnormals.

    Raises
    ------
    LnauditError
        If a subnormal result or operand is flushed to zero.
    """
    for dtype in ("float32", "float64"):
        smallest = np.array([np.finfo(dtype).tiny], dtype)
        half = np.array([0.5], dtype)
        subnormal = smallest * half
        if subnormal[0] == 0 or (subnormal / half)[0] == 0:
            raise LnauditError(
                "this process flushes subnormal numbers to zero (a library loaded into it has switched that on)",
                "run lnaudit in a process of its own",
            )


class Workspace:
    """Named buffers that one thread uses again for block after block."""

    def __init__(self) -> None:
        self._buffers: dict[str, Array] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: str) -> Array:
        """Return an uninitialized array; the last one of that name is overwritten."""
        need = math.prod(shape) * _ITEMSIZE[dtype]
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < need:
            buffer = self._buffers[name] = np.empty(need, np.uint8)
        return buffer[:need].view(dtype).reshape(shape)


_ITEMSIZE = {"float32": 4, "int32": 4, "uint32": 4, "float64": 8, "int64": 8, "bool": 1}
Rounding = Callable[[Array, Workspace], None]


def round_in_place(x: Array, fmt: Format, ws: Workspace) -> None:
    """Round a float32 or float64 array to `fmt` once, to nearest even, where it stands.

    Overflow gives Inf, underflow is gradual, NaN stays NaN (the payload of a NaN must not be all low bits: results of
    arithmetic never are).
    """
    rounding = _rounding(fmt, x.itemsize)
    if rounding is not None:
        rounding(x, ws)


@cache
def _rounding(fmt: Format, itemsize: int) -> Rounding | None:
    """Return how values in a carrier of so many bytes are rounded to a format; None if they are already."""
    if fmt.precision == 53 or (itemsize == 4 and fmt.precision == 24):
        return None
    if itemsize == 8 and fmt.precision == 24:
        return _round_to_float32
    if itemsize == 4 and fmt.emin == FLOAT32.emin:
        return _round_bits(fmt)
    return _round_by_addition(fmt, itemsize)


def _round_to_float32(x: Array, ws: Workspace) -> None:
    x[...] = x.astype(np.float32)


def _round_bits(fmt: Format) -> Rounding:
    """Round float32 to a shorter significand with the same exponents: add half a unit (less one if even), cut."""
    shift = np.uint32(24 - fmt.precision)
    one, half, mask = np.uint32(1), np.uint32((1 << (shift - 1)) - 1), np.uint32((0xFFFFFFFF >> shift) << shift)

    def rounding(x: Array, ws: Workspace) -> None:
        source, bits = x.view(np.uint32), ws.array("bits", x.shape, "uint32")
        np.right_shift(source, shift, out=bits)
        np.bitwise_and(bits, one, out=bits)
        np.add(bits, half, out=bits)
        np.add(bits, source, out=bits)
        np.bitwise_and(bits, mask, out=source)

    return rounding


def _round_by_addition(fmt: Format, itemsize: int) -> Rounding:
    """Round by adding and subtracting 1.5 * 2^k: at exponent e the sum has the spacing that the format has there."""
    mantissa, bias, signed, real = (
        (23, 127, np.int32, np.float32) if itemsize == 4 else (52, 1023, np.int64, np.float64)
    )
    integer = f"int{8 * itemsize}"
    exponents = signed((2 * bias + 1) << mantissa)
    # below emin the spacing stays (subnormal numbers); beyond emax + 1 everything overflows anyway
    lowest, highest = signed((fmt.emin + bias) << mantissa), signed((fmt.emax + 1 + bias) << mantissa)
    lift = signed(((mantissa - fmt.precision + 1) << mantissa) | (1 << (mantissa - 1)))
    # what rounds to 2^(emax + 1) or more overflows the carrier when it is scaled up
    up, down = real(2.0 ** (bias - fmt.emax)), real(2.0 ** (fmt.emax - bias))

    def rounding(x: Array, ws: Workspace) -> None:
        bits = ws.array("bits", x.shape, integer)
        np.bitwise_and(x.view(signed), exponents, out=bits)
        np.clip(bits, lowest, highest, out=bits)
        np.add(bits, lift, out=bits)
        constant = bits.view(real)
        np.add(x, constant, out=x)
        np.subtract(x, constant, out=x)
        np.multiply(x, up, out=x)
        np.multiply(x, down, out=x)

    return rounding


def rounded(x: Array, *formats: Format) -> Array:
    """Return a small array rounded to one format after the other, in the carrier of the last.

    The result is x itself where nothing changes.
    """
    result, ws = x, Workspace()
    for fmt in dict.fromkeys(formats):
        if _rounding(fmt, result.itemsize) is not None:
            result = np.array(result, order="C") if result is x else result
            round_in_place(result, fmt, ws)
        result = result.astype(fmt.carrier, copy=False)
    return result


def round_to(x: object, format: str | Format) -> Array:
    """Round numbers to a format once, to nearest even.

    Parameters
    ----------
    x : array_like of float, any shape
        float16, bfloat16 and float32 values are taken as they are, everything else as float64.
    format : str
        A name or alias of `lnaudit formats`.

    Returns
    -------
    ndarray
        The rounded numbers in a float32 array, float64 for the format float64. Overflow gives Inf.
    """
    fmt = get_format(format)
    values = np.asarray(x)
    narrow = values.dtype.name in ("float16", "bfloat16", "float32")
    values = values.astype(np.float32 if narrow else np.float64)
    with quiet():
        result = rounded(np.where(np.isnan(values), values.dtype.type(np.nan), values), fmt)
    return result.reshape(values.shape)


@cache
def round_number(value: float, fmt: Format) -> float:
    """Round one number to a format."""
    with quiet():
        return float(rounded(np.array([value], np.float64), fmt)[0])


FEW = 1 << 11  # elements


def tree_sum(b: Array, fmt: Format, ws: Workspace) -> Array:
    """Sum over the first axis by halves: while P > 1, P /= 2 and b[i] = b[i] + b[i+P], b padded to a power of two.

    Parameters
    ----------
    b : ndarray, shape (d, n)
        In the carrier of `fmt`, left unchanged.
    """
    d = len(b)
    if d == 1:
        return np.array(b[0])
    half = 1 << ((d - 1).bit_length() - 1)
    acc = ws.array("tree", (half, *b.shape[1:]), fmt.carrier)
    paired = d - half
    np.add(b[:paired], b[half:], out=acc[:paired])
    round_in_place(acc[:paired], fmt, ws)
    acc[paired:] = b[paired:half]
    exact = _rounding(fmt, acc.itemsize) is None
    while half > 1 and (exact or half * acc[0].size > FEW):
        half //= 2
        head = acc[:half]
        np.add(head, acc[half : 2 * half], out=head)
        round_in_place(head, fmt, ws)
    # numpy's and ml_dtypes' own addition is slow but rounds in one call, which counts for the last few
    rest = acc[:half].astype(np.dtype(fmt.name), copy=False)
    while half > 1:
        half //= 2
        rest = rest[:half] + rest[half : 2 * half]
    return np.array(rest[0], fmt.carrier)


def serial_sum(b: Array, fmt: Format, ws: Workspace) -> Array:
    """Sum over the first axis from left to right: acc = b[0], acc = acc + b[i].

    Accumulation, unlike a reduction, is sequential by definition, and numpy and ml_dtypes store each partial sum in
    the format.
    """
    partial = np.add.accumulate(b.astype(np.dtype(fmt.name), copy=False), axis=0)
    return np.array(partial[-1], fmt.carrier)


REDUCTIONS: dict[str, Callable[[Array, Format, Workspace], Array]] = {"tree": tree_sum, "serial": serial_sum}


def lane_sum(b: Array) -> Array:
    """Sum float64 over the first axis in 16 lanes: lane l adds b[l], b[l+16], ... in order; then 16, 8, 4, 2, 1."""
    lanes = _in_lanes(b, np.add, 0.0)
    for half in (8, 4, 2, 1):
        lanes = lanes[:half] + lanes[half : 2 * half]
    return np.asarray(lanes[0])


def lane_extremes(x: Array) -> tuple[Array, Array]:
    """Return maximum and minimum over the first axis; NaN where there is one."""
    ends = (_in_lanes(x, np.maximum, -np.inf), _in_lanes(x, np.minimum, np.inf))
    return np.maximum.reduce(ends[0], axis=0), np.minimum.reduce(ends[1], axis=0)


def _in_lanes(b: Array, ufunc: np.ufunc, neutral: float) -> Array:
    """Reduce (d, n) to 16 lanes of shape (16, n): lane l takes b[l], b[l+16], ... in order."""
    d, n = b.shape
    whole = d // 16 * 16
    if whole:
        # a reduction over the first axis of C order takes one slab after the other, never in pairs
        lanes = ufunc.reduce(b[:whole].reshape(whole // 16, 16 * n), axis=0).reshape(16, n)
    else:
        lanes = np.full((16, n), neutral, b.dtype)
    head = lanes[: d - whole]
    ufunc(head, b[whole:], out=head)
    return np.asarray(lanes)


def reciprocal_root_once(w: Array, fmt: Format) -> Array:
    """Return 1/sqrt(w) rounded to `fmt` once, in its carrier.

    Up to 24 bits float64 is enough (no significand of float32 comes near a tie); float64 itself is corrected by a
    Newton step in double-double and, within 2^-40 of a tie, by integers.
    """
    exact = w.astype(np.float64)
    if fmt is not FLOAT64:
        return rounded(1.0 / np.sqrt(exact), fmt)
    # an exact even power of two brings w into [1/4, 1), where the Newton step cannot over- or underflow
    fraction, exponent = np.frexp(exact)
    odd = exponent & 1
    fraction, exponent = np.ldexp(fraction, -odd), exponent + odd
    y, low = reciprocal_root(fraction)
    ok = np.isfinite(exact) & (exact > 0)
    low = np.where(ok, low, 0.0)
    result = np.where(ok, np.ldexp(y + low, -(exponent // 2)), 1.0 / np.sqrt(exact))
    # distance of y + low from the midpoint between two doubles, in units of the spacing
    remainder = np.abs(low - ((y + low) - y)) / np.spacing(y)
    for i in np.flatnonzero(ok & (np.abs(remainder - 0.5) < 2.0**-40)):
        result[i] = _exact_reciprocal_root(float(exact[i]))
    return np.asarray(result)


def _exact_reciprocal_root(w: float) -> float:
    """Round 1/sqrt(w) to float64 with integers: floor(2^k / sqrt(w)) and whether something was cut off."""
    numerator, denominator = w.as_integer_ratio()
    k = 120 + max(0, numerator.bit_length() - denominator.bit_length()) // 2
    square = (denominator << (2 * k)) // numerator
    root = math.isqrt(square)
    # a sticky bit below decides between tie and not a tie; int / int divides with one correct rounding
    sticky = 2 * root + (root * root * numerator != denominator << (2 * k))
    return sticky / (1 << (k + 1))
