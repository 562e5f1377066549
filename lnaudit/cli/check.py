"""`lnaudit check`: the gate: audit dumps, or judge saved statistics again, under the policy of the project."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import LnauditError
from . import output
from .auditing import Words, audit, audits, check_words, find, policy_from, scan_settings
from .policies import shown
from .reports import deliver
from .request import runtime_notes

if TYPE_CHECKING:
    from ..baseline import Known
    from ..pipeline import Settings
    from ..policy import Policy
    from ..report import Report

ERROR = "error"
# options that concern rows, and what they are where nothing is said
ABOUT_ROWS = {
    **dict.fromkeys(("eps", "compare_eps", "axis", "norm", "weight", "bias", "dtype", "field", "save_stats")),
    "ftz": "none",
    "loss_scale": "1",
    "verify": "witness",
}
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
        check_words(words)
        policy = policy_from(words)
        settings = scan_settings(words, policy, ERROR)
        if words.show_settings:
            output.write_out(shown(policy, settings.config))
            return
        known = None if baseline is None else _read_baseline(baseline)
        report = _judged(paths, words, settings)
        if known is not None:
            _compare(report, known, baseline)
        if write_baseline is not None:
            _write_baseline(write_baseline, report)
    except LnauditError as error:
        output.refuse(error, "check", words.output_format)
    report.notes[:0] = runtime_notes(words.runtime)
    output.write(report, words.output_format, words)
    hint = words.output_format == "table" and not words.quiet
    if hint and not _named(words, policy) and _judged_by_default(report):
        output.write_out(f"{NAME_THEM}\n")
    deliver(report, words.report)
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

    files = [path for path in paths if path.lower().endswith(".json") and Path(path).is_file()]
    if files and len(paths) == 1:
        document = load_json(Path(files[0]), files[0])
        if document.get("kind") == KIND:
            return _again(document, files[0], words, settings)
    return audit(find(paths, words), settings, "check", words)


def _again(document: dict[str, object], source: str, words: Words, settings: Settings) -> Report:
    from ..pipeline.rejudging import rejudge_all
    from ..pipeline.saving import read_saved

    for option, unsaid in ABOUT_ROWS.items():
        if getattr(words, option) != unsaid:
            raise LnauditError(
                "concerns rows, which statistics do not hold", "check the dumps", f"--{option.replace('_', '-')}"
            )
    said = bool(words.format or settings.policy.formats)
    return rejudge_all(
        read_saved(document, source), source, replace(settings, formats=settings.formats if said else ())
    )


def _read_baseline(path: Path) -> dict[tuple[str, str, str, str], Known]:
    from ..baseline import from_document
    from ..pipeline.saving import load_json

    return from_document(load_json(path, path.as_posix()), path.as_posix())


def _compare(report: Report, known: dict[tuple[str, str, str, str], Known], path: Path | None) -> None:
    """Mark the findings that are known and say what is new and what has vanished."""
    from ..baseline import compare

    compared = compare(report, known)
    new = {id(finding) for finding in compared.counted}
    report.findings[:] = [replace(finding, known=id(finding) not in new) for finding in report.findings]
    said = f"baseline {path}: {compared.known} known, {len(compared.counted)} new or worse"
    report.notes.append(f"{said}, {len(compared.vanished)} vanished")
    report.notes += [f"vanished: {' '.join(filter(None, key))}" for key in compared.vanished]


def _write_baseline(path: Path, report: Report) -> None:
    from ..baseline import entries, to_text

    output.write_file(path, [to_text(entries(report))])
