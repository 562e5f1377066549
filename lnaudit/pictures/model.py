"""What the depth view shows: sites, columns of formats and kernels, cells with verdict, figures and marks."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from .. import wording
from ..findings import Finding
from ..report import Report, Result, SiteReport
from .cells import DAGGER
from .style import VERDICTS
from .text import headroom_text, site_title

Key = tuple[str, str]
WHOLE_SITE: Key = ("whole site", "errors")  # the column of findings that no format and kernel has


@dataclass(frozen=True, slots=True)
class Glance:
    """A cell: the verdict, what stands beside it, whether it is known or accepted."""

    verdict: str
    figures: str
    marked: bool = False

    @property
    def text(self) -> str:
        """All of it."""
        return f"{VERDICTS[self.verdict].word}{DAGGER * self.marked}  {self.figures}"


@dataclass(frozen=True, slots=True)
class Row:
    """A site: its name, whether it was judged, its cells."""

    name: str
    judged: bool
    cells: dict[Key, Glance]


def columns_of(report: Report) -> list[Key]:
    """Return the formats and kernels of all sites, those of a format together; first the errors of whole sites."""
    keys = dict.fromkeys((r.format, r.kernel) for site in report.sites for r in site.results)
    formats = list(dict.fromkeys(fmt for fmt, _ in keys))
    found = [*report.findings, *(entry.finding for entry in report.accepted)]
    whole = [WHOLE_SITE] if any(_about_all_of(finding) for finding in found) else []
    return [*whole, *sorted(keys, key=lambda key: formats.index(key[0]))]


def rows_of(report: Report) -> list[Row]:
    """Return the sites in their order."""
    new, old = (
        _by_site([f for f in report.findings if not f.known]),
        _by_site([*(f for f in report.findings if f.known), *(entry.finding for entry in report.accepted)]),
    )
    return [_row(site, new[site.name], old[site.name]) for site in report.sites]


def _by_site(findings: list[Finding]) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        found[finding.site].append(finding)
    return found


def _row(site: SiteReport, new: list[Finding], old: list[Finding]) -> Row:
    cells = {}
    if errors := [finding for finding in (*new, *old) if _about_all_of(finding)]:
        codes = ", ".join(dict.fromkeys(finding.code for finding in errors))
        cells[WHOLE_SITE] = Glance("fail", codes, errors[0].known or errors[0] in old)
    fresh, known = _emulations(new), _emulations(old)
    for result in site.results if site.judged else ():
        key = result.format, result.kernel
        cells[key] = Glance(result.verdict, figures(result), key in known and key not in fresh)
    return Row(site_title(site), site.judged, cells)


def _about_all_of(finding: Finding) -> bool:
    return finding.format is None and finding.severity == "error"


def _emulations(findings: list[Finding]) -> set[Key]:
    """Return the formats and kernels in which something is wrong."""
    return {(f.format, f.kernel or "") for f in findings if f.format is not None and f.severity != "note"}


def figures(result: Result) -> str:
    """Write the error of the worst row and the headroom."""
    error = "NaN/Inf" if result.nonfinite_rows else wording.short(result.error["max"])
    return f"{error}  {headroom_text(result.headroom)}"
