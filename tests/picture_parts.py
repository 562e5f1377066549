"""What tests of pictures share: rows, and what is on a figure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from lnaudit import pictures
from lnaudit.pictures import drawing

pytest.importorskip("matplotlib", reason="pictures need the extra report")

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

X = np.random.default_rng(5).normal(3.0, [[1e-3], [0.1], [1.0], [40.0]] * 16, (64, 32)).astype(np.float32)


def drawn(picture: pictures.Picture | None) -> Figure:
    assert picture is not None
    figure = Figure(figsize=picture.size)
    picture.draw(figure)
    return figure


def lines(axes: Axes, label: str) -> list[Any]:
    return [line for line in axes.lines if line.get_label() == label]


def blocks(axes: Axes, label: str) -> list[Any]:
    return [patch for patch in axes.patches if patch.get_label() == label]


def column(table: pictures.Table, heading: str) -> list[str]:
    return [row[table.headings.index(heading)] for row in table.rows]


def decade(value: float) -> Any:
    """Where a number stands on a log axis."""
    return pytest.approx(math.log10(value), abs=1e-12)


@contextmanager
def measured(picture: pictures.Picture) -> Iterator[tuple[Figure, Any]]:
    """Draw in the style of the pictures, with what measures it."""
    with drawing._drawn(picture, titled=True) as figure:
        yield figure, FigureCanvasAgg(figure).get_renderer()


def words(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]
