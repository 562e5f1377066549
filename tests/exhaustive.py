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
    assert set(usual) <= set(cases)
    marks = {True: (), False: pytest.mark.exhaustive}
    return [pytest.param(*case, marks=marks[case in usual]) for case in cases]
