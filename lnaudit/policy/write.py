"""From a policy to a file: what `load` reads as the same policy."""

from __future__ import annotations

import math
from typing import Any

from .model import Policy, SiteWords


def document_of(policy: Policy) -> dict[str, Any]:
    """Return what a file with this policy holds, by its keys in their order; what it says nothing of is left out."""
    document: dict[str, Any] = {
        "formats": list(policy.formats) or None,
        "kernels": list(policy.kernels) or None,
        "runtime": list(policy.runtimes) or None,
        "tolerance": policy.tolerances or policy.tolerance,
        "share": policy.share,
        "fail-on": policy.fail_on,
        "select": list(policy.select),
        "ignore": list(policy.ignore),
        "rules": policy.thresholds,
        "sites": {words.pattern: _words_of(words) for words in policy.sites},
        "ignore-sites": _reasons(policy),
        "anchors": dict(policy.anchors),
    }
    return {key: value for key, value in document.items() if value is not None and value != {}}


def _words_of(words: SiteWords) -> dict[str, Any]:
    said = {key: value for key, value in vars(words).items() if key != "pattern" and value is not None}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in said.items()}


def _reasons(policy: Policy) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for entry in policy.accepted:
        found.setdefault(entry.pattern, {})[entry.code] = entry.reason
    return found


def toml_table(name: str, table: dict[str, Any]) -> list[str]:
    """Return the lines of a table; tables in it have lines of their own."""
    lines = [f"[{name}]"] if not any(isinstance(value, dict) for value in table.values()) else []
    for key, value in table.items():
        if isinstance(value, dict):
            lines += toml_table(f"{name}.{toml_key(key)}", value)
        else:
            lines.append(f"{toml_key(key)} = {toml(value)}")
    return lines


def toml(value: Any) -> str:
    """Return a value as TOML; a table on one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{toml_key(key)} = {toml(item)}' for key, item in value.items())}}}"
    return f'"{"".join(map(_escaped, str(value)))}"'


def toml_key(key: str) -> str:
    """Return a key, in quotes where it is none without."""
    bare = key.isascii() and key.replace("-", "").replace("_", "").isalnum()
    return key if bare else toml(key)


def _escaped(character: str) -> str:
    """Return a character of a text as TOML writes it: what does not show is a number."""
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    return f"\\u{ord(character):04x}" if ord(character) <= 0xFFFF else f"\\U{ord(character):08x}"
