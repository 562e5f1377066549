"""Rounding and sums exactly as IEEE 754 hardware of a format performs them.

Values of float16, bfloat16 and float32 live in float32 arrays, values of float64 in float64 arrays (their carriers).
For precision p <= 11, + - * / sqrt of two values of the format in float32, rounded once more, equal the operation
rounded once: 2p + 2 <= 24 (Figueroa, "When is double rounding innocuous?", SIGNUM Newsletter 30(3), 1995).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


class Scratch:
    """Reusable integer memory for the rounding of one thread."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)

    def like(self, x: Array, dtype: type) -> Array:
        """Return an uninitialized array of the shape of x in the scratch memory."""
        need = x.size * np.dtype(dtype).itemsize
        if self._bytes.size < need:
            self._bytes = np.empty(need, np.uint8)
        return self._bytes[:need].view(dtype).reshape(x.shape)


@dataclass(frozen=True)
class _Magic:
    """Constants for rounding by adding and subtracting 1.5 * 2^k, in a carrier of `bits` bits."""

    signed: type
    exponent_mask: int
    lowest: int
    highest: int
    lift: int
    up: Any
    down: Any


@cache
def _magic(fmt: Format, carrier: str) -> _Magic:
    mantissa, bias, signed, real = {
        "float32": (23, 127, np.int32, np.float32),
        "float64": (52, 1023, np.int64, np.float64),
    }[carrier]
    exponent_mask = (2 * bias + 1) << mantissa
    return _Magic(
        signed=signed,
        exponent_mask=exponent_mask,
        lowest=(fmt.emin + bias) << mantissa,
        highest=(fmt.emax + 1 + bias) << mantissa,
        lift=((mantissa - fmt.precision + 1) << mantissa) | (1 << (mantissa - 1)),
        up=real(2.0 ** (bias - fmt.emax)),
        down=real(2.0 ** (fmt.emax - bias)),
    )


def round_in_place(x: Array, fmt: Format, scratch: Scratch) -> None:
    """Round a float32 or float64 array to `fmt` once, to nearest even, where it stands.

    Overflow gives Inf, underflow is gradual, NaN stays NaN (the payload of a NaN must not be all low bits: results of
    arithmetic never are).
    """
    if x.dtype.name == fmt.name or (x.dtype == np.float32 and fmt.precision >= 24):
        return
    if x.dtype == np.float64 and fmt is FLOAT32:
        x[...] = x.astype(np.float32)
        return
    if x.dtype == np.float32 and fmt.emin == FLOAT32.emin:
        _round_bits(x, fmt.precision, scratch)
        return
    # 1.5 * 2^(e + carrier's precision - p) has the spacing of the format at exponent e, so the addition rounds
    magic = _magic(fmt, x.dtype.name)
    bits = scratch.like(x, magic.signed)
    np.bitwise_and(x.view(magic.signed), magic.exponent_mask, out=bits)
    np.clip(bits, magic.lowest, magic.highest, out=bits)
    np.add(bits, magic.lift, out=bits)
    constant = bits.view(x.dtype)
    np.add(x, constant, out=x)
    np.subtract(x, constant, out=x)
    # what rounds to 2^(emax + 1) or more overflows the carrier when it is scaled up
    np.multiply(x, magic.up, out=x)
    np.multiply(x, magic.down, out=x)


def _round_bits(x: Array, precision: int, scratch: Scratch) -> None:
    """Round float32 to a shorter significand with the same exponents: add half a unit (less one if even), cut."""
    shift = 24 - precision
    source, bits = x.view(np.uint32), scratch.like(x, np.uint32)
    np.right_shift(source, shift, out=bits)
    np.bitwise_and(bits, 1, out=bits)
    np.add(bits, (1 << (shift - 1)) - 1, out=bits)
    np.add(bits, source, out=bits)
    np.bitwise_and(bits, (0xFFFFFFFF >> shift) << shift, out=source)


def rounded(x: Array, fmt: Format) -> Array:
    """Return a small array rounded to `fmt` once, in the format's carrier."""
    result = np.array(x, np.float32 if x.dtype == np.float32 else np.float64, order="C")
    round_in_place(result, fmt, Scratch())
    return result.astype(fmt.carrier, copy=False)


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


def round_number(value: float, fmt: Format) -> float:
    """Round one number to a format."""
    with quiet():
        return float(rounded(np.array([value], np.float64), fmt)[0])


def tree_sum(b: Array, fmt: Format, scratch: Scratch) -> Array:
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
    acc = np.empty((half, *b.shape[1:]), b.dtype)
    paired = d - half
    np.add(b[:paired], b[half:], out=acc[:paired])
    round_in_place(acc[:paired], fmt, scratch)
    acc[paired:] = b[paired:half]
    while half > 1:
        half //= 2
        head = acc[:half]
        np.add(head, acc[half : 2 * half], out=head)
        round_in_place(head, fmt, scratch)
    return np.array(acc[0])


def serial_sum(b: Array, fmt: Format, scratch: Scratch) -> Array:
    """Sum over the first axis from left to right: acc = b[0], acc = acc + b[i]."""
    acc: Array = b[0].copy()
    for term in b[1:]:
        np.add(acc, term, out=acc)
        round_in_place(acc, fmt, scratch)
    return acc


REDUCTIONS: dict[str, Callable[[Array, Format, Scratch], Array]] = {"tree": tree_sum, "serial": serial_sum}


def lane_sum(b: Array) -> Array:
    """Sum float64 over the first axis in 16 lanes: lane l adds b[l], b[l+16], ... in order; then 16, 8, 4, 2, 1."""
    d, whole = len(b), len(b) // 16 * 16
    if whole:
        # a reduction over the first axis of C order adds one slab after the other, never in pairs
        lanes = np.add.reduce(b[:whole].reshape(-1, 16 * b.shape[1]), axis=0).reshape(16, -1)
    else:
        lanes = np.zeros((16, b.shape[1]))
    np.add(lanes[: d - whole], b[whole:], out=lanes[: d - whole])
    for half in (8, 4, 2, 1):
        lanes = lanes[:half] + lanes[half : 2 * half]
    return np.asarray(lanes[0])


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return s and e with s = fl(a + b) and s + e = a + b exactly (Knuth, TAOCP 2, 4.2.2)."""
    s: Array = a + b
    bb = s - a
    return s, (a - (s - bb)) + (b - bb)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return p and e with p = fl(a * b) and p + e = a * b exactly, absent over- and underflow (Dekker 1971)."""
    p = a * b
    split = 134217729.0  # 2^27 + 1
    ta, tb = split * a, split * b
    ah, bh = ta - (ta - a), tb - (tb - b)
    al, bl = a - ah, b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def reciprocal_root(w: Array, w_low: Array | float = 0.0) -> tuple[Array, Array]:
    """Return 1/sqrt(w + w_low) of float64 as a sum of two doubles, to about 100 bits (one Newton step)."""
    y: Array = 1.0 / np.sqrt(w)
    # Newton's residual 1 - w y^2 with w scaled by its own root, so that nothing over- or underflows
    square, square_low = two_product(y, y)
    product, product_low = two_product(w, square)
    residual = (1.0 - product) - product_low - w * square_low - w_low * square
    return y, 0.5 * y * residual


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
    root = isqrt(square)
    # a sticky bit below decides between tie and not a tie; int / int divides with one correct rounding
    sticky = 2 * root + (root * root * numerator != denominator << (2 * k))
    return sticky / (1 << (k + 1))
