"""Numbers in words."""

import pytest

from lnaudit import wording


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5.1e-4, "5.1e-4"),
        (0.00996, "0.01"),
        (0.0994, "0.099"),
        (0.022, "0.022"),
        (1.0, "1"),
        (12345.0, "1.2e4"),
        (123.4, "123"),
        (9.1e-17, "9e-17"),
        (0.0, "0"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (None, "-"),
    ],
)
def test_short(value: float | None, text: str) -> None:
    assert wording.short(value) == text


def test_ratios_and_counts() -> None:
    assert [wording.ratio(x) for x in (0.9976, 1.0, 0.0109, 1.1e-4, 0.0, None)] == [
        "0.998",
        "1.000",
        "0.011",
        "1.1e-4",
        "0",
        "-",
    ]
    assert [wording.exact_ratio(x) for x in (1.0, 1 - 1e-12, 0.999924, 0.5, 1e-9)] == [
        "1",
        "1.0000",
        "0.99992",
        "0.5",
        "1.00e-9",
    ]
    assert [wording.count(n) for n in (0, 9999, 10000, None)] == ["0", "9999", "10,000", "-"]
    assert wording.percent(0.094) == "9.4 %"
