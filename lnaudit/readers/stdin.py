"""Standard input as a file: a pipe cannot be read twice, so what comes out of it is stored."""

from __future__ import annotations

import os
import sys
import tempfile

from ..errors import LnauditError
from .files import Spool, failure
from .npy_header import MAGIC

_PIECE = 1 << 20


def spool_stdin() -> Spool:
    """Store what standard input holds; of what is no .npy file, only the beginning.

    Raises
    ------
    LnauditError
        If it is closed, a terminal, or cannot be read or stored.
    """
    if sys.stdin is None:
        raise LnauditError("is closed", "pipe a .npy file into it")
    if sys.stdin.isatty():
        raise LnauditError("is a terminal", "pipe a .npy file into it")
    try:
        with tempfile.TemporaryFile() as file:
            while piece := _piece():
                file.write(piece)
                if file.tell() == len(piece) and not piece.startswith(MAGIC):
                    break
            return Spool(os.dup(file.fileno()))
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise LnauditError(f"cannot be stored ({reason})", "name a folder with room for it in TMPDIR") from None


def _piece() -> bytes:
    try:
        return sys.stdin.buffer.read(_PIECE)
    except OSError as error:
        raise LnauditError(failure(error)) from None
