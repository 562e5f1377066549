"""What torch computes on CPU: float32 inside for the 16-bit formats, the statistics in vector lanes."""

from __future__ import annotations

from dataclasses import replace

from .model import Kernel, Variant

_FLOAT32 = Kernel(
    name="torch-cpu",
    stands_for="torch on a CPU (AVX2): functional.layer_norm, functional.rms_norm",
    source="ATen/native/cpu/layer_norm_kernel.cpp, moments_utils.h, SumKernel.cpp, native/layer_norm.cpp (torch 2.13)",
    # in float32 and float64 a bias alone is added to a product that is not rounded
    proven="bit for bit with torch 2.13.0 (but a bias without a weight)",
    sum="float32",
    square_sum="float32",
    mean="float32",
    diff="float32",
    square="float32",
    variance="float32",
    algorithm="cascade",
    reduction="lanes8",
    rstd="float32",
    inverse="recip_sqrt",
    normalized="float32",
    affine="float32",
    fma="apply",
)
_FLOAT64 = replace(_FLOAT32, reduction="lanes4")
# x is scaled and shifted, as it was converted
_HALF = replace(_FLOAT32, epsilon="float32", apply="scale_shift")
# a composite of pow, mean, rsqrt and mul, nothing fused; mean is torch's sum over d
_RMS = replace(_FLOAT32, algorithm="two_pass", reduction="cascade8", epsilon="wide", fma="off")

TORCH: tuple[Kernel, ...] = (
    replace(
        _FLOAT32,
        variants=(
            Variant(row=replace(_RMS, reduction="cascade4"), formats=("float64",), norm="rms"),
            Variant(row=_RMS, norm="rms"),
            Variant(row=replace(_HALF, fma="all"), formats=("float16",)),
            Variant(row=_HALF, formats=("bfloat16",)),
            Variant(row=_FLOAT64, formats=("float64",)),
            Variant(row=_FLOAT32),
        ),
    ),
)
