"""Programs by version: which kernel a runtime uses, and how that is known."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import LnauditError
from ..wording import nearest

_TEXT = re.compile(r"([a-z-]+)\s*(?:==)?\s*v?(\d+(?:\.\d+)*)")


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """A range of versions of a program: the first and the last, both included (None: any), and their kernel."""

    program: str
    first: tuple[int, ...]
    last: tuple[int, ...] | None
    kernel: str
    known: str


RUNTIMES: tuple[Runtime, ...] = (
    Runtime(
        program="torch",
        first=(2, 13),
        last=(2, 13),
        kernel="torch-cpu",
        known="proven on 2.13.0",
    ),
    Runtime(
        program="onnxruntime",
        first=(1, 20),
        last=(1, 26),
        kernel="ort-cpu-legacy",
        known="proven on 1.24.1; 1.20 to 1.26 compute alike",
    ),
    Runtime(
        program="onnxruntime",
        first=(1, 28),
        last=(1, 28),
        kernel="ort-cpu-skip",
        known="LayerNormalization only, from source, not run; its SkipLayerNormalization is ort-cpu-legacy",
    ),
    Runtime(
        program="onnxruntime",
        first=(1, 30),
        last=None,
        kernel="ort-cpu",
        known="proven on 1.32.0; its SkipLayerNormalization is ort-cpu-skip",
    ),
)


def find_runtime(text: str) -> Runtime:
    """Return the runtime that ``program==version`` means, such as ``onnxruntime==1.24.1`` or ``torch==2.13``.

    Raises
    ------
    LnauditError
        If the program is unknown, or what that version computes.
    """
    match = _TEXT.fullmatch(text.strip().lower())
    programs = list(dict.fromkeys(runtime.program for runtime in RUNTIMES))
    if not match:
        raise LnauditError(f"{text!r} is not program==version", "as in onnxruntime==1.24.1 or torch==2.13", "--runtime")
    program, version = match[1], tuple(map(int, match[2].split(".")))
    if program not in programs:
        raise LnauditError(f"unknown runtime {program!r}", nearest(program, programs), "--runtime")
    for runtime in RUNTIMES:
        if runtime.program == program and runtime.first <= version and _not_after(version, runtime.last):
            return runtime
    known = ", ".join(_range(runtime) for runtime in RUNTIMES if runtime.program == program)
    raise LnauditError(
        f"what {program} {match[2]} computes is not known", f"known: {known}; or name a kernel, --kernel", "--runtime"
    )


def _not_after(version: tuple[int, ...], last: tuple[int, ...] | None) -> bool:
    return last is None or version[: len(last)] <= last


def _range(runtime: Runtime) -> str:
    first = ".".join(map(str, runtime.first))
    if runtime.last is None:
        return f"{first} on"
    last = ".".join(map(str, runtime.last))
    return first if first == last else f"{first} to {last}"
