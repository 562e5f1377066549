"""`lnaudit scan`: audit dumps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import LnauditError
from ..findings import SEVERITIES, at_or_above
from . import output
from .arguments import (
    Axis,
    Bias,
    Dtype,
    Engine,
    Field,
    Formats,
    Ftz,
    Jobs,
    LossScale,
    Norm,
    OutputFormat,
    Runtimes,
    StdinName,
    Tolerance,
    Verbose,
    Weight,
)
from .options import choice, number
from .request import SiteWords, flushed, named_formats, named_kernels, runtime_notes, workforce

if TYPE_CHECKING:
    from ..pipeline import Settings
    from ..readers.discover import Found
    from ..report import Report

FAIL_ON = (*SEVERITIES, "never")
VERIFY = ("witness", "all")


def scan(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files, quoted globs, folders, - for stdin.")],
    eps: Annotated[
        list[str] | None, typer.Option(metavar="NUMBER", help="The model's epsilon. [default: 1e-5]")
    ] = None,
    compare_eps: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Another program's epsilon, to compare the outputs.")
    ] = None,
    axis: Axis = None,
    norm: Norm = None,
    weight: Weight = None,
    bias: Bias = None,
    dtype: Dtype = None,
    field: Field = None,
    stdin_name: StdinName = "stdin",
    format: Formats = None,
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES", help="Kernels, by comma; ladder: all. [default: native; fused too below float32]"
        ),
    ] = None,
    runtime: Runtimes = None,
    ftz: Ftz = "none",
    tolerance: Tolerance = "0.02",
    loss_scale: LossScale = "1",
    verify: Annotated[
        str, typer.Option(metavar="ROWS", help="witness, or all: run remedies of large sites on all their rows.")
    ] = "witness",
    fail_on: Annotated[
        str, typer.Option(metavar="SEVERITY", help="Findings that make exit code 1: error, warning, note, never.")
    ] = "never",
    engine: Engine = "auto",
    jobs: Jobs = "auto",
    output_format: OutputFormat = "table",
    ascii: Annotated[bool, typer.Option("--ascii", help="Escape what is not ASCII in names.")] = False,
    verbose: Verbose = False,
) -> None:
    """Audit dumps of what enters norm layers: .npy files, globs, directories with or without manifest.json.

    Examples:

      lnaudit scan acts.npy

      lnaudit scan acts.npy --eps 1e-12 --format float16,bfloat16

      lnaudit scan dumps/ --norm rms --fail-on error --output-format json
    """
    try:
        choice(output_format, output.OUTPUT_FORMATS, "--output-format")
        choice(fail_on, FAIL_ON, "--fail-on")
        if len(eps or []) > 1:
            raise LnauditError("is given more than once", "one epsilon; lnaudit sweep takes several", "--eps")
        words = SiteWords(
            eps=eps[0] if eps else None,
            axis=axis,
            norm=norm,
            weight=weight,
            bias=bias,
            dtype=dtype,
            field=field,
            stdin_name=stdin_name,
        )
        settings = _settings(format, kernel, runtime, ftz, tolerance, loss_scale, compare_eps, verify)
        settings = replace(settings, **workforce(engine, jobs, verbose))
        settings.config.update(fail_on=fail_on, epsilon=words.options().epsilon, **words.config())
        found = _found(paths, words)
    except LnauditError as error:
        output.refuse(error, "scan", output_format)
    report = _audited(found, settings)
    report.notes[:0] = runtime_notes(runtime)
    output.write(report, output_format, ascii)
    raise typer.Exit(_exit_code(report, fail_on))


def _settings(
    formats: list[str] | None,
    kernels: list[str] | None,
    runtimes: list[str] | None,
    ftz: str,
    tolerance: str,
    loss_scale: str,
    compare_eps: str | None,
    verify: str,
) -> Settings:
    """Turn the words of the command line into what they mean."""
    from ..pipeline import Settings

    settings = Settings(
        formats=named_formats(formats),
        kernels=named_kernels(kernels, runtimes),
        flush_subnormals=flushed(ftz),
        tolerance=number(tolerance, "--tolerance", above=True),
        loss_scale=number(loss_scale, "--loss-scale", above=True),
        compare_epsilon=None if compare_eps is None else number(compare_eps, "--compare-eps"),
        verify_all=choice(verify, VERIFY, "--verify") == "all",
    )
    settings.config.update(
        **settings.named(), loss_scale=settings.loss_scale, compare_epsilon=settings.compare_epsilon, verify=verify
    )
    return settings


def _found(paths: list[str], words: SiteWords) -> Found:
    from ..readers.discover import find_sites

    return find_sites(paths, words.options())


def _audited(found: Found, settings: Settings) -> Report:
    from ..pipeline import run
    from .progress import progress_bar

    with progress_bar(found.sizes()) as (bar, advance):
        report = run(bar.follow(found.open()), settings, progress=advance)
    report.notes.extend(found.notes)
    return report


def _exit_code(report: Report, fail_on: str) -> int:
    if report.not_audited or not report.sites:
        return output.NOT_AUDITED
    return output.FINDINGS if at_or_above(report.findings, fail_on) else output.CLEAN
