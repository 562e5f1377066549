"""What a policy says; a policy of no file says what lnaudit does by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from ..findings import Finding
from ..rules import thresholds_of

Accepting = tuple[float, tuple[tuple[str, float], ...]]


@dataclass(frozen=True, kw_only=True)
class SiteWords:
    """What is said of the sites whose names match a pattern; None where nothing is."""

    pattern: str
    epsilon: float | None = None
    norm: str | None = None
    axis: int | tuple[int, ...] | None = None
    formats: tuple[str, ...] | None = None
    kernel: str | None = None
    tolerance: float | None = None
    share: float | None = None


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """Findings of some codes that are accepted at some sites, and why."""

    pattern: str
    code: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What is audited and what is accepted.

    Attributes
    ----------
    source : str
        The file, "" if there is none.
    formats, kernels, runtimes : tuple of str
        As `--format`, `--kernel` and `--runtime` take them; empty where nothing is said.
    tolerance : float or None
        Accepted row error.
    tolerances : dict
        That of single formats, by name.
    share : float
        Part of the rows that may exceed it.
    fail_on : str or None
    select, ignore : tuple of str
        Codes or their beginnings; the longer one decides, `ignore` where both are alike.
    thresholds : dict
        Of rules, by code and name, where they differ from the defaults.
    sites, accepted, anchors
        By patterns of site names; the first that matches counts.
    said : tuple of str
        The keys of the file.
    """

    source: str = ""
    formats: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    runtimes: tuple[str, ...] = ()
    tolerance: float | None = None
    tolerances: dict[str, float] = field(default_factory=dict)
    share: float = 0.0
    fail_on: str | None = None
    select: tuple[str, ...] = ("LN",)
    ignore: tuple[str, ...] = ()
    thresholds: dict[str, dict[str, float]] = field(default_factory=dict)
    sites: tuple[SiteWords, ...] = ()
    accepted: tuple[Accepted, ...] = ()
    anchors: tuple[tuple[str, str], ...] = ()
    said: tuple[str, ...] = field(default=(), compare=False)

    def of_rule(self, code: str) -> dict[str, float]:
        """Return the thresholds of a rule by name."""
        return {**thresholds_of(code), **self.thresholds.get(code, {})}

    @property
    def already(self) -> tuple[float, float]:
        """Within what of mean 0 and variance 1 a row counts as already normalized (LN007)."""
        words = self.of_rule("LN007")
        return words["mean"], words["variance"]

    def of_site(self, name: str) -> SiteWords:
        """Return what is said of a site: of each word what the first pattern with it says."""
        found: dict[str, Any] = {}
        for words in self.sites:
            if fnmatchcase(name, words.pattern):
                found = {**{key: value for key, value in vars(words).items() if value is not None}, **found}
        return SiteWords(**{**found, "pattern": name})

    def as_one_site(self, name: str, pattern: str) -> Policy:
        """Return a policy that says of all sites of a pattern what this one says of the site of that name."""
        accepted = tuple(replace(a, pattern=pattern) for a in self.accepted if fnmatchcase(name, a.pattern))
        return replace(self, sites=(replace(self.of_site(name), pattern=pattern),), accepted=accepted, anchors=())

    def accepted_errors(self, site: str, asked: float | None, otherwise: Accepting) -> Accepting:
        """Return the accepted error of a site and those of single formats.

        asked: on the command line, before all else; otherwise: where the policy says nothing either.
        """
        said = asked if asked is not None else self.of_site(site).tolerance
        if said is not None:
            return said, ()
        if self.tolerance is None and not self.tolerances:
            return otherwise
        return otherwise[0] if self.tolerance is None else self.tolerance, tuple(self.tolerances.items())

    def facts(self, site: str) -> dict[str, Any]:
        """Return what `rules.SiteFacts` holds of a policy."""
        share = self.of_site(site).share
        return {"thresholds": self.thresholds, "share": self.share if share is None else share}

    def config(self) -> dict[str, Any]:
        """Return what a report repeats of it."""
        return {
            "policy": self.source or None,
            "select": list(self.select),
            "ignore": list(self.ignore),
            "share": self.share,
        }

    def selects(self, code: str) -> bool:
        """Whether findings of a code are reported."""
        chosen = max((len(prefix) for prefix in self.select if code.startswith(prefix)), default=-1)
        left = max((len(prefix) for prefix in self.ignore if code.startswith(prefix)), default=-1)
        return chosen > left

    def accepts(self, finding: Finding) -> Accepted | None:
        """Return the entry by which a finding is accepted at its site, if there is one."""
        fitting = (a for a in self.accepted if finding.code.startswith(a.code) and fnmatchcase(finding.site, a.pattern))
        return next(fitting, None)

    def notes(self, accepted: Sequence[tuple[Finding, Accepted]], sites: Collection[str]) -> list[str]:
        """Say what was accepted and why, which entries accepted nothing, and which patterns match none of the sites."""
        counted = Counter((entry.pattern, entry.code, entry.reason) for _, entry in accepted)
        lines = [
            f"accepted by the policy: {n} finding{'s' * (n > 1)} of {code} at {pattern!r}: {reason}"
            for (pattern, code, reason), n in counted.items()
        ]
        idle = [entry for entry in self.accepted if (entry.pattern, entry.code, entry.reason) not in counted]
        lines += [f"the policy accepts {entry.code} at {entry.pattern!r}, where there is none" for entry in idle]
        patterns = [*(words.pattern for words in self.sites), *(pattern for pattern, _ in self.anchors)]
        unmatched = (p for p in dict.fromkeys(patterns) if not any(fnmatchcase(site, p) for site in sites))
        return lines + [f"the policy speaks of sites {pattern!r}, and no site is called so" for pattern in unmatched]

    def anchor(self, site: str) -> str | None:
        """Return the line of source that a site stands for."""
        return next((place for pattern, place in self.anchors if fnmatchcase(site, pattern)), None)
