"""The baseline: findings that are known, so that only new ones and those that became worse fail a check."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from .errors import LnauditError
from .findings import Finding
from .report import SCHEMA_VERSION, Report

KIND = "baseline"
WORSE = 1.1  # times: less is noise of another batch
Key = tuple[str, str, str, str]


@dataclass(frozen=True, kw_only=True)
class Known:
    """A known finding: part of the site's rows, what was measured, and its limit."""

    share: float
    measured: float | None
    limit: float | None


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Findings beside a baseline: those that count, how many are known, keys of those that vanished."""

    counted: list[Finding]
    known: int
    vanished: list[Key]


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
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def is_worse(new: Known, old: Known) -> bool:
    """Whether more of the rows are concerned by more than a tenth, or what was measured went so far from its limit."""
    if new.share > WORSE * old.share:
        return True
    if new.measured is None or old.measured is None or old.limit is None:
        return False
    if not new.measured <= old.limit:  # above the limit, or NaN
        return not new.measured <= WORSE * old.measured
    return new.measured < old.measured / WORSE


def compare(report: Report, baseline: dict[Key, Known]) -> Compared:
    """Return which findings of a report are new or became worse."""
    now = entries(report)
    counted = [
        finding
        for finding in report.findings
        if key_of(finding) not in baseline or is_worse(now[key_of(finding)], baseline[key_of(finding)])
    ]
    return Compared(
        counted=counted,
        known=len(report.findings) - len(counted),
        vanished=sorted(key for key in baseline if key not in now and key[1] in {site.name for site in report.sites}),
    )


def to_text(known: dict[Key, Known]) -> str:
    """Return a baseline as JSON: sorted, an entry a line."""
    lines = ",\n".join(
        json.dumps(dict(zip(("code", "site", "format", "kernel"), key, strict=True)) | _plain(entry))
        for key, entry in sorted(known.items())
    )
    return f'{{"schema_version": {SCHEMA_VERSION}, "kind": "{KIND}", "findings": [\n{lines}\n]}}\n'


def _plain(entry: Known) -> dict[str, Any]:
    words = vars(entry).items()
    return {key: value if value is None or math.isfinite(value) else repr(value) for key, value in words}


def from_document(document: dict[str, Any], source: str) -> dict[Key, Known]:
    """Return the baseline of a document.

    Raises
    ------
    LnauditError
        If it is none.
    """
    try:
        if document["kind"] != KIND:
            raise KeyError
        return {
            (e["code"], e["site"], e["format"], e["kernel"]): Known(
                share=float(e["share"]), measured=_number(e["measured"]), limit=_number(e["limit"])
            )
            for e in document["findings"]
        }
    except (KeyError, TypeError, ValueError):
        raise LnauditError("is no baseline", "write one with --write-baseline", source) from None


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
