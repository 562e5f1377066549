"""What several sites have in common: what to do about them, and one epsilon for the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .. import wording
from ..findings import SEVERITIES, Finding
from ..report import ModelEpsilon, Remedy, Report, Result, SiteReport
from ..wording import joined
from .style import DEFAULT_WIDTH, Style, bound
from .terminal_matrix import site_label

_LABEL_MAX = 38  # a longer name takes a line of its own
_GAP = "  "
_NAMED_SITES = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class _Advice:
    """One thing to do: for which site and results, what is wrong, what was verified to help."""

    site: SiteReport
    result: Result
    finding: Finding
    remedy: Remedy | None

    @property
    def shared(self) -> tuple[str, ...] | None:
        """What sites must have in common to share a line; None if this line is the site's own."""
        if self.remedy is None or self.remedy.kind != "epsilon":
            return None
        to = wording.epsilon(self.result.recommendation.epsilon)
        return (self.result.format, self.result.kernel, wording.epsilon(self.site.epsilon), to, self.what)

    @property
    def what(self) -> str:
        """The name of what is wrong."""
        return f"{self.finding.name}{' (latent)' if self.finding.latent else ''}"

    @property
    def rank(self) -> tuple[bool, int]:
        """Where it stands: what has happened first, then the worst."""
        return self.finding.latent, SEVERITIES.index(self.finding.severity)


def what_to_do_lines(report: Report, style: Style) -> list[str]:
    """Return a line a site and cause with the first remedy, worst first; sites that need the same epsilon share one."""
    sites = sorted(report.sites, key=lambda site: tuple(-_tally(site, verdict) for verdict in ("fail", "warn")))
    new = [finding for finding in report.findings if not finding.known]
    advices = [advice for site in sites for advice in _advices(site, new)]
    if not advices:
        return []
    common: dict[tuple[str, ...], list[_Advice]] = {}
    for advice in advices:
        if advice.shared is not None:
            common.setdefault(advice.shared, []).append(advice)
    shared = [group for group in common.values() if len(group) > 1]
    merged = {id(advice) for group in shared for advice in group}
    entries: list[tuple[str, list[str]]] = []
    for site in sites:
        own = [a for a in advices if a.site is site and id(a) not in merged]
        if own:
            entries.append((site_label(site, style), _own_texts(own, style)))
    entries += [_shared_entry(group) for group in shared]
    return [*style.wrap("What to do, worst first (every remedy was re-run)"), *_two_columns(entries, style)]


def epsilon_lines(report: Report, style: Style) -> list[str]:
    """Return one epsilon for all the sites that share the epsilon of the model; a config holds one number."""
    entries = [entry for entry in report.epsilon if entry.site_count >= 2]
    lines: list[str] = []
    for model_epsilon in dict.fromkeys(entry.model_epsilon for entry in entries):
        group = [entry for entry in entries if entry.model_epsilon == model_epsilon]
        lines += [*([""] if lines else []), *_epsilon_group(group, len(report.sites), style)]
    return lines


def folded_findings(report: Report) -> list[Finding]:
    """Return the latent notes that several sites share: they are told once, after the sites."""
    sites: dict[tuple[str, str | None, str | None], set[str]] = {}
    notes = [f for f in report.findings if f.latent and f.severity == "note"]
    for finding in notes:
        sites.setdefault((finding.code, finding.format, finding.kernel), set()).add(finding.site)
    return [f for f in notes if len(sites[f.code, f.format, f.kernel]) > 1]


def folded_lines(findings: list[Finding], style: Style) -> list[str]:
    """Return a line for each kind of folded note, with the sites that have it."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        what = bound(f"{finding.format} {finding.kernel}")
        groups.setdefault((f"{finding.code} {finding.name}  [{what}]", finding.title), []).append(finding)
    lines: list[str] = []
    for (head, title), group in groups.items():
        names = [style.safe(f.site) for f in group[:_NAMED_SITES]]
        if len(group) > len(names):
            names.append(f"{len(group) - len(names)} more")
        remedies = {f.remedy for f in group}
        immune = style.safe(remedies.pop()) if len(remedies) == 1 else ""
        remedy = f"; {immune} is immune in all of them" if immune else ""
        text = f"latent in {len(group)} sites ({joined(names)}): {title}{remedy}"
        lines += style.wrap(f"note  {head}  {text}", "", "      ")
    return lines


def _tally(site: SiteReport, verdict: str) -> int:
    return sum(result.verdict == verdict for result in site.results)


def _advices(site: SiteReport, findings: list[Finding]) -> list[_Advice]:
    advices = []
    for result in site.results:
        for finding in findings:
            concerned = (finding.site, finding.format, finding.kernel) == (site.name, result.format, result.kernel)
            if concerned and finding.severity != "note":
                remedy = next((r for r in result.remedies if r.verified and finding.code in r.cures), None)
                advices.append(_Advice(site=site, result=result, finding=finding, remedy=remedy))
    return sorted(advices, key=lambda advice: advice.rank)


def _own_texts(advices: list[_Advice], style: Style) -> list[str]:
    groups: dict[str, list[str]] = {}
    for advice in advices:
        # a latent finding's title tells what has not happened yet
        title = style.safe(advice.what if advice.finding.latent else advice.finding.title)
        text = f"{title}: {style.safe(_short(advice.remedy))}"
        groups.setdefault(text, []).append(bound(f"{advice.result.format} {advice.result.kernel}"))
    return [f"{', '.join(names)}, {text}" for text, names in groups.items()]


def _short(remedy: Remedy | None) -> str:
    if remedy is None:
        return "nothing that was tried helps"
    # the site's section explains the kernel; here its name is enough
    return f"kernel {remedy.values['kernel']}" if "kernel" in remedy.values else remedy.detail


def _shared_entry(group: list[_Advice]) -> tuple[str, list[str]]:
    first = group[0]
    label = f"{len(group)} sites with epsilon {wording.epsilon(first.site.epsilon)}"
    to = wording.epsilon(first.result.recommendation.epsilon)
    what = f"{first.result.format} {first.result.kernel}, {first.what}"
    return label, [f"{what}: {to} serves {'both' if len(group) == 2 else f'all {len(group)}'}"]


def _epsilon_group(group: list[ModelEpsilon], sites: int, style: Style) -> list[str]:
    model_epsilon, count = group[0].model_epsilon, group[0].site_count
    which = f"all {count} sites" if count == sites else f"the {count} sites with epsilon"
    title = f"One epsilon for {which}" + (f" {wording.epsilon(model_epsilon)}" if count != sites else "")
    keepers = [entry for entry in group if _keeps(entry)]
    alone = group if len(keepers) < 2 else [entry for entry in group if not _keeps(entry)]
    entries = [(f"{e.format} {e.kernel}", [_epsilon_text(e, style.safe)]) for e in alone]
    if len(alone) < len(group):
        entries.append(("all others" if alone else "everywhere", [_epsilon_text(keepers[0], style.safe)]))
    return [*style.wrap(title), *_two_columns(entries, style)]


def _keeps(entry: ModelEpsilon) -> bool:
    return entry.epsilon is not None and wording.epsilon(entry.epsilon) == wording.epsilon(entry.model_epsilon)


def _epsilon_text(entry: ModelEpsilon, safe: Callable[[str], str]) -> str:
    if _keeps(entry):
        return f"keep {wording.epsilon(entry.model_epsilon)}"
    names = [safe(name) for name in entry.sites[:_NAMED_SITES]]
    if len(entry.sites) > len(names):
        names.append(f"{len(entry.sites) - len(names)} more")
    by = f"set by {joined(names)}" if names else ""
    if entry.epsilon is None:
        return f"none fits them all{f' ({by})' if by else ''}"
    fits = f"fits {wording.epsilon_range(entry.lower, entry.upper)}"
    return f"{wording.epsilon(entry.epsilon)}   ({'; '.join(filter(None, (fits, by)))})"


def _two_columns(entries: list[tuple[str, list[str]]], style: Style) -> list[str]:
    """Set labels beside their texts; a label that is too long stands above them."""
    limit = _LABEL_MAX if style.text_columns >= DEFAULT_WIDTH else style.text_columns // 3
    width = max((len(label) for label, _ in entries if len(label) <= limit), default=0)
    indent = " " * (len(_GAP) + width + len(_GAP)) if width else " " * 6
    lines: list[str] = []
    for label, texts in entries:
        first = f"{_GAP}{label:<{width}}{_GAP}" if len(label) <= limit else ""
        if not first:
            lines.append(f"{_GAP}{label}")
        for i, text in enumerate(texts):
            lines += style.wrap(text, first if first and i == 0 else indent, indent)
    return lines
