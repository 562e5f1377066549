"""Colours of pictures: they stand out on white and on dark (WCAG 2.2)."""

from __future__ import annotations

import pytest

from lnaudit.pictures import style


def luminance(color: str) -> float:
    """Relative luminance by WCAG 2.2."""
    shares = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("paper", ["#ffffff", "#121212"])
def test_what_is_drawn_stands_out_on_white_and_on_dark(paper: str) -> None:
    for color in {*style.COLORS, *style._COLORS.values()}:
        assert contrast(color, paper) >= 3, color


def test_words_stand_out_in_their_cells() -> None:
    for paint in style.VERDICTS.values():
        if paint.alpha == 1:
            assert contrast(paint.fill, paint.text) >= 4.5
        else:  # a tint under the ink of the page
            for paper, ink in (("#ffffff", "#000000"), ("#121212", "#e8e8e8")):
                mixed = [
                    round(paint.alpha * int(paint.fill[i : i + 2], 16) + (1 - paint.alpha) * int(paper[i : i + 2], 16))
                    for i in (1, 3, 5)
                ]
                assert contrast("#" + "".join(f"{part:02x}" for part in mixed), ink) >= 7
