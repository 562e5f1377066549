"""What a rule is, what it sees, and the table of all rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import wording
from ..advice.window import Choice
from ..findings import SEVERITIES, Finding
from ..formats import Format
from ..kernels import Kernel
from ..summary import DEVIATIONS, PRIMARY_CODES, InputSummary, ResultSummary, Summary
from .explanation import Explanation, explain

Thresholds = Mapping[str, Mapping[str, float]]
FACTOR = 5.0  # times its limit: an error that large is no matter of a few rows; a Summary counts those "beyond" it


@dataclass(frozen=True, kw_only=True)
class SiteFacts:
    """What rules know of a site; thresholds: of rules by code and name, where they are not the defaults."""

    name: str
    source: str
    summary: Summary
    axes: tuple[int, ...] = (-1,)
    unread_bytes: int = 0
    weight_nonfinite: int = 0
    bias_nonfinite: int = 0
    better_axis: int | None = None
    thresholds: Thresholds = field(default_factory=dict)
    share: float = 0.0  # of the rows that may exceed the accepted error

    def threshold(self, code: str, name: str) -> float:
        """Return a threshold of a rule."""
        return self.thresholds.get(code, {}).get(name, RULES[code].thresholds[name].default)

    @property
    def input(self) -> InputSummary:
        """The rows of the file."""
        return self.summary.input


@dataclass(frozen=True, kw_only=True)
class ResultFacts:
    """What rules know of one emulation of a site; `choice` is None while remedies are tried."""

    site: SiteFacts
    number: int
    choice: Choice | None = None

    @property
    def fmt(self) -> Format:
        """The audited format."""
        return self.site.summary.plan.results[self.number][0]

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.site.summary.plan.results[self.number][1]

    @property
    def result(self) -> ResultSummary:
        """What became of the rows."""
        return self.site.summary.results[self.number]

    @property
    def epsilon(self) -> float:
        """The epsilon that is emulated: the model's, or the one of a trial."""
        return self.site.summary.plan.epsilon

    @property
    def limit(self) -> float:
        """The accepted row error in this format."""
        return self.site.summary.plan.limit_of(self.fmt)

    def threshold(self, code: str, name: str) -> float:
        """Return a threshold of a rule."""
        return self.site.threshold(code, name)

    @property
    def exceeding(self) -> int:
        """Rows that exceed the accepted error, 0 if no more of them do than may."""
        rows = sum(self.result.primary[code] for code in DEVIATIONS)
        return rows if rows > self.site.share * self.result.counts["finite_rows"] else 0

    @property
    def errors(self) -> tuple[str, ...]:
        """Primary codes that are errors, and LN107: of rounding or scale error all but a few rows not far beyond."""
        rows, found = self.result.counts["finite_rows"], []
        for code in PRIMARY_CODES:
            amount, least = self.result.primary[code], 0.0
            if code in DEVIATIONS:
                amount = amount if self.exceeding else 0
                least = 0.0 if self._far_beyond(code) else self.threshold(code, "share") * rows
            if amount > least:
                found.append(code)
        return (*found, "LN107") if self.result.counts["affine_overflow_rows"] else tuple(found)

    def _far_beyond(self, code: str) -> bool:
        """Whether the error of some row is so many times its limit; of a point of a sweep only five times is known."""
        factor = self.threshold(code, "factor")
        if factor == FACTOR:
            return self.result.counts[f"{code} beyond"] > 0
        return (self.result.extremes.value(f"code {code}") or 0.0) > factor


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """A number that a policy may set: what it is of, its default, and the least and most that it can be."""

    default: float
    meaning: str
    least: float = 0.0
    most: float = math.inf


def portion(default: float, meaning: str) -> Threshold:
    """Return a threshold that is a part of something, from 0 to 1."""
    return Threshold(default=default, meaning=meaning, most=1.0)


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule: its code and name are stable; severities: those that its findings can have, worst first."""

    code: str
    name: str
    check: Callable[[Any], dict[str, Any] | None]
    scope: type
    severities: tuple[str, ...]
    thresholds: Mapping[str, Threshold]

    @property
    def severity(self) -> str:
        """The worst that a finding can have."""
        return self.severities[0]

    @property
    def explanation(self) -> Explanation:
        """What its docstring says."""
        return explain(self.check.__doc__ or "")


RULES: dict[str, Rule] = {}
Check = Callable[[Any], dict[str, Any] | None]


def rule(code: str, name: str, scope: type, *severities: str, **thresholds: Threshold) -> Callable[[Check], Check]:
    """Register a function as a rule; it returns the fields of its finding, or None."""

    def register(check: Check) -> Check:
        RULES[code] = Rule(code=code, name=name, check=check, scope=scope, severities=severities, thresholds=thresholds)
        return check

    return register


def code_of(text: str) -> str:
    """Return the code of the rule of that name, and any other text as it is."""
    return next((rule.code for rule in RULES.values() if rule.name == text), text)


def thresholds_of(code: str) -> Mapping[str, float]:
    """Return the default thresholds of a rule."""
    return {name: threshold.default for name, threshold in RULES[code].thresholds.items()}


def ends_at(fmt: Format) -> str:
    """Say where a format ends, 65504 by the name that everybody knows it by."""
    return f"{fmt.name} ends at {'65504' if fmt.max == 65504 else wording.short(fmt.max)}"


def site_findings(facts: SiteFacts) -> list[Finding]:
    """Return what the rules about the site itself find."""
    return _sorted(
        Finding(code=r.code, name=r.name, site=facts.name, source=facts.source, **found)
        for r, found in _found(SiteFacts, facts)
    )


def result_findings(facts: ResultFacts) -> list[Finding]:
    """Return what the rules find about one emulation."""
    where: dict[str, Any] = {
        "site": facts.site.name,
        "source": facts.site.source,
        "format": facts.fmt.name,
        "kernel": facts.kernel.name,
    }
    return _sorted(Finding(code=r.code, name=r.name, **where, **found) for r, found in _found(ResultFacts, facts))


def _found(scope: type, facts: Any) -> list[tuple[Rule, dict[str, Any]]]:
    checked = ((r, r.check(facts)) for _, r in sorted(RULES.items()) if r.scope is scope)
    return [(r, found) for r, found in checked if found is not None]


def _sorted(findings: Any) -> list[Finding]:
    return sorted(findings, key=lambda f: (SEVERITIES.index(f.severity), f.latent, f.code))
