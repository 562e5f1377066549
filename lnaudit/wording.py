"""Numbers in words and messages as people write them: 1e-5, 5.1e-4, 0.998, 153,728."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable

SAME = 1e-6  # relative: float32 literals of a decimal epsilon
# the ends of the grid of epsilons that are tried: beyond them nothing is known
LOWEST_TRIED, HIGHEST_TRIED = 1e-14, 0.1
_NEGLIGIBLE = 1e-12
_EXPONENT = re.compile(r"e([+-])0*(\d+)$")


def epsilon(value: float | None) -> str:
    """Write an epsilon with the fewest digits that give it back within 1e-6."""
    if value is None or value == 0 or not math.isfinite(value):
        return _special(value)
    text = next(t for t in (f"{value:.{n}e}" for n in range(17)) if math.isclose(float(t), value, rel_tol=SAME))
    return _tidy(text) if abs(value) < 0.099 or abs(value) >= 99_999 else _tidy(f"{float(text):.15g}")


def opens_below(lower: float) -> bool:
    """Whether a window of epsilons begins where the grid does: it may go on."""
    return lower <= LOWEST_TRIED * (1 + SAME)


def opens_above(upper: float) -> bool:
    """Whether a window of epsilons ends where the grid does: it may go on."""
    return upper >= HIGHEST_TRIED * (1 - SAME)


def epsilon_range(lower: float | None, upper: float | None) -> str:
    """Write a window of safe epsilons: 5e-8..5e-3, with <= or >= at an end of the grid."""
    if lower is None or upper is None:
        return "none"
    opens, ends = opens_below(lower), opens_above(upper)
    if opens and ends:
        return "all tried"
    if lower == upper:
        return f"{'<=' * opens}{'>=' * ends}{epsilon(lower)}"
    return f"{'<=' * opens}{epsilon(lower)}..{'>=' * ends}{epsilon(upper)}"


def short(value: float | None) -> str:
    """Write a figure with two significant digits, one where it is far below any limit."""
    if value is None or value == 0 or not math.isfinite(value):
        return _special(value)
    size = abs(value)
    if size < _NEGLIGIBLE:
        return _tidy(f"{value:.0e}")
    if size < 0.00995 or size >= 9999.5:
        return _tidy(f"{value:.1e}")
    return f"{value:.0f}" if size >= 99.5 else f"{value:.2g}"


def ratio(value: float | None) -> str:
    """Write an emulated collapse ratio with three decimals."""
    if value is None or value == 0 or not math.isfinite(value):
        return _special(value)
    return _tidy(f"{value:.1e}") if abs(value) < 0.00995 else f"{value:.3f}"


def exact_ratio(value: float | None) -> str:
    """Write an exact collapse ratio; close to 1, what is missing is what matters."""
    if value is None or value == 0 or not math.isfinite(value):
        return _special(value)
    if value < 0.99:
        return magnitude(value)
    text = f"{value:.5g}"
    return text if value == 1 or text != "1" else "1.0000"


def magnitude(value: float | None) -> str:
    """Write a size with three significant digits."""
    if value is None or value == 0 or not math.isfinite(value):
        return _special(value)
    return _tidy(f"{value:.2e}") if abs(value) < 0.000995 else _tidy(f"{value:.3g}")


def six(value: float | None) -> str:
    """Write a figure with six significant digits."""
    return _special(value) if value is None or value == 0 or not math.isfinite(value) else _tidy(f"{value:.6g}")


def percent(share: float) -> str:
    """Write a share as a percentage with two significant digits."""
    number = 100 * share
    return f"{number:.2g} %" if 1e-3 <= number < 99.5 else f"{short(number)} %"


def count(number: int | None) -> str:
    """Write a count, with separators where the eye needs them; "-" if it was not counted."""
    if number is None:
        return "-"
    return f"{number:,}" if number >= 10_000 else str(number)


def counted(number: int, noun: str, plural: str = "") -> str:
    """Write a count with its noun: 1 row, 3 rows."""
    return f"{count(number)} {noun if number == 1 else plural or noun + 's'}"


def share(rows: int, total: int) -> str:
    """Write how many of how many rows: 3 of 600 rows."""
    return f"{count(rows)} of {counted(total, 'row')}"


def pair(first: str, second: str) -> str:
    """Write two figures of one column."""
    return first if first == second == "-" else f"{first}/{second}"


def _special(value: float | None) -> str:
    if value is None:
        return "-"
    if value == 0:
        return "0"
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def _tidy(text: str) -> str:
    return _EXPONENT.sub(lambda m: f"e{'-' * (m[1] == '-')}{m[2]}", text)


def nearest(word: str, known: Iterable[str]) -> str:
    """Suggest the known name that a word was probably meant to be, or all of them."""
    names = list(known)
    close = difflib.get_close_matches(word, names, 1)
    return f"did you mean {close[0]}?" if close else f"choose from {', '.join(names)}"


def joined(parts: Iterable[str], last: str = " and ") -> str:
    """Join words as prose does: a, b and c."""
    *front, end = list(parts) or [""]
    return f"{', '.join(front)}{last}{end}" if front else end


def verdict_word(verdict: str) -> str:
    """Return the verdict as it is printed: FAIL stands out, also in a log without colours."""
    return "FAIL" if verdict == "fail" else verdict


def printable(text: str, *, ascii_only: bool = False) -> str:
    """Return a text with control characters, line ends and undecodable bytes escaped: one line, safe to print."""
    return "".join(c if _shows(c, ascii_only) else c.encode("unicode_escape").decode("ascii") for c in text)


def _shows(character: str, ascii_only: bool) -> bool:
    return character.isprintable() and (character.isascii() or not ascii_only)
