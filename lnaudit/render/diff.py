"""What changed between two runs, as text and as JSON."""

from __future__ import annotations

import json
from typing import Any

from .. import wording
from ..comparison import Change, Comparison
from ..comparison.configuration import Difference
from ..findings import at_or_above
from ..wording import counted, joined, short, verdict_word
from .style import DEFAULT_STYLE, Style

_GAP = "  "
_COLOR_OF = {"worse": "error", "better": "pass", "changed": "note", "added": "note", "removed": "note"}
_MOST_SITES = 3  # so many are named, more are counted
_WORDS = {None: "none", True: "yes", False: "no"}
_FATES = {"worse": "got worse", "same": "the same"}


def render_diff_json(comparison: Comparison) -> str:
    """Return the JSON document: strict, plain ASCII, the same bytes for the same runs."""
    return json.dumps(comparison.to_dict(), indent=2, allow_nan=False, ensure_ascii=True) + "\n"


def render_diff(comparison: Comparison, style: Style = DEFAULT_STYLE) -> str:
    """Return what changed, a line a change, worst first, and a line of total."""
    lines = [line for note in comparison.notes for line in style.wrap(f"note: {style.safe(note)}", "", _GAP)]
    lines += _configured(comparison.configured, style)
    lines += _changes([change for change in comparison.changes if not _is_said(change)], style)
    for failure in comparison.not_audited:
        text = f"not audited in the new run: {style.safe(failure.source)}: {style.safe(failure.reason)}"
        lines += style.wrap(text, "", _GAP)
    return "\n".join([*lines, *style.wrap(_total(comparison)), *style.wrap(_exit_code(comparison))]) + "\n"


def _is_said(change: Change) -> bool:
    """Whether a change is said already: what only one of the runs judged, and is gone or passes."""
    return change.what == "result" and (change.trend == "removed" or change.severity == "note")


def _total(comparison: Comparison) -> str:
    summary = comparison.summary
    sites = summary["sites"]
    if not sites:
        return "0 sites: there is nothing to compare."
    if summary["same"] == sites:
        said = "all the same" if sites > 1 else "the same"
    else:
        fates = ("worse", "better", "changed", "same", "added", "removed")
        said = ", ".join(f"{wording.count(summary[fate])} {_FATES.get(fate, fate)}" for fate in fates if summary[fate])
    return f"{counted(sites, 'site')}: {said}."


def _exit_code(comparison: Comparison) -> str:
    if comparison.not_audited or not comparison.new["sites"]:
        return "exit 2 (not audited)."
    fail_on = comparison.config["fail_on"]
    bad = len(at_or_above(comparison.counted, fail_on))
    return f"exit 1 ({counted(bad, 'new or worse finding')} at or above --fail-on {fail_on})." if bad else ""


def _configured(found: list[Difference], style: Style) -> list[str]:
    """Say what was configured differently."""
    if not found:
        return []
    lines = style.wrap("Configured differently; figures that depend on it do not compare:")
    for difference in found:
        lines += style.wrap(style.safe(_difference(difference)), _GAP, _GAP * 2)
    return lines


def _difference(difference: Difference) -> str:
    old, new, sites = difference.old, difference.new, difference.sites
    if difference.what == "judged":
        alone = [("old", [name for name in old if name not in new]), ("new", [name for name in new if name not in old])]
        text = "; ".join(f"only the {run} run judged {', '.join(names)}" for run, names in alone if names)
    else:
        text = f"{difference.what.replace('_', ' ')} {_value(old)} -> {_value(new)}"
    where = ", ".join(sites) if len(sites) <= _MOST_SITES else f"{len(sites)} sites"
    return f"{text} ({where})" if sites else text


def _value(value: Any) -> str:
    """Write a value of a configuration."""
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, float):
        return wording.six(value)
    if isinstance(value, list):
        return ",".join(map(_value, value)) or "none"
    if isinstance(value, dict):
        return ",".join(f"{key} {_value(item)}" for key, item in value.items()) or "none"
    return str(value)


def _changes(changes: list[Change], style: Style) -> list[str]:
    """Write the changes below each other: trend, site, format and kernel, what changed."""
    rows = [(c.trend, style.safe(c.site), style.safe(_emulation(c)), style.safe(_text(c))) for c in changes]
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(3)]
    indent = " " * sum(width + len(_GAP) for width in widths if width)
    if len(indent) > style.columns // 2:  # no room beside the names: they stand without columns
        widths, indent = [0, 0, 0], _GAP * 2
    lines: list[str] = []
    for change, (trend, *names, text) in zip(changes, rows, strict=True):
        cells = [f"{cell:<{width}}" for cell, width in zip((trend, *names), widths, strict=True)]
        wrapped = style.wrap(text, _GAP.join([*filter(None, cells), ""]), indent, style.columns)
        lines += [style.paint(trend, _COLOR_OF[change.trend]) + wrapped[0][len(trend) :], *wrapped[1:]]
    return lines


def _emulation(change: Change) -> str:
    return " ".join(filter(None, (change.format, change.kernel)))


def _text(change: Change) -> str:
    """Say what changed."""
    old, new = change.old, change.new
    if change.what == "verdict":
        return f"verdict {verdict_word(old)} -> {verdict_word(new)}"
    if change.what == "finding":
        return _finding(change)
    if change.what == "recommendation":
        return f"recommended epsilon {_advice(old)} -> {_advice(new)}"
    if change.what == "error":
        limit = "" if change.limit is None else f" (limit {short(change.limit)})"
        return f"greatest error {short(old)} -> {short(new)}{limit}"
    glance = new or old
    codes = f": {joined(glance['codes'])}" if glance["codes"] else ""
    only = "" if change.what == "site" else "judged only in the new run: "
    return f"{only}{verdict_word(glance['verdict'])}{codes}"


def _finding(change: Change) -> str:
    """Name a finding, and beside it the figures that made it better or worse."""
    old, new = change.old, change.new
    label = f"{change.code} {change.name}"
    if old is None or new is None:
        rows = (new or old)["rows"]
        said = f": {counted(rows, 'row')}" if rows else ""
        return f"{change.change} {change.severity} {label}{said}"
    severity = new["severity"] if old["severity"] == new["severity"] else f"{old['severity']} -> {new['severity']}"
    figures = [
        f"{name} {write(old[key])} -> {write(new[key])}"
        for name, key, write in (("rows", "share", wording.percent), ("measured", "measured", short))
        if old[key] != new[key]
    ]
    limit = "" if new["limit"] is None or old["measured"] == new["measured"] else f" (limit {short(new['limit'])})"
    return f"{severity} {label}: {', '.join(figures) or change.change}{limit}"


def _advice(advised: dict[str, Any]) -> str:
    return wording.epsilon(advised["epsilon"]) if advised["advice"] == "another" else str(advised["advice"])
