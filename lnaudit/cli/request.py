"""From the words of a command line to what they mean: site options, formats, kernels."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import LnauditError
from .arguments import FLUSHED, OUTPUT_FORMATS
from .options import axes, choice, number, split_list, whole

if TYPE_CHECKING:
    from ..formats import Format
    from ..kernels import Kernel
    from ..readers.sites import SiteOptions

MOST_JOBS = 1024
M_ARENA_MAX = -8  # malloc.h of glibc


@dataclass(frozen=True, kw_only=True)
class SiteWords:
    """What a user says about sites, as text."""

    eps: str | None = None
    axis: str | None = None
    norm: str | None = None
    weight: Path | None = None
    bias: Path | None = None
    dtype: str | None = None
    field: str | None = None
    stdin_name: str = "stdin"

    def options(self) -> SiteOptions:
        """Return what it means."""
        from ..readers.sites import SiteOptions

        return SiteOptions(
            epsilon=None if self.eps is None else number(self.eps, "--eps"),
            axis=None if self.axis is None else axes(self.axis),
            norm=self.norm,
            dtype=self.dtype,
            weight=self.weight,
            bias=self.bias,
            field=self.field,
            stdin_name=self.stdin_name,
        )

    def config(self) -> dict[str, Any]:
        """Return what the report repeats of it."""
        return {
            "axis": self.axis,
            "norm": self.norm,
            "weight": None if self.weight is None else self.weight.as_posix(),
            "bias": None if self.bias is None else self.bias.as_posix(),
            "dtype": self.dtype,
            "field": self.field,
        }


def named_formats(texts: list[str] | None) -> tuple[Format, ...]:
    """Return the formats that are named, by default those that are audited anyway."""
    from ..formats import DEFAULT_FORMATS, get_format

    names = listed(texts, "--format")
    output = next((name.lower() for name in names if name.lower() in OUTPUT_FORMATS), None)
    if output is not None:
        raise LnauditError(f"{output} is an output: --output-format {output}", source="--format")
    return tuple(dict.fromkeys(map(get_format, names))) or DEFAULT_FORMATS


def named_kernels(texts: list[str] | None, runtimes: list[str] | None) -> tuple[Kernel, ...] | None:
    """Return the kernels that are named or that runtimes use; ladder stands for all of its own."""
    from ..kernels import LADDER, find_runtime, get_kernel

    names = [name for text in listed(texts, "--kernel") for name in (LADDER if text == "ladder" else (text,))]
    names += [find_runtime(text).kernel for text in listed(runtimes, "--runtime")]
    return tuple(dict.fromkeys(map(get_kernel, names))) or None


def runtime_notes(texts: list[str] | None) -> list[str]:
    """Say which kernel stands for each runtime that is named, and how that is known."""
    from ..kernels import find_runtime

    found = [(text, find_runtime(text)) for text in listed(texts, "--runtime")]
    return [f"{text}: kernel {runtime.kernel} ({runtime.known})" for text, runtime in found]


def flushed(text: str) -> str:
    """Return the dtypes that the hardware flushes."""
    return choice(text, FLUSHED, "--ftz")


def workforce(engine: str, jobs: str, verbose: bool) -> dict[str, Any]:
    """Return the settings of a run that say how, not what: its report does not depend on them."""
    from ..engine.choice import check_engine

    _share_heap()
    return {
        "engine": check_engine(engine),
        "jobs": 0 if jobs == "auto" else whole(jobs, MOST_JOBS, "--jobs", "or auto"),
        "tell": _tell if verbose else None,
    }


def _share_heap() -> None:
    """Let threads share one heap, so that one may use what another has freed; with glibc, elsewhere as it is.

    With a heap a thread a scan of many blocks takes up to a third more memory (measured: 326 MiB instead of 263).
    """
    import ctypes

    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def _tell(message: str) -> None:
    import typer

    from ..wording import printable

    typer.echo(f"lnaudit: {printable(message)}", err=True)


def listed(texts: list[str] | None, option: str) -> list[str]:
    """Return the names of repeated comma lists; raise LnauditError if there are texts but no names."""
    # == is no axis of a kernel
    split = [part.strip() for text in texts or () for part in text.split(",")]
    names = split_list(texts or []) if option != "--runtime" else list(dict.fromkeys(filter(None, split)))
    if texts and not names:
        raise LnauditError("names nothing", "name at least one, or leave it out", option)
    return names
