"""What a run assumed: the epsilon, the formats and kernels, what counts as an error, the policy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ... import wording
from ...report import Document, Emulation, Report, SiteFigures, SweepReport, VerdictMap
from ...wording import counted
from ..limits import accepted_errors
from ..terminal_site import flushing
from .parts import label

# options that are said only where they are not as usual
_USUAL: dict[str, Any] = {
    "axis": None,
    "norm": None,
    "weight": None,
    "bias": None,
    "dtype": None,
    "field": None,
    "compare_epsilon": None,
    "loss_scale": 1.0,
    "verify": "witness",
    "select": ["LN"],
    "ignore": [],
    "share": 0.0,
}


def assumptions(report: Report | SweepReport) -> tuple[tuple[str, str], ...]:
    """Return what was assumed, each with what it is of."""
    config = report.config
    results: list[Emulation | VerdictMap] = [result for site in report.sites for result in site.results]
    results += report.maps if isinstance(report, SweepReport) else []
    facts = [
        ("epsilon", _swept(report) if isinstance(report, SweepReport) else _epsilons(report.sites)),
        ("formats", ", ".join(dict.fromkeys(r.format for r in results))),
        ("kernels", ", ".join(dict.fromkeys(r.kernel for r in results))),
        ("accepted row error", _limits(report)),
        ("subnormal numbers", " ".join(flushing(config)) or "kept, not flushed to zero"),
        ("policy", config.get("policy") or "none"),
        *_unusual(config),
        *_gate(report),
    ]
    return tuple((name, text) for name, text in facts if text)


def _epsilons(sites: Iterable[SiteFigures]) -> str:
    """Say which epsilons were audited, where they come from, and at how many sites."""
    amounts: dict[str, int] = {}
    for site in sites:
        text = f"{wording.epsilon(site.epsilon)} ({site.epsilon_source})"
        amounts[text] = amounts.get(text, 0) + 1
    if len(amounts) == 1:
        return next(iter(amounts))
    return "; ".join(f"{text}: {counted(amount, 'site')}" for text, amount in amounts.items())


def _swept(report: SweepReport) -> str:
    judged = {point.epsilon for site in report.sites for result in site.results for point in result.points}
    swept = sorted(judged | {found.epsilon for found in report.maps})
    if not swept:
        return ""
    ends = dict.fromkeys(wording.epsilon(epsilon) for epsilon in (swept[0], swept[-1]))
    return f"{counted(len(swept), 'epsilon')}: {' to '.join(ends)}"


def _limits(report: Report | SweepReport) -> str:
    text = accepted_errors(report.config, report.sites, label)
    return f"{text} of the normalized scale, or twice what the cast alone costs" if text else ""


def _unusual(config: dict[str, Any]) -> list[tuple[str, str]]:
    found = []
    for name, usual in _USUAL.items():
        value = config.get(name)
        if value is not None and value != usual:
            text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            found.append((f"--{name.replace('_epsilon', '-eps').replace('_', '-')}", text))
    return found


def _gate(report: Document) -> list[tuple[str, str]]:
    fail_on = report.config.get("fail_on")
    return [("fails on", fail_on)] if fail_on else []
