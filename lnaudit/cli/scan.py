"""`lnaudit scan`: audit dumps."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import LnauditError
from ..findings import SEVERITIES, at_or_above

if TYPE_CHECKING:
    from ..pipeline import Settings
    from ..readers.discover import Found
    from ..report import Report

FAIL_ON = (*SEVERITIES, "never")
OUTPUT_FORMATS = ("table", "json")
VERIFY = ("witness", "all")
CLEAN, FINDINGS, NOT_AUDITED = 0, 1, 2
begun = False  # a command that has begun answers for itself


def scan(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files, quoted globs, directories.")],
    eps: Annotated[str | None, typer.Option(metavar="NUMBER", help="The model's epsilon. [default: 1e-5]")] = None,
    compare_eps: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Another program's epsilon, to compare the outputs.")
    ] = None,
    axis: Annotated[
        str | None, typer.Option(metavar="AXES", help="The axes that are reduced, as in -1 or 1,2. [default: -1]")
    ] = None,
    norm: Annotated[str | None, typer.Option(metavar="NORM", help="layer or rms. [default: layer]")] = None,
    weight: Annotated[Path | None, typer.Option(metavar="FILE", help="A .npy of the norm's weight (gamma).")] = None,
    bias: Annotated[Path | None, typer.Option(metavar="FILE", help="A .npy of the norm's bias (beta).")] = None,
    dtype: Annotated[
        str | None,
        typer.Option(metavar="FORMAT", help="What the bits of the elements are, as in bfloat16 for uint16 files."),
    ] = None,
    format: Annotated[
        list[str] | None, typer.Option(metavar="NAMES", help="Formats to audit, by comma. [default: all]")
    ] = None,
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES", help="Kernels, by comma; ladder: all. [default: native; fused too below float32]"
        ),
    ] = None,
    tolerance: Annotated[
        str, typer.Option(metavar="NUMBER", help="Accepted RMS error of a row, 1 = normalized scale.")
    ] = "0.02",
    loss_scale: Annotated[
        str, typer.Option(metavar="NUMBER", help="Norm of the gradient that comes back to a row.")
    ] = "1",
    verify: Annotated[
        str, typer.Option(metavar="ROWS", help="witness, or all: run remedies of large sites on all their rows.")
    ] = "witness",
    fail_on: Annotated[
        str, typer.Option(metavar="SEVERITY", help="Findings that make exit code 1: error, warning, note, never.")
    ] = "never",
    output_format: Annotated[str, typer.Option(metavar="NAME", help="table or json, on stdout.")] = "table",
    ascii: Annotated[bool, typer.Option("--ascii", help="Escape what is not ASCII in names.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the traceback of an internal error.")] = False,
) -> None:
    """Audit dumps of what enters norm layers: .npy files, globs, directories with or without manifest.json.

    Examples:

      lnaudit scan acts.npy

      lnaudit scan acts.npy --eps 1e-12 --format float16,bfloat16

      lnaudit scan dumps/ --norm rms --fail-on error --output-format json
    """
    from ..readers.files import printable

    global begun
    begun = True
    try:
        found, settings = _request(
            paths,
            {"epsilon": eps, "axis": axis, "norm": norm, "weight": weight, "bias": bias, "dtype": dtype},
            format,
            kernel,
            {"tolerance": tolerance, "loss_scale": loss_scale},
            compare_eps,
            {"verify": verify, "fail_on": fail_on, "output_format": output_format},
        )
    except LnauditError as error:
        typer.echo(f"lnaudit: {printable(str(error))}", err=True)
        if output_format == "json":
            _write(_refused(error), output_format, ascii)
        raise typer.Exit(NOT_AUDITED) from None
    report = _audited(found, settings)
    for failure in report.not_audited:
        typer.echo(f"lnaudit: {printable(failure.source)}: {failure.reason}", err=True)
    _write(report, output_format, ascii)
    raise typer.Exit(_exit_code(report, fail_on))


def _request(
    paths: list[str],
    site: dict[str, str | Path | None],
    formats: list[str] | None,
    kernels: list[str] | None,
    numbers: dict[str, str],
    compare_eps: str | None,
    words: dict[str, str],
) -> tuple[Found, Settings]:
    """Turn the words of the command line into what they mean."""
    from ..formats import FORMATS, get_format
    from ..kernels import LADDER, get_kernel
    from ..pipeline import Settings
    from ..readers.discover import find_sites
    from ..readers.sites import SiteOptions
    from .options import axes, choice, number, split_list

    for name, known in (("output_format", OUTPUT_FORMATS), ("fail_on", FAIL_ON), ("verify", VERIFY)):
        choice(words[name], known, f"--{name.replace('_', '-')}")
    positive = {name: number(text, f"--{name.replace('_', '-')}", above=True) for name, text in numbers.items()}
    for option, texts in (("--format", formats), ("--kernel", kernels)):
        if texts and not split_list(texts):
            raise LnauditError("names nothing", "name at least one, or leave it out", option)
    names = split_list(formats or []) or list(FORMATS)
    rows = [row for text in split_list(kernels or []) for row in (LADDER if text == "ladder" else (text,))]
    settings = Settings(
        formats=tuple(dict.fromkeys(map(get_format, names))),
        kernels=tuple(dict.fromkeys(map(get_kernel, rows))) or None,
        tolerance=positive["tolerance"],
        loss_scale=positive["loss_scale"],
        compare_epsilon=None if compare_eps is None else number(compare_eps, "--compare-eps"),
        verify_all=words["verify"] == "all",
    )
    settings.config.update(
        {name: value.as_posix() if isinstance(value, Path) else value for name, value in site.items()},
        formats=[fmt.name for fmt in settings.formats],
        kernels=rows or None,
        **positive,
        compare_epsilon=settings.compare_epsilon,
        verify=words["verify"],
        fail_on=words["fail_on"],
    )
    eps, axis = site["epsilon"], site["axis"]
    options = SiteOptions(
        epsilon=None if eps is None else number(str(eps), "--eps"),
        axis=None if axis is None else axes(str(axis)),
        norm=_text(site["norm"]),
        dtype=_text(site["dtype"]),
        weight=_path(site["weight"]),
        bias=_path(site["bias"]),
    )
    settings.config["epsilon"] = options.epsilon
    return find_sites(paths, options), settings


def _text(value: str | Path | None) -> str | None:
    return None if value is None else str(value)


def _path(value: str | Path | None) -> Path | None:
    return None if value is None else Path(value)


def _audited(found: Found, settings: Settings) -> Report:
    from ..pipeline import run
    from .progress import progress_bar

    with progress_bar() as (bar, advance):
        report = run(bar.follow(found.open()), settings, progress=advance)
    report.notes.extend(found.notes)
    return report


def _refused(error: LnauditError) -> Report:
    """Return the report of a run that could not begin."""
    from ..pipeline import Settings, run
    from ..site import NotAudited

    return run([NotAudited(source=error.source, reason=error.reason)], Settings())


def _exit_code(report: Report, fail_on: str) -> int:
    if report.not_audited or not report.sites:
        return NOT_AUDITED
    return FINDINGS if at_or_above(report.findings, fail_on) else CLEAN


def _write(report: Report, output_format: str, ascii: bool) -> None:
    from ..render import RENDERERS, Style, terminal_width

    color = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    write_out(RENDERERS[output_format](report, Style(width=terminal_width(), color=color, ascii=ascii)))


def write_out(text: str) -> None:
    """Write to stdout; a reader that has gone away, as `head` does, is no error."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
    except OSError as error:
        _forget_stdout()
        typer.echo(f"lnaudit: stdout: {error.strerror or error}; nothing more was written", err=True)
        raise typer.Exit(NOT_AUDITED) from None


def _forget_stdout() -> None:
    """Let nothing try again to write what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def refused(reason: str, source: str) -> str:
    """Return the JSON document of a run that could not begin or ended in a crash."""
    from ..render import RENDERERS, Style

    return RENDERERS["json"](_refused(LnauditError(reason, source=source)), Style())
