"""Saved statistics under another policy: a report without the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..errors import LnauditError
from ..formats import get_format
from ..report import Report
from ..site import NotAudited
from .judging import SiteAudit
from .saving import Saved, judged_by
from .scanning import report_of
from .settings import Settings
from .statistics import rejudge

SAID = ("fail_on", "policy", "select", "ignore", "share")
NOT_TRIED = "remedies were tried under another policy and are left out; check the dumps for them"


def rejudge_all(saved: Saved, source: str, settings: Settings) -> Report:
    """Judge what was saved under the policy of the settings; their formats and kernels are those that are asked for.

    A site about which the policy asks what only its rows could tell is not audited.
    """
    same = {**judged_by(settings.policy), "accepted": None} == {**saved.judged_by, "accepted": None}
    audits: list[SiteAudit] = []
    failures = list(saved.not_audited)
    for site in saved.sites:
        try:
            audits.append(rejudge(site, settings, same=same))
        except LnauditError as error:
            failures.append(NotAudited(source=site.figures.source, reason=f"in {source} it {error.reason}"))
    report = report_of(audits, failures, settings, "check")
    report.config = _config(saved, settings)
    report.notes[:0] = saved.notes
    if not same:
        report.notes.append(NOT_TRIED)
    return report


def _config(saved: Saved, settings: Settings) -> dict[str, Any]:
    """Return the configuration of the run that was saved, with what is said now."""
    now = {**settings.policy.config(), **settings.config}
    config = {**saved.config, **{key: now[key] for key in SAID if key in now}}
    if settings.formats:
        config["formats"] = [fmt.name for fmt in settings.formats]
    if settings.kernels:
        config["kernels"] = [kernel.name for kernel in settings.kernels]
    reported = replace(settings, formats=tuple(map(get_format, config["formats"]))).reported
    return {**config, "tolerance": settings.named()["tolerance"], "limits": reported["limits"]}
