"""Families as arrays, whole or block by block, and as sites."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..arithmetic import quiet, round_to
from ..site import Array, ArrayRows, Site
from .specification import FamilySpec
from .table import Part

_BLOCK = 1 << 18  # elements that are made at once: 2 MiB of float64


def blocks(spec: FamilySpec, rows_at_once: int | None = None) -> Iterator[Array]:
    """Yield the rows of a family in order, some at a time; together they are `generate(spec)`, bit by bit.

    Parameters
    ----------
    spec : FamilySpec
    rows_at_once : int, optional
        Rows of a block, >= 1; by default what 2 MiB of float64 hold. The last block may have fewer.

    Yields
    ------
    ndarray, shape (n, features)
        Computed in float64, rounded once to the dtype of the family. Overflow gives Inf.
    """
    step = rows_at_once or max(1, _BLOCK // spec.features)
    random = np.random.default_rng(spec.seed)
    for first in range(0, spec.rows, step):
        rows = min(step, spec.rows - first)
        part = Part(first=first, rows=rows, features=spec.features, of=spec.rows, random=random)
        with quiet():
            exact = spec.family.generator(part, **dict(spec.parameters))
        yield round_to(exact, spec.format).astype(spec.dtype)


def generate(spec: FamilySpec) -> Array:
    """Return a family as an array, shape (rows, features); the same for the same spec, whatever ran before."""
    x = np.empty(spec.shape, spec.dtype)
    filled = 0
    for block in blocks(spec):
        x[filled : filled + len(block)] = block
        filled += len(block)
    return x


def site_of(spec: FamilySpec, epsilon: float, *, norm: str = "layer", epsilon_source: str = "option") -> Site:
    """Return a family as a site, named by its label, normalized over its features."""
    return Site(
        name=spec.label,
        source=spec.label,
        rows=ArrayRows(generate(spec)),
        norm=norm,
        epsilon=epsilon,
        epsilon_source=epsilon_source,
        family=spec.family.name,
    )
