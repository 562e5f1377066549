"""The textbook kernels: from everything rounded to T to a good fused kernel."""

from __future__ import annotations

from .model import Kernel

TEXTBOOK: tuple[Kernel, ...] = (
    Kernel(
        name="native-serial",
        stands_for="accelerators and loops that run the formula in T and sum from left to right in T",
        source="the formula, every operation rounded to T",
        reduction="serial",
    ),
    Kernel(
        name="native",
        stands_for="an engine that runs the formula in T (a half-precision graph, op by op), with sums by halves",
        source="the formula, every operation rounded to T",
    ),
    Kernel(
        name="decomposed",
        stands_for="a graph exported op by op (ONNX before opset 17), reductions in float32, every tensor between in T",
        source="ONNX exporters up to opset 16: ReduceMean, Sub, Pow, ReduceMean, Add, Sqrt, Div, Mul, Add",
        sum="float32",
        square_sum="float32",
    ),
    Kernel(
        name="stored-stats",
        stands_for="float32 inside, but mean, variance and 1/std are stored in T",
        source="kernels whose statistics tensors have the type of the input",
        sum="float32",
        square_sum="float32",
        diff="float32",
        square="float32",
        epsilon="wide",
        inverse="rsqrt",
        normalized="float32",
        affine="float32",
    ),
    Kernel(
        name="fused",
        stands_for="a fused kernel (as in PyTorch, Triton, TransformerEngine), float32 inside, T at the end",
        source="Triton tutorial 05, TransformerEngine ln_fwd_kernels.cuh, PyTorch layer_norm_kernel.cu",
        sum="float32",
        square_sum="float32",
        mean="float32",
        diff="float32",
        square="float32",
        variance="float32",
        epsilon="wide",
        rstd="float32",
        inverse="rsqrt",
        normalized="float32",
        affine="float32",
    ),
)
