"""`lnaudit diff`: two saved runs, site by site."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import LnauditError
from . import completion
from .arguments import FAIL_ON, Ascii, Color
from .exit_codes import CLEAN, FINDINGS, NOT_AUDITED
from .options import choice
from .output import wants_color, write_out

if TYPE_CHECKING:
    from ..comparison import Comparison, Run
    from ..report import Report

OUTPUT_FORMATS = ("table", "json")


def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A saved run: a JSON report, or saved statistics.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="A later one.")],
    fail_on: Annotated[
        str,
        typer.Option(
            metavar="SEVERITY",
            help="New or worse findings that make exit code 1: error, warning, note, never.",
            autocompletion=completion.words(*FAIL_ON),
        ),
    ] = "never",
    output_format: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="table or json, on stdout.", autocompletion=completion.words(*OUTPUT_FORMATS)
        ),
    ] = "table",
    color: Color = "auto",
    ascii: Ascii = False,
) -> None:
    """Compare two saved runs, site by site: verdicts, findings, recommended epsilons, errors near their limit.

    A run is what scan --save-stats wrote, or the JSON report of a scan or a check; any two can be compared. A finding
    is worse where a baseline says so: by more than a tenth.
    """
    try:
        choice(output_format, OUTPUT_FORMATS, "--output-format")
        choice(fail_on, FAIL_ON, "--fail-on")
        comparison, code = _compared(old, new, fail_on)
    except LnauditError as error:
        comparison, code = _refused(error, (old, new), fail_on), NOT_AUDITED
    write_out(_rendered(comparison, output_format, color, ascii))
    raise typer.Exit(code)


def _compared(old: Path, new: Path, fail_on: str) -> tuple[Comparison, int]:
    from ..comparison import compare_runs
    from ..findings import at_or_above

    comparison = compare_runs(_run(old), _run(new), fail_on)
    if comparison.not_audited or not comparison.new["sites"]:
        return comparison, NOT_AUDITED
    return comparison, FINDINGS if at_or_above(comparison.counted, fail_on) else CLEAN


def _run(path: Path) -> Run:
    """Read a saved run.

    Raises
    ------
    LnauditError
        If it cannot be read, or is none that can be compared.
    """
    from ..comparison import Run
    from ..pipeline.saving import KIND, load_json
    from ..report import Report, SweepReport

    source = path.as_posix()
    document = load_json(path, source)
    if document.get("kind") in SweepReport.KINDS:
        raise LnauditError("is a sweep", "only scans and checks can be compared", source)
    if document.get("kind") == KIND:
        return Run(source=source, report=_judged(document, source))
    return Run(source=source, report=Report.from_dict(document, source))


def _judged(document: dict[str, object], source: str) -> Report:
    """Judge saved statistics as the run that saved them did."""
    from ..pipeline import Settings
    from ..pipeline.rejudging import rejudge_all
    from ..pipeline.saving import read_saved
    from ..policy import Accepted, Policy, SiteWords
    from ..report import Report

    saved = read_saved(document, source)
    by = dict(saved.judged_by)
    sites = tuple(SiteWords(pattern=pattern, share=share) for pattern, share in by.pop("site_shares").items())
    by.update(select=tuple(by["select"]), ignore=tuple(by["ignore"]))
    by["accepted"] = tuple(Accepted(pattern=p, code=code, reason=why) for p, code, why in by["accepted"])
    policy = Policy(**by, sites=sites)
    report = rejudge_all(saved, source, Settings(policy=policy, formats=()))
    return Report.from_dict(report.to_dict(), source)


def _refused(error: LnauditError, paths: tuple[Path, Path], fail_on: str) -> Comparison:
    """Say in one line why nothing can be compared; return a comparison of nothing."""
    from ..comparison import nothing_of
    from ..site import NotAudited
    from ..wording import printable

    typer.echo(f"lnaudit: {printable(str(error))}", err=True)
    failure = NotAudited(source=error.source, reason=error.reason)
    return nothing_of(paths[0].as_posix(), paths[1].as_posix(), fail_on, failure)


def _rendered(comparison: Comparison, output_format: str, color: str, ascii: bool) -> str:
    from ..render import Style, terminal_width
    from ..render.diff import render_diff, render_diff_json

    if output_format == "json":
        return render_diff_json(comparison)
    style = Style(width=terminal_width(), color=wants_color(color), ascii=ascii)
    refused = comparison.new["kind"] is None
    return "" if refused else render_diff(comparison, style)
