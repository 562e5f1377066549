"""Maps of verdicts as text: a letter a cell, the second parameter upwards, the first to the right."""

from __future__ import annotations

from collections import Counter

from .. import wording
from ..report import VerdictMap
from ..wording import counted, verdict_word
from .style import Style

_LETTERS = {"fail": "F", "warn": "w", "pass": "."}
_INDENT = "  "
LEGEND = [f"{_INDENT}. pass   w warn   F FAIL: the worst of the rows; lnaudit rule CODE explains a code"]


def map_title(found: VerdictMap, style: Style) -> str:
    """Name a map: the family, the emulation and the epsilon."""
    emulated = f"{found.format} {found.kernel}, epsilon {wording.epsilon(found.epsilon)}"
    return f"{style.safe(found.family)}   ({emulated})"


def cells_text(found: VerdictMap, rules: dict[str, str]) -> str:
    """Count the cells of a map by verdict, and by code, the commonest first."""
    verdicts = Counter(verdict for row in found.verdicts for verdict in row)
    counts = [f"{verdicts[verdict]} {verdict_word(verdict)}" for verdict in _LETTERS if verdicts[verdict]]
    said = f"{found.parameters[0]} x {found.parameters[1]}: {counted(verdicts.total(), 'cell')}, {', '.join(counts)}"
    codes = Counter(code for row in found.codes for cell in row for code in cell)
    common = sorted(codes.items(), key=lambda item: (-item[1], item[0]))
    return "; ".join(filter(None, [said, ", ".join(f"{code} {rules[code]} in {n}" for code, n in common)]))


def passes(found: VerdictMap) -> bool:
    """Whether every cell of a map does."""
    return all(verdict == "pass" for row in found.verdicts for verdict in row)


def map_lines(found: VerdictMap, rules: dict[str, str], style: Style) -> list[str]:
    """Return a map with its axes, and which codes it holds."""
    across, up = found.parameters
    labels = [wording.epsilon(value) for value in found.values[1]]
    width = max(map(len, (*labels, up)))
    lines = [map_title(found, style), f"{_INDENT}{up:>{width}}"]
    for label, row in reversed(list(zip(labels, found.verdicts, strict=True))):
        cells = " ".join(style.paint(_LETTERS[verdict], verdict_word(verdict)) for verdict in row)
        lines.append(f"{_INDENT}{label:>{width}}  {cells}")
    lines.append(f"{_INDENT}{'':{width}}  {_ticks(found.values[0])}  {across}")
    return [*lines, *style.wrap(cells_text(found, rules), _INDENT, _INDENT * 2)]


def _ticks(values: list[float]) -> str:
    """Label every cell that has room, so that no label touches the next: a cell is two columns wide."""
    line = ""
    for number, value in enumerate(values):
        if len(line) <= 2 * number:
            line = f"{line:{2 * number}}{wording.epsilon(value)} "
    return line.rstrip()
