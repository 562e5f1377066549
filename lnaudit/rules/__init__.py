"""The rules: functions that turn a Summary into findings; `RULES` holds them by code."""

from __future__ import annotations

from . import cast, epsilon, gradient, input, range, rounding  # noqa: F401  (each registers its rules)
from .base import RULES, ResultFacts, Rule, SiteFacts, result_findings, site_findings, thresholds_of

__all__ = ["RULES", "ResultFacts", "Rule", "SiteFacts", "result_findings", "site_findings", "thresholds_of"]
