"""From sites to a Report: rows -> Summary -> recommendation -> findings -> remedies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..advice import CONSTANTS, Choice, Trials, candidates, offer, recommend, weakest_clean_kernel
from ..advice.by_elements import fill_table
from ..advice.trials import Codes, Offer
from ..findings import SEVERITIES, Finding, worst
from ..formats import Format
from ..kernels import Kernel
from ..report import Report, SiteReport
from ..rules import ResultFacts, SiteFacts, result_findings, site_findings
from ..site import NotAudited, Site
from ..summarize import Progress, Summarizer
from ..summary import Summary
from ..tabulate import result_of, site_of
from ..version import __version__
from .disagreement import disagreements
from .facts import facts_of
from .loop import counted, each, worst_verdict
from .model_epsilon import model_epsilons
from .settings import Settings


@dataclass(frozen=True, kw_only=True)
class SiteAudit:
    """What one site contributes to a report."""

    report: SiteReport
    findings: list[Finding]
    choices: list[tuple[Format, Kernel, Choice]]


def run(
    sites: Iterable[Site | NotAudited], settings: Settings, kind: str = "scan", progress: Progress | None = None
) -> Report:
    """Audit sites one after the other; what could not be opened is reported beside them."""
    summarizer = settings.summarizer()
    audits, not_audited = each(sites, lambda site: audit_site(site, settings, summarizer, progress))
    return Report(
        kind=kind,
        lnaudit_version=__version__,
        config=settings.reported,
        summary=counted(audit.report for audit in audits),
        not_audited=not_audited,
        epsilon=model_epsilons([(audit.report, audit.choices) for audit in audits]),
        sites=[audit.report for audit in audits],
        findings=[finding for audit in audits for finding in audit.findings],
    )


def audit_site(site: Site, settings: Settings, summarizer: Summarizer, progress: Progress | None = None) -> SiteAudit:
    """Audit one site."""
    tried = candidates(site.epsilon)
    plan = replace(settings.plan(site), epsilons=(*tried, *(e for e in CONSTANTS if e not in tried)))
    summary = summarizer.summarize(site.rows, plan, progress, site.source or site.name)
    facts = facts_of(site, summary)
    trials = Trials(
        site.rows, summary, _judge, summarizer, on_hardware=settings.on_hardware, complete=settings.verify_all
    )
    findings = site_findings(facts)
    report = site_of(site, summary)
    choices: list[tuple[Format, Kernel, Choice]] = []
    for i, (fmt, kernel) in enumerate(plan.results):
        fill_table(trials, summary, i)
        choice = recommend(summary, i)
        found = result_findings(ResultFacts(site=facts, number=i, choice=choice))
        ills = _ills(found)
        offers = offer(trials, fmt, kernel, choice, ills) if ills else []
        findings += [_with_remedy(finding, offers) for finding in found]
        verified = _verified(trials, summary, i, choice)
        report.results.append(result_of(summary, i, choice, verified, offers, worst(found)))
        choices.append((fmt, kernel, choice))
    for fmt in dict.fromkeys(fmt for fmt, _ in plan.results):
        has_rows = summary.input.counts["finite_rows"] > 0
        name, whole = weakest_clean_kernel(trials, fmt) if has_rows else (None, True)
        report.weakest_clean_kernel[fmt.name] = name
        report.weakest_clean_kernel_verified[fmt.name] = "all-rows" if whole else "witness-rows"
    report.disagreements = disagreements(site.rows, plan)
    report.verdict = worst_verdict(result.verdict for result in report.results)
    findings.sort(key=lambda f: (SEVERITIES.index(f.severity), f.latent))
    return SiteAudit(report=report, findings=findings, choices=choices)


def _judge(summary: Summary, i: int) -> Codes:
    """Return what the rules find wrong in a trial."""
    return _ills(result_findings(ResultFacts(site=SiteFacts(name="", source="", summary=summary), number=i)))


def _ills(findings: list[Finding]) -> Codes:
    return {f.code: f.severity for f in findings if f.severity != "note"}


def _with_remedy(finding: Finding, offers: list[Offer]) -> Finding:
    """Name the first remedy that cures a finding."""
    cure = next((o.detail for o in offers if finding.code in o.cures), "")
    return replace(finding, remedy=cure) if cure and not finding.remedy else finding


def _verified(trials: Trials, summary: Summary, i: int, choice: Choice) -> tuple[str | bool, int]:
    """Run the recommended epsilon element by element and say on which rows it holds."""
    counts = summary.results[i].counts
    if choice.epsilon is None:
        return False, 0
    if choice.epsilon == summary.plan.epsilon:
        # the audit itself ran all rows at this epsilon
        return ("all-rows" if counts["unverified_rows"] == 0 else False), counts["finite_cast_rows"]
    trial = trials.run(*summary.plan.results[i], epsilon=choice.epsilon)
    return trials.verified(trial), trial.results[0].counts["finite_cast_rows"]
