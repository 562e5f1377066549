"""A sweep: every site at many epsilons, each judged as a scan with that epsilon would judge it (design 4)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..errors import LnauditError
from ..findings import Finding, worst
from ..policy import Accepted, Policy
from ..report import Point, SweepReport, SweptSite
from ..rules import RULES, ResultFacts, SiteFacts, site_findings, thresholds_of
from ..site import NotAudited, Site
from ..summarize import Progress, Summarizer
from ..summary import DEVIATIONS, Summary
from ..tabulate import point_of, swept_result, swept_site
from ..version import __version__
from ..wording import SAME
from .facts import facts_of
from .judging import selected, sorted_out
from .loop import counted, each, worst_verdict
from .response import curves
from .settings import Settings

BY_ELEMENTS_BELOW = 1 << 20  # elements: larger sites take the row error from the closed form
# findings about the file itself, which no epsilon changes
ABOUT_THE_FILE = ("LN001", "LN002", "LN003", "LN004", "LN005", "LN006", "LN007")


@dataclass(frozen=True, kw_only=True)
class SiteSweep:
    """What one site contributes to a report; accepted: findings that the policy accepts there, and why."""

    report: SweptSite
    findings: list[Finding]
    accepted: list[tuple[Finding, Accepted]]


def sweep(
    sites: Iterable[Site | NotAudited],
    settings: Settings,
    epsilons: tuple[float, ...],
    progress: Progress | None = None,
    *,
    own: bool = False,
) -> SweepReport:
    """Judge sites at each epsilon, with `own` also at that of the site itself.

    Raises
    ------
    LnauditError
        If the policy asks what points do not hold.
    """
    _check(settings.policy)
    summarizer = settings.summarizer()
    sweeps, not_audited = each(sites, lambda site: _sweep_site(site, settings, summarizer, epsilons, own, progress))
    return SweepReport(
        kind="sweep",
        lnaudit_version=__version__,
        config=settings.reported,
        summary=counted(swept.report for swept in sweeps),
        not_audited=not_audited,
        sites=[swept.report for swept in sweeps],
        rules={
            code: RULES[code].name
            for code in sorted({c for s in sweeps for r in s.report.results for p in r.points for c in p.codes})
        },
        findings=[finding for swept in sweeps for finding in swept.findings],
        notes=_notes(settings.policy, [accepted for swept in sweeps for accepted in swept.accepted]),
    )


def _notes(policy: Policy, accepted: list[tuple[Finding, Accepted]]) -> list[str]:
    """Say what was accepted; what accepts nothing or matches no site is a matter of the gate."""
    return replace(policy, accepted=tuple(entry for _, entry in accepted), sites=(), anchors=()).notes(accepted, ())


def _check(policy: Policy) -> None:
    """Refuse a factor of the limit that is not the one by which the rows of all points are counted."""
    for code in DEVIATIONS:
        factor = thresholds_of(code)["factor"]
        if policy.of_rule(code)["factor"] != factor:
            what = f"rules.{code}.factor: of a sweep it can only be {factor:g}"
            raise LnauditError(what, "scan at one epsilon, or leave the policy out: --isolated", policy.source)


def _sweep_site(
    site: Site,
    settings: Settings,
    summarizer: Summarizer,
    epsilons: tuple[float, ...],
    own: bool,
    progress: Progress | None,
) -> SiteSweep:
    points = epsilons
    if own:
        others = (e for e in epsilons if not math.isclose(e, site.epsilon, rel_tol=SAME))
        points = tuple(sorted((*others, site.epsilon)))
    by_elements = site.rows.rows * site.rows.features < BY_ELEMENTS_BELOW
    plan = replace(settings.plan(site), points=points, by_elements=by_elements)
    summary = summarizer.summarize(site.rows, plan, progress, site.source or site.name)
    facts, policy = facts_of(site, summary, settings.policy), settings.policy
    swept = SiteSweep(report=swept_site(site, summary), findings=[], accepted=[])
    swept.report.anchor = policy.anchor(site.name)
    swept.report.response = curves(site, plan)
    for i, column in enumerate(_points(swept, facts, summary, policy)):
        found = selected(ResultFacts(site=facts, number=i), policy)
        at_own = [finding for finding in found if policy.accepts(finding) is None]
        swept.report.results.append(swept_result(summary, i, worst(at_own), column))
    swept.report.verdict = worst_verdict(result.verdict for result in swept.report.results)
    about = [f for f in site_findings(facts) if f.code in ABOUT_THE_FILE and policy.selects(f.code)]
    swept.findings.extend(_taken(swept, about, policy))
    return swept


def _points(swept: SiteSweep, facts: SiteFacts, summary: Summary, policy: Policy) -> list[list[Point]]:
    """Return the points of each emulation."""
    columns: list[list[Point]] = [[] for _ in summary.results]
    for number in range(len(summary.plan.points)):
        point = summary.at_point(number)
        there = SiteFacts(name=facts.name, source=facts.source, summary=point, **policy.facts(facts.name))
        ratio = point.input.collapse_ratio(point.plan.epsilon, p50=0.5)["p50"]
        for i, column in enumerate(columns):
            found = selected(ResultFacts(site=there, number=i), policy)
            column.append(point_of(point, i, ratio, _taken(swept, found, policy)))
    return columns


def _taken(swept: SiteSweep, found: list[Finding], policy: Policy) -> list[Finding]:
    """Return the findings that count, and note those that the policy accepts."""
    kept, accepted = sorted_out(found, policy)
    swept.accepted.extend(accepted)
    return kept
