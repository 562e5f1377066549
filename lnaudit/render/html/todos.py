"""What to do about a scan: what is wrong where, with the first thing that helps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ... import wording
from ...findings import SEVERITIES, Finding
from ...report import Report, Result, SiteReport
from ..terminal_findings import title_of
from .finding_parts import named
from .parts import Todo, label

_NAMED_SITES = 6
_LONGEST = 240  # characters of what is wrong, and of what helps


class _Need(NamedTuple):
    """What sites must have in common to share a line."""

    about: str
    what: str
    remedy: str


def todos(report: Report, ids: Sequence[str]) -> tuple[Todo, ...]:
    """Return what is wrong and what helps, worst first; ids: of the sections of the sites."""
    sites: dict[_Need, list[tuple[str, str]]] = {}
    worst: dict[_Need, tuple[bool, int]] = {}
    loud = [f for f in report.findings if f.severity != "note" and not f.known]
    for site, where in zip(report.sites, ids, strict=True):
        for need, finding in _needs(site, (f for f in loud if f.site == site.name)):
            sites.setdefault(need, []).append((label(site.name), where))
            rank = (finding.latent, SEVERITIES.index(finding.severity))
            worst[need] = min(rank, worst.get(need, rank))
    return tuple(
        Todo(
            **need._asdict(),
            severity=SEVERITIES[worst[need][1]],
            sites=tuple(names[:_NAMED_SITES]),
            more=max(0, len(names) - _NAMED_SITES),
        )
        for need, names in sorted(sites.items(), key=lambda item: worst[item[0]])
    )


def _needs(site: SiteReport, findings: Iterable[Finding]) -> list[tuple[_Need, Finding]]:
    """Return what a site needs, each with a finding that says so; emulations that need the same share it."""
    results = {(r.format, r.kernel): r for r in site.results}
    groups: dict[tuple[str, str], list[Finding]] = {}
    for f in findings:
        what = f"{f.name} (latent)" if f.latent else title_of(f) or f.name
        remedy = _remedy(f, results.get((f.format or "", f.kernel or "")))
        groups.setdefault((label(what, _LONGEST), label(remedy, _LONGEST)), []).append(f)
    return [
        (_Need(named(dict.fromkeys((f.format, f.kernel) for f in group)), *texts), group[0])
        for texts, group in groups.items()
    ]


def _remedy(finding: Finding, result: Result | None) -> str:
    """Return the first remedy that was verified, in a few words; the section of the site has the others."""
    if result is None:
        return finding.remedy
    remedy = next((r for r in result.remedies if r.verified and finding.code in r.cures), None)
    if remedy is None:
        return "nothing that was tried helps"
    if remedy.kind == "epsilon":
        return f"epsilon {wording.epsilon(result.recommendation.epsilon)}"
    return f"kernel {remedy.values['kernel']}" if "kernel" in remedy.values else remedy.detail
