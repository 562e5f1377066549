"""From a Summary to verdict, findings and advice, whoever proves the advice: trials, or what an earlier run kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from ..advice import Choice, recommend
from ..advice.trials import Codes, Judge, Offer
from ..findings import SEVERITIES, Finding, worst
from ..formats import Format
from ..kernels import Kernel
from ..policy import Accepted, Policy
from ..report import Disagreement, SiteReport
from ..rules import ResultFacts, SiteFacts, result_findings, site_findings
from ..summary import Summary
from ..tabulate import result_of
from .loop import worst_verdict


class Proofs(Protocol):
    """What stands behind advice about a site; results go by their number."""

    def prepare(self, number: int) -> None:
        """Complete the table of epsilons of a result."""

    def offers(self, number: int, choice: Choice, ills: Codes) -> list[Offer]:
        """Return what cures these findings."""

    def verified(self, number: int, choice: Choice) -> tuple[str | bool, int]:
        """Say on which rows, and how many, the chosen epsilon holds."""

    def weakest(self, fmt: Format) -> tuple[str | None, str] | None:
        """Return the weakest clean kernel of a format and on which rows it was run; None if that is not known."""

    def disagreements(self) -> list[Disagreement]:
        """Return where programs side by side disagree most."""


@dataclass(frozen=True, kw_only=True)
class SiteAudit:
    """What one site contributes to a report; accepted: findings that the policy accepts there, and why."""

    report: SiteReport
    findings: list[Finding]
    choices: list[tuple[Format, Kernel, Choice]]
    accepted: list[tuple[Finding, Accepted]]


def judge_site(report: SiteReport, facts: SiteFacts, proofs: Proofs, policy: Policy) -> SiteAudit:
    """Judge a site; report: its own entry, to which the results are added."""
    summary, audit = facts.summary, SiteAudit(report=report, findings=[], choices=[], accepted=[])
    report.anchor = policy.anchor(report.name)
    _take(audit, [f for f in site_findings(facts) if policy.selects(f.code)], policy)
    for i, (fmt, kernel) in enumerate(summary.plan.results):
        proofs.prepare(i)
        choice = recommend(summary, i)
        found = selected(ResultFacts(site=facts, number=i, choice=choice), policy)
        ills = ills_of(found)
        offers = proofs.offers(i, choice, ills) if ills else []
        kept = _take(audit, [_with_remedy(finding, offers) for finding in found], policy)
        report.results.append(result_of(summary, i, choice, proofs.verified(i, choice), offers, worst(kept)))
        audit.choices.append((fmt, kernel, choice))
    for fmt in dict.fromkeys(fmt for fmt, _ in summary.plan.results):
        weakest = proofs.weakest(fmt)
        if weakest is not None:
            report.weakest_clean_kernel[fmt.name], report.weakest_clean_kernel_verified[fmt.name] = weakest
    report.disagreements = proofs.disagreements()
    report.verdict = worst_verdict(result.verdict for result in report.results)
    audit.findings.sort(key=lambda f: (SEVERITIES.index(f.severity), f.latent))
    return audit


def _take(audit: SiteAudit, found: list[Finding], policy: Policy) -> list[Finding]:
    """Sort findings into those that count and those that the policy accepts at this site; return the former."""
    kept, accepted = sorted_out(found, policy)
    audit.accepted.extend(accepted)
    audit.findings.extend(kept)
    return kept


def sorted_out(found: list[Finding], policy: Policy) -> tuple[list[Finding], list[tuple[Finding, Accepted]]]:
    """Return the findings that count, and those that the policy accepts at this site with its entries."""
    pairs = [(finding, policy.accepts(finding)) for finding in found]
    accepted = [(finding, entry) for finding, entry in pairs if entry is not None]
    return [finding for finding, entry in pairs if entry is None], accepted


def selected(facts: ResultFacts, policy: Policy) -> list[Finding]:
    """Return what the rules find about an emulation, as far as the policy selects it."""
    return [finding for finding in result_findings(facts) if policy.selects(finding.code)]


def ills_of(findings: list[Finding]) -> Codes:
    """Return the codes that a remedy may cure, with their severity."""
    return {f.code: f.severity for f in findings if f.severity != "note"}


def judge_of(policy: Policy, site: str) -> Judge:
    """Return what judges a trial of a site."""

    def judge(summary: Summary, number: int) -> Codes:
        facts = SiteFacts(name=site, source="", summary=summary, **policy.facts(site))
        return ills_of(selected(ResultFacts(site=facts, number=number), policy))

    return judge


def _with_remedy(finding: Finding, offers: list[Offer]) -> Finding:
    """Name the first remedy that cures a finding."""
    cure = next((o.detail for o in offers if finding.code in o.cures), "")
    return replace(finding, remedy=cure) if cure and not finding.remedy else finding
