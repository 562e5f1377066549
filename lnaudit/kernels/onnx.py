"""What the reference evaluator of onnx computes: the formula in numpy, in the type of the input."""

from __future__ import annotations

from dataclasses import replace

from .model import Kernel, Variant

# epsilon is a float32 number there: what it is added to becomes float32, and so does the rest until the output
_LAYER = Kernel(
    name="onnx-reference",
    stands_for="onnx.reference.ReferenceEvaluator with numpy 2: LayerNormalization, RMSNormalization",
    source="onnx/reference/ops/op_layer_normalization.py, op_rms_normalization.py (1.23)",
    proven="bit for bit with onnx 1.23.2 and numpy 2.4.6 in float16, float32, float64",
    reduction="pairwise",
    epsilon="float32",
    plus_epsilon="float32",
    rstd="float32",
    inverse="recip_sqrt",
    normalized="float32",
    affine="float32",
)
# numpy's mean, unlike its sum, keeps float16 in float32 until it has divided
_RMS = replace(_LAYER, square_sum="float32")

ONNX: tuple[Kernel, ...] = (replace(_LAYER, variants=(Variant(row=_RMS, norm="rms"), Variant(row=_LAYER))),)
