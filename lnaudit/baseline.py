"""The baseline: findings that are known, so that only new ones and those that became worse fail a check."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .errors import LnauditError
from .findings import SEVERITIES, Finding
from .readers.files import shortened
from .report import SCHEMA_VERSION, Report
from .wording import percent, short

KIND = "baseline"
WORSE = 1.1  # times: less is noise of another batch
NOT_FINITE = ("nan", "inf", "-inf")  # as `repr` writes them
Key = tuple[str, str, str, str]


@dataclass(frozen=True, kw_only=True)
class Known:
    """A known finding: part of the site's rows, what was measured, its limit, and how bad it is, if that is known."""

    share: float
    measured: float | None
    limit: float | None
    severity: str | None = None


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Findings beside a baseline.

    counted: those that are new or became worse; worse: what was known of the latter, and what they are now; known: how
    many are known; vanished: keys of those that were looked for and are no more; elsewhere: how many entries are about
    what this run did not judge.
    """

    counted: list[Finding]
    worse: list[tuple[Key, Known, Known]]
    known: int
    vanished: list[Key]
    elsewhere: int


def key_of(finding: Finding) -> Key:
    """Return what a finding is known by."""
    return finding.code, finding.site, finding.format or "", finding.kernel or ""


def entries(report: Report) -> dict[Key, Known]:
    """Return the findings of a report as a baseline holds them."""
    rows = {site.name: site.rows for site in report.sites}
    return {key_of(finding): known_of(finding, rows.get(finding.site, 0)) for finding in report.findings}


def known_of(finding: Finding, rows: int) -> Known:
    """Return what is compared of a finding; rows: of its site."""
    return Known(
        share=float(f"{finding.rows / rows if rows else 0.0:.6g}"),
        measured=_rounded(finding.measured),
        limit=_rounded(finding.limit),
        severity=finding.severity,
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def is_worse(new: Known, old: Known) -> bool:
    """Whether it is more severe, or concerns more of the rows or went further beyond its limit by more than a tenth.

    What is NaN, on either side, is worse: nothing that cannot be compared passes.
    """
    if new.severity and old.severity and SEVERITIES.index(new.severity) < SEVERITIES.index(old.severity):
        return True
    if not new.share <= WORSE * old.share:
        return True
    if new.measured is None or old.measured is None or old.limit is None:
        return False
    if old.measured <= old.limit:  # it is bad for being small
        return not new.measured >= min(old.measured / WORSE, old.measured * WORSE)
    return not new.measured <= max(old.measured / WORSE, old.measured * WORSE)


def compare(report: Report, baseline: dict[Key, Known], selects: Callable[[str], bool] = lambda code: True) -> Compared:
    """Return which findings of a report are new or became worse; selects: whether a code was looked for."""
    now = entries(report)
    counted = [
        finding
        for finding in report.findings
        if key_of(finding) not in baseline or is_worse(now[key_of(finding)], baseline[key_of(finding)])
    ]
    emulations = {(s.name, r.format, r.kernel) for s in report.sites for r in s.results}
    judged = emulations | {(site.name, "", "") for site in report.sites}
    accepted = {key_of(entry.finding) for entry in report.accepted}
    gone = [key for key in sorted(baseline) if key not in now and key not in accepted]
    vanished = [key for key in gone if key[1:] in judged and selects(key[0])]
    return Compared(
        counted=counted,
        worse=[(key_of(f), baseline[key_of(f)], now[key_of(f)]) for f in counted if key_of(f) in baseline],
        known=len(report.findings) - len(counted),
        vanished=vanished,
        elsewhere=len(gone) - len(vanished),
    )


def named(key: Key) -> str:
    """Write what a finding is known by."""
    return " ".join(filter(None, key))


def change(old: Known, new: Known) -> str:
    """Say how a finding became worse."""
    said = [f"{old.severity} -> {new.severity}"] if old.severity and old.severity != new.severity else []
    said += [f"{percent(old.share)} -> {percent(new.share)} of the rows"] if old.share != new.share else []
    if old.measured != new.measured:
        said.append(f"measured {short(old.measured)} -> {short(new.measured)}, limit {short(new.limit)}")
    return "; ".join(said)


def to_text(known: dict[Key, Known]) -> str:
    """Return a baseline as JSON: sorted, an entry a line."""
    lines = ",\n".join(
        json.dumps(dict(zip(("code", "site", "format", "kernel"), key, strict=True)) | _plain(entry))
        for key, entry in sorted(known.items())
    )
    return f'{{"schema_version": {SCHEMA_VERSION}, "kind": "{KIND}", "findings": [\n{lines}\n]}}\n'


def _plain(entry: Known) -> dict[str, Any]:
    words = vars(entry).items()
    return {
        key: repr(value) if isinstance(value, float) and not math.isfinite(value) else value for key, value in words
    }


def from_document(document: dict[str, Any], source: str) -> dict[Key, Known]:
    """Return the baseline of a document.

    Raises
    ------
    LnauditError
        If it is none.
    """
    if document.get("kind") != KIND or not isinstance(document.get("findings"), list):
        raise LnauditError("is no baseline", "write one with --write-baseline", source)
    version = document.get("schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        raise LnauditError(f"has schema_version {shortened(repr(version))}", f"{SCHEMA_VERSION} is read", source)
    known: dict[Key, Known] = {}
    for number, entry in enumerate(document["findings"]):
        try:
            key, found = _entry(entry)
        except (KeyError, TypeError, ValueError):
            what = f"findings[{number}] is no finding of a baseline"
            raise LnauditError(what, "write it again with --write-baseline", source) from None
        if key in known:
            what = f"findings[{number}] is the second {shortened(' '.join(filter(None, key)))}"
            raise LnauditError(what, "keep one of them", source)
        known[key] = found
    return known


def _entry(plain: Any) -> tuple[Key, Known]:
    """Return what one line says; what is none raises KeyError, TypeError or ValueError."""
    code, site, fmt, kernel = (_text(plain[name]) for name in ("code", "site", "format", "kernel"))
    share, severity = _number(plain["share"]), plain.get("severity")
    if share is None or not 0 <= share < math.inf or severity not in (None, *SEVERITIES):
        raise ValueError
    measured, limit = _number(plain["measured"]), _number(plain["limit"])
    return (code, site, fmt, kernel), Known(share=share, measured=measured, limit=limit, severity=severity)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: Any) -> float | None:
    """Return a number, also one that JSON has no word for."""
    if value is None or value in NOT_FINITE:
        return None if value is None else float(value)
    if type(value) not in (int, float) or (type(value) is int and abs(value) > sys.float_info.max):
        raise TypeError
    return float(value)
