"""Files that a run writes: what would be lost is asked before anybody waits for the audit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..errors import LnauditError


def check_targets(save_stats: Path | None, write_baseline: Path | None, reports: Sequence[Path] | None) -> None:
    """Refuse files that cannot be written, that would be written twice, or that hold something else.

    Raises
    ------
    LnauditError
        If there is one.
    """
    named = [("--save-stats", save_stats), ("--write-baseline", write_baseline)]
    _each_its_own([*named, *(("--report", path) for path in reports or ())])
    if save_stats is not None:
        from ..pipeline.saving import KIND as STATISTICS

        _check(save_stats, STATISTICS, "holds no saved statistics")
    if write_baseline is not None:
        from ..baseline import KIND as BASELINE

        _check(write_baseline, BASELINE, "is no baseline")


def _each_its_own(named: Sequence[tuple[str, Path | None]]) -> None:
    taken: dict[str, str] = {}
    for option, path in named:
        real = "" if path is None else os.path.realpath(path)
        if path is not None and real in taken:
            what = "is named twice" if taken[real] == option else f"is what {taken[real]} writes"
            raise LnauditError(what, "name another file", f"{option} {path.as_posix()}")
        taken[real] = option


def _check(path: Path, kind: str, otherwise: str) -> None:
    """Refuse a file that cannot be replaced by one of that kind; an older one of the kind and an empty one can be."""
    from ..readers.documents import kind_of
    from ..writing import unwritable

    source = path.as_posix()
    try:
        size = os.stat(path).st_size
    except FileNotFoundError:
        if not path.parent.exists():
            raise LnauditError("cannot be written (no such file or directory)", "name another place", source) from None
        return
    except OSError as error:
        raise unwritable(error, source) from None
    if path.is_dir():
        raise LnauditError("is a folder", "name a file", source)
    if not path.is_file():
        raise LnauditError("is no regular file", "name another file", source)
    if size and kind_of(path) != kind:
        raise LnauditError(f"{otherwise} and would be lost", "name another file", source)
