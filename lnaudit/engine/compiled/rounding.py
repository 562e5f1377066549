"""Rounding of vectors: a tuple of constants says how, and its type picks the code that is compiled."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core.typing.templates import signature
from numba.extending import intrinsic

from ...arithmetic import rounding
from ...formats import FORMATS, Format
from .lanes import LANES, call_unary, spread
from .processor import HAS_HALF

How = tuple[Any, ...]
_SHORT = {16: ir.HalfType(), 32: ir.FloatType()}
_EXPONENTS = {32: 0x7F800000, 64: 0x7FF0000000000000}


@cache
def how(fmt: Format, carrier: str) -> How:
    """Return how numbers of a carrier are rounded to a format: as `arithmetic.rounding` does it, in constants.

    () they are already; one number: by the processor, to the float of its size and back; three: by bits; five: by
    addition; six: by addition, and beyond the last NaN.
    """
    itemsize = np.dtype(carrier).itemsize
    if fmt.precision == 53 or (itemsize == 4 and fmt.precision == 24):
        return ()
    if itemsize == 8 and fmt.precision == 24:
        return (np.int32(0),)
    if itemsize == 4 and fmt is FORMATS["float16"] and HAS_HALF:
        return (np.int16(0),)
    if itemsize == 4 and fmt.emin == FORMATS["float32"].emin:
        return rounding.bits_constants(fmt)
    constants = rounding.addition_constants(fmt, itemsize)
    return constants if fmt.infinity else (*constants, np.dtype(carrier).type(fmt.max))


@intrinsic
def rounded(typingctx: Any, x: Any, constants: Any) -> Any:
    """Return a vector rounded once to nearest even, as the constants of `how` say."""
    bits = x.dtype.bitwidth
    integer = ir.VectorType(ir.IntType(bits), LANES)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        number, packed = args
        if not constants:
            return number
        if len(constants) == 1:
            short = ir.VectorType(_SHORT[constants.dtype.bitwidth], LANES)
            return builder.fpext(builder.fptrunc(number, short), number.type)
        parts = [spread(builder, builder.extract_value(packed, i)) for i in range(len(constants))]
        if len(constants) == 3:
            return _by_bits(builder, number, integer, *parts)
        result = _by_addition(builder, number, integer, bits, *parts[:5])
        if len(constants) == 6:
            beyond = builder.fcmp_ordered(">", call_unary(builder, "llvm.fabs", result), parts[5])
            result = builder.select(beyond, ir.Constant(result.type, [float("nan")] * LANES), result)
        return result

    return signature(x, x, constants), codegen


def _by_bits(builder: Any, x: Any, integer: Any, shift: Any, half: Any, mask: Any) -> Any:
    source = builder.bitcast(x, integer)
    odd = builder.and_(builder.lshr(source, shift), ir.Constant(integer, [1] * LANES))
    return builder.bitcast(builder.and_(builder.add(builder.add(odd, half), source), mask), x.type)


def _by_addition(
    builder: Any, x: Any, integer: Any, bits: int, lowest: Any, highest: Any, lift: Any, up: Any, down: Any
) -> Any:
    exponent = builder.and_(builder.bitcast(x, integer), ir.Constant(integer, [_EXPONENTS[bits]] * LANES))
    exponent = builder.select(builder.icmp_signed("<", exponent, lowest), lowest, exponent)
    exponent = builder.select(builder.icmp_signed(">", exponent, highest), highest, exponent)
    constant = builder.bitcast(builder.add(exponent, lift), x.type)
    cut = builder.fsub(builder.fadd(x, constant), constant)
    return builder.fmul(builder.fmul(cut, up), down)
