"""Files that a run writes: what would be lost is asked before anybody waits for the audit."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import LnauditError

Named = tuple[str, Path | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Inputs:
    """Files that a run reads: its PATHs, and what options name."""

    paths: Sequence[str] = ()
    baseline: Path | None = None
    others: tuple[Named, ...] = ()


def check_targets(
    save_stats: Path | None, write_baseline: Path | None, reports: Sequence[Path] | None, inputs: Inputs
) -> None:
    """Refuse files that cannot be written, that would be written twice, that are read, or that hold something else.

    Raises
    ------
    LnauditError
        If there is one.
    """
    named = [("--save-stats", save_stats), ("--write-baseline", write_baseline)]
    targets = [*named, *(("--report", path) for path in reports or ())]
    _each_its_own(targets)
    _none_is_read(targets, inputs)
    if save_stats is not None:
        from ..pipeline.saving import KIND as STATISTICS

        _check(save_stats, STATISTICS, "holds no saved statistics")
    if write_baseline is not None:
        from ..baseline import KIND as BASELINE

        _check(write_baseline, BASELINE, "is no baseline")


def _each_its_own(named: Iterable[Named]) -> None:
    taken: dict[str, str] = {}
    for option, path in named:
        real = "" if path is None else os.path.realpath(path)
        if path is not None and real in taken:
            what = "is named twice" if taken[real] == option else f"is what {taken[real]} writes"
            raise LnauditError(what, "name another file", f"{option} {path.as_posix()}")
        taken[real] = option


def _none_is_read(targets: Iterable[Named], inputs: Inputs) -> None:
    """Refuse what is an input too; a baseline may be renewed."""
    read = {os.path.realpath(path): option for option, path in inputs.others if path is not None}
    read |= {os.path.realpath(path): "PATH" for given in inputs.paths for path in _led_to(given)}
    baseline = None if inputs.baseline is None else os.path.realpath(inputs.baseline)
    for option, path in targets:
        real = "" if path is None else os.path.realpath(path)
        by = "--baseline" if real == baseline and option != "--write-baseline" else read.get(real)
        if path is not None and by is not None:
            what = "is audited" if by == "PATH" else f"is what {by} reads"
            raise LnauditError(f"{what} and would be lost", "name another file", f"{option} {path.as_posix()}")


def _led_to(given: str) -> list[str]:
    """Return the files that a PATH stands for, without opening any; what a manifest lists is not among them."""
    from ..readers.paths import expand, is_pattern

    return list(expand(given)) if is_pattern(given) and not os.path.lexists(given) else [given]


def _check(path: Path, kind: str, otherwise: str) -> None:
    """Refuse a file that cannot be replaced by one of that kind; an older one of the kind and an empty one can be."""
    from ..readers.documents import kind_of

    source = path.as_posix()
    if replaced_bytes(path, source) and kind_of(path) != kind:
        raise LnauditError(f"{otherwise} and would be lost", "name another file", source)


def replaced_bytes(path: Path, source: str) -> int:
    """Return how many bytes a file has that is to be written, 0 if there is none; a link is what it leads to.

    Raises
    ------
    LnauditError
        If it is a folder, a device, a pipe, or nothing that can be written.
    """
    from ..writing import unwritable

    try:
        found = os.stat(path)
    except FileNotFoundError:
        if not os.path.isdir(os.path.dirname(os.path.realpath(path))):
            raise LnauditError("cannot be written (no such file or directory)", "name another place", source) from None
        return 0
    except OSError as error:
        raise unwritable(error, source) from None
    if stat.S_ISDIR(found.st_mode):
        raise LnauditError("is a folder", "name a file", source)
    if not stat.S_ISREG(found.st_mode):
        raise LnauditError("is no regular file", "name another file", source)
    return found.st_size
