"""`lnaudit check`: the gate: audit dumps, or judge saved statistics again, under the policy of the project."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import LnauditError
from ..wording import printable
from . import output
from .auditing import Words, audit, audits, check_words, find, policy_from, scan_settings
from .reports import delivered
from .request import runtime_notes
from .shown import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..baseline import Known
    from ..pipeline import Settings
    from ..policy import Policy
    from ..report import Report

# options that concern rows, and what they are where nothing is said
ABOUT_ROWS = {
    **dict.fromkeys(("eps", "compare_eps", "axis", "norm", "weight", "bias", "dtype", "field", "save_stats")),
    "ftz": "none",
    "loss_scale": 1.0,
    "verify": "witness",
}
NOT_WRITTEN = "no baseline was written, for not everything could be audited; mend that first"
NAME_THEM = (
    "Every default format and kernel was judged. Name those that you ship, in pyproject.toml: [tool.lnaudit] "
    "formats = [...], kernels = [...] or runtime = [...]."
)


@audits()
def check(
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Files, quoted globs, folders, or one file of statistics.")
    ],
    words: Words,
    baseline: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Findings that are known pass; new ones, and those that became more than a tenth worse, fail.",
        ),
    ] = None,
    write_baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what was found, to be known next time.")
    ] = None,
) -> None:
    """Gate: audit dumps under the policy in [tool.lnaudit], or judge what lnaudit scan --save-stats has saved.

    Fails on errors unless the policy says otherwise.
    """
    try:
        check_words(words, paths, baseline, write_baseline)
        policy = policy_from(words)
        settings = scan_settings(words, policy, gates=True)
        if words.show_settings:
            output.write_out(shown(words, policy, settings, gates=True))
            return
        known = None if baseline is None else _read_baseline(baseline)
        report = _judged(paths, words, settings)
        if known is not None:
            _compare(report, known, baseline, policy.selects)
        if write_baseline is not None and _whole(report):
            _write_baseline(write_baseline, report)
    except LnauditError as error:
        output.refuse(error, "check", words)
    report.notes[:0] = runtime_notes(words.runtime)
    with delivered(report, words):
        output.write(report, words.output_format, words)
        if write_baseline is not None and not _whole(report):
            typer.echo(f"lnaudit: {printable(write_baseline.as_posix())}: {NOT_WRITTEN}", err=True)
        hint = words.output_format == "table" and not words.quiet
        if hint and not _named(words, policy) and _judged_by_default(report):
            output.write_out(f"{NAME_THEM}\n")
    raise typer.Exit(output.exit_code(report, settings.config["fail_on"]))


def _named(words: Words, policy: Policy) -> bool:
    """Whether anything says which formats or kernels are shipped."""
    return any((policy.formats, policy.kernels, policy.runtimes, words.format, words.kernel, words.runtime))


def _judged_by_default(report: Report) -> bool:
    """Whether every default format and kernel was judged: statistics may hold others, and there may be no site."""
    from ..formats import DEFAULT_FORMATS

    defaults = [fmt.name for fmt in DEFAULT_FORMATS]
    return bool(report.sites) and report.config["formats"] == defaults and report.config["kernels"] is None


def _judged(paths: list[str], words: Words, settings: Settings) -> Report:
    """Audit dumps, or judge the statistics of one file again."""
    from ..pipeline.saving import KIND, load_json
    from ..readers.documents import kind_of

    first, *others = paths
    saved = next((path for path in (first, *others) if kind_of(Path(path)) == KIND), None)
    if saved is not None and others:
        raise LnauditError("holds statistics, which are judged alone", f"lnaudit check {saved}", saved)
    if saved is not None:
        return _again(load_json(Path(saved), saved), saved, words, settings)
    if not others and first.lower().endswith(".json") and Path(first).is_file():
        load_json(Path(first), first)  # says what is wrong with it as JSON
    return audit(find(paths, words), settings, "check", words)


def _again(document: dict[str, object], source: str, words: Words, settings: Settings) -> Report:
    from ..pipeline.rejudging import rejudge_all
    from ..pipeline.saving import read_saved

    said = {**vars(words), "loss_scale": settings.loss_scale}
    for option, unsaid in ABOUT_ROWS.items():
        if said[option] != unsaid:
            raise LnauditError(
                "concerns rows, which statistics do not hold", "check the dumps", f"--{option.replace('_', '-')}"
            )
    named = bool(words.format or settings.policy.formats)
    return rejudge_all(
        read_saved(document, source), source, replace(settings, formats=settings.formats if named else ())
    )


def _read_baseline(path: Path) -> dict[tuple[str, str, str, str], Known]:
    from ..baseline import from_document
    from ..pipeline.saving import load_json

    return from_document(load_json(path, path.as_posix()), path.as_posix())


def _compare(
    report: Report, known: dict[tuple[str, str, str, str], Known], path: Path | None, selects: Callable[[str], bool]
) -> None:
    """Mark the findings that are known and say what is new and what has vanished."""
    from ..baseline import change, compare, named

    compared = compare(report, known, selects)
    new = {id(finding) for finding in compared.counted}
    report.findings[:] = [replace(finding, known=id(finding) not in new) for finding in report.findings]
    said = f"baseline {path}: {compared.known} known, {len(compared.counted)} new or worse"
    elsewhere = f", {compared.elsewhere} about what was not judged here" if compared.elsewhere else ""
    report.notes.append(f"{said}, {len(compared.vanished)} vanished{elsewhere}")
    report.notes += [f"worse: {named(key)}: {change(old, new)}" for key, old, new in compared.worse]
    report.notes += [f"vanished: {named(key)}" for key in compared.vanished]


def _whole(report: Report) -> bool:
    """Whether all was audited and there was something: findings of less would be a poorer baseline."""
    return bool(report.sites) and not report.not_audited


def _write_baseline(path: Path, report: Report) -> None:
    from ..baseline import entries, to_text

    output.write_file(path, [to_text(entries(report))])
