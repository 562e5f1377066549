"""Paths as users give them: patterns expanded, folders listed in a stable order, no link followed in circles."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from ..wording import printable

_NAMES_SHOWN = 5


def is_pattern(text: str) -> bool:
    """Say whether a path has wildcards."""
    return any(c in text for c in "*?[")


def list_folder(folder: str) -> list[str]:
    """Return the names in a folder, sorted, without those that start with a dot.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    return sorted(name for name in os.listdir(folder or ".") if not name.startswith("."))


def expand(pattern: str) -> list[str]:
    """Return what a pattern matches, sorted; `**` is any number of folders, links to folders not followed.

    What lies below a folder that is matched itself is left out: the folder stands for it.
    """
    head, *parts = pattern.replace(os.sep, "/").split("/")
    parts = [part for part in parts if part]
    # two in a row match what one matches
    parts = [part for before, part in zip([head, *parts], parts, strict=False) if part != "**" or before != "**"]
    found = {path or "." for path in (_matches("/", parts) if not head else _matches("", [head, *parts]))}
    folders = {PurePosixPath(path) for path in found if os.path.isdir(path)}
    outermost = (path for path in found if folders.isdisjoint(PurePosixPath(path).parents))
    return sorted(outermost, key=lambda path: path.split("/"))


def _matches(base: str, parts: Sequence[str]) -> Iterator[str]:
    if not parts:
        yield base
        return
    part, rest = parts[0], parts[1:]
    if part == "**":
        for folder in _folders(base):
            yield from _matches(folder, rest)
    elif is_pattern(part):
        for name in _names(base, hidden=part.startswith(".")):
            if fnmatchcase(name, part):
                yield from _matches(_join(base, name), rest)
    elif os.path.lexists(_join(base, part)):
        yield from _matches(_join(base, part), rest)


def _folders(base: str) -> Iterator[str]:
    stack = [base]
    while stack:
        folder = stack.pop()
        yield folder
        below = (_join(folder, name) for name in _names(folder, hidden=False))
        stack.extend(path for path in below if os.path.isdir(path) and not os.path.islink(path))


def _names(folder: str, *, hidden: bool) -> list[str]:
    try:
        return [name for name in os.listdir(folder or ".") if hidden or not name.startswith(".")]
    except OSError:
        return []


def _join(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if folder else name


def unique_names(wanted: Sequence[tuple[tuple[str, ...], str]]) -> list[str]:
    """Make names unique by as many folders before them as it takes, then by #2, #3, ...

    Parameters
    ----------
    wanted : sequence of (folders, name)
        The folders outermost first.
    """
    depths = [0] * len(wanted)
    while True:
        names = [
            "/".join((*folders[len(folders) - depth :], name))
            for depth, (folders, name) in zip(depths, wanted, strict=True)
        ]
        count = Counter(names)
        deeper = [i for i, (folders, _) in enumerate(wanted) if count[names[i]] > 1 and depths[i] < len(folders)]
        if not deeper:
            break
        for i in deeper:
            depths[i] += 1
    taken: set[str] = set()
    for i, name in enumerate(names):
        number = 1
        while names[i] in taken or (number > 1 and names[i] in count):
            number += 1
            names[i] = f"{name}#{number}"
        taken.add(names[i])
    return names


def enumerated(names: Sequence[str]) -> str:
    """Return the first names and how many more there are, printable."""
    shown = ", ".join(printable(name) for name in names[:_NAMES_SHOWN])
    return f"{shown} and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else shown
