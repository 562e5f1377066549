"""The findings of a site: a paragraph a cause, worst first, with what helps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from .. import wording
from ..findings import Finding
from ..report import ConstantCost, Remedy, Result, SiteReport
from ..wording import counted, joined
from .style import Style, bound, unbound

LATENT = "Latent: not on this data, but on other rows or hardware"
_HEAD = "  "
_BODY = " " * 11
_ITEM = " " * 13
# epsilon itself is what is wrong: the constants that others use are the next question
_ABOUT_EPSILON = ("LN301", "LN302")
_READABLE = 24  # columns: with less beside the figures, prose stands above them
_FREE = 1e-4  # of the normalized scale: smaller changes are not told apart
Key = tuple[str | None, str | None]


def finding_lines(site: SiteReport, findings: Sequence[Finding], style: Style) -> list[str]:
    """Return the paragraphs of a site's findings, which come worst first, each with the remedies that cure it.

    What has not happened on this data stands after all that has.
    """
    told = _Told(results={(r.format, r.kernel): r for r in site.results}, style=style)
    happened = [_group_lines(group, told) for group in _same_text([f for f in findings if not f.latent])]
    latent = [_group_lines(group, told) for group in _same_text([f for f in findings if f.latent])]
    paragraphs = [*happened, *([style.wrap(LATENT, _HEAD, _HEAD)] if latent else []), *latent]
    return [line for paragraph in paragraphs for line in ("", *paragraph)][1:]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Told:
    """What of a site has been told: remedies by result, and results whose constants were listed."""

    results: dict[Key, Result]
    style: Style
    remedies: dict[Key, list[Remedy]] = field(default_factory=dict)
    constants: set[Key] = field(default_factory=set)


def _group_lines(group: Sequence[Finding], told: _Told) -> list[str]:
    first, style = group[0], told.style
    keys = list(dict.fromkeys((f.format, f.kernel) for f in group))
    concerned = [told.results[key] for key in keys if key in told.results]
    lines = [*_paragraph(first, keys, style), *style.wrap(_explanation(group, style), _BODY, _BODY)]
    if first.severity != "note" and concerned:
        help_ = partial(_help, code=first.code, shown=told.remedies, style=style)
        lines += _per_result(concerned, help_, len(keys), style)
    elif first.remedy and not concerned:
        lines += style.wrap(f"What to do: {style.safe(first.remedy)}.", _BODY, _BODY)
    if first.code in _ABOUT_EPSILON:
        new = [r for r in concerned if (r.format, r.kernel) not in told.constants]
        told.constants.update(keys)
        lines += _per_result(new, lambda r: _constants(r, style), len(keys), style)
    return lines


def _explanation(group: Sequence[Finding], style: Style) -> str:
    """Say why, and name the row that shows it best, of each emulation where they differ."""
    rows: dict[int, list[Key]] = {}
    for finding in group:
        if finding.row is not None and finding.severity != "note":
            rows.setdefault(finding.row, []).append((finding.format, finding.kernel))
    if len(rows) > 1:
        worst = f"Worst rows: {', '.join(f'{row} ({subject(keys)})' for row, keys in rows.items())}."
    else:
        worst = "".join(bound(f"Worst row: {row}.") for row in rows)
    return " ".join(filter(None, (style.safe(group[0].message), worst)))


def subject(keys: Iterable[Key]) -> str:
    """Name the formats and kernels of a finding."""
    return ", ".join(bound(f"{fmt} {kernel}") for fmt, kernel in keys if fmt is not None)


def title_of(finding: Finding) -> str:
    """Return the fact in half a line; of what has not happened yet it says so."""
    if not finding.latent or finding.title.startswith("latent"):
        return finding.title
    return f"latent: {finding.title}" if finding.title else "latent"


def _same_text(findings: Sequence[Finding]) -> list[list[Finding]]:
    groups: dict[tuple[str, str, str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.code, finding.severity, finding.title, finding.message), []).append(finding)
    return list(groups.values())


def _paragraph(finding: Finding, keys: Sequence[Key], style: Style) -> list[str]:
    about = subject(keys)
    title = style.safe(finding.title)
    start = f"{finding.severity:<7}  {finding.code} {finding.name}{f'  [{about}]' if about else ''}"
    whole = f"{_HEAD}{start}  {title}".rstrip()
    if len(whole) <= style.text_columns:
        lines = [unbound(whole)]
    else:
        # textwrap would pull the double spaces of the first line into the next one
        lines = [*style.wrap(start, _HEAD, _BODY), *style.wrap(title, _BODY, _BODY)]
    n = len(_HEAD)
    lines[0] = lines[0][:n] + style.paint(finding.severity) + lines[0][n + len(finding.severity) :]
    return lines


def _per_result(
    results: Sequence[Result], told: Callable[[Result], list[str]], concerned: int, style: Style
) -> list[str]:
    """Tell something of each result, once where it is the same; named unless it holds for all that are concerned."""
    groups: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        text = tuple(told(result))
        if text:
            groups.setdefault(text, []).append(result)
    lines: list[str] = []
    for text, group in groups.items():
        if len(group) < concerned:
            lines += style.wrap(f"[{subject((r.format, r.kernel) for r in group)}]", _BODY, _BODY)
        lines += text
    return lines


def _help(result: Result, code: str, shown: dict[Key, list[Remedy]], style: Style) -> list[str]:
    """Say what cures a finding, and whether another epsilon could; not again what a worse finding has just said."""
    key = (result.format, result.kernel)
    remedies = [remedy for remedy in result.remedies if code in remedy.cures]
    if remedies and shown.get(key) == remedies:
        return style.wrap("What helps: the same as above.", _BODY, _BODY)
    shown.setdefault(key, remedies)
    advice = result.recommendation
    # where the cast is to blame, the finding says so
    none = advice.epsilon is None and advice.reason != "cast"
    lowest, highest = wording.epsilon(wording.LOWEST_TRIED), wording.epsilon(wording.HIGHEST_TRIED)
    useless = f"No epsilon from {lowest} to {highest} helps."
    if not remedies:
        return style.wrap(f"{useless if none else ''} Nothing that was tried cures it.".strip(), _BODY, _BODY)
    header = f"What {'does' if none else 'helps'}{_rerun(remedies)}:"
    return [*style.wrap(f"{useless} {header}" if none else header, _BODY, _BODY), *_items(remedies, style)]


def _rerun(remedies: Sequence[Remedy]) -> str:
    if not all(remedy.verified for remedy in remedies):
        return ""
    rows = {remedy.rows for remedy in remedies}
    if len(rows) > 1 or rows == {0}:
        return " (each re-run)"
    kind = "witness row" if any(remedy.verified == "witness-rows" for remedy in remedies) else "row"
    return f" (each re-run, {counted(rows.pop(), kind)})"


def _items(remedies: Sequence[Remedy], style: Style) -> list[str]:
    """Number the remedies; what each would cost stands right-aligned in one column."""
    details = [style.safe(remedy.detail) for remedy in remedies]
    costs = [f"error max {wording.short(r.error_max)}" if r.verified else "not verified" for r in remedies]
    longest = max(len(f"{_ITEM}{i}. {d}    {c}") for i, (d, c) in enumerate(zip(details, costs, strict=True), 1))
    edge = min(style.text_columns, longest)
    room = edge - max(map(len, costs)) - 2
    lines: list[str] = []
    for i, (detail, cost) in enumerate(zip(details, costs, strict=True), 1):
        beside = room - len(_ITEM) >= _READABLE
        lines += style.wrap(detail, f"{_ITEM}{i}. ", _ITEM + "   ", room if beside else edge)
        if beside:
            lines[-1] += cost.rjust(edge - len(lines[-1]))
        else:
            lines.append(cost.rjust(edge))
    return lines


def _constants(result: Result, style: Style) -> list[str]:
    """Say in one sentence what the epsilons in circulation would do to these rows, if any epsilon could."""
    constants = result.constants if result.recommendation.epsilon is not None else []
    lost = [wording.epsilon(c.epsilon) for c in constants if c.held == 0]
    parts = [f"{joined(lost)} become{'s' * (len(lost) == 1)} 0"] if lost else []
    failing: dict[int, list[str]] = {}
    for c in constants:
        if c.held != 0 and c.failing_rows:
            failing.setdefault(c.failing_rows, []).append(wording.epsilon(c.epsilon))
    parts += [f"{joined(e)} fail{'s' * (len(e) == 1)} {counted(rows, 'row')}" for rows, e in failing.items()]
    parts += _costs([c for c in constants if c.held != 0 and not c.failing_rows])
    return style.wrap(f"Constants in use, on these rows: {'; '.join(parts)}.", _BODY, _BODY) if parts else []


def _costs(constants: Sequence[ConstantCost]) -> list[str]:
    """Say how far each constant moves the rows away from the output that the model means."""
    known = [(wording.epsilon(c.epsilon), c.distortion_max) for c in constants if c.distortion_max is not None]
    free = [text for text, cost in known if cost < _FREE]
    dear = [f"{text} by up to {wording.percent(cost)}" for text, cost in known if cost >= _FREE]
    parts = [f"{joined(free)} move{'s' * (len(free) == 1)} no row by {wording.percent(_FREE)}"] if free else []
    if dear:
        parts.append(", ".join([dear[0].replace(" by ", " moves a row by ", 1), *dear[1:]]))
    return [*parts[:-1], f"{parts[-1]} of the normalized scale"] if parts else []
