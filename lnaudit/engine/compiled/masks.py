"""Masks of sixteen lanes: what asks for one, what it picks and counts, and one as a number of sixteen bits."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import signature
from numba.extending import intrinsic

from .lanes import LANES, MASK, call_unary, spread, vector_of


@intrinsic
def is_finite(typingctx: Any, x: Any) -> Any:
    """Return a mask of the lanes that are neither NaN nor Inf."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        infinity = ir.Constant(args[0].type, [float("inf")] * LANES)
        return builder.fcmp_ordered("<", call_unary(builder, "llvm.fabs", args[0]), infinity)

    return signature(MASK, x), codegen


@intrinsic
def chosen(typingctx: Any, mask: Any, x: Any, y: Any) -> Any:
    """Return x where a mask is set and y elsewhere."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.select(*args)

    return signature(x, mask, x, y), codegen


@intrinsic
def count(typingctx: Any, mask: Any) -> Any:
    """Return in how many lanes a mask is set."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bits = builder.bitcast(args[0], ir.IntType(LANES))
        return builder.zext(builder.ctpop(bits), ir.IntType(64))

    return signature(types.int64, mask), codegen


@intrinsic
def packed(typingctx: Any, mask: Any) -> Any:
    """Return a mask as a number: bit l is lane l."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.zext(builder.bitcast(args[0], ir.IntType(LANES)), ir.IntType(64))

    return signature(types.int64, mask), codegen


@intrinsic
def unpacked(typingctx: Any, bits: Any) -> Any:
    """Return the mask of a number whose bit l is lane l."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(builder.trunc(args[0], ir.IntType(LANES)), vector_of(types.boolean))

    return signature(MASK, types.int64), codegen


@intrinsic
def lanes_below(typingctx: Any, n: Any) -> Any:
    """Return a mask of the lanes whose number is less than n."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vector = ir.VectorType(ir.IntType(64), LANES)
        return builder.icmp_signed("<", ir.Constant(vector, list(range(LANES))), spread(builder, args[0]))

    return signature(MASK, types.int64), codegen
