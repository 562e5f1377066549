"""From PATH arguments to sites: files, patterns and folders, with or without a manifest, in a stable order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from ..errors import LnauditError
from ..site import NotAudited, Site
from ..wording import printable
from . import READERS
from .files import failure, open_file
from .manifest import MANIFEST, read_manifest
from .paths import enumerated, expand, is_pattern, list_folder, unique_names
from .sites import NOTHING, SiteFile, SiteOptions, open_site

STDIN = "-"
_SUFFIXES = ", ".join(READERS)


@dataclass(frozen=True, kw_only=True)
class Found:
    """What the PATH arguments lead to.

    Attributes
    ----------
    items : tuple of (SiteFile or NotAudited)
        In order, names made unique.
    notes : tuple of str
        What was left out and why.
    options : SiteOptions
        For all of them.
    """

    items: tuple[SiteFile | NotAudited, ...]
    notes: tuple[str, ...]
    options: SiteOptions

    def open(self, policy: Callable[[str], Mapping[str, Any]] = lambda _: NOTHING) -> Iterator[Site | NotAudited]:
        """Open one after the other; one that is broken does not stop the rest.

        policy: gives what a policy says of the epsilon, norm and axis of a site, by its name.
        """
        for item in self.items:
            yield item if isinstance(item, NotAudited) else self._open(item, policy(item.name))

    def sizes(self) -> list[int]:
        """Return the bytes of each item's file, 0 where that is not known before it is read."""
        return [0 if isinstance(item, NotAudited) or item.stdin else _size(item.path) for item in self.items]

    def _open(self, file: SiteFile, policy: Mapping[str, Any]) -> Site | NotAudited:
        try:
            return open_site(file, self.options, policy)
        except LnauditError as error:
            return NotAudited(source=file.path, reason=error.reason)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def find_sites(paths: Sequence[str], options: SiteOptions) -> Found:
    """Find the sites of files, patterns and folders without opening them; `-` is standard input.

    A file that is reached twice is audited once, as it was reached first.

    Raises
    ------
    LnauditError
        If a weight or bias of the options is not there.
    """
    for option, path in (("--weight", options.weight), ("--bias", options.bias)):
        if path is not None:
            open_file(path, printable(f"{option} {path}")).close()
    search = _Search()
    for given in dict.fromkeys(paths):
        if given == STDIN:
            search.stdin(options.stdin_name)
        else:
            search.follow(given)
    files = [item for item in search.items if isinstance(item, SiteFile)]
    names = iter(unique_names([(_folders(file.folder), file.name) for file in files]))
    items = (replace(item, name=next(names)) if isinstance(item, SiteFile) else item for item in search.items)
    return Found(items=tuple(items), notes=tuple(search.notes), options=options)


@dataclass(kw_only=True)
class _Governed:
    """A folder with a manifest: the files that it lists, and others found there; relative to the folder walked."""

    path: str
    listed: set[str]
    others: list[str] = field(default_factory=list)


class _Search:
    """Follows PATH arguments and collects what they lead to."""

    def __init__(self) -> None:
        self.items: list[SiteFile | NotAudited] = []
        self.notes: list[str] = []
        self._seen: set[str] = set()

    def follow(self, given: str) -> None:
        """Follow one argument."""
        shown = given.replace(os.sep, "/")
        if not given:
            self._failed("''", "names nothing; name a file or a folder")
        elif os.path.isdir(given):
            self._folder(given)
        elif PurePosixPath(shown).name == MANIFEST and os.path.exists(given):
            self._failed(shown, "is a manifest; pass its folder")
        elif os.path.lexists(given) or not is_pattern(given):
            self._file(shown, shown)
            self._beside_manifest(shown)
        else:
            matches = [m for m in expand(given) if os.path.isdir(m) or _readable(m)]
            if not matches:
                self._failed(shown, f"matches no folder and no {_SUFFIXES} file; nothing to audit")
            for match in matches:
                self.follow(match)

    def stdin(self, name: str) -> None:
        """Take standard input for a file of that name."""
        shown = name.replace(os.sep, "/")
        pure = PurePosixPath(shown)
        self.items.append(SiteFile(source=shown, path=shown, name=pure.stem, folder=str(pure.parent), stdin=True))

    def _beside_manifest(self, path: str) -> None:
        """Note that a manifest does not govern a file that was named itself."""
        manifest = PurePosixPath(path).parent / MANIFEST
        if os.path.isfile(manifest):
            note = f"{printable(str(manifest))}: not used for files that are named themselves; pass the folder"
            if note not in self.notes:
                self.notes.append(note)

    def _failed(self, path: str, reason: str) -> None:
        self.items.append(NotAudited(source=path, reason=reason))

    def _file(self, source: str, path: str) -> None:
        real = _real(path)
        if real not in self._seen:
            self._seen.add(real)
            pure = PurePosixPath(path)
            self.items.append(SiteFile(source=source, path=path, name=pure.stem, folder=str(pure.parent)))

    def _folder(self, given: str) -> None:
        """Walk a folder; a manifest governs what lies below it down to the next manifest."""
        found = False
        governed: list[_Governed] = []
        links: list[str] = []
        stack: list[tuple[str, _Governed | None]] = [("", None)]
        while stack:
            relative, manifest = stack.pop()
            path = PurePath(given, relative).as_posix()
            if not os.path.isdir(path):
                if not _readable(path):
                    continue
                found = True
                if manifest is None:
                    self._file(relative, path)
                elif relative not in manifest.listed:
                    manifest.others.append(relative)
            elif relative and os.path.islink(path):
                links.append(path)
            else:
                try:
                    names = list_folder(path)
                except OSError as error:
                    found = True
                    self._failed(path, failure(error))
                    continue
                if MANIFEST in names and not os.path.isdir(os.path.join(path, MANIFEST)):
                    found = True
                    manifest = self._manifest(path, relative)
                    governed.append(manifest)
                below = (PurePosixPath(relative, name).as_posix() for name in reversed(names))
                stack.extend((name, manifest) for name in below)
        for manifest in governed:
            if manifest.listed and manifest.others:
                files = f"{len(manifest.others)} {_SUFFIXES} file{'s' if len(manifest.others) > 1 else ''}"
                where = printable(manifest.path)
                self.notes.append(
                    f"{where}: {files} not listed by its manifest left out: {enumerated(manifest.others)}"
                )
        if links:
            self.notes.append(f"links to folders are not followed: {enumerated(links)}")
        if not found:
            self._failed(PurePath(given).as_posix(), f"no {_SUFFIXES} file below; nothing to audit")

    def _manifest(self, folder: str, relative: str) -> _Governed:
        """Collect the sites of a manifest and say what it governs."""
        path = PurePosixPath(folder, MANIFEST).as_posix()
        try:
            manifest = read_manifest(Path(path))
        except LnauditError as error:
            self._failed(path, error.reason)
            return _Governed(path=path, listed=set())
        before = frozenset(self._seen)
        for entry in manifest.sites:
            if isinstance(entry, LnauditError):
                self._failed(path, entry.reason)
                continue
            file = PurePosixPath(folder, entry.file).as_posix()
            real = _real(file)
            if real not in before:
                self._seen.add(real)
                source = PurePosixPath(relative, entry.file).as_posix()
                self.items.append(SiteFile(source=source, path=file, name=entry.name, entry=entry, folder=folder))
        listed = {PurePosixPath(relative, name).as_posix() for name in manifest.files}
        return _Governed(path=path, listed=listed)


def _real(path: str) -> str:
    """Return what identifies a file, also one that cannot exist."""
    try:
        return os.path.realpath(path)
    except ValueError:
        return path


def _readable(path: str) -> bool:
    return PurePosixPath(path).suffix.lower() in READERS


def _folders(path: str) -> tuple[str, ...]:
    pure = PurePosixPath(path)
    return tuple(part for part in pure.parts if part != pure.anchor)
