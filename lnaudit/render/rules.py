"""What the rules are: for the terminal, for a page of documentation, for a program."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from ..report import SCHEMA_VERSION
from ..rules import HEADINGS, Rule
from ..site import NotAudited
from ..version import __version__
from .style import DEFAULT_STYLE, Style

WHERE = "[tool.lnaudit.rules]"
FOOT = "severity: the worst that a finding can have. In full: lnaudit rule LN104, or --all"
_CODE, _NAME, _SEVERITY = 7, 28, 9  # columns
_MARKED = re.compile(r"[\\`*_|<>\[\]]")  # what Markdown would take for its own
_THREAD = re.compile(r"\b[\w.-]+/[\w.-]+#\d+")


def rules_table(rules: Sequence[Rule], style: Style = DEFAULT_STYLE) -> str:
    """Return a table: code, name, worst severity, one line."""
    indent = " " * (_CODE + _NAME + _SEVERITY)
    lines = [f"{'code':{_CODE}}{'name':{_NAME}}{'severity':{_SEVERITY}}what"]
    for rule in rules:
        first, *more = style.wrap(rule.explanation.summary, width=style.text_columns - len(indent))
        severity = style.paint(rule.severity) + " " * (_SEVERITY - len(rule.severity))
        lines += [f"{rule.code:{_CODE}}{rule.name:{_NAME}}{severity}{first}", *(indent + line for line in more)]
    return "\n".join([*lines, "", *style.wrap(FOOT), ""])


def rules_text(rules: Sequence[Rule], style: Style = DEFAULT_STYLE) -> str:
    """Return the rules in full."""
    return "\n\n".join("\n".join(_told(rule, style)) for rule in rules) + "\n"


def _told(rule: Rule, style: Style) -> list[str]:
    severities = " or ".join(map(style.paint, rule.severities))
    lines = [f"{rule.code} {rule.name}: {severities}", *style.wrap(rule.explanation.summary)]
    for heading, body in _sections(rule):
        lines += ["", heading]
        if heading == "Example":  # to be copied: never wrapped
            lines += [f"  {command}" for command in body]
        else:
            for text in [body] if isinstance(body, str) else body:
                lines += style.wrap(text, "  ", "  " if isinstance(body, str) else "    ")
    lines += ["", f"Thresholds, as they can be set in {WHERE}"]
    if not rule.thresholds:
        return [*lines, "  none"]
    for name, threshold in rule.thresholds.items():
        lines += style.wrap(threshold.meaning, f"  {name:10}{threshold.default:<7g}", " " * 19)
    return [*lines, f"  {_setting(rule)}"]


def rules_markdown_table(rules: Sequence[Rule]) -> str:
    """Return the table in Markdown."""
    lines = ["| code | name | severity | what |", "| --- | --- | --- | --- |"]
    lines += [f"| {r.code} | {r.name} | {r.severity} | {_marked(r.explanation.summary)} |" for r in rules]
    return "\n".join(lines) + "\n"


def rules_markdown(rules: Sequence[Rule]) -> str:
    """Return the rules in full in Markdown, a section each."""
    return "\n".join("\n".join(_page(rule)) for rule in rules)


def _page(rule: Rule) -> list[str]:
    lines = [f"## {rule.code} {rule.name}", "", f"{_marked(rule.explanation.summary)}", ""]
    lines += [f"**Severity:** {' or '.join(rule.severities)}", ""]
    for heading, body in _sections(rule):
        if isinstance(body, str):
            lines += [f"**{heading}:** {_marked(body)}", ""]
        elif heading == "Example":
            lines += [f"**{heading}:**", "", "```sh", *body, "```", ""]
        else:
            lines += [f"**{heading}:**", "", *(f"- {_linked(text)}" for text in body), ""]
    if rule.thresholds:
        lines += ["**Thresholds:**", ""]
        lines += [f"- `{name}`: {_marked(t.meaning)} (default {t.default:g})" for name, t in rule.thresholds.items()]
        lines += ["", "```toml", WHERE, _setting(rule), "```", ""]
    return lines


def rules_json(rules: Sequence[Rule], not_audited: Sequence[NotAudited] = ()) -> str:
    """Return one JSON document; not_audited: what was asked for and is no rule."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "kind": "rules",
        "lnaudit_version": __version__,
        "not_audited": [vars(failure) for failure in not_audited],
        "rules": [_entry(rule) for rule in rules],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _entry(rule: Rule) -> dict[str, Any]:
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity,
        "severities": list(rule.severities),
        "summary": rule.explanation.summary,
        "sections": {_key(heading): body for heading, body in _sections(rule)},
        "thresholds": {
            name: {**vars(threshold), "most": None if threshold.most == math.inf else threshold.most}
            for name, threshold in rule.thresholds.items()
        },
    }


def _key(heading: str) -> str:
    return heading.lower().replace(" ", "_")


def _sections(rule: Rule) -> list[tuple[str, str | tuple[str, ...]]]:
    return [(heading, getattr(rule.explanation, _key(heading))) for heading in HEADINGS]


def _setting(rule: Rule) -> str:
    """Return the line of a policy that sets all thresholds to what they are anyway."""
    words = ", ".join(f"{name} = {threshold.default:g}" for name, threshold in rule.thresholds.items())
    return f"{rule.code} = {{{words}}}"


def _marked(text: str) -> str:
    return _MARKED.sub(r"\\\g<0>", text)


def _linked(text: str) -> str:
    """Make links of the threads on GitHub, which leads from issues to pull requests by itself."""
    return _THREAD.sub(
        lambda m: f"[{m[0]}](https://github.com/{m[0].replace('#', '/issues/')})".replace("\\", ""), _marked(text)
    )
