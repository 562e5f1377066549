"""Text files that are read as a whole: JSON, and what policies are written in; nothing in them is trusted."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ..errors import LnauditError
from .files import open_file, read_at, shortened

# what lnaudit itself has written, by kind: what to say where a dump is expected
WRITTEN: dict[str, tuple[str, str]] = {
    "statistics": ("holds saved statistics", "lnaudit check FILE judges them"),
    "baseline": ("is a baseline", "lnaudit check PATH --baseline FILE compares with it"),
    **dict.fromkeys(
        ("scan", "check"),
        ("is a report", "statistics come from lnaudit scan --save-stats, lnaudit diff compares reports"),
    ),
    "sweep": ("is the report of a sweep", "name the dumps"),
}
_HEAD = 1 << 12  # bytes
_TEXT = r'"(?:[^"\\]|\\.)*"'
_MEMBER = re.compile(rf"\s*[{{,]\s*({_TEXT})\s*:\s*({_TEXT}|[-+.\w]+)(?=\s*[,}}])")


def read_whole(path: Path, source: str, most: int | None = None) -> bytes:
    """Return the bytes of a regular file, of at most so many.

    Raises
    ------
    LnauditError
        If it is missing, unreadable, no regular file, or longer.
    """
    with open_file(path, source) as file:
        size = file.seek(0, 2)
        if most is not None and size > most:
            raise LnauditError(f"has {size:,} bytes, limit {most:,}", "split it", source)
        raw = bytearray(size)
        try:
            read_at(file, 0, memoryview(raw))
        except LnauditError as error:
            raise LnauditError(error.what, error.remedy, source) from None
    return bytes(raw)


def read_json(path: Path, source: str, most: int | None = None) -> Any:
    """Return what a JSON file holds, in UTF-8 with or without a byte order mark.

    Raises
    ------
    LnauditError
        If it cannot be read, is no JSON, or an object in it has a key twice.
    """
    raw = read_whole(path, source, most)
    try:
        return json.loads(raw.decode("utf-8-sig"), object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise LnauditError(f"is not JSON (line {error.lineno}: {error.msg})", "write it again", source) from None
    except LnauditError as error:
        raise LnauditError(error.what, error.remedy, source) from None
    except (ValueError, RecursionError):
        raise LnauditError("is not JSON", "write it again", source) from None


def kind_of(path: Path) -> str:
    """Return the kind of a JSON document, "" of any other file; it is read whole only if its beginning does not say."""
    try:
        with open_file(path, "") as file:
            head = bytearray(min(file.seek(0, 2), _HEAD))
            read_at(file, 0, memoryview(head))
        text = head.decode("utf-8-sig", errors="replace")
        if not text.lstrip().startswith("{"):
            return ""
        kind = _leading(text)
        document = read_json(path, "") if kind is None else {"kind": kind}
    except (OSError, LnauditError):
        return ""
    return document["kind"] if isinstance(document.get("kind"), str) else ""


def _leading(text: str) -> str | None:
    """Return the kind in the beginning of an object, if it stands before all that is no text or number."""
    match = _MEMBER.match(text)
    while match:
        if match[1] == '"kind"':
            return match[2].strip('"')
        match = _MEMBER.match(text, match.end())
    return None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in found if keys.count(key) > 1)
        raise LnauditError(f"has the key {shortened(repr(twice))} twice in one object", "write it again")
    return found
