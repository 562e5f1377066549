"""What counts as worse than what is known."""

from __future__ import annotations

import json
import math

import pytest

from lnaudit.baseline import Known, from_document, is_worse, to_text


@pytest.mark.parametrize(
    ("old", "new", "worse"),
    [
        # measured above its limit: more is worse, by more than a tenth
        ((0.1, 0.5, 0.02), (0.1, 0.5, 0.02), False),
        ((0.1, 0.5, 0.02), (0.1, 0.54, 0.02), False),
        ((0.1, 0.5, 0.02), (0.1, 0.56, 0.02), True),
        ((0.1, 0.5, 0.02), (0.1, 0.1, 0.02), False),
        ((0.1, 0.5, 0.02), (0.1, math.nan, 0.02), True),  # NaN never passes a gate
        ((0.1, 0.5, 0.02), (0.1, math.inf, 0.02), True),
        ((0.1, math.inf, 1.0), (0.1, math.inf, 1.0), False),
        # below it: less is worse
        ((0.1, 1e-8, 6e-5), (0.1, 9.5e-9, 6e-5), False),
        ((0.1, 1e-8, 6e-5), (0.1, 8e-9, 6e-5), True),
        ((0.1, 0.0, 6e-5), (0.1, 0.0, 6e-5), False),
        # more of the rows
        ((0.1, None, None), (0.11, None, None), False),
        ((0.1, None, None), (0.12, None, None), True),
        ((0.0, None, None), (0.001, None, None), True),
        ((0.1, None, None), (0.1, 5.0, 1.0), False),
        # what is below zero, as a negative variance, is worse the further down
        ((0.1, -5.0, 0.0), (0.1, -5.0, 0.0), False),
        ((0.1, -5.0, 0.0), (0.1, -5.4, 0.0), False),
        ((0.1, -5.0, 0.0), (0.1, -6.0, 0.0), True),
        ((0.1, -5.0, 0.0), (0.1, -1.0, 0.0), False),
        # what was above its limit is not worse for being smaller, whatever the limit is now
        ((0.1, 0.5, 0.02), (0.1, 0.015, 0.01), False),
        ((0.1, 0.015, 0.01), (0.1, 0.5, 0.02), True),
    ],
)
def test_worse_is_more_than_a_tenth(old: tuple, new: tuple, worse: bool) -> None:
    names = ("share", "measured", "limit")
    assert is_worse(Known(**dict(zip(names, new, strict=True))), Known(**dict(zip(names, old, strict=True)))) is worse


@pytest.mark.parametrize(("old", "new", "worse"), [
    ("note", "error", True), ("warning", "error", True), ("note", "warning", True), ("error", "error", False),
    ("error", "note", False), (None, "error", False),
])  # fmt: skip
def test_what_became_more_severe_is_worse(old: str | None, new: str, worse: bool) -> None:
    # fewer rows, as when negative variances that were clamped become NaN
    before = Known(share=0.9, measured=-5.0, limit=0.0, severity=old)
    assert is_worse(Known(share=0.1, measured=-5.0, limit=0.0, severity=new), before) is worse


def test_a_baseline_comes_back() -> None:
    known = {
        ("LN104", "a", "float16", "native"): Known(share=0.5, measured=math.inf, limit=65504.0, severity="error"),
        ("LN001", "a", "", ""): Known(share=0.0, measured=None, limit=None),
    }
    assert from_document(json.loads(to_text(known)), "x") == known
    assert to_text({}).count("\n") == 3
