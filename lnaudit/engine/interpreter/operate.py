"""One operation as the hardware does it: operands read, rounded once in the widest format, stored in its stage's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import Workspace, flushed_operand, fma, round_in_place
from ...formats import Format

Array = NDArray[Any]


def operate(
    ws: Workspace, name: str, ufunc: np.ufunc, a: Array, b: Array | float, wide: Format, stage: Format
) -> Array:
    """Apply an operation in the widest format that takes part and store it in its stage's."""
    if wide.flushes:
        a, b = flushed_operand(a, wide), flushed_operand(np.asarray(b), wide)
    shape = np.broadcast_shapes(a.shape, np.shape(b))
    out = ws.array(name, shape, wide.carrier)
    ufunc(a, b, out=out, dtype=wide.carrier)
    round_in_place(out, wide, ws)
    return store(out, stage, ws)


def multiply_add(a: Array, b: Array, c: Array, wide: Format, stage: Format, ws: Workspace) -> Array:
    """Return a * b + c rounded once in the widest format that takes part, stored in its stage's."""
    return store(fma(a, b, c, wide, ws), stage, ws)


def store(x: Array, stage: Format, ws: Workspace) -> Array:
    """Round an array to a stage's format where it stands, and give it that format's carrier."""
    round_in_place(x, stage, ws)
    return x.astype(stage.carrier, copy=False)
