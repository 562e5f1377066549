"""From the Summary of a scan to the rows of the report: names and units of design 5 and 9, no decisions."""

from __future__ import annotations

from ..advice import CONSTANTS, Choice
from ..advice.trials import Offer
from ..advice.window import distortion, held
from ..report import ConstantCost, Recommendation, Remedy, Result, SiteReport
from ..site import Site
from ..summary import Summary
from .figures import emulation_figures, site_figures


def site_of(site: Site, summary: Summary) -> SiteReport:
    """Return the site's own entry, without results."""
    return SiteReport(
        **site_figures(site, summary), weakest_clean_kernel={}, weakest_clean_kernel_verified={}, results=[]
    )


def result_of(
    summary: Summary,
    i: int,
    choice: Choice,
    verified: tuple[str | bool, int],
    offers: list[Offer],
    severity: str | None,
) -> Result:
    """Return the entry of one emulation."""
    return Result(
        **emulation_figures(summary, i, severity),
        recommendation=_recommendation(summary, i, choice, verified),
        constants=_constants(summary, i),
        remedies=[
            Remedy(
                kind=o.kind,
                detail=o.detail,
                verified=o.verified,
                error_max=o.error_max,
                rows=o.rows,
                cures=list(o.cures),
                values=o.values,
            )
            for o in offers
        ],
    )


def _recommendation(summary: Summary, i: int, choice: Choice, verified: tuple[str | bool, int]) -> Recommendation:
    table, plan = summary.results[i].table, summary.plan
    cost: dict[str, float | None] = {"p50": None, "p99": None, "max": None}
    error = None
    if choice.epsilon is not None:
        at = plan.tried.index(choice.epsilon)
        error = float(table.worst[at]) if table.worst[at] >= 0 else None
        if summary.input.counts["varying_rows"]:
            cost = {**distortion(summary, choice.epsilon), "max": float(summary.input.distortion[at])}
    return Recommendation(
        epsilon=choice.epsilon,
        lower=choice.lower,
        upper=choice.upper,
        robust=choice.robust,
        reason=choice.reason,
        verified=verified[0],
        verified_rows=verified[1],
        total_error=error,
        distortion=cost,
        best_effort=choice.best_effort,
    )


def _constants(summary: Summary, i: int) -> list[ConstantCost]:
    """What the epsilons that circulate for float16 would do there."""
    (fmt, kernel), plan, table = summary.plan.results[i], summary.plan, summary.results[i].table
    if fmt.name != "float16":
        return []
    some = summary.input.counts["varying_rows"] > 0
    return [
        ConstantCost(
            epsilon=e,
            held=held(e, fmt, kernel)[0],
            failing_rows=int(table.failing[at]),
            distortion_max=float(summary.input.distortion[at]) if some else None,
        )
        for e, at in ((e, plan.tried.index(e)) for e in CONSTANTS if e in plan.tried)
    ]
