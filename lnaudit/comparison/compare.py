"""The comparison of two runs: the sites and emulations of both, of one alone, and the order in which it is told."""

from __future__ import annotations

import math
from typing import Any

from ..baseline import WORSE
from ..errors import LnauditError
from ..findings import SEVERITIES
from ..report import Report, Result, SiteReport
from .configuration import alike, differences
from .findings import compared_findings
from .model import TRENDS, Change, Comparison, Run, summary_of

SEVERITY_OF = {"fail": "error", "warn": "warning", "pass": "note"}
ADVICE = ("keep", "another", "none")  # what is said of the model's epsilon, the worst last
NEAR = 0.5  # of the accepted error: below it a change matters to nobody
WHOLE = ("site", "result")


def compare_runs(old: Run, new: Run, fail_on: str = "never") -> Comparison:
    """Compare two runs.

    Raises
    ------
    LnauditError
        If one of them names a site twice.
    """
    before, after = _by_name(old), _by_name(new)
    changes = _sites(before, after, old.report, new.report)
    told = {(change.site, change.format, change.kernel) for change in changes if change.what in WHOLE}
    of_findings, counted = compared_findings(old.report, new.report)
    changes += [change for change in of_findings if not told & {(change.site, None, None), _group(change)}]
    sites = list(dict.fromkeys([*after, *before]))
    return Comparison(
        old=_head(old),
        new=_head(new),
        config={"fail_on": fail_on},
        summary=summary_of(sites, changes, counted),
        not_audited=list(new.report.not_audited),
        configured=differences(old.report, new.report),
        changes=_worst_first(changes, sites),
        counted=counted,
        notes=[*old.notes, *new.notes],
    )


def _head(run: Run) -> dict[str, Any]:
    report = run.report
    version = report.lnaudit_version
    return {"source": run.source, "kind": report.kind, "lnaudit_version": version, "sites": len(report.sites)}


def _by_name(run: Run) -> dict[str, SiteReport]:
    sites = {site.name: site for site in run.report.sites}
    if len(sites) < len(run.report.sites):
        raise LnauditError("names a site twice", "name a run of lnaudit", run.source)
    return sites


def _sites(before: dict[str, SiteReport], after: dict[str, SiteReport], old: Report, new: Report) -> list[Change]:
    """Return what changed but for findings: the sites of one run alone, and the emulations of the others."""
    changes: list[Change] = []
    for name, site in after.items():
        if name not in before:
            changes.append(_whole("added", _at_a_glance(site.verdict, new, name), site=name))
            continue
        was = {(result.format, result.kernel): result for result in before[name].results}
        now = {(result.format, result.kernel): result for result in site.results}
        limits = _limits(new, site)
        for key, result in now.items():
            if key in was:
                changes += _emulation(name, was[key], result, limits.get(key[0]))
            else:
                changes.append(_whole("added", _at_a_glance(result.verdict, new, name, *key), *key, site=name))
        gone = {key: result for key, result in was.items() if key not in now}
        for key, result in gone.items():
            changes.append(_whole("removed", _at_a_glance(result.verdict, old, name, *key), *key, site=name))
    for name, site in before.items():
        if name not in after:
            changes.append(_whole("removed", _at_a_glance(site.verdict, old, name), site=name))
    return changes


def _limits(report: Report, site: SiteReport) -> dict[str, float]:
    """Return the accepted errors of the formats: those of the site, else what the configuration tells."""
    said = [limits for limits in (report.config.get("limits"), site.limits) if isinstance(limits, dict)]
    pairs = [pair for limits in said for pair in limits.items()]
    return {fmt: float(limit) for fmt, limit in pairs if isinstance(limit, float) and limit > 0}


def _whole(
    change: str, glance: dict[str, Any], fmt: str | None = None, kernel: str | None = None, *, site: str
) -> Change:
    """Return a site, or an emulation of it, that only one of the runs has."""
    return Change(
        what="site" if fmt is None else "result",
        change=change,
        trend=change,
        severity=SEVERITY_OF[glance["verdict"]],
        site=site,
        format=fmt,
        kernel=kernel,
        old=glance if change == "removed" else None,
        new=glance if change == "added" else None,
    )


def _at_a_glance(verdict: str, report: Report, site: str, *emulation: str) -> dict[str, Any]:
    """Return a verdict with the codes beside it: of a site, or of one of its emulations."""
    mine = [f for f in report.findings if f.site == site and emulation in ((), (f.format, f.kernel))]
    return {"verdict": verdict, "codes": sorted({finding.code for finding in mine if finding.severity != "note"})}


def _emulation(site: str, old: Result, new: Result, limit: float | None) -> list[Change]:
    """Return what changed of an emulation that both runs have."""
    changes = []

    def add(what: str, word: str, severity: str, pair: tuple[Any, Any], limit: float | None = None) -> None:
        where: dict[str, Any] = {"site": site, "format": new.format, "kernel": new.kernel, "limit": limit}
        changes.append(Change(what=what, change=word, trend=word, severity=severity, old=pair[0], new=pair[1], **where))

    if old.verdict != new.verdict:
        severities = [SEVERITY_OF[result.verdict] for result in (old, new)]
        worse = SEVERITIES.index(severities[1]) < SEVERITIES.index(severities[0])
        add("verdict", "worse" if worse else "better", severities[worse], (old.verdict, new.verdict))
    advised = _advised(old), _advised(new)
    if not _same_advice(*advised):
        ranks = [ADVICE.index(words["advice"]) for words in advised]
        word = "changed" if ranks[0] == ranks[1] else "worse" if ranks[1] > ranks[0] else "better"
        add("recommendation", word, "note", advised)
    errors = old.error.get("max"), new.error.get("max")
    word = _error_trend(*errors, math.inf if limit is None else limit)
    if word:
        add("error", word, "note", errors, limit)
    return changes


def _advised(result: Result) -> dict[str, Any]:
    """Return what is said of the epsilon, and the one to use."""
    found = result.recommendation
    advice = "none" if found.epsilon is None else "keep" if found.reason == "keeps" else "another"
    return {"advice": advice, "epsilon": found.epsilon, "reason": found.reason}


def _same_advice(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether the same is said of the epsilon; to keep that of the model is the same whatever it is."""
    if old["advice"] != new["advice"]:
        return False
    return new["advice"] != "another" or alike(old["epsilon"], new["epsilon"])


def _error_trend(old: float | None, new: float | None, limit: float) -> str:
    """Return how the greatest error changed, "" where that matters to nobody."""
    if old is None or new is None:  # a finding says why no row is left to measure
        return ""
    was, now = (math.inf if math.isnan(value) else value for value in (old, new))
    if was == now or max(was, now) < NEAR * limit:
        return ""
    return "worse" if now > WORSE * was else "better" if was > WORSE * now else ""


def _worst_first(changes: list[Change], sites: list[str]) -> list[Change]:
    """Return the changes of one emulation together, the emulations by the worst that happened there."""
    place = {name: number for number, name in enumerate(sites)}
    worst: dict[tuple[str, str | None, str | None], tuple[int, int]] = {}
    for change in changes:
        worst[_group(change)] = min(worst.get(_group(change), _rank(change)), _rank(change))
    order = {group: number for number, group in enumerate(worst)}

    def key(change: Change) -> tuple[Any, ...]:
        group = _group(change)
        return worst[group], place.get(change.site, len(place)), order[group], _rank(change), change.code or ""

    return sorted(changes, key=key)


def _group(change: Change) -> tuple[str, str | None, str | None]:
    return change.site, change.format, change.kernel


def _rank(change: Change) -> tuple[int, int]:
    return TRENDS.index(change.trend), SEVERITIES.index(change.severity)
