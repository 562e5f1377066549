"""What a kernel outputs for a block of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arithmetic import Workspace
from ..formats import Format
from ..kernels import Kernel
from . import interpreter
from .cast import cast_rows
from .numpy_engine import turned

Array = NDArray[Any]


def output_of(
    block: Array,
    fmt: Format,
    kernel: Kernel,
    *,
    epsilon: float,
    rms: bool = False,
    weight: Array | None = None,
    bias: Array | None = None,
    ws: Workspace,
) -> Array:
    """Return the output for rows of shape (n, d), of shape (d, n), in the carrier of the format."""
    x = turned(block, ws)
    x[np.isnan(x)] = np.nan  # rounding would carry some payloads into the exponent
    h = cast_rows(x, kernel.stages(fmt).T, 0, ws)
    ends = np.maximum.reduce(h, axis=0), np.minimum.reduce(h, axis=0)
    centered = interpreter.center(h, *ends, fmt, kernel, rms, ws)
    _, inverse = interpreter.inverse(centered.variance, (epsilon,), fmt, kernel)
    normalized = interpreter.normalize(centered, inverse[0], fmt, kernel, rms, ws)
    return interpreter.output(centered, normalized, inverse[0], weight, bias, fmt, kernel, rms, ws)
