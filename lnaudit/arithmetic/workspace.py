"""Memory that is used again: allocating a block's arrays anew would cost as much as computing them."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import NDArray

from ..memory import aligned

Array = NDArray[Any]
_ITEMSIZE = {"float32": 4, "int32": 4, "uint32": 4, "float64": 8, "int64": 8, "bool": 1}


MOST_SHAPES = 256  # of arrays that are remembered


class Workspace:
    """Named buffers that one thread uses again for block after block."""

    def __init__(self) -> None:
        self._buffers: dict[str, Array] = {}
        self._arrays: dict[tuple[str, tuple[int, ...], str], Array] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: str) -> Array:
        """Return an uninitialized array; the last one of that name is overwritten."""
        key = (name, shape, dtype)
        found = self._arrays.get(key)
        if found is None:
            need = math.prod(shape) * _ITEMSIZE[dtype]
            buffer = self._buffers.get(name)
            if buffer is None or buffer.size < need:
                self._arrays.clear()  # some lie in the buffer that is given up
                buffer = self._buffers[name] = aligned(need)
            if len(self._arrays) == MOST_SHAPES:
                self._arrays.clear()
            found = self._arrays[key] = buffer[:need].view(dtype).reshape(shape)
        return found
