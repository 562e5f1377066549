"""Maps of verdicts as text: a letter a cell, the second parameter upwards, the first to the right."""

from __future__ import annotations

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


def cells_text(found: VerdictMap) -> str:
    """Count the cells of a map by verdict."""
    verdicts = [verdict for row in found.verdicts for verdict in row]
    amounts = ((verdict, verdicts.count(verdict)) for verdict in _LETTERS)
    said = ", ".join(f"{amount} {verdict_word(verdict)}" for verdict, amount in amounts if amount)
    return f"{found.parameters[0]} x {found.parameters[1]}: {counted(len(verdicts), 'cell')}, {said}"


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
    return [*lines, *_codes(found, rules, style)]


def _ticks(values: list[float]) -> str:
    """Label every cell that has room, so that no label touches the next: a cell is two columns wide."""
    line = ""
    for number, value in enumerate(values):
        if len(line) <= 2 * number:
            line = f"{line:{2 * number}}{wording.epsilon(value)} "
    return line.rstrip()


def _codes(found: VerdictMap, rules: dict[str, str], style: Style) -> list[str]:
    """Say how many cells each code has, the commonest first."""
    amounts: dict[str, int] = {}
    for code in (code for row in found.codes for cell in row for code in cell):
        amounts[code] = amounts.get(code, 0) + 1
    common = sorted(amounts.items(), key=lambda item: (-item[1], item[0]))
    said = ", ".join(f"{code} {rules[code]} in {amount}" for code, amount in common)
    return style.wrap(f"{cells_text(found)}{f'; {said}' if said else ''}", _INDENT, _INDENT * 2)
