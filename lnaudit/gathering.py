"""The reports of single arrays as one: what the tests of a run have checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .pipeline.loop import counted
from .report import Report
from .version import __version__


def gathered(documents: Mapping[str, Sequence[dict[str, Any]]]) -> Report:
    """Return one report of the documents of single sites, by where each comes from, in the order of that.

    Sites whose names are alike are called by where they come from. The configuration is what all have in common; what
    one epsilon would suit all sites is not known.
    """
    pairs = [(source, Report.from_dict(document)) for source in sorted(documents) for document in documents[source]]
    names = _names([(source, report.sites[0].name) for source, report in pairs])
    reports = [_moved(report, name, source) for name, (source, report) in zip(names, pairs, strict=True)]
    sites = [site for report in reports for site in report.sites]
    return Report(
        kind="scan",
        lnaudit_version=__version__,
        config=_common([report.config for report in reports]),
        summary=counted(sites),
        not_audited=[failure for report in reports for failure in report.not_audited],
        epsilon=[],
        sites=sites,
        findings=[finding for report in reports for finding in report.findings],
        notes=list(dict.fromkeys(note for report in reports for note in report.notes)),
    )


def _names(pairs: list[tuple[str, str]]) -> list[str]:
    """Return a name for each pair of where it comes from and what it is called, no two alike."""
    amounts = Counter(name for _, name in pairs)
    taken: set[str] = set()
    names = []
    for source, name in pairs:
        long = source if source.endswith(f"::{name}") else f"{source} {name}"
        wanted = name if amounts[name] == 1 else long
        found, number = wanted, 1
        while found in taken:
            number += 1
            found = f"{wanted} ({number})"
        taken.add(found)
        names.append(found)
    return names


def _moved(report: Report, name: str, source: str) -> Report:
    return replace(
        report,
        sites=[replace(site, name=name, source=source) for site in report.sites],
        findings=[replace(finding, site=name, source=source) for finding in report.findings],
        not_audited=[replace(failure, source=source) for failure in report.not_audited],
    )


def _common(configs: list[dict[str, Any]]) -> dict[str, Any]:
    first = configs[0] if configs else {}
    return {k: v for k, v in first.items() if all(k in config and config[k] == v for config in configs)}
