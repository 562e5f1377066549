"""The options that commands share, and options whose value may be left out; the README has these same words."""

from __future__ import annotations

from os.path import exists
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from ..findings import SEVERITIES
from . import completion
from .examples import Command

OUTPUT_FORMATS = ("table", "concise", "json")
COLORS = ("auto", "always", "never")
VERIFY = ("witness", "all")
FLUSHED = ("none", "float32", "T", "all")
FAIL_ON = (*SEVERITIES, "never")

Axis = Annotated[
    str | None, typer.Option(metavar="AXES", help="The axes that are reduced, as in -1 or 1,2. [default: -1]")
]
Norm = Annotated[
    str | None,
    typer.Option(metavar="NORM", help="layer or rms. [default: layer]", autocompletion=completion.norms),
]
Weight = Annotated[Path | None, typer.Option(metavar="FILE", help="A .npy file of the norm's weight (gamma).")]
Bias = Annotated[Path | None, typer.Option(metavar="FILE", help="A .npy file of the norm's bias (beta).")]
Dtype = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT",
        help="What the bits of the elements are, as in bfloat16 for uint16 files, float8_e4m3fn for bytes.",
        autocompletion=completion.dtypes,
    ),
]
Field = Annotated[
    str | None, typer.Option(metavar="NAME", help="The field of structured arrays, nested ones as in stats.mean.")
]
StdinName = Annotated[str, typer.Option(metavar="NAME", help="What to call the .npy file on standard input, PATH -.")]
Formats = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        metavar="NAMES",
        envvar="LNAUDIT_FORMAT",
        help="Formats, by comma or repeated: float16, bfloat16, float32, float64, tfloat32, float8_e4m3fn, "
        "float8_e5m2; or fp16, bf16, half, tf32, e4m3 ... as lnaudit formats lists them. [default: the first four]",
        autocompletion=completion.formats,
    ),
]
Kernels = Annotated[
    list[str] | None,
    typer.Option(
        "--kernel",
        metavar="NAMES",
        envvar="LNAUDIT_KERNEL",
        help="Kernels of lnaudit kernels, by comma or repeated, with axes changed as in "
        "native:reduction=serial,variance=one_pass; ladder means the five textbook ones. [default: native; below "
        "float32 fused too, but not in a sweep]",
        autocompletion=completion.kernels,
    ),
]
Runtimes = Annotated[
    list[str] | None,
    typer.Option(
        "--runtime",
        metavar="PROGRAM==VERSION",
        envvar="LNAUDIT_RUNTIME",
        help="The kernel of a program's version, by comma or repeated, as in onnxruntime==1.24.1 or torch==2.13.",
        autocompletion=completion.runtimes,
    ),
]
Ftz = Annotated[
    str,
    typer.Option(
        metavar="[DTYPES]",
        help="The hardware flushes subnormal numbers: of float32, of T (the audited format), or of all dtypes, as "
        "--ftz alone means.",
        autocompletion=completion.words(*FLUSHED),
    ),
]
Tolerance = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        envvar="LNAUDIT_TOLERANCE",
        help="Accepted RMS error of a row, 1 = normalized scale; at least four unit roundoffs of the format. "
        "[default: 0.02]",
    ),
]
Share = Annotated[
    str | None,
    typer.Option(metavar="NUMBER", envvar="LNAUDIT_SHARE", help="Part of the rows that may exceed it. [default: 0]"),
]
LossScale = Annotated[
    str, typer.Option(metavar="NUMBER", help="Norm of the gradient that comes back to a row, for LN402.")
]
Eps = Annotated[
    list[str] | None, typer.Option(metavar="NUMBER", help="The model's epsilon, a number >= 0. [default: 1e-5]")
]
CompareEps = Annotated[
    str | None,
    typer.Option(metavar="NUMBER", help="Another program's epsilon: LN305 says how far its output would be off."),
]
Verify = Annotated[
    str,
    typer.Option(
        metavar="ROWS",
        help="witness, or all: run the remedies of large sites on all their rows.",
        autocompletion=completion.words(*VERIFY),
    ),
]
FailOn = Annotated[
    str | None,
    typer.Option(
        metavar="SEVERITY",
        envvar="LNAUDIT_FAIL_ON",
        help="Findings that make exit code 1: error, warning, note, never. [default: scan never, check error]",
        autocompletion=completion.words(*FAIL_ON),
    ),
]
Select = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CODES",
        envvar="LNAUDIT_SELECT",
        help="Rules by code or name, or beginnings of codes as in LN1. [default: all]",
        autocompletion=completion.rules,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CODES",
        envvar="LNAUDIT_IGNORE",
        help="Rules that are left out; where --select names them too, the longer beginning decides.",
        autocompletion=completion.rules,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        envvar="LNAUDIT_CONFIG",
        help="The policy file. [default: the nearest lnaudit.toml, or pyproject.toml with [tool.lnaudit], up to the "
        "root of the repository]",
    ),
]
Isolated = Annotated[bool, typer.Option("--isolated", help="Look for no policy file.")]
ShowSettings = Annotated[bool, typer.Option("--show-settings", help="Show what counts, as TOML, and audit nothing.")]
SaveStats = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Save statistics, which lnaudit check FILE judges again without the dumps."),
]
Report = Annotated[
    list[Path] | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="Write a page too (.html), or a picture (.svg, .png); may be repeated. Needs the extra report.",
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        envvar="LNAUDIT_ENGINE",
        help="auto, numpy, or numba (extra fast), which compiles its loops; the results are the same to the last bit.",
        autocompletion=completion.engines,
    ),
]
Jobs = Annotated[
    str,
    typer.Option(
        metavar="N",
        envvar="LNAUDIT_JOBS",
        help="Threads, or auto: one a core; the results do not depend on it.",
        autocompletion=completion.words("auto"),
    ),
]
OutputFormat = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="table; concise: a line a finding, to be searched; json: one strict document on stdout, whatever happens.",
        autocompletion=completion.words(*OUTPUT_FORMATS),
    ),
]
Color = Annotated[
    str,
    typer.Option(
        metavar="WHEN",
        help="auto, always or never. auto: on a terminal; the variables NO_COLOR, TERM=dumb and FORCE_COLOR go before "
        "that, in this order.",
        autocompletion=completion.words(*COLORS),
    ),
]
Ascii = Annotated[bool, typer.Option("--ascii", help="Names, and the curves of a sweep, in ASCII only.")]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Show only what fails or warns, and the totals; no progress. Exit codes and JSON stay as they are.",
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="Say which engine audits each file, and show the traceback of an internal error."
    ),
]


def _no_path(word: str) -> bool:
    """Whether a word after an option that may stand alone is its value: not an option, nothing that names files."""
    return not (word.startswith("-") or "/" in word or word.endswith((".npy", ".json")) or "*" in word or exists(word))


class BareOptions(Command):
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
