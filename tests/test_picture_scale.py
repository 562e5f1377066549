"""Log axes of pictures: every number of float64 has its place, and so have 0, NaN and Inf."""

from __future__ import annotations

import math

import pytest

from lnaudit.pictures.scale import LogScale

from .picture_parts import decade


def test_log_scales_have_a_place_for_everything() -> None:
    scale = LogScale.over([0.0, 3e-7, 4.0, math.nan])
    assert (scale.low, scale.high) == (-7, 1)
    positions = [scale.at(value) for value in (0.0, 3e-7, 4.0, math.inf)]
    assert positions == sorted(positions)
    assert positions[1:3] == [decade(3e-7), decade(4.0)]
    assert scale.limits[0] < positions[0] < -7
    assert 1 < positions[3] < scale.limits[1]
    assert scale.ticks(20)[1] == ["0", "1e-7", "1e-6", "1e-5", "1e-4", "1e-3", "1e-2", "0.1", "1", "10", "NaN/Inf"]
    assert len(scale.ticks(4)[1]) <= 4 + 2


@pytest.mark.parametrize(
    "values", [[], [0.0], [math.inf], [1.0], [5e-324], [1.7e308], [5e-324, 1.7e308, 0.0, math.inf]]
)
def test_log_scales_of_anything_have_ends(values: list[float]) -> None:
    scale = LogScale.over(values)
    low, high = scale.limits
    assert -math.inf < low < high < math.inf
    assert all(scale.at(value) == decade(value) for value in values if 0 < value < math.inf)
    assert all(low <= scale.at(value) <= high for value in values)
    assert all(low <= tick <= high for tick in scale.ticks(5)[0])
