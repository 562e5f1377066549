"""`lnaudit scan`: audit dumps."""

from __future__ import annotations

from typing import Annotated

import typer

from ..errors import LnauditError
from . import output
from .auditing import Words, audit, audits, check_words, find, policy_from, scan_settings
from .reports import delivered
from .request import runtime_notes
from .shown import shown


@audits()
def scan(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files, quoted globs, folders, - for stdin.")],
    words: Words,
) -> None:
    """Audit dumps of what enters norm layers: .npy files, globs, directories with or without manifest.json."""
    try:
        check_words(words, paths)
        policy = policy_from(words)
        settings = scan_settings(words, policy, gates=False)
        if words.show_settings:
            output.write_out(shown(words, policy, settings, gates=False))
            return
        found = find(paths, words)
        report = audit(found, settings, "scan", words)
    except LnauditError as error:
        output.refuse(error, "scan", words)
    report.notes[:0] = runtime_notes(words.runtime)
    with delivered(report, words):
        output.write(report, words.output_format, words)
    raise typer.Exit(output.exit_code(report, settings.config["fail_on"]))
