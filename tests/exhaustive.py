"""Which of many cases the usual suite runs; `pytest -m exhaustive` runs the others, as CI does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def sampled(values: Sequence[Any], *usual: Any) -> list[Any]:
    """Return parameters of which the usual suite runs only some."""
    assert set(usual) <= set(values)
    return [value if value in usual else pytest.param(value, marks=pytest.mark.exhaustive) for value in values]


def sampled_cases(cases: Sequence[tuple[Any, ...]], *usual: tuple[Any, ...]) -> list[Any]:
    """Return what `sampled` does for several arguments at once."""
    kept = set(usual)
    assert kept <= set(cases)
    return [pytest.param(*case, marks=() if case in kept else pytest.mark.exhaustive) for case in cases]
