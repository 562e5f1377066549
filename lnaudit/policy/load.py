"""From a file to a policy: where it is looked for, and what its keys mean. Nothing is guessed, nothing passed over."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from ..errors import LnauditError
from . import values
from .model import Accepted, Policy, SiteWords

NAMES = ("lnaudit.toml", "pyproject.toml")
ROOTS = (".git", ".hg")  # a project ends where its repository does


def find_policy(folder: Path) -> Path | None:
    """Return the nearest file with a policy, from a folder up to the root of its repository."""
    for place in (folder, *folder.parents):
        for name in NAMES:
            path = place / name
            if path.is_file() and (name != "pyproject.toml" or _table(path) is not None):
                return path
        if any((place / root).exists() for root in ROOTS):
            return None
    return None


def read_policy(path: Path, source: str) -> Policy:
    """Read the policy of a file.

    Raises
    ------
    LnauditError
        If it cannot be read, or a key or value is none that a policy has; it names the nearest.
    """
    table = _table(path, source)
    if table is None:
        raise LnauditError("has no table [tool.lnaudit]", "add it, or leave --config out", source)
    try:
        return _policy(table, source)
    except LnauditError as error:
        raise LnauditError(
            f"{error.source}: {error.what}" if error.source else error.what, error.remedy, source
        ) from None


def _table(path: Path, source: str = "") -> dict[str, Any] | None:
    """Return the table of lnaudit in a file: all of it, but of a pyproject.toml what tool.lnaudit holds."""
    try:
        with path.open("rb") as file:
            document = tomllib.load(file)
    except OSError as error:
        raise LnauditError((error.strerror or type(error).__name__).lower(), source=source or path.name) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LnauditError(f"is not valid TOML ({error})", "correct it", source or path.name) from None
    if path.name != "pyproject.toml":
        return document
    table = document.get("tool", {}).get("lnaudit")
    return None if table is None else values.table(table, "tool.lnaudit")


def _policy(table: dict[str, Any], source: str) -> Policy:
    known = {
        "formats": values.formats,
        "kernels": values.kernels,
        "runtime": values.runtimes,
        "tolerance": values.tolerance,
        "share": values.share,
        "fail-on": values.fail_on,
        "select": values.prefixes,
        "ignore": values.prefixes,
        "rules": values.thresholds,
        "sites": _sites,
        "ignore-sites": _accepted,
        "anchors": values.anchors,
    }
    found = values.read(table, known)
    names = {"runtime": "runtimes", "fail-on": "fail_on", "rules": "thresholds", "ignore-sites": "accepted"}
    words = {names.get(key, key): value for key, value in found.items()}
    single = words.pop("tolerance", (None, {}))
    return Policy(source=source, **words, tolerance=single[0], tolerances=single[1])


def _sites(table: Any, where: str) -> tuple[SiteWords, ...]:
    known = {
        "epsilon": values.epsilon,
        "norm": values.norm,
        "axis": values.axis,
        "kernel": values.kernel,
        "tolerance": values.positive,
        "share": values.share,
    }
    return tuple(
        SiteWords(
            pattern=pattern, **values.read(values.table(words, f"{where}.{pattern}"), known, f"{where}.{pattern}")
        )
        for pattern, words in values.table(table, where).items()
    )


def _accepted(table: Any, where: str) -> tuple[Accepted, ...]:
    found = []
    for pattern, codes in values.table(table, where).items():
        at = f"{where}.{pattern}"
        for code, reason in values.table(codes, at).items():
            values.prefix(code, at)
            if not isinstance(reason, str) or not reason.strip():
                raise LnauditError("gives no reason", f'as in {code} = "why it is accepted"', f"{at}.{code}")
            found.append(Accepted(pattern=pattern, code=code, reason=reason.strip()))
    return tuple(found)
