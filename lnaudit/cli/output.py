"""Results on stdout, errors on stderr, and the exit codes that go with them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import typer

from ..errors import LnauditError
from ..findings import at_or_above
from ..writing import replacing, unwritable
from .exit_codes import CLEAN, FINDINGS, NOT_AUDITED

if TYPE_CHECKING:
    from ..render import Style
    from ..report import Document, Report


class Look(Protocol):
    """How results are to look."""

    ascii: bool
    color: str
    quiet: bool


def write(document: Document, output_format: str, look: Look) -> None:
    """Name what could not be audited on stderr, and write a report to stdout."""
    from ..render import render
    from ..wording import printable

    for failure in document.not_audited:
        where = f"{printable(failure.source)}: " if failure.source else ""
        typer.echo(f"lnaudit: {where}{failure.reason}", err=True)
    write_out(render(document, output_format, style_of(look)))


def style_of(look: Look) -> Style:
    """Return how results are to look on what stdout is."""
    from ..render import Style, terminal_width

    return Style(
        width=terminal_width(), color=wants_color(look.color), ascii=look.ascii, curves=_curves(), quiet=look.quiet
    )


def wants_color(when: str) -> bool:
    """Whether to colour what goes to stdout; `auto` asks the environment in the order that rich has."""
    if when != "auto":
        return when == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "").lower() in ("dumb", "unknown"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def _curves() -> bool:
    """Whether stdout can say the characters of curves."""
    try:
        "\u2588".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def exit_code(report: Report, fail_on: str) -> int:
    """Return how an audit ends: what was not seen may be worse than what was found."""
    if report.not_audited or not report.sites:
        return NOT_AUDITED
    return FINDINGS if at_or_above(report.findings, fail_on) else CLEAN


def refuse(error: LnauditError, kind: str, words: Any) -> NoReturn:
    """End a run that could not begin: one line on stderr, and a document where one was asked for."""
    from ..wording import printable
    from .environment import blamed

    error = blamed(error, words.variables)
    typer.echo(f"lnaudit: {printable(str(error))}", err=True)
    if words.output_format == "json":
        write_out(refused(error.reason, error.source, kind))
    raise typer.Exit(NOT_AUDITED)


def refused(reason: str, source: str, kind: str = "scan") -> str:
    """Return the JSON document of a run that could not begin or ended in a crash."""
    from ..comparison import nothing_of
    from ..pipeline import Settings, run, sweep
    from ..render import Style, render
    from ..render.diff import render_diff_json
    from ..render.rules import rules_json
    from ..site import NotAudited

    nothing = [NotAudited(source=source, reason=reason)]
    if kind == "rule":
        return rules_json((), nothing)
    if kind == "diff":
        return render_diff_json(nothing_of("", "", "never", nothing[0]))
    document = sweep(nothing, Settings(), ()) if kind == "sweep" else run(nothing, Settings(), kind)
    return render(document, "json", Style())


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


def write_file(path: Path, lines: Iterable[str]) -> None:
    """Write a text file under a temporary name in the same folder, then rename.

    Raises
    ------
    LnauditError
        If it cannot be written; then nothing is left behind.
    """
    try:
        with replacing(path, "x", encoding="utf-8") as file:
            file.writelines(lines)
    except OSError as error:
        raise unwritable(error, path.as_posix()) from None


def _forget_stdout() -> None:
    """Let nothing try again to write what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
