"""A whole run: its documents, to JSON and back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from ..errors import LnauditError
from ..findings import SEVERITIES, Finding
from ..plain import from_plain, to_plain
from ..site import NotAudited
from .scan import ModelEpsilon, SiteReport
from .sweep import SweptSite, VerdictMap

SCHEMA_VERSION = 1


@dataclass(kw_only=True)
class Document:
    """What one run found; `to_dict` gives the JSON document, `from_dict` reads it."""

    KINDS: ClassVar[tuple[str, ...]] = ()
    kind: str
    lnaudit_version: str
    config: dict[str, Any]
    summary: dict[str, int]
    not_audited: list[NotAudited]
    findings: list[Finding]
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document as plain objects: no NaN, no Inf, derived figures to 6 significant digits."""
        document = to_plain(self, _EXACT)
        return {"schema_version": SCHEMA_VERSION, **{key: document[key] for key in _ORDER if key in document}}

    @classmethod
    def from_dict(cls, document: dict[str, Any], source: str = "") -> Self:
        """Return the report of a JSON document; derived figures have the 6 digits that it holds.

        Raises
        ------
        LnauditError
            If it is none of this kind and schema version; `source` says where it comes from.
        """
        version, kind = document.get("schema_version"), document.get("kind")
        if type(version) is not int or version != SCHEMA_VERSION or kind not in cls.KINDS:
            said = f"kind {kind!r:.40}, schema_version {version!r:.40}"
            needed = f"kind {' or '.join(cls.KINDS)}, schema_version {SCHEMA_VERSION}"
            raise LnauditError(f"is no report that can be read ({said})", f"name one of {needed}", source)
        try:
            report: Self = from_plain(cls, document)
            if any(finding.severity not in SEVERITIES for finding in report.findings):
                raise ValueError("a finding has no severity")
        except ValueError as error:
            reason = f"is damaged ({error!s:.200})"
            raise LnauditError(reason, "write it again with --output-format json", source) from None
        return report


@dataclass(kw_only=True)
class AcceptedFinding:
    """A finding that the policy accepts at the sites of a pattern, and why."""

    finding: Finding
    pattern: str
    reason: str


@dataclass(kw_only=True)
class Report(Document):
    """Everything a scan found."""

    KINDS = ("scan", "check")
    epsilon: list[ModelEpsilon]
    sites: list[SiteReport]
    accepted: list[AcceptedFinding] = field(default_factory=list)


@dataclass(kw_only=True)
class SweepReport(Document):
    """Everything a sweep found; maps: of grids of families; rules: the names of the codes at the points."""

    KINDS = ("sweep",)
    sites: list[SweptSite]
    maps: list[VerdictMap] = field(default_factory=list)
    rules: dict[str, str] = field(default_factory=dict)


_ORDER = (
    "kind",
    "lnaudit_version",
    "config",
    "summary",
    "not_audited",
    "epsilon",
    "sites",
    "maps",
    "findings",
    "accepted",
    "rules",
    "notes",
)
# what a user gave or a file holds is reported as it is; everything else is derived
_EXACT = {"epsilon", "epsilon_stored", "model_epsilon", "lower", "upper", "robust", "held", "best_effort"}
