"""The rules: functions that turn a Summary into findings; `RULES` holds them by code."""

from __future__ import annotations

from . import cast, epsilon, gradient, input, range, rounding  # noqa: F401  (each registers its rules)
from .base import RULES, ResultFacts, Rule, SiteFacts, Threshold, code_of, result_findings, site_findings, thresholds_of
from .explanation import HEADINGS, Explanation

__all__ = [
    "HEADINGS",
    "RULES",
    "Explanation",
    "ResultFacts",
    "Rule",
    "SiteFacts",
    "Threshold",
    "code_of",
    "result_findings",
    "site_findings",
    "thresholds_of",
]
