"""torch's mean and variance of a row on CPU: Welford's algorithm in vector lanes and chunks, merged in a cascade.

Source: torch 2.13, aten/src/ATen/native/cpu/moments_utils.h, RowwiseMoments. Which products are fused is the
compiler's choice and was measured on the CPU build (AVX2 and AVX-512 alike): all of the updates in a chunk, of the
merges of vectors only the last product, of the merges of lanes both, of what does not fill a vector none, but in
float16 its squares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arithmetic import Workspace, flushed_operand, fma, round_in_place, round_number, rounded
from ...formats import Format

Array = NDArray[Any]
CHUNK = 16  # vectors


@dataclass(kw_only=True)
class Moments:
    """Number of elements, their mean, the sum of their squared deviations."""

    count: int
    mean: Array
    squares: Array


@dataclass(frozen=True)
class _Arithmetic:
    fmt: Format
    ws: Workspace
    fuses_rest: bool

    def rounded(self, x: Array) -> Array:
        round_in_place(x, self.fmt, self.ws)
        return x

    def fused(self, a: Array, b: Array | float, c: Array) -> Array:
        return fma(a, np.asarray(b, self.fmt.carrier), c, self.fmt, self.ws)

    def number(self, value: float) -> Any:
        return np.dtype(self.fmt.carrier).type(round_number(value, self.fmt))

    def times(self, x: Array, count: int) -> Array:
        """Multiply by a whole number, which is not rounded."""
        return rounded(x.astype(np.float64) * count, self.fmt)

    def merged(self, one: Moments, into: Moments, *, vectors: bool) -> Moments:
        """Merge two sets (Chan, Golub, LeVeque 1983); `vectors` of lanes are fused otherwise than single lanes."""
        count = one.count + into.count
        share = self.number(one.count / count) if count else self.number(0.0)
        delta = self.rounded(one.mean - into.mean)
        if vectors:
            mean = self.rounded(into.mean + self.rounded(share * delta))
            both = self.rounded(into.squares + one.squares)
            squares = self.fused(self.rounded(delta * share), self.times(delta, into.count), both)
        else:
            mean = self.fused(delta, share, into.mean)
            product = self.rounded(self.rounded(delta * delta) * share)
            squares = self.rounded(into.squares + self.fused(product, float(into.count), one.squares))
        return Moments(count=count, mean=mean, squares=squares)


def row_moments(x: Array, fmt: Format, lanes: int, halves: int, fuses_rest: bool, ws: Workspace) -> tuple[Array, Array]:
    """Return mean and sum of squared deviations of rows, shape (d, n), in lanes of a vector pushed in `halves`.

    fuses_rest: whether the squares of what does not fill a vector are fused.
    """
    run, x = _Arithmetic(fmt, ws, fuses_rest), flushed_operand(x, fmt)
    d, n = x.shape
    width = lanes * halves
    vectors = d // width
    chunks = -(-vectors // CHUNK)
    nothing = Moments(count=0, mean=np.zeros((lanes, n), fmt.carrier), squares=np.zeros((lanes, n), fmt.carrier))
    stack = [nothing] * max(1, (chunks - 1).bit_length())
    for i in range(chunks):
        amount = min(CHUNK, vectors - i * CHUNK)
        chunk = x[i * CHUNK * width :][: amount * width].reshape(amount, halves, lanes, n)
        for half in range(halves):
            stack[0] = run.merged(_chunk(chunk[:, half], run), stack[0], vectors=True)
        level, bits = 1, i + 1
        while level < len(stack) and not bits & 1:
            stack[level] = run.merged(stack[level - 1], stack[level], vectors=True)
            stack[level - 1] = nothing
            level, bits = level + 1, bits >> 1
    for part in stack[1:]:
        stack[0] = run.merged(part, stack[0], vectors=True)
    total = _tail(x[vectors * width :], run)
    for mean, squares in zip(stack[0].mean, stack[0].squares, strict=True):
        lane = Moments(count=vectors * halves, mean=mean, squares=squares)
        total = run.merged(lane, total, vectors=False)
    return total.mean, total.squares


def _chunk(vectors: Array, run: _Arithmetic) -> Moments:
    """Push vectors of shape (lanes, n) one after the other, all products fused."""
    mean, squares = np.zeros_like(vectors[0]), np.zeros_like(vectors[0])
    for j, x in enumerate(vectors, 1):
        delta = run.rounded(x - mean)
        mean = run.fused(delta, run.number(1 / j), mean)
        squares = run.fused(delta, run.rounded(x - mean), squares)
    return Moments(count=len(vectors), mean=mean, squares=squares)


def _tail(elements: Array, run: _Arithmetic) -> Moments:
    """Push what does not fill a vector element by element."""
    mean = squares = np.zeros(elements.shape[1], elements.dtype)
    for k, x in enumerate(elements, 1):
        delta = run.rounded(x - mean)
        mean = run.rounded(mean + rounded(delta.astype(np.float64) / k, run.fmt))
        rest = run.rounded(x - mean)
        if run.fuses_rest:
            squares = run.fused(delta, rest, squares)
        else:
            squares = run.rounded(squares + run.rounded(delta * rest))
    return Moments(count=len(elements), mean=mean, squares=squares)
