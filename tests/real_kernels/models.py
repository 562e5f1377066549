"""ONNX models of one node, for onnxruntime and for the reference evaluator of onnx."""

from __future__ import annotations

from typing import Any

from onnx import ModelProto, TensorProto, helper

TYPES = {"float16": TensorProto.FLOAT16, "float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}
SHAPES: dict[str, list[Any]] = {"x": ["n", "d"], "skip": ["n", "d"], "weight": ["d"], "bias": ["d"]}
# of com.microsoft: y = norm(x + skip)
SKIPS = ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")


def model_of(operator: str, name: str, epsilon: float, with_bias: bool) -> ModelProto:
    """Return a model with the inputs x, skip, weight and bias, as far as the operator takes them, and the output y."""
    inputs = ["x", *(["skip"] if operator in SKIPS else []), "weight", *(["bias"] if with_bias else [])]
    attributes = {"epsilon": epsilon} | ({} if operator in SKIPS else {"axis": -1})
    domain = "com.microsoft" if operator in SKIPS else ""
    node = helper.make_node(operator, inputs, ["y"], domain=domain, **attributes)
    declared = [helper.make_tensor_value_info(key, TYPES[name], SHAPES[key]) for key in inputs]
    graph = helper.make_graph([node], "norm", declared, [helper.make_tensor_value_info("y", TYPES[name], None)])
    opset = 23 if operator == "RMSNormalization" else 17
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)
