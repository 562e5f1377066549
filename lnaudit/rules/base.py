"""What a rule is, what it sees, and the table of all rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import wording
from ..advice.window import Choice
from ..findings import SEVERITIES, Finding
from ..formats import Format
from ..kernels import Kernel
from ..summary import InputSummary, ResultSummary, Summary


@dataclass(frozen=True, kw_only=True)
class SiteFacts:
    """What rules know of a site."""

    name: str
    source: str
    summary: Summary
    axes: tuple[int, ...] = (-1,)
    unread_bytes: int = 0
    weight_nonfinite: int = 0
    bias_nonfinite: int = 0
    better_axis: int | None = None

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


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule: its code and name are stable, its docstring explains it."""

    code: str
    name: str
    check: Callable[[Any], dict[str, Any] | None]
    scope: type

    @property
    def explanation(self) -> str:
        """What the rule does, why it matters, what to do."""
        return self.check.__doc__ or ""


RULES: dict[str, Rule] = {}
Check = Callable[[Any], dict[str, Any] | None]


def rule(code: str, name: str, scope: type) -> Callable[[Check], Check]:
    """Register a function as a rule; it returns the fields of its finding, or None."""

    def register(check: Check) -> Check:
        RULES[code] = Rule(code=code, name=name, check=check, scope=scope)
        return check

    return register


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
