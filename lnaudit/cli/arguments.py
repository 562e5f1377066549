"""The options that commands share, and options whose value may be left out."""

from __future__ import annotations

from os.path import exists
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand

Axis = Annotated[
    str | None, typer.Option(metavar="AXES", help="The axes that are reduced, as in -1 or 1,2. [default: -1]")
]
Norm = Annotated[str | None, typer.Option(metavar="NORM", help="layer or rms. [default: layer]")]
Weight = Annotated[Path | None, typer.Option(metavar="FILE", help="A .npy of the norm's weight (gamma).")]
Bias = Annotated[Path | None, typer.Option(metavar="FILE", help="A .npy of the norm's bias (beta).")]
Dtype = Annotated[
    str | None,
    typer.Option(metavar="FORMAT", help="What the bits of the elements are, as in bfloat16 for uint16 files."),
]
Field = Annotated[str | None, typer.Option(metavar="NAME", help="The field of structured arrays.")]
StdinName = Annotated[str, typer.Option(metavar="NAME", help="What to call the .npy file on standard input, PATH -.")]
Formats = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        metavar="NAMES",
        envvar="LNAUDIT_FORMAT",
        help="Formats, by comma. [default: float16,bfloat16,float32,float64]",
    ),
]
Runtimes = Annotated[
    list[str] | None,
    typer.Option(
        "--runtime",
        metavar="PROGRAM==VERSION",
        envvar="LNAUDIT_RUNTIME",
        help="The kernel of a program, as in onnxruntime==1.24.1 or torch==2.13; by comma.",
    ),
]
Tolerance = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        envvar="LNAUDIT_TOLERANCE",
        help="Accepted RMS error of a row, 1 = normalized scale. [default: 0.02]",
    ),
]
LossScale = Annotated[str, typer.Option(metavar="NUMBER", help="Norm of the gradient that comes back to a row.")]
Ftz = Annotated[
    str,
    typer.Option(
        metavar="[DTYPES]",
        help="The hardware flushes subnormal numbers: of float32, of T (the audited format), or all, as --ftz alone "
        "means.",
    ),
]
OutputFormat = Annotated[str, typer.Option(metavar="NAME", help="table or json, on stdout.")]
Eps = Annotated[list[str] | None, typer.Option(metavar="NUMBER", help="The model's epsilon. [default: 1e-5]")]
CompareEps = Annotated[
    str | None, typer.Option(metavar="NUMBER", help="Another program's epsilon, to compare the outputs.")
]
Kernels = Annotated[
    list[str] | None,
    typer.Option(
        "--kernel",
        metavar="NAMES",
        envvar="LNAUDIT_KERNEL",
        help="Kernels, by comma; ladder: all. [default: native; fused too below float32]",
    ),
]
Verify = Annotated[
    str, typer.Option(metavar="ROWS", help="witness, or all: run remedies of large sites on all their rows.")
]
FailOn = Annotated[
    str | None,
    typer.Option(
        metavar="SEVERITY",
        envvar="LNAUDIT_FAIL_ON",
        help="Findings that make exit code 1: error, warning, note, never.",
    ),
]
Select = Annotated[
    list[str] | None,
    typer.Option(metavar="CODES", envvar="LNAUDIT_SELECT", help="Rules, or their beginnings as in LN1. [default: LN]"),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="CODES", envvar="LNAUDIT_IGNORE", help="Rules that are left out, or their beginnings."),
]
Share = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER", envvar="LNAUDIT_SHARE", help="Part of the rows that may exceed the tolerance. [default: 0]"
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        envvar="LNAUDIT_CONFIG",
        help="The policy: a .toml file. [default: the nearest lnaudit.toml, or pyproject.toml with [tool.lnaudit]]",
    ),
]
Isolated = Annotated[bool, typer.Option("--isolated", help="Look for no policy file.")]
ShowSettings = Annotated[bool, typer.Option("--show-settings", help="Show what counts, as TOML, and audit nothing.")]
SaveStats = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Save statistics, to be judged again by lnaudit check FILE.")
]
Engine = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        envvar="LNAUDIT_ENGINE",
        help="auto, numpy, or numba (extra fast), which compiles its loops: the results are the same to the last bit.",
    ),
]
Jobs = Annotated[
    str,
    typer.Option(metavar="N", envvar="LNAUDIT_JOBS", help="Threads, or auto: one a core. The results are the same."),
]
Ascii = Annotated[bool, typer.Option("--ascii", help="Escape what is not ASCII in names.")]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Say which engine audits each file; show the traceback of an internal error."),
]


def _no_path(word: str) -> bool:
    """Whether a word after an option that may stand alone is its value: not an option, nothing that names files."""
    return not (word.startswith("-") or "/" in word or word.endswith((".npy", ".json")) or "*" in word or exists(word))


class BareOptions(TyperCommand):
    """A command some of whose options may stand without a value: `--ftz`, and `--eps` of a sweep."""

    # option -> what it means alone
    bare: ClassVar[dict[str, str]] = {"--ftz": "all"}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Fill in what an option without a value means."""
        filled: list[str] = []
        for i, word in enumerate(args):
            if word == "--":  # what follows is no option
                filled += args[i:]
                break
            filled.append(word)
            if word in self.bare and (i + 1 == len(args) or not _no_path(args[i + 1])):
                filled.append(self.bare[word])
        return list(super().parse_args(ctx, filled))


class SweepOptions(BareOptions):
    """The options of a sweep."""

    bare: ClassVar[dict[str, str]] = {**BareOptions.bare, "--eps": "default"}
