"""Reports and pictures in files, and curves in the terminal; whether they can be made is asked before an audit runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..errors import LnauditError
from ..wording import printable
from ..writing import replacing, unwritable
from .exit_codes import NOT_AUDITED
from .targets import replaced_bytes

if TYPE_CHECKING:
    from types import SimpleNamespace as Words

    from ..report import Document

# suffix -> what the file is made with
NEEDED = {".html": ("jinja2", "matplotlib"), ".svg": ("matplotlib",), ".png": ("matplotlib",)}
_DUMP = b"\x93NUMPY"  # how an .npy file begins
_EXTRA = ("needs the extra report", "pip install 'lnaudit[report]'")


def check_reports(paths: Sequence[Path] | None) -> None:
    """Refuse reports that could not be written, before anybody waits for them.

    Raises
    ------
    LnauditError
        If a suffix says nothing, a file cannot be written or holds data, or the extra `report` is not installed or does
        not start.
    """
    for path in paths or ():
        needed = NEEDED.get(path.suffix.lower())
        if needed is None:
            *most, last = NEEDED
            what = f"cannot be made: the suffix is none of {', '.join(most)} and {last}"
            raise LnauditError(what, "name a page report.html, or a picture", f"--report {path.as_posix()}")
        source = f"--report {path.as_posix()}"
        if replaced_bytes(path, source) and _holds_data(path):
            raise LnauditError("is no report and would be lost", "name another file", source)
        _installed(needed, source)
        _draws(source)


def _holds_data(path: Path) -> bool:
    """Whether a file is a dump or another document of lnaudit, whatever it is called: a manifest may name it."""
    from ..readers.documents import kind_of

    try:
        with path.open("rb") as file:
            return file.read(len(_DUMP)) == _DUMP or bool(kind_of(path))
    except OSError:  # what cannot be read is not audited either
        return False


def check_plot(output_format: str) -> None:
    """Refuse curves in the terminal beside formats for machines, and without the extra `report`."""
    if output_format != "table":
        raise LnauditError(f"cannot stand beside --output-format {output_format}", "leave one of them out", "--plot")
    _installed(("uniplot",), "--plot")


def _installed(needed: Sequence[str], option: str) -> None:
    if any(find_spec(name) is None for name in needed):
        raise LnauditError(*_EXTRA, option)


def _draws(option: str) -> None:
    """Import what draws all reports: its configuration may keep it from starting."""
    from ..pictures.library import load_figure

    try:
        load_figure()
    except LnauditError as error:
        raise LnauditError(error.what, error.remedy, option) from None


def write_reports(document: Document, paths: Sequence[Path] | None, *, verbose: bool = False) -> None:
    """Write a report as pages and pictures, each under a temporary name that is then renamed; say so if `verbose`.

    Raises
    ------
    LnauditError
        If a file cannot be written, or if a picture is asked for of what takes several.
    """
    for path in paths or ():
        if verbose:
            typer.echo(f"lnaudit: writing {printable(path.as_posix())}", err=True)
        try:
            content = _made(document, path)
        except LnauditError as error:
            raise LnauditError(error.what, error.remedy, error.source or path.as_posix()) from None
        try:
            # what a link leads to is written, not the link replaced
            with replacing(path, "xb") as file:
                file.write(content)
        except OSError as error:
            raise unwritable(error, path.as_posix()) from None


def _made(document: Document, path: Path) -> bytes:
    """Return what a file holds; its suffix says what that is."""
    suffix = path.suffix.lower()
    if suffix == ".html":
        from ..render.html import render_html

        return render_html(document).encode()
    from ..pictures import picture_for, to_png, to_svg

    picture = picture_for(document)
    return to_png(picture) if suffix == ".png" else to_svg(picture).encode()


@contextmanager
def delivered(document: Document, words: Words) -> Iterator[None]:
    """Write the reports of a run after its results are printed, even if stdout takes no more."""
    try:
        yield
    except typer.Exit:
        deliver(document, words.report, verbose=words.verbose)
        raise
    deliver(document, words.report, verbose=words.verbose)


def deliver(document: Document, paths: Sequence[Path] | None, *, verbose: bool = False) -> None:
    """Write the reports of a run; one that cannot be written ends it with exit 2."""
    try:
        write_reports(document, paths, verbose=verbose)
    except LnauditError as error:
        typer.echo(f"lnaudit: {printable(str(error))}", err=True)
        raise typer.Exit(NOT_AUDITED) from None
