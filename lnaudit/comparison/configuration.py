"""What two runs were configured to do differently, so that their figures do not compare."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from ..report import Report, SiteReport
from ..wording import SAME

# of the run; epsilon, axis, norm and dtype are those of its sites
OF_RUN = (
    "flush_subnormals",
    "tolerance",
    "limits",
    "loss_scale",
    "compare_epsilon",
    "field",
    "weight",
    "bias",
    "select",
    "ignore",
    "share",
)
OF_SITE = ("epsilon", "axis", "norm", "dtype", "features")


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One thing that was configured differently; sites: where, empty if for the whole run."""

    what: str
    old: Any
    new: Any
    sites: list[str] = field(default_factory=list)


def differences(old: Report, new: Report) -> list[Difference]:
    """Return what was configured differently: by the runs, for sites of both, and what one of them alone judged."""
    found = [] if old.lnaudit_version == new.lnaudit_version else [_versions(old, new)]
    for key in OF_RUN:
        before, after = old.config.get(key), new.config.get(key)
        if key in old.config and key in new.config and not alike(before, after):
            found.append(Difference(what=key, old=before, new=after))
    if any(difference.what == "tolerance" for difference in found):
        found = [difference for difference in found if difference.what != "limits"]
    return found + _of_sites(old, new)


def alike(old: Any, new: Any) -> bool:
    """Whether two values are the same, numbers to the digits of a float32 literal."""
    if isinstance(old, float) and isinstance(new, float):
        return old == new or math.isclose(old, new, rel_tol=SAME)
    return bool(old == new)


def _versions(old: Report, new: Report) -> Difference:
    return Difference(what="lnaudit", old=old.lnaudit_version, new=new.lnaudit_version)


def _of_sites(old: Report, new: Report) -> list[Difference]:
    """Return the differences of sites, those alike in one."""
    before = {site.name: site for site in old.sites}
    gathered: dict[Hashable, Difference] = {}
    for site in new.sites:
        if site.name in before:
            for what, was, now in _of_site(before[site.name], site):
                entry = gathered.setdefault((what, repr(was), repr(now)), Difference(what=what, old=was, new=now))
                entry.sites.append(site.name)
    return list(gathered.values())


def _of_site(old: SiteReport, new: SiteReport) -> list[tuple[str, Any, Any]]:
    pairs = [(name, getattr(old, name), getattr(new, name)) for name in OF_SITE]
    pairs += [(name, bool(old.parameters.get(name)), bool(new.parameters.get(name))) for name in ("weight", "bias")]
    found = [pair for pair in pairs if not alike(*pair[1:])]
    judged = [[f"{r.format} {r.kernel}" for r in site.results] for site in (old, new)]
    if set(judged[0]) != set(judged[1]):
        found.append(("judged", judged[0], judged[1]))
    return found
