"""From sites to a Report: rows -> Summary -> recommendation -> findings -> remedies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ..advice import CONSTANTS, Choice, Trials, candidates, offer, weakest_clean_kernel
from ..advice.by_elements import fill_table
from ..advice.trials import Codes, Offer
from ..formats import Format
from ..report import AcceptedFinding, Disagreement, Report
from ..site import NotAudited, Site
from ..summarize import Progress, Summarizer
from ..summary import Summary
from ..tabulate import site_of
from ..version import __version__
from .disagreement import disagreements
from .facts import facts_of
from .judging import SiteAudit, judge_of, judge_site
from .loop import counted, each
from .model_epsilon import model_epsilons
from .settings import Settings
from .statistics import SavedSite, save_site


def run(
    sites: Iterable[Site | NotAudited],
    settings: Settings,
    kind: str = "scan",
    progress: Progress | None = None,
    save: Callable[[SavedSite], None] | None = None,
) -> Report:
    """Audit sites one after the other; what could not be opened is reported beside them.

    save: given what is kept of each site, to be judged again.
    """
    summarizer = settings.summarizer()
    audits, not_audited = each(sites, lambda site: audit_site(site, settings, summarizer, progress, save))
    return report_of(audits, not_audited, settings, kind)


def report_of(audits: list[SiteAudit], not_audited: list[NotAudited], settings: Settings, kind: str) -> Report:
    """Put together what became of the sites."""
    accepted = [pair for audit in audits for pair in audit.accepted]
    return Report(
        kind=kind,
        lnaudit_version=__version__,
        config=settings.reported,
        summary=counted(audit.report for audit in audits),
        not_audited=not_audited,
        epsilon=model_epsilons([(audit.report, audit.choices) for audit in audits]),
        sites=[audit.report for audit in audits],
        findings=[finding for audit in audits for finding in audit.findings],
        accepted=[AcceptedFinding(finding=f, pattern=entry.pattern, reason=entry.reason) for f, entry in accepted],
        notes=settings.policy.notes(accepted, [audit.report.name for audit in audits]),
    )


def audit_site(
    site: Site,
    settings: Settings,
    summarizer: Summarizer,
    progress: Progress | None = None,
    save: Callable[[SavedSite], None] | None = None,
) -> SiteAudit:
    """Audit one site."""
    tried = candidates(site.epsilon)
    plan = replace(settings.plan(site), epsilons=(*tried, *(e for e in CONSTANTS if e not in tried)))
    if save is not None:
        plan = replace(plan, variants=settings.variants(plan))
    summary = summarizer.summarize(site.rows, plan, progress, site.source or site.name)
    facts = facts_of(site, summary, settings.policy)
    trials = Trials(
        site.rows,
        summary,
        judge_of(settings.policy, site.name),
        summarizer,
        on_hardware=settings.on_hardware,
        complete=settings.verify_all,
    )
    report = site_of(site, summary)
    proofs = _Tried(site, trials, summary)
    audit = judge_site(report, facts, proofs, settings.policy)
    if save is not None:
        save(save_site(audit, facts, proofs.offered))
    return audit


@dataclass(kw_only=False)
class _Tried:
    """Advice that is tried on the rows; offered: what was, by the number of the result."""

    site: Site
    trials: Trials
    summary: Summary

    def __post_init__(self) -> None:
        self.offered: dict[int, list[Offer]] = {}

    def prepare(self, number: int) -> None:
        fill_table(self.trials, self.summary, number)

    def offers(self, number: int, choice: Choice, ills: Codes) -> list[Offer]:
        self.offered[number] = offer(self.trials, *self.summary.plan.results[number], choice, ills)
        return self.offered[number]

    def verified(self, number: int, choice: Choice) -> tuple[str | bool, int]:
        """Run the recommended epsilon element by element and say on which rows it holds."""
        counts = self.summary.results[number].counts
        if choice.epsilon is None:
            return False, 0
        if choice.epsilon == self.summary.plan.epsilon:
            # the audit itself ran all rows at this epsilon
            return ("all-rows" if counts["unverified_rows"] == 0 else False), counts["finite_cast_rows"]
        trial = self.trials.run(*self.summary.plan.results[number], epsilon=choice.epsilon)
        return self.trials.verified(trial), trial.results[0].counts["finite_cast_rows"]

    def weakest(self, fmt: Format) -> tuple[str | None, str]:
        has_rows = self.summary.input.counts["finite_rows"] > 0
        name, whole = weakest_clean_kernel(self.trials, fmt) if has_rows else (None, True)
        return name, "all-rows" if whole else "witness-rows"

    def disagreements(self) -> list[Disagreement]:
        return disagreements(self.site.rows, self.summary.plan)
