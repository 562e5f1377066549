"""The loop over sites that a scan and a sweep share: one that cannot be audited does not stop the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

from ..errors import LnauditError
from ..report import SiteFigures
from ..site import NotAudited, Site


class _Audit(Protocol):
    @property
    def report(self) -> SiteFigures: ...


A = TypeVar("A", bound=_Audit)


def each(sites: Iterable[Site | NotAudited], audit: Callable[[Site], A]) -> tuple[list[A], list[NotAudited]]:
    """Audit sites one after the other; return what came of them, and what could not be opened or judged."""
    audits: list[A] = []
    not_audited: list[NotAudited] = []
    for site in sites:
        if isinstance(site, NotAudited):
            not_audited.append(site)
            continue
        try:
            audits.append(audit(site))
            if not audits[-1].report.judged:
                reason = "no row is finite, so nothing was judged; look at what comes before the norm"
                not_audited.append(NotAudited(source=site.source, reason=reason))
        except LnauditError as error:  # the file changed or could not be read to its end
            not_audited.append(NotAudited(source=error.source or site.source, reason=error.reason))
    return audits, not_audited


def counted(reports: Iterable[SiteFigures]) -> dict[str, Any]:
    """Return how many sites there are, and how many of each verdict; one without a finite row has none."""
    sites = list(reports)
    verdicts = Counter(site.verdict for site in sites if site.judged)
    return {"sites": len(sites), **{verdict: verdicts[verdict] for verdict in ("fail", "warn", "pass")}}


def worst_verdict(verdicts: Iterable[str]) -> str:
    """Return the worst of some verdicts, pass of none."""
    return min(verdicts, key=("fail", "warn", "pass").index, default="pass")
