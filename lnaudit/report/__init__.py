"""The report: what was audited and found. Its fields are the keys of the JSON document, version 1."""

from __future__ import annotations

from .document import SCHEMA_VERSION, AcceptedFinding, Document, Report, SweepReport
from .figures import Cast, Emulation, SiteFigures
from .scan import ConstantCost, Disagreement, ModelEpsilon, Recommendation, Remedy, Result, SiteReport
from .sweep import Point, ResponseCurve, SweptResult, SweptSite, VerdictMap

__all__ = [
    "SCHEMA_VERSION",
    "AcceptedFinding",
    "Cast",
    "ConstantCost",
    "Disagreement",
    "Document",
    "Emulation",
    "ModelEpsilon",
    "Point",
    "Recommendation",
    "Remedy",
    "Report",
    "ResponseCurve",
    "Result",
    "SiteFigures",
    "SiteReport",
    "SweepReport",
    "SweptResult",
    "SweptSite",
    "VerdictMap",
]
