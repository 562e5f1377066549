"""Text files that are read as a whole: JSON, and what policies are written in; nothing in them is trusted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import LnauditError
from .files import open_file, read_at, shortened


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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in found if keys.count(key) > 1)
        raise LnauditError(f"has the key {shortened(repr(twice))} twice in one object", "write it again")
    return found
