"""From a file to a policy: where it is looked for, and what its keys mean. Nothing is guessed, nothing passed over."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from ..errors import LnauditError
from ..readers.documents import read_whole
from . import values
from .model import Accepted, Policy, SiteWords

OWN, SHARED = ("lnaudit.toml", "pyproject.toml")
ROOTS = (".git", ".hg")  # a project ends where its repository does


def find_policy(folder: Path) -> Path | None:
    """Return the nearest file with a policy, from a folder up to the root of its repository.

    Raises
    ------
    LnauditError
        If a file that may hold it cannot be read: what it says is not passed over.
    """
    for place in (folder, *folder.parents):
        own, shared = place / OWN, place / SHARED
        if os.path.lexists(own) and not os.path.isdir(own):
            if not os.path.exists(own):
                raise LnauditError("is a link that leads nowhere", "mend it or remove it", _relative(own, folder))
            return own
        if os.path.isfile(shared) and _table(shared, _relative(shared, folder)) is not None:
            return shared
        if any(os.path.exists(place / root) for root in ROOTS):
            return None
    return None


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


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


def _table(path: Path, source: str) -> dict[str, Any] | None:
    """Return the table of lnaudit in a file: all of it, but of a pyproject.toml what tool.lnaudit holds."""
    document = _document(path, source)
    if path.name != SHARED:
        if "tool" in document:
            raise LnauditError(f"has [tool], as only {SHARED} does", "write the keys without [tool.lnaudit]", source)
        return document
    tools = document.get("tool", {})
    table = tools.get("lnaudit") if isinstance(tools, dict) else None
    if table is not None and not isinstance(table, dict):
        raise LnauditError(f"tool.lnaudit is {values.shown(table)}", "make it a table: [tool.lnaudit]", source)
    return table


def _document(path: Path, source: str) -> dict[str, Any]:
    """Return what a TOML file holds, in UTF-8 with or without a byte order mark."""
    raw = read_whole(path, source)
    try:
        return tomllib.loads(raw.decode("utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        raise LnauditError(f"is not valid TOML ({error})", "correct it", source) from None
    except UnicodeDecodeError:
        raise LnauditError("is not valid TOML (not UTF-8)", "save it as UTF-8", source) from None
    except (ValueError, RecursionError):
        raise LnauditError("is not valid TOML (too many digits or brackets)", "correct it", source) from None


def _policy(table: dict[str, Any], source: str) -> Policy:
    known = {
        "formats": values.formats,
        "kernels": values.kernels,
        "runtime": values.runtimes,
        "tolerance": values.tolerance,
        "share": values.share,
        "fail-on": values.fail_on,
        "select": values.selected,
        "ignore": values.ignored,
        "rules": values.thresholds,
        "sites": _sites,
        "ignore-sites": _accepted,
        "anchors": values.anchors,
    }
    found = values.read(table, known)
    names = {"runtime": "runtimes", "fail-on": "fail_on", "rules": "thresholds", "ignore-sites": "accepted"}
    words = {names.get(key, key): value for key, value in found.items()}
    single = words.pop("tolerance", (None, {}))
    return Policy(source=source, **words, tolerance=single[0], tolerances=single[1], said=tuple(table))


def _sites(table: Any, where: str) -> tuple[SiteWords, ...]:
    known = {
        "epsilon": values.epsilon,
        "norm": values.norm,
        "axis": values.axis,
        "formats": values.formats,
        "kernel": values.kernel,
        "tolerance": values.positive,
        "share": values.share,
    }
    return tuple(
        SiteWords(pattern=pattern, **values.read(words, known, f"{where}.{pattern}"))
        for pattern, words in values.named_tables(table, where, known).items()
    )


def _accepted(table: Any, where: str) -> tuple[Accepted, ...]:
    found = []
    for pattern, reasons in values.named_tables(table, where).items():
        at = f"{where}.{pattern}"
        for code, reason in values.codes(reasons, at):
            if not isinstance(reason, str) or not reason.strip():
                raise LnauditError("gives no reason", f'as in {code} = "why it is accepted"', f"{at}.{code}")
            found.append(Accepted(pattern=pattern, code=code, reason=reason.strip()))
    return tuple(found)
