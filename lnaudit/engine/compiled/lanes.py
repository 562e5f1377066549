"""Sixteen numbers side by side: a type for numba's compiler that stands for a vector of the processor.

With it the order of every sum is written down, and what runs in one instruction does not hang on what the compiler
makes of a loop. The operators + - * / work on two vectors of one type, comparisons give masks. LLVM cuts a vector into
what the processor has.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

from .processor import HAS_FMA

LANES = 16
_INDEX = ir.VectorType(ir.IntType(32), LANES)
_ELEMENTS = {
    types.float32: ir.FloatType(),
    types.float64: ir.DoubleType(),
    types.int32: ir.IntType(32),
    types.int64: ir.IntType(64),
    types.boolean: ir.IntType(1),
}


class Lanes(types.Type):
    """A vector of sixteen numbers."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


FLOAT32, FLOAT64, MASK = Lanes(types.float32), Lanes(types.float64), Lanes(types.boolean)


def vector_of(dtype: Any) -> ir.VectorType:
    """Return the type of sixteen numbers of a type."""
    return ir.VectorType(_ELEMENTS[dtype], LANES)


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        super().__init__(manager, lanes, vector_of(lanes.dtype))


def _operator(key: Callable[..., Any], build: Callable[[Any, Any, Any], Any], *, gives_mask: bool = False) -> None:
    """Teach the compiler an operator on two vectors of one type."""

    @infer_global(key)
    class _Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if len(args) == 2 and isinstance(args[0], Lanes) and args[0] == args[1]:
                return signature(MASK if gives_mask else args[0], *args)
            return None

    @lower_builtin(key, Lanes, Lanes)
    def _lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return build(builder, *args)


for _key, _build in (
    (operator.add, lambda b, x, y: b.fadd(x, y)),
    (operator.sub, lambda b, x, y: b.fsub(x, y)),
    (operator.mul, lambda b, x, y: b.fmul(x, y)),
    (operator.truediv, lambda b, x, y: b.fdiv(x, y)),
):
    _operator(_key, _build)
for _key, _build in (
    (operator.lt, lambda b, x, y: b.fcmp_ordered("<", x, y)),
    (operator.le, lambda b, x, y: b.fcmp_ordered("<=", x, y)),
    (operator.eq, lambda b, x, y: b.fcmp_ordered("==", x, y)),
    (operator.and_, lambda b, x, y: b.and_(x, y)),
    (operator.or_, lambda b, x, y: b.or_(x, y)),
):
    _operator(_key, _build, gives_mask=True)


def _address(context: Any, builder: Any, sig: Any, args: Any, dtype: Any) -> Any:
    array = context.make_array(sig.args[0])(context, builder, args[0])
    return builder.bitcast(builder.gep(array.data, [args[1]]), vector_of(dtype).as_pointer())


@intrinsic
def load(typingctx: Any, array: Any, i: Any) -> Any:
    """Return elements i to i + 15 of a contiguous array."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(_address(context, builder, sig, args, array.dtype), align=array.dtype.bitwidth // 8)

    return signature(Lanes(array.dtype), array, types.intp), codegen


@intrinsic
def store(typingctx: Any, array: Any, i: Any, x: Any) -> Any:
    """Write a vector to elements i to i + 15 of a contiguous array."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(args[2], _address(context, builder, sig, args, array.dtype), align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return signature(types.none, array, types.intp, x), codegen


@intrinsic
def load_strided(typingctx: Any, array: Any, i: Any, stride: Any) -> Any:
    """Return elements i, i + stride, ... of a contiguous array: one feature of sixteen rows."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        x = ir.Constant(vector_of(array.dtype), ir.Undefined)
        at = args[1]
        for lane in range(LANES):
            element = builder.load(builder.gep(data, [at]))
            x = builder.insert_element(x, element, ir.Constant(ir.IntType(32), lane))
            at = builder.add(at, args[2])
        return x

    return signature(Lanes(array.dtype), array, types.intp, types.intp), codegen


def spread(builder: Any, x: Any) -> Any:
    """Build the vector that holds a number sixteen times."""
    vector = ir.VectorType(x.type, LANES)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), x, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, one, ir.Constant(_INDEX, [0] * LANES))


@intrinsic
def splat(typingctx: Any, x: Any) -> Any:
    """Return a number in all lanes."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return spread(builder, args[0])

    return signature(Lanes(x), x), codegen


@intrinsic
def blank(typingctx: Any, x: Any) -> Any:
    """Return a vector of zeros in the type of another one."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return ir.Constant(args[0].type, [0.0] * LANES)

    return signature(x, x), codegen


@intrinsic
def widened(typingctx: Any, x: Any) -> Any:
    """Return a vector as float64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return args[0] if x == FLOAT64 else builder.fpext(args[0], vector_of(types.float64))

    return signature(FLOAT64, x), codegen


@intrinsic
def like(typingctx: Any, x: Any, model: Any) -> Any:
    """Return a vector in the type of another one, rounded once to nearest even where that is shorter."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if x == model:
            return args[0]
        convert = builder.fptrunc if model == FLOAT32 else builder.fpext
        return convert(args[0], vector_of(model.dtype))

    return signature(model, x, model), codegen


def call_unary(builder: Any, name: str, x: Any) -> Any:
    """Build a call of an intrinsic of LLVM on a vector."""
    bits = 32 if x.type.element == ir.FloatType() else 64
    function = ir.FunctionType(x.type, [x.type])
    return builder.call(cgutils.get_or_insert_function(builder.module, function, f"{name}.v{LANES}f{bits}"), [x])


@intrinsic
def fused(typingctx: Any, x: Any, y: Any, z: Any) -> Any:
    """Return x * y - z of float64, rounded once."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vector = vector_of(types.float64)
        function = ir.FunctionType(vector, [vector] * 3)
        fma = cgutils.get_or_insert_function(builder.module, function, f"llvm.fma.v{LANES}f64")
        return builder.call(fma, [*args[:2], builder.fneg(args[2])])

    return signature(FLOAT64, x, y, z), codegen


@intrinsic
def square_added(typingctx: Any, total: Any, x: Any) -> Any:
    """Return total + x * x in float64 of numbers x of float32 or float64, the square rounded before it is added.

    The square of a float32 is exact there: one operation does both.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        total_, x_ = args
        wide = x_ if x == FLOAT64 else builder.fpext(x_, total_.type)
        if x == FLOAT64 or not HAS_FMA:
            return builder.fadd(total_, builder.fmul(wide, wide))
        function = ir.FunctionType(total_.type, [total_.type] * 3)
        fma = cgutils.get_or_insert_function(builder.module, function, f"llvm.fma.v{LANES}f64")
        return builder.call(fma, [wide, wide, total_])

    return signature(FLOAT64, total, x), codegen


def _unary(name: str, doc: str) -> Any:
    def function(typingctx: Any, x: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return call_unary(builder, name, args[0])

        return signature(x, x), codegen

    function.__doc__ = doc
    return intrinsic(function)


root = _unary("llvm.sqrt", "Return square roots, rounded once.")
magnitude = _unary("llvm.fabs", "Return absolute values.")


@intrinsic
def lane_numbers(typingctx: Any) -> Any:
    """Return 0.0 to 15.0 in float64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return ir.Constant(vector_of(types.float64), [float(lane) for lane in range(LANES)])

    return signature(FLOAT64), codegen


def _rotation(distance: int) -> Any:
    def function(typingctx: Any, x: Any) -> Any:
        """Return a vector whose lane l is lane l + distance, around the end."""

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            mask = ir.Constant(_INDEX, [(lane + distance) % LANES for lane in range(LANES)])
            return builder.shuffle_vector(args[0], args[0], mask)

        return signature(x, x), codegen

    return intrinsic(function)


rotated8, rotated4, rotated2, rotated1 = map(_rotation, (8, 4, 2, 1))


@intrinsic
def first(typingctx: Any, x: Any) -> Any:
    """Return what is in lane 0."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.extract_element(args[0], ir.Constant(ir.IntType(32), 0))

    return signature(x.dtype, x), codegen
