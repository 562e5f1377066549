"""What a verdict does not say: errors of the site itself, findings that are accepted or known, sites without a row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ...findings import Finding
from ...report import AcceptedFinding, Report, SiteFigures, SweepReport
from ...wording import verdict_word
from .finding_parts import Key
from .parts import Mark

NOT_JUDGED = "No row is finite: nothing was judged."


@dataclass(frozen=True, slots=True)
class OfSite:
    """What was found at one site, and what of it the policy accepts."""

    findings: list[Finding] = field(default_factory=list)
    accepted: list[AcceptedFinding] = field(default_factory=list)

    def marks(self) -> tuple[Mark, ...]:
        """Return the marks of the site: what is wrong with it before any format or kernel is looked at."""
        return _marks((None, None), self)

    def marks_at(self, fmt: str, kernel: str) -> tuple[Mark, ...]:
        """Return the marks of an emulation: why its verdict is not all that there is to say."""
        return tuple(mark for mark in _marks((fmt, kernel), self) if mark.aside)

    def all_marks(self) -> tuple[Mark, ...]:
        """Return the marks of the site, and once each those of its emulations."""
        keys = dict.fromkeys((f.format, f.kernel) for f in (*self.findings, *(a.finding for a in self.accepted)))
        apart = [mark for fmt, kernel in keys if fmt and kernel for mark in self.marks_at(fmt, kernel)]
        return tuple(dict.fromkeys((*self.marks(), *apart)))


def by_site(report: Report | SweepReport) -> dict[str, OfSite]:
    """Return what was found at each site, by its name."""
    found = {site.name: OfSite() for site in report.sites}
    for finding in report.findings:
        found.setdefault(finding.site, OfSite()).findings.append(finding)
    for entry in report.accepted if isinstance(report, Report) else ():
        found.setdefault(entry.finding.site, OfSite()).accepted.append(entry)
    return found


def badge(site: SiteFigures) -> Mark:
    """Return the verdict of a site; one without a finite row has none."""
    return Mark(verdict_word(site.verdict), site.verdict) if site.judged else Mark("not judged", "")


def _marks(key: Key, found: OfSite) -> tuple[Mark, ...]:
    mine = _loud(f for f in found.findings if (f.format, f.kernel) == key)
    accepted = _loud(a.finding for a in found.accepted if (a.finding.format, a.finding.kernel) == key)
    known = [finding for finding in mine if finding.known]
    marks = [Mark(f"{f.severity} {f.code}", f.severity) for f in mine if not f.known]
    if known and key == (None, None):
        marks += [Mark(f"known {f.code}", "", aside=True) for f in known]
    elif known:
        marks.append(Mark("known" if len(known) == len(mine) else f"{len(known)} of {len(mine)} known", "", aside=True))
    marks += [Mark(f"accepted {finding.code}", "", aside=True) for finding in accepted]
    return tuple(dict.fromkeys(marks))


def _loud(findings: Iterable[Finding]) -> Sequence[Finding]:
    return [finding for finding in findings if finding.severity != "note"]
