"""Files are written under a temporary name in the same folder, then renamed: whole, or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .errors import LnauditError


@contextmanager
def replacing(path: Path, mode: str, encoding: str | None = None) -> Iterator[IO[Any]]:
    """Yield a new file that takes the place of a path when the block ends well; otherwise nothing is left behind.

    Of a link it is the place that the link leads to.
    """
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f".lnaudit-{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open(mode, encoding=encoding) as file:
            yield file
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def unwritable(error: OSError, source: str) -> LnauditError:
    """Return what there is to say of a path that cannot be written."""
    reason = (error.strerror or type(error).__name__).lower()
    return LnauditError(f"cannot be written ({reason})", "name another place", source)
