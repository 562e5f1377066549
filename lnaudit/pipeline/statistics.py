"""What a run keeps of a site, so that it can be judged under another policy without its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ..advice import Choice
from ..advice.trials import Codes, Offer
from ..engine.rows import Plan
from ..errors import LnauditError
from ..formats import Format, get_format
from ..kernels import Kernel, get_kernel
from ..report import Disagreement, SiteFigures, SiteReport
from ..rules import SiteFacts
from ..site import check_norm
from ..summary import Summary, from_plain, to_plain
from ..theory import largest_finite
from .judging import SiteAudit, judge_site
from .settings import TOLERANCE, Settings

FACTS = ("axes", "unread_bytes", "weight_nonfinite", "bias_nonfinite", "better_axis")


@dataclass(frozen=True, kw_only=True)
class SavedSite:
    """A site without its rows.

    figures: its entry in the report, exact. facts: what rules know beside the summary. kept: by number of a result what
    was proven there: whether and on how many rows the chosen epsilon holds, and the remedies. weakest: by format.
    """

    figures: SiteFigures
    facts: dict[str, Any]
    summary: Summary
    kept: list[dict[str, Any]]
    weakest: dict[str, tuple[str | None, str]]
    disagreements: list[Disagreement]


def save_site(audit: SiteAudit, facts: SiteFacts, offered: dict[int, list[Offer]]) -> SavedSite:
    """Return what is kept of an audit."""
    report = audit.report
    results = enumerate(report.results)
    return SavedSite(
        figures=SiteFigures(**{f.name: getattr(report, f.name) for f in fields(SiteFigures)}),
        facts={name: getattr(facts, name) for name in FACTS},
        summary=facts.summary,
        kept=[
            {
                "verified": [result.recommendation.verified, result.recommendation.verified_rows],
                "offers": [vars(offer) for offer in offered.get(number, [])],
            }
            for number, result in results
        ],
        weakest={
            fmt: (name, report.weakest_clean_kernel_verified[fmt]) for fmt, name in report.weakest_clean_kernel.items()
        },
        disagreements=report.disagreements,
    )


def site_to_plain(site: SavedSite) -> dict[str, Any]:
    """Return a saved site as what JSON can hold, but for numbers that are not finite."""
    plan = site.summary.plan
    return {
        "figures": vars(site.figures),
        "facts": site.facts,
        "plan": {
            "results": [[fmt.name, kernel.name, kernel.flush_subnormals] for fmt, kernel in plan.results],
            "norm": plan.norm,
            "features": plan.features,
            "model_epsilon": plan.model_epsilon,
            "epsilon": plan.epsilon,
            "epsilons": plan.epsilons,
            "tolerance": plan.tolerance,
            "tolerances": plan.tolerances,
            "variants": plan.variants,
            "loss_scale": plan.loss_scale,
            "compare_epsilon": plan.compare_epsilon,
            "already": plan.already,
            "max_abs_weight": None if plan.weight is None else largest_finite(plan.weight),
        },
        "summary": to_plain(site.summary),
        "kept": site.kept,
        "weakest": site.weakest,
        "disagreements": [vars(d) for d in site.disagreements],
    }


def site_from_plain(plain: dict[str, Any]) -> SavedSite:
    """Return the saved site again; what is not one raises anything."""
    words = dict(plain["plan"])
    rms, features = check_norm(words["norm"]) == "rms", words["features"]
    largest = words.pop("max_abs_weight")
    words["results"] = tuple(_emulation(*names, rms=rms, features=features) for names in words["results"])
    words["tolerances"] = tuple((name, float(t)) for name, t in words["tolerances"])
    for name in ("epsilons", "variants", "already"):
        words[name] = tuple(words[name])
    # of the weight only the largest magnitude is asked for
    plan = Plan(**words, weight=None if largest is None else np.array([float(largest)]))
    return SavedSite(
        figures=SiteFigures(**plain["figures"]),
        facts={**plain["facts"], "axes": tuple(plain["facts"]["axes"])},
        summary=from_plain(plain["summary"], plan),
        kept=plain["kept"],
        weakest={fmt: (name, rows) for fmt, (name, rows) in plain["weakest"].items()},
        disagreements=[Disagreement(**d) for d in plain["disagreements"]],
    )


def _emulation(fmt: str, kernel: str, flushes: str, *, rms: bool, features: int) -> tuple[Format, Kernel]:
    found = get_format(fmt)
    return found, replace(get_kernel(kernel), flush_subnormals=flushes).at(found, rms, features)


def rejudge(site: SavedSite, settings: Settings, *, same: bool) -> SiteAudit:
    """Judge a saved site under other settings: formats and kernels that they name, or what was saved.

    same: they offer the same remedies, if the accepted errors are the same too.

    Raises
    ------
    LnauditError
        If what is asked only the rows could tell.
    """
    plan, policy = site.summary.plan, settings.policy
    words = policy.of_site(site.figures.name)
    for name, said in (("epsilon", site.figures.epsilon), ("norm", site.figures.norm), ("axis", site.figures.axis)):
        asked = getattr(words, name)
        if asked is not None and asked != (tuple(said) if isinstance(said, list) else said):
            raise LnauditError(f"was saved with {name} {said}, the policy says {asked}", "check the dump")
    if policy.already != plan.already:
        said = "LN007 = {{mean = {:g}, variance = {:g}}}"
        raise LnauditError(
            f"was saved with {said.format(*plan.already)}, the policy says {said.format(*policy.already)}",
            "check the dump",
        )
    tolerance, tolerances = policy.accepted_errors(site.figures.name, settings.tolerance, (TOLERANCE, ()))
    asked_plan = replace(plan, tolerance=tolerance, tolerances=tolerances, variants=())
    kernels = settings.said_kernels(site.figures.name) or ()
    formats = settings.said_formats(site.figures.name)
    numbers = _numbers(plan, [fmt.name for fmt in formats], [kernel.name for kernel in kernels])
    summary = _under(site.summary, asked_plan, numbers)
    same = same and all(asked_plan.limit_of(fmt) == plan.limit_of(fmt) for fmt, _ in summary.plan.results)
    limits = {fmt.name: asked_plan.limit_of(fmt) for fmt, _ in summary.plan.results}
    report = SiteReport(
        **{**vars(site.figures), "verdict": "pass", "limits": limits},
        weakest_clean_kernel={},
        weakest_clean_kernel_verified={},
        results=[],
    )
    facts = SiteFacts(
        name=site.figures.name,
        source=site.figures.source,
        summary=summary,
        **site.facts,
        **policy.facts(site.figures.name),
    )
    kept = [site.kept[number] for number in numbers] if same else []
    return judge_site(report, facts, _Kept(site, kept), policy)


def _numbers(plan: Plan, formats: list[str], kernels: list[str]) -> list[int]:
    """Return the numbers of the results that are asked for; of an empty list all are."""
    saved = [(fmt.name, other.name) for fmt, other in plan.results]
    if formats and kernels:
        asked = [(fmt, name) for fmt in formats for name in kernels]
    else:
        order = formats or list(dict.fromkeys(f for f, _ in saved))
        named = kernels or list(dict.fromkeys(k for _, k in saved))
        asked = [(f, k) for f in order for k in named if (f, k) in saved]
        missing = [f for f in formats if f not in {f for f, _ in saved}]
        missing += [k for k in kernels if k not in {k for _, k in saved}]
        if missing:
            raise LnauditError(f"holds nothing of {', '.join(missing)}", "check the dump")
    lacking = [" ".join(pair) for pair in asked if pair not in saved]
    if lacking:
        raise LnauditError(f"holds nothing of {', '.join(lacking)}", "check the dump")
    return [saved.index(pair) for pair in asked]


def _under(summary: Summary, plan: Plan, numbers: Sequence[int]) -> Summary:
    try:
        judged = summary.under(plan)
    except KeyError:
        known = sorted({summary.plan.tolerance, *summary.plan.variants})
        listed = ", ".join(f"{t:g}" for t in known)
        raise LnauditError(f"can be judged under the tolerances {listed} only", "use one, or check the dump") from None
    picked = replace(plan, results=tuple(plan.results[number] for number in numbers))
    return Summary(picked, judged.input, [judged.results[number] for number in numbers])


@dataclass
class _Kept:
    """Advice that an earlier run has proven; kept: by number of a result, empty if it holds under another policy."""

    site: SavedSite
    kept: list[dict[str, Any]]

    def prepare(self, number: int) -> None:
        """Leave the table as it was saved."""

    def offers(self, number: int, choice: Choice, ills: Codes) -> list[Offer]:
        offers = self.kept[number]["offers"] if self.kept else []
        return [Offer(**{**offer, "cures": tuple(offer["cures"])}) for offer in offers]

    def verified(self, number: int, choice: Choice) -> tuple[str | bool, int]:
        verified, rows = self.kept[number]["verified"] if self.kept else (False, 0)
        return verified, rows

    def weakest(self, fmt: Format) -> tuple[str | None, str] | None:
        return self.site.weakest.get(fmt.name) if self.kept else None

    def disagreements(self) -> list[Disagreement]:
        return self.site.disagreements
