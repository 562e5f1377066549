"""What onnxruntime's CPU provider computes: one pass up to 1.26, since then Welford and, with AVX2, two passes."""

from __future__ import annotations

from dataclasses import replace

from .model import Kernel, Variant

_LEGACY = Kernel(
    name="ort-cpu-legacy",
    stands_for="onnxruntime up to 1.26 on a CPU: LayerNormalization, SkipLayerNormalization, RMSNormalization",
    source="onnxruntime/core/providers/cpu/nn/layer_norm_impl.cc, ComputeJob (1.24)",
    proven="bit for bit with onnxruntime 1.24.1",
    sum="float32",
    square_sum="float32",
    mean="float32",
    diff="float32",
    square="float32",
    variance="float32",
    algorithm="one_pass",
    reduction="serial",
    epsilon="float32",
    rstd="float32",
    normalized="float32",
    affine="float32",
)
_WELFORD = replace(
    _LEGACY,
    name="ort-cpu-skip",
    stands_for="onnxruntime from 1.30 on a CPU: SkipLayerNormalization, and what AVX2 does not run",
    source="onnxruntime/contrib_ops/cpu/skip_layer_norm.cc (1.32), measured",
    proven="bit for bit with onnxruntime 1.32.0",
    algorithm="welford",
)
_AVX2 = replace(
    _WELFORD,
    name="ort-cpu",
    stands_for="onnxruntime from 1.30 on a CPU with AVX2: LayerNormalization, RMSNormalization",
    source="onnxruntime/core/mlas/lib/layernorm_kernel_avx2.cpp",
    sum="float64",
    algorithm="two_pass",
    reduction="lanes4",
    square_reduction="lanes8_fours",
    inverse="recip_sqrt",
    fma="all",
)

ONNXRUNTIME: tuple[Kernel, ...] = (
    _LEGACY,
    replace(_WELFORD, variants=(Variant(row=_LEGACY, norm="rms"), Variant(row=_WELFORD))),
    replace(
        _AVX2,
        variants=(
            # narrow rows and doubles take the way without vectors
            Variant(row=_LEGACY, formats=("float64",), norm="rms"),
            Variant(row=_LEGACY, norm="rms", below=16),
            Variant(row=_WELFORD, formats=("float64",)),
            Variant(row=_WELFORD, formats=("float16",), below=16),
            Variant(row=_WELFORD, below=8),
            Variant(row=replace(_AVX2, square_reduction="lanes8"), formats=("float16",)),
            Variant(row=_AVX2),
        ),
    ),
)
