"""What became of the findings, by the rule of a baseline."""

from __future__ import annotations

from typing import Any

from ..baseline import Key, Known, is_worse, key_of, known_of
from ..findings import SEVERITIES, Finding
from ..report import Report
from .model import Change

Held = tuple[Finding, Known]


def compared_findings(old: Report, new: Report) -> tuple[list[Change], list[Finding]]:
    """Return what became of the findings, and those that are new or worse."""
    before, after = _keyed(old), _keyed(new)
    changes, counted = [], []
    for key in (*after, *(key for key in before if key not in after)):
        became = _became(before.get(key), after.get(key))
        if became == "same":
            continue
        changes.append(_change(became, before.get(key), after.get(key)))
        if became in ("new", "worse"):
            counted.append(after[key][0])
    return changes, counted


def _keyed(report: Report) -> dict[Key, Held]:
    """Return the findings by what they are known by, the worst where several are alike."""
    rows = {site.name: site.rows for site in report.sites}
    found: dict[Key, Held] = {}
    for finding in sorted(report.findings, key=lambda f: SEVERITIES.index(f.severity)):
        found.setdefault(key_of(finding), (finding, known_of(finding, rows.get(finding.site, 0))))
    return found


def _became(old: Held | None, new: Held | None) -> str:
    if old is None or new is None:
        return "new" if old is None else "gone"
    if repr(old[1]) == repr(new[1]):  # NaN is here like NaN
        return "same"
    return "worse" if is_worse(new[1], old[1]) else "better" if is_worse(old[1], new[1]) else "same"


def _change(became: str, old: Held | None, new: Held | None) -> Change:
    sides = [held[0] for held in (new, old) if held is not None]
    severity = min((finding.severity for finding in sides), key=SEVERITIES.index)
    trend = "worse" if became in ("new", "worse") else "better"
    return Change(
        what="finding",
        change=became,
        trend="changed" if severity == "note" else trend,  # a note is a fact, neither good nor bad
        severity=severity,
        site=sides[0].site,
        format=sides[0].format,
        kernel=sides[0].kernel,
        code=sides[0].code,
        name=sides[0].name,
        old=_figures(old),
        new=_figures(new),
    )


def _figures(held: Held | None) -> dict[str, Any] | None:
    return None if held is None else {"rows": held[0].rows, **vars(held[1])}
