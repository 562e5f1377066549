"""The findings of a site, told once for all emulations that have them, and the rules that explain them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ... import wording
from ...findings import SEVERITIES, Finding
from ...report import AcceptedFinding, Remedy, Result
from ...rules import HEADINGS, RULES
from ...wording import joined
from ..style import unbound
from ..terminal_findings import subject
from .parts import Explained, Help, Told

Key = tuple[str | None, str | None]


def told_accepted(entries: Iterable[AcceptedFinding]) -> tuple[Told, ...]:
    """Return findings that the policy accepts, each with the reason; what would help is not asked of them."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for entry in entries:
        bare = replace(entry.finding, remedy="", known=False)
        groups.setdefault((entry.pattern, entry.reason), []).append(bare)
    return tuple(
        replace(said, aside="accepted", reason=f"{reason} (policy, at {pattern})")
        for (pattern, reason), findings in groups.items()
        for said in told(findings)
    )


def told(findings: Iterable[Finding], results: Sequence[Result] = ()) -> tuple[Told, ...]:
    """Return findings worst first; those with the same words about several emulations are one."""
    by_key: dict[Key, Result] = {(r.format, r.kernel): r for r in results}
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for f in sorted(findings, key=lambda f: (f.known, SEVERITIES.index(f.severity))):
        groups.setdefault((f.code, f.severity, f.title, f.message, f.known), []).append(f)
    return tuple(_told(group, by_key) for group in groups.values())


def rule_id(code: str) -> str:
    """Return where a rule is explained, "" if it is none that is known."""
    return f"rule-{code}" if code in RULES else ""


def explained(codes: Iterable[str]) -> tuple[Explained, ...]:
    """Return the explanations of the rules among some codes, each once, in the order of the codes."""
    return tuple(_explained(code) for code in sorted(set(codes)) if code in RULES)


def named(keys: Iterable[Key]) -> str:
    """Name the formats and kernels of a finding."""
    return unbound(subject(keys))


def _told(group: Sequence[Finding], results: dict[Key, Result]) -> Told:
    first = group[0]
    keys = list(dict.fromkeys((f.format, f.kernel) for f in group))
    concerned = [results[key] for key in keys if key in results]
    helps = _helps(first.code, concerned, len(keys)) if first.severity != "note" else ()
    if not helps and first.remedy:
        helps = _said(group)
    return Told(
        severity=first.severity,
        code=first.code,
        name=first.name,
        rule=rule_id(first.code),
        about=named(keys),
        title=first.title,
        message=first.message,
        aside="known" if first.known else "",
        measured=_measured(group),
        helps=helps,
    )


def _measured(group: Sequence[Finding]) -> tuple[str, ...]:
    """Say what was measured, against what, in which row; of which emulation where they differ."""
    texts: dict[str, list[Key]] = {}
    for f in group:
        parts = [
            f"measured {wording.magnitude(f.measured)}" if f.measured is not None else "",
            f"limit {wording.magnitude(f.limit)}" if f.limit is not None else "",
            f"worst row {f.row}" if f.row is not None else "",
        ]
        if any(parts):
            texts.setdefault(", ".join(filter(None, parts)), []).append((f.format, f.kernel))
    everywhere = len(texts) == 1 and sum(map(len, texts.values())) == len(group)
    return tuple(text if everywhere else f"{named(keys)}: {text}" for text, keys in texts.items())


def _helps(code: str, concerned: Sequence[Result], among: int) -> tuple[Help, ...]:
    """Say what cures a finding in each emulation, once where it is the same."""
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[Key]] = {}
    for result in concerned:
        groups.setdefault(_cures(code, result), []).append((result.format, result.kernel))
    return tuple(
        Help(about=named(keys) if len(keys) < among else "", lead=lead, remedies=remedies)
        for (lead, remedies), keys in groups.items()
    )


def _cures(code: str, result: Result) -> tuple[str, tuple[tuple[str, str], ...]]:
    remedies = [remedy for remedy in result.remedies if code in remedy.cures]
    advice = result.recommendation
    useless = ""
    if advice.epsilon is None and advice.reason != "cast":
        lowest, highest = map(wording.epsilon, (wording.LOWEST_TRIED, wording.HIGHEST_TRIED))
        useless = f"No epsilon from {lowest} to {highest} helps. "
    if not remedies:
        return f"{useless}Nothing that was tried cures it.", ()
    verb = "What does" if useless else "What helps"
    return f"{useless}{verb}:", tuple((remedy.detail, _cost(remedy)) for remedy in remedies)


def _cost(remedy: Remedy) -> str:
    if not remedy.verified:
        return "not verified"
    kind = "witness row" if remedy.verified == "witness-rows" else "row"
    rerun = f", re-run on {wording.counted(remedy.rows, kind)}" if remedy.rows else ""
    return f"error max {wording.short(remedy.error_max)}{rerun}"


def _said(group: Sequence[Finding]) -> tuple[Help, ...]:
    remedies: dict[str, list[Key]] = {}
    for f in group:
        if f.remedy:
            remedies.setdefault(f.remedy, []).append((f.format, f.kernel))
    return tuple(
        Help(about=named(keys) if len(keys) < len(group) else "", lead=f"What to do: {remedy}.")
        for remedy, keys in remedies.items()
    )


def _explained(code: str) -> Explained:
    rule = RULES[code]
    sections = []
    for heading in HEADINGS:
        body: str | tuple[str, ...] = getattr(rule.explanation, heading.lower().replace(" ", "_"))
        if body:
            sections.append((heading, (body,) if isinstance(body, str) else body, heading == "Example"))
    return Explained(
        id=rule_id(code),
        code=code,
        name=rule.name,
        severities=joined(rule.severities, " or "),
        summary=rule.explanation.summary,
        sections=tuple(sections),
    )
