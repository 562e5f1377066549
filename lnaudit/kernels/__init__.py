"""Kernels as data: the arithmetic by which programs compute the norm, one frozen row each."""

from __future__ import annotations

from .model import AXES, Kernel, Stages, Variant
from .onnx import ONNX
from .onnxruntime import ONNXRUNTIME
from .runtimes import RUNTIMES, find_runtime
from .specification import get_kernel
from .textbook import TEXTBOOK
from .torch import TORCH

KERNELS: dict[str, Kernel] = {kernel.name: kernel for kernel in (*TEXTBOOK, *TORCH, *ONNXRUNTIME, *ONNX)}
# from the least to the most float32: the first without an error finding is the weakest clean kernel (design: ladder)
LADDER: tuple[str, ...] = ("native-serial", "native", "decomposed", "stored-stats", "fused")

__all__ = ["AXES", "KERNELS", "LADDER", "RUNTIMES", "Kernel", "Stages", "Variant", "find_runtime", "get_kernel"]
