"""One file becomes a site: the file, what a manifest says about it, what the command line says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from ..errors import LnauditError
from ..kernels import get_kernel
from ..site import Array, Rows, Site, check_norm
from ..wording import printable
from . import READERS
from .documents import WRITTEN, kind_of
from .elements import dtype_named
from .files import open_file
from .manifest import ManifestSite
from .npy import load_parameter, open_npy
from .stdin import spool_stdin

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class SiteOptions:
    """What the command line says about every site; None where it says nothing. It overrides a manifest.

    `stdin_name` is what a site on standard input is called, as if it were a path.

    Raises
    ------
    LnauditError
        If a value can fit no site.
    """

    axis: int | tuple[int, ...] | None = None
    epsilon: float | None = None
    norm: str | None = None
    dtype: str | None = None
    weight: Path | None = None
    bias: Path | None = None
    field: str | None = None
    stdin_name: str = "stdin"

    def __post_init__(self) -> None:
        if self.epsilon is not None and not (math.isfinite(self.epsilon) and self.epsilon >= 0):
            raise LnauditError(f"{self.epsilon:g} is no epsilon", "give one finite number >= 0", "--eps")
        if self.norm is not None:
            check_norm(self.norm, "--norm")
        if self.dtype is not None:
            dtype_named(self.dtype)
        if not PurePosixPath(self.stdin_name).name:
            raise LnauditError(f"{self.stdin_name!r} is no name", "as in acts.npy", "--stdin-name")


@dataclass(frozen=True, kw_only=True)
class SiteFile:
    """A file that is to be a site, not opened yet.

    Attributes
    ----------
    source : str
        As the report calls it, with /: the path as given, or relative to the folder that was given.
    path : str
        Where it is.
    stdin : bool
        It is on standard input; then source and path are the name that it is given.
    name : str
        Of the manifest, or the stem.
    entry : ManifestSite or None
        What the manifest says.
    folder : str
        The manifest's folder, or the file's own.
    """

    source: str
    path: str
    name: str
    entry: ManifestSite | None = None
    folder: str = ""
    stdin: bool = False


def open_site(file: SiteFile, options: SiteOptions, policy: Mapping[str, Any] = NOTHING) -> Site:
    """Open the file and read its weight and bias.

    policy: what a policy says of epsilon, norm and axis of this site: less than the options, more than a manifest.

    Raises
    ------
    LnauditError
        If anything about it makes no sense.
    """
    entry = file.entry or ManifestSite(name=file.name, file=file.path)
    norm = options.norm or policy.get("norm") or entry.norm or "layer"
    check_norm(norm)
    axis = next(axis for axis in (options.axis, policy.get("axis"), entry.axis, -1) if axis is not None)
    if entry.kernel is not None:
        get_kernel(entry.kernel)
    rows = _open_rows(file, axis, options)
    epsilon, epsilon_source = 1e-5, "default"
    if options.epsilon is not None:
        epsilon, epsilon_source = options.epsilon, "option"
    elif policy.get("epsilon") is not None:
        epsilon, epsilon_source = policy["epsilon"], "policy"
    elif entry.epsilon is not None:
        epsilon, epsilon_source = entry.epsilon, "manifest"
    return Site(
        name=file.name,
        source=file.source,
        rows=rows,
        norm=norm,
        epsilon=epsilon,
        epsilon_source=epsilon_source,
        weight=_parameter("weight", file.folder, entry.weight, options.weight, rows, options.dtype),
        bias=_parameter("bias", file.folder, entry.bias, options.bias, rows, options.dtype),
        kernel=entry.kernel,
        overridden=_overridden(entry, options, policy),
    )


def _open_rows(file: SiteFile, axis: int | tuple[int, ...], options: SiteOptions) -> Rows:
    path, suffix = file.path, PurePosixPath(file.path).suffix
    if file.stdin:
        return open_npy(spool_stdin(), axis=axis, dtype=options.dtype, field=options.field, source=path)
    if suffix.lower() in READERS:
        reader = READERS[suffix.lower()]
        return reader(Path(path), axis=axis, dtype=options.dtype, field=options.field, source=path)
    # a missing file is missing, whatever its name
    open_file(Path(path), "").close()
    said = WRITTEN.get(kind_of(Path(path)))
    if said is not None:
        raise LnauditError(*said)
    kind = f"{printable(suffix)} files" if suffix else "files without a suffix"
    raise LnauditError(f"{kind} cannot be read", f"what can: {', '.join(READERS)}")


def _parameter(
    what: str, folder: str, name: str | None, option: Path | None, rows: Rows, dtype: str | None
) -> Array | None:
    path = option or (Path(folder, name) if name is not None else None)
    if path is None:
        return None
    shape = tuple(rows.shape[a] for a in rows.axes)
    try:
        return load_parameter(path, shape, dtype=dtype)
    except LnauditError as error:
        raise LnauditError(f"{what} {printable(path.as_posix())}: {error.what}", error.remedy) from None


def _overridden(entry: ManifestSite, options: SiteOptions, policy: Mapping[str, Any]) -> tuple[str, ...]:
    """Name what the manifest says and the command line or the policy says otherwise."""
    given = []
    for name in ("axis", "epsilon", "norm", "weight", "bias"):
        option = getattr(options, name)
        given.append((name, policy.get(name) if option is None else option, getattr(entry, name)))
    return tuple(name for name, option, said in given if None not in (option, said) and option != said)
