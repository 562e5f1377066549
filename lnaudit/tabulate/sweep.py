"""From the Summary of a sweep to the rows of the report."""

from __future__ import annotations

import math

from ..advice.window import held
from ..findings import Finding, worst
from ..report import Point, SweptResult, SweptSite
from ..site import Site
from ..summary import Summary
from .figures import emulation_figures, site_figures, verdict_of

FEWEST_DIGITS = 1e-10  # of a sum of squares: of 16 digits six are left
ABOVE_ROUNDING = 64  # unit roundoffs of the size: rounding then changes a standard deviation by less than 1e-4


def swept_site(site: Site, summary: Summary) -> SweptSite:
    """Return the site's own entry, without results."""
    return SweptSite(**site_figures(site, summary), results=[])


def swept_result(summary: Summary, i: int, severity: str | None, points: list[Point]) -> SweptResult:
    """Return the entry of one emulation."""
    return SweptResult(
        **emulation_figures(summary, i, severity),
        error_by="elements" if _by_elements(summary, i) else "closed-form",
        points=points,
    )


def point_of(point: Summary, i: int, ratio: float | None, findings: list[Finding]) -> Point:
    """Return the entry of one emulation at one epsilon; ratio: the exact one; `findings` are those about it."""
    fmt, kernel = point.plan.results[i]
    result, some = point.results[i], point.input.counts["varying_rows"] > 0
    severity = worst(findings)
    return Point(
        epsilon=point.plan.epsilon,
        epsilon_stored=held(point.plan.epsilon, fmt, kernel)[0],
        collapse_ratio=ratio,
        error=result.error.quantiles(p50=0.5, max=1),
        failing_rows=result.counts["failing_rows"],
        nonfinite_rows=result.counts["nonfinite_rows"],
        collapsed_rows=result.counts["collapsed_rows"] if some else None,
        output_std=_output_std(point, i),
        verdict=verdict_of(severity),
        codes=[finding.code for finding in findings if finding.severity != "note"],
    )


def _by_elements(summary: Summary, i: int) -> bool:
    _, kernel = summary.plan.results[i]
    return summary.plan.by_elements or not kernel.has_closed_form(summary.plan.rms)


def _output_std(point: Summary, i: int) -> float | None:
    """Return the standard deviation of all elements of the core, n - 1 in the denominator; NaN if one is.

    None where the sums do not tell: they overflow, or the elements differ so little beside their size that what is
    left of the digits of the sums, or the rounding of the output that a closed form leaves out, would be it.
    """
    result = point.results[i]
    n = point.input.counts["finite_rows"] * point.plan.features
    if n < 2:
        return None
    if result.counts["nonfinite_rows"]:
        return math.nan
    total, squares = map(float, result.moments)
    left = squares - total * total / n
    u = point.plan.results[i][0].unit_roundoff
    least = FEWEST_DIGITS if _by_elements(point, i) else max(FEWEST_DIGITS, (ABOVE_ROUNDING * u) ** 2)
    if not math.isfinite(left) or left < least * squares:
        return None
    return math.sqrt(left / (n - 1))
