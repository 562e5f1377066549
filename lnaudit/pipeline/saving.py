"""The file of saved statistics: a JSON document, a site a line."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import LnauditError
from ..policy import Policy
from ..readers.documents import read_json
from ..readers.files import shortened
from ..report import SCHEMA_VERSION
from ..site import NotAudited
from ..version import __version__
from .statistics import SavedSite, site_from_plain, site_to_plain

KIND = "statistics"
_FLOAT = "float"  # key of a number that JSON has no word for
_SEAL = "sha256"  # key of the digest of all else: what is edited by hand is no measurement


@dataclass(kw_only=True)
class Saved:
    """A run as it was saved; judged_by: what of its policy the remedies depend on, and which findings it accepts."""

    config: dict[str, Any]
    judged_by: dict[str, Any]
    not_audited: list[NotAudited] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sites: list[SavedSite] = field(default_factory=list)


def judged_by(policy: Policy) -> dict[str, Any]:
    """Return what of a policy decides which remedies are offered, and which findings it accepts."""
    return {
        "accepted": [[entry.pattern, entry.code, entry.reason] for entry in policy.accepted],
        "thresholds": policy.thresholds,
        "select": list(policy.select),
        "ignore": list(policy.ignore),
        "share": policy.share,
        "site_shares": {words.pattern: words.share for words in policy.sites if words.share is not None},
    }


def lines_of(saved: Saved) -> Iterator[str]:
    """Yield the document line by line."""
    head = _plain(
        {
            "schema_version": SCHEMA_VERSION,
            "kind": KIND,
            "lnaudit_version": __version__,
            "config": saved.config,
            "judged_by": saved.judged_by,
            "not_audited": [vars(failure) for failure in saved.not_audited],
            "notes": saved.notes,
        }
    )
    seals = [_seal(head)]
    yield f"{_text(head)[:-1]},\n"
    yield '"sites": [\n'
    for number, saved_site in enumerate(saved.sites):
        site = _plain(site_to_plain(saved_site))
        seals.append(_seal(site))
        comma = "," if number + 1 < len(saved.sites) else ""
        yield f"{_text(site)}{comma}\n"
    yield f'],"{_SEAL}":"{_seal(seals)}"}}\n'


def read_saved(document: Any, source: str) -> Saved:
    """Return the run of a document.

    Raises
    ------
    LnauditError
        If it is none that this version of lnaudit has written, as it was written.
    """
    version = document.get("lnaudit_version")
    if version != __version__:
        by = shortened(str(version))
        raise LnauditError(f"was saved by lnaudit {by}, this is {__version__}", "save it again", source)
    try:
        head = {key: value for key, value in document.items() if key not in ("sites", _SEAL)}
        if document[_SEAL] != _seal([_seal(head), *map(_seal, document["sites"])]):
            raise ValueError("edited")
        return Saved(
            config=dict(document["config"]),
            judged_by=dict(document["judged_by"]),
            not_audited=[NotAudited(**failure) for failure in document["not_audited"]],
            notes=list(document["notes"]),
            sites=[site_from_plain(_numbers(site)) for site in document["sites"]],
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError, LnauditError):
        raise LnauditError("is not what lnaudit saves", "save it again: lnaudit scan --save-stats", source) from None


def load_json(path: Path, source: str) -> dict[str, Any]:
    """Return the object of a JSON file.

    Raises
    ------
    LnauditError
        If it cannot be read or is no JSON object.
    """
    document = read_json(path, source)
    if not isinstance(document, dict):
        raise LnauditError("is no document of lnaudit", "name what lnaudit has written", source)
    return document


def _seal(value: Any) -> str:
    """Return the digest of plain objects, whatever the order of their keys."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _text(value: Any) -> str:
    return json.dumps(_plain(value), allow_nan=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {_FLOAT: repr(value)}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _numbers(value: Any) -> Any:
    """Return what `_plain` was made of."""
    if isinstance(value, dict):
        return float(value[_FLOAT]) if value.keys() == {_FLOAT} else {k: _numbers(item) for k, item in value.items()}
    return [_numbers(item) for item in value] if isinstance(value, list) else value
