"""What a comparison says. Its fields are the keys of the JSON document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..findings import SEVERITIES, Finding
from ..plain import to_plain
from ..report import SCHEMA_VERSION, Report
from ..site import NotAudited
from ..version import __version__
from .configuration import Difference

KIND = "diff"
TRENDS = ("worse", "added", "changed", "removed", "better")  # worst first
FATES = ("worse", "better", "changed", "same", "added", "removed")  # of a site
_EXACT = {"epsilon"}


@dataclass(frozen=True, kw_only=True)
class Run:
    """A saved run: how the user names it, its report, and what is to be said of it."""

    source: str
    report: Report
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Change:
    """One thing that changed.

    what: "verdict", "finding", "recommendation", "error", "site" or "result"; change: what became of it: "new",
    "worse", "better", "gone", "changed", "added" or "removed"; trend: what that means for the site, one of TRENDS;
    severity: of the worse of its two sides; old, new: a verdict, a number, or the figures that are compared, None where
    there is nothing; limit: the accepted error of the format, where that is what changed.
    """

    what: str
    change: str
    trend: str
    severity: str
    site: str
    format: str | None = None
    kernel: str | None = None
    code: str | None = None
    name: str | None = None
    old: Any = None
    new: Any = None
    limit: float | None = None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What changed from one run to another; counted: the findings that are new or worse."""

    old: dict[str, Any]
    new: dict[str, Any]
    config: dict[str, Any]
    summary: dict[str, int]
    not_audited: list[NotAudited] = field(default_factory=list)
    configured: list[Difference] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    counted: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document as plain objects: no NaN, no Inf, derived figures to 6 significant digits."""
        document = to_plain(self, _EXACT)
        return {"schema_version": SCHEMA_VERSION, "kind": KIND, "lnaudit_version": __version__, **document}


def nothing_of(old: str, new: str, fail_on: str, failure: NotAudited) -> Comparison:
    """Return the comparison of runs that cannot be compared, and why."""
    heads = [{"source": path, "kind": None, "lnaudit_version": None, "sites": None} for path in (old, new)]
    return Comparison(
        old=heads[0], new=heads[1], config={"fail_on": fail_on}, summary=summary_of([], [], []), not_audited=[failure]
    )


def summary_of(sites: Iterable[str], changes: list[Change], counted: list[Finding]) -> dict[str, int]:
    """Count the sites by what became of them, and the findings that are new or worse."""
    trends: dict[str, set[str]] = {site: set() for site in sites}
    for change in changes:
        # a result that only one of the runs judged is not a site that only one of them had
        trends.get(change.site, set()).add("changed" if change.what == "result" else change.trend)
    order = ("added", "removed", "worse", "better", "changed")
    fates = Counter(next((trend for trend in order if trend in found), "same") for found in trends.values())
    severities = Counter(finding.severity for finding in counted)
    return {
        "sites": len(trends),
        **{fate: fates[fate] for fate in FATES},
        **{f"new_or_worse_{severity}s": severities[severity] for severity in SEVERITIES},
    }
