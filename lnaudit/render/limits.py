"""Up to which error a row is fine, in words: by format where that differs, and by site where the policy says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import wording
from ..report import SiteFigures
from ..wording import joined

_NAMED_SITES = 3


def accepted_errors(config: dict[str, Any], sites: Sequence[SiteFigures], safe: Callable[[str], str]) -> str:
    """Return the accepted errors that counted; those of some sites only are said with their names, made `safe`."""
    usual: dict[str, float] = dict(config.get("limits") or {})
    for site in sites:
        usual = {**site.limits, **usual}
    others: dict[str, list[str]] = {}
    ordinary: list[SiteFigures] = []
    for site in sites:
        if all(usual[fmt] == limit for fmt, limit in site.limits.items()):
            ordinary.append(site)
        else:
            others.setdefault(_by_format(site.limits), []).append(site.name)
    judged = {fmt for site in ordinary for fmt in site.limits} or set(usual)
    said = [] if others and not ordinary else [_by_format({f: e for f, e in usual.items() if f in judged})]
    if not said and len(others) == 1:
        return next(iter(others))
    return "; ".join([*said, *(f"{text} at {_named(names, safe)}" for text, names in others.items())])


def _by_format(limits: dict[str, float]) -> str:
    formats: dict[str, list[str]] = {}
    for fmt, limit in limits.items():
        formats.setdefault(wording.short(limit), []).append(fmt)
    if len(formats) == 1:
        return next(iter(formats))
    return ", ".join(f"{text} ({', '.join(names)})" for text, names in formats.items())


def _named(names: Sequence[str], safe: Callable[[str], str]) -> str:
    shown = [safe(name) for name in names[:_NAMED_SITES]]
    return joined([*shown, *([f"{len(names) - len(shown)} more"] if len(names) > len(shown) else [])])
