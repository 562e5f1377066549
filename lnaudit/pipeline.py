"""From sites to a Report: rows -> Summary -> recommendation -> findings -> remedies."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .advice import CONSTANTS, Choice, Trials, candidates, common_choice, offer, recommend, weakest_clean_kernel
from .advice.remedies import Codes, Offer
from .engine.rows import Plan, accepted_error
from .errors import LnauditError
from .findings import SEVERITIES, Finding, worst
from .formats import FORMATS, Format
from .kernels import KERNELS, Kernel, get_kernel
from .report import ModelEpsilon, Report, SiteReport
from .rules import ResultFacts, SiteFacts, result_findings, site_findings
from .site import NotAudited, Rows, Site, count_nonfinite
from .summarize import Progress, summarize
from .summary import Summary
from .tabulate import result_of, site_of
from .version import __version__

SAMPLE_ELEMENTS = 1 << 20  # of another axis, to see whether it would make more sense


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a run audits.

    formats : the formats; kernels : the kernels for every format, or None for the defaults (native everywhere, fused
    too where the format is narrower than float32); tolerance : accepted row error; loss_scale : norm of the upstream
    gradient of a row; compare_epsilon : another program's; verify_all : run remedies of large sites on all their rows
    too; jobs : threads, 0 = one a core.
    """

    formats: tuple[Format, ...] = tuple(FORMATS.values())
    kernels: tuple[Kernel, ...] | None = None
    tolerance: float = 0.02
    loss_scale: float = 1.0
    compare_epsilon: float | None = None
    verify_all: bool = False
    jobs: int = 0
    config: dict[str, Any] = field(default_factory=dict)

    def results(self, site: Site) -> tuple[tuple[Format, Kernel], ...]:
        """Return the emulations of a site, format by format."""
        kernels = self.kernels
        if kernels is None and site.kernel is not None:
            kernels = (get_kernel(site.kernel),)
        return tuple((fmt, kernel) for fmt in self.formats for kernel in kernels or default_kernels(fmt))


def default_kernels(fmt: Format) -> tuple[Kernel, ...]:
    """Return native, and fused where it differs much from it."""
    names = ("native", "fused") if fmt.precision < FORMATS["float32"].precision else ("native",)
    return tuple(KERNELS[name] for name in names)


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
    audits: list[SiteAudit] = []
    not_audited: list[NotAudited] = []
    for site in sites:
        if isinstance(site, NotAudited):
            not_audited.append(site)
            continue
        try:
            audits.append(audit_site(site, settings, progress))
            if not audits[-1].report.input["finite_rows"]:
                reason = "no row is finite, so nothing was judged; look at what comes before the norm"
                not_audited.append(NotAudited(source=site.source, reason=reason))
        except LnauditError as error:  # the file changed or could not be read to its end
            not_audited.append(NotAudited(source=error.source or site.source, reason=error.reason))
    verdicts = Counter(audit.report.verdict for audit in audits)
    return Report(
        kind=kind,
        lnaudit_version=__version__,
        config={
            **settings.config,
            "limits": {fmt.name: accepted_error(settings.tolerance, fmt) for fmt in settings.formats},
        },
        summary={"sites": len(audits), "fail": verdicts["fail"], "warn": verdicts["warn"], "pass": verdicts["pass"]},
        not_audited=not_audited,
        epsilon=_model_epsilons(audits),
        sites=[audit.report for audit in audits],
        findings=[finding for audit in audits for finding in audit.findings],
    )


def plan_of(site: Site, settings: Settings) -> Plan:
    """Return the plan of a site: everything at the model's epsilon, and the candidates by the closed form."""
    tried = candidates(site.epsilon)
    return Plan(
        results=settings.results(site),
        norm=site.norm,
        features=site.rows.features,
        model_epsilon=site.epsilon,
        epsilon=site.epsilon,
        epsilons=(*tried, *(e for e in CONSTANTS if e not in tried)),
        tolerance=settings.tolerance,
        weight=site.weight,
        bias=site.bias,
        loss_scale=settings.loss_scale,
        compare_epsilon=settings.compare_epsilon,
    )


def audit_site(site: Site, settings: Settings, progress: Progress | None = None) -> SiteAudit:
    """Audit one site."""
    plan = plan_of(site, settings)
    summary = summarize(site.rows, plan, progress, settings.jobs)
    facts = _facts(site, summary)
    trials = Trials(site.rows, summary, _judge, complete=settings.verify_all)
    findings = site_findings(facts)
    report = site_of(site, summary)
    choices: list[tuple[Format, Kernel, Choice]] = []
    for i, (fmt, kernel) in enumerate(plan.results):
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
    report.verdict = min((r.verdict for r in report.results), key=("fail", "warn", "pass").index, default="pass")
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


def _facts(site: Site, summary: Summary) -> SiteFacts:
    return SiteFacts(
        name=site.name,
        source=site.source,
        summary=summary,
        axes=site.rows.axes,
        unread_bytes=site.rows.unread_bytes,
        weight_nonfinite=count_nonfinite(site.weight),
        bias_nonfinite=count_nonfinite(site.bias),
        better_axis=_better_axis(site.rows, summary),
    )


def _better_axis(rows: Rows, summary: Summary) -> int | None:
    """Return another axis whose first rows vary, where most rows along the given one are constant."""
    counts = summary.input.counts
    nonzero = counts["finite_rows"] - counts["zero_rows"]
    constant = counts["constant_rows"] - counts["zero_rows"]
    if (nonzero == 0 or constant <= nonzero / 2) and rows.features > 1:
        return None
    for axis in reversed(range(len(rows.shape))):
        if (axis,) == rows.axes or rows.shape[axis] == 1:
            continue
        other = rows.along(axis)
        few = min(other.rows, 64, SAMPLE_ELEMENTS // other.features)
        sample = other.take(np.arange(few))
        if few and not (sample == sample[:, :1]).all(axis=1).any():
            return axis
    return None


def _model_epsilons(audits: list[SiteAudit]) -> list[ModelEpsilon]:
    """One epsilon for all sites of the same epsilon, for each emulation (a config holds one number)."""
    groups: dict[tuple[float, Format, Kernel], dict[str, Choice]] = defaultdict(dict)
    for audit in (a for a in audits if a.report.input["finite_rows"]):
        for fmt, kernel, choice in audit.choices:
            groups[audit.report.epsilon, fmt, kernel][audit.report.name] = choice
    entries = []
    for (model_epsilon, fmt, kernel), choices in groups.items():
        # a site that the cast has lost asks nothing of epsilon
        safe = {name: choice.safe for name, choice in choices.items() if choice.reason != "cast"}
        if safe:
            common, binding = common_choice(safe, model_epsilon, fmt, kernel)
        else:
            common, binding = next(iter(choices.values())), list(choices)
        entries.append(
            ModelEpsilon(
                format=fmt.name,
                kernel=kernel.name,
                model_epsilon=model_epsilon,
                epsilon=common.epsilon,
                lower=common.lower,
                upper=common.upper,
                sites=binding,
                site_count=len(safe),
            )
        )
    return entries
