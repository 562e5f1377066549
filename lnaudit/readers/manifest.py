"""manifest.json: which files of a folder are sites, and what the model knows about each of them."""

from __future__ import annotations

import difflib
import json
import math
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from ..errors import LnauditError
from ..wording import printable
from .documents import read_json

MANIFEST = "manifest.json"
_SIZE_LIMIT = 1 << 26
_NORMS = ("layer", "rms", "group", "instance")
# keys that other programs use for the same thing: ignoring one would audit the model at the wrong epsilon
_MISTAKEN = {"eps": "epsilon", "gamma": "weight", "scale": "weight", "beta": "bias", "axes": "axis", "path": "file"}

_KEYS = ("name", "file", "norm", "axis", "epsilon", "weight", "bias", "kernel", "groups")


@dataclass(frozen=True, kw_only=True)
class ManifestSite:
    """One entry of `sites`; None where the manifest does not say.

    Attributes
    ----------
    name, file : str
        How the model calls it; the file, relative to the manifest's folder.
    norm : str or None
        "layer", "rms", "group" or "instance".
    axis : int or tuple of int or None
        The reduced axes.
    epsilon : float or None
        Finite, at least 0.
    weight, bias : str or None
        Files, relative to the manifest's folder.
    kernel : str or None
        The kernel the model runs it with.
    groups : int or None
        Number of groups of a group norm.
    """

    name: str
    file: str
    norm: str | None = None
    axis: int | tuple[int, ...] | None = None
    epsilon: float | None = None
    weight: str | None = None
    bias: str | None = None
    kernel: str | None = None
    groups: int | None = None


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A manifest as far as it can be used.

    Attributes
    ----------
    sites : tuple of (ManifestSite or LnauditError)
        In the order of the file; an entry that makes no sense stands as its error and does not stop the others.
    files : frozenset of str
        Every file that an entry names, sites, weights and biases, normalized with /.
    """

    sites: tuple[ManifestSite | LnauditError, ...]
    files: frozenset[str]


def read_manifest(path: Path, source: str = "") -> Manifest:
    """Read a manifest; nothing in it is trusted.

    Raises
    ------
    LnauditError
        If it cannot be read as a whole.
    """
    source = printable(source)
    entries = _entries(read_json(path, source, _SIZE_LIMIT), source)
    sites: list[ManifestSite | LnauditError] = []
    names: set[str] = set()
    files: set[str] = set()
    for i, entry in enumerate(entries):
        try:
            if not isinstance(entry, dict):
                raise LnauditError("is not an object")
            files |= {_normalized(entry[key]) for key in ("file", "weight", "bias") if isinstance(entry.get(key), str)}
            site = _site(entry)
            if site.name in names:
                raise LnauditError("has a name that an earlier one has", "give each site its own")
            names.add(site.name)
            sites.append(site)
        except LnauditError as error:
            name = entry.get("name") if isinstance(entry, dict) else None
            which = f"sites[{i}]" + (f" ({printable(name)})" if isinstance(name, str) else "")
            sites.append(LnauditError(f"{which} {error.what}", error.remedy, source))
    return Manifest(sites=tuple(sites), files=frozenset(files))


def _entries(document: Any, source: str) -> list[Any]:
    if not isinstance(document, dict) or "sites" not in document:
        raise LnauditError("is no manifest of lnaudit: it has no `sites`", "name the files themselves", source)
    version = document.get("schema_version", 1)
    if type(version) is not int or version != 1:
        raise LnauditError(f"has schema_version {_shown(version)}", "version 1 is read", source)
    sites = document["sites"]
    if not isinstance(sites, list):
        raise LnauditError(f"has `sites` {_shown(sites)}, not a list", "", source)
    if not sites:
        raise LnauditError("lists no sites", "nothing to audit", source)
    return sites


def _site(entry: dict[str, Any]) -> ManifestSite:
    for wrong, right in _MISTAKEN.items():
        if wrong in entry and right not in entry:
            raise LnauditError(f"has the key {wrong!r}", f"it is called {right!r} here")
    for key in entry:
        near = difflib.get_close_matches(key, _KEYS, 1, 0.75)
        if near and key not in _KEYS:
            raise LnauditError(f"has the key {_shown(key)}", f"did you mean {near[0]!r}?")
    name, file = _text(entry, "name"), _file(entry, "file")
    if name is None or file is None:
        raise LnauditError(f"has no {'name' if name is None else 'file'!r}", "each site needs a name and a file")
    norm = _text(entry, "norm")
    if norm not in (None, *_NORMS):
        raise LnauditError(f"has norm {_shown(norm)}", "choose from layer, rms")
    return ManifestSite(
        name=name,
        file=file,
        norm=norm,
        axis=_axis(entry),
        epsilon=_epsilon(entry),
        weight=_file(entry, "weight"),
        bias=_file(entry, "bias"),
        kernel=_text(entry, "kernel"),
        groups=_groups(entry),
    )


def _text(entry: dict[str, Any], key: str) -> str | None:
    value = entry.get(key)
    if value is not None and (not isinstance(value, str) or not value):
        raise LnauditError(f"has {key} {_shown(value)}, not a text")
    return value


def _file(entry: dict[str, Any], key: str) -> str | None:
    name = _text(entry, key)
    if name is None:
        return None
    if "\0" in name or any(p.anchor or ".." in p.parts for p in (PurePosixPath(name), PureWindowsPath(name))):
        raise LnauditError(f"has {key} {_shown(name)}, outside its folder", "name files below the manifest")
    return name


def _axis(entry: dict[str, Any]) -> int | tuple[int, ...] | None:
    axis = entry.get("axis")
    if axis is None or type(axis) is int:
        return axis
    if isinstance(axis, list) and axis and all(type(a) is int for a in axis):
        return tuple(axis)
    raise LnauditError(f"has axis {_shown(axis)}, not an integer or a list of them")


def _epsilon(entry: dict[str, Any]) -> float | None:
    value = entry.get("epsilon")
    if value is None:
        return None
    if type(value) in (int, float):
        # an int may be too large for a float
        epsilon = float(value) if abs(value) < 10**300 else math.inf
        if math.isfinite(epsilon) and epsilon >= 0:
            return epsilon
    raise LnauditError(f"has epsilon {_shown(value)}, not a finite number >= 0")


def _groups(entry: dict[str, Any]) -> int | None:
    groups = entry.get("groups")
    if groups is None or (type(groups) is int and groups > 0):
        return groups
    raise LnauditError(f"has groups {_shown(groups)}, not a positive integer")


def _normalized(name: str) -> str:
    return PurePosixPath(name).as_posix()


def _shown(value: object) -> str:
    try:
        text = printable(json.dumps(value, ensure_ascii=False))
    except ValueError:
        text = "of too many digits"
    return text if len(text) <= 60 else f"{text[:57]}..."
