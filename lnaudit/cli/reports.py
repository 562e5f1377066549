"""Reports and pictures in files, and curves in the terminal; whether they can be made is asked before an audit runs."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..errors import LnauditError
from ..writing import replacing, unwritable
from .exit_codes import NOT_AUDITED

if TYPE_CHECKING:
    from ..report import Document

# suffix -> what the file is made with
NEEDED = {".html": ("jinja2", "matplotlib"), ".svg": ("matplotlib",), ".png": ("matplotlib",)}
_EXTRA = ("needs the extra report", "pip install 'lnaudit[report]'")


def check_reports(paths: Sequence[Path] | None) -> None:
    """Refuse reports that could not be written, before anybody waits for them.

    Raises
    ------
    LnauditError
        If a suffix says nothing, the folder is not there, or the extra `report` is not installed.
    """
    for path in paths or ():
        needed = NEEDED.get(path.suffix.lower())
        if needed is None:
            *most, last = NEEDED
            what = f"cannot be made: the suffix is none of {', '.join(most)} and {last}"
            raise LnauditError(what, "name a page report.html, or a picture", f"--report {path.as_posix()}")
        if not path.parent.is_dir() or path.is_dir():
            what = "is a folder" if path.is_dir() else "cannot be written (no such folder)"
            raise LnauditError(what, "name another place", f"--report {path.as_posix()}")
        _installed(needed, f"--report {path.as_posix()}")


def check_plot(output_format: str) -> None:
    """Refuse curves in the terminal beside formats for machines, and without the extra `report`."""
    if output_format != "table":
        raise LnauditError(f"cannot stand beside --output-format {output_format}", "leave one of them out", "--plot")
    _installed(("uniplot",), "--plot")


def _installed(needed: Sequence[str], option: str) -> None:
    if any(find_spec(name) is None for name in needed):
        raise LnauditError(*_EXTRA, option)


def write_reports(document: Document, paths: Sequence[Path] | None) -> None:
    """Write a report as pages and pictures, each under a temporary name that is then renamed.

    Raises
    ------
    LnauditError
        If a file cannot be written, or if a picture is asked for of what takes several.
    """
    for path in paths or ():
        try:
            content = _made(document, path)
        except LnauditError as error:
            raise LnauditError(error.what, error.remedy, error.source or path.as_posix()) from None
        try:
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


def deliver(document: Document, paths: Sequence[Path] | None) -> None:
    """Write the reports of a run whose results have been printed; one that cannot be written ends it with exit 2."""
    from ..wording import printable

    try:
        write_reports(document, paths)
    except LnauditError as error:
        typer.echo(f"lnaudit: {printable(str(error))}", err=True)
        raise typer.Exit(NOT_AUDITED) from None
