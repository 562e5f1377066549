"""SVG written short: the same places, to a tenth of a point."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from lnaudit.pictures.svg_short import number, path, rounded, unclip


def points(data: str) -> list[tuple[float, float]]:
    """Follow a path of steps, as SVG 2 says."""
    at, found = (0.0, 0.0), []
    for command, rest in re.findall(r"([MlhvzL])([^MlhvzL]*)", data):
        values = [float(text) for text in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", rest)]
        if command in "ML":
            at = (values[0], values[1])
        elif command != "z":
            dx, dy = {"l": values, "h": [*values, 0.0], "v": [0.0, *values]}[command][:2]
            at = (at[0] + dx, at[1] + dy)
        if command != "z":
            found.append(at)
    return found


def test_steps_lead_through_the_same_points() -> None:
    rng = np.random.default_rng(1)
    given = rng.uniform(-50, 600, (400, 2))
    data = "M " + " L ".join(f"{x:.6f} {y:.6f} \n" for x, y in given)
    assert np.abs(np.array(points(path(data, 1))) - given).max() <= 0.05 + 1e-6
    assert len(path(data, 1)) < 0.5 * len(data)


@pytest.mark.parametrize(
    ("data", "short"),
    [
        ("M 116.64 118.8 \nL 498.24 118.8 \n", "M116.6 118.8h381.6"),
        ("M 1 2 L 1 0.46 L 0 0 z", "M1 2v-1.5l-1-.5z"),
        ("M 3 3 L 3.01 3.02 L 4 4", "M3 3l1 1"),
        ("M 0.04 -0.04 L 5 5 M 7 7 L 8 8", "M0 0l5 5M7 7l1 1"),
        ("M 0 3 C 0.795609 3 1.55874 2.683901 2.12132 2.12132 z", "M0 3C.8 3 1.6 2.7 2.1 2.1z"),
    ],
)
def test_paths_are_short(data: str, short: str) -> None:
    assert path(data, 1) == short


@pytest.mark.parametrize(("value", "text"), [(0.5, ".5"), (-0.5, "-.5"), (-0.04, "0"), (10.0, "10"), (100.04, "100")])
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value, 1) == text
    assert rounded(f"a {value:.6f} b", 1) == f"a {text} b"


def test_only_what_is_inside_loses_its_clipping() -> None:
    svg = ElementTree.fromstring(
        '<svg><defs><clipPath id="c"><rect x="10" y="10" width="80" height="80"/></clipPath></defs>'
        '<path id="in" clip-path="url(#c)" d="M 10 10 L 90 90"/>'
        '<path id="out" clip-path="url(#c)" d="M 10 10 L 95 90"/>'
        '<path id="curve" clip-path="url(#c)" d="M 20 20 C 30 30 40 40 50 50"/></svg>'
    )
    unclip(svg)
    clipped = {path.get("id"): "clip-path" in path.attrib for path in svg.iter("path")}
    assert clipped == {"in": False, "out": True, "curve": True}
