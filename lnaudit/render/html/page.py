"""From a report to a page: the template laid over what there is to say."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from ...errors import LnauditError
from ...pictures import report_extra
from ...report import Document, Report, SweepReport
from .parts import Page, said
from .scan import scan_page
from .sweep import sweep_page

if TYPE_CHECKING:
    from jinja2 import Environment


def render_html(document: Document) -> str:
    """Return a report as one page of HTML, the same bytes for the same report.

    It holds all that it needs, and loads nothing. Names of sites and files stay text, whatever they look like.

    Raises
    ------
    LnauditError
        If the extra `report` is not installed, or the document is neither a scan, a check nor a sweep.
    """
    environment = _environment()
    script = _text("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    template = environment.get_template("page.html.j2")
    return template.render(page=_page(document), style=_text("style.css"), script=script, script_hash=digest) + "\n"


def _page(document: Document) -> Page:
    if isinstance(document, SweepReport):
        return sweep_page(document)
    if isinstance(document, Report):
        return scan_page(document)
    raise LnauditError("is no scan, check or sweep", "make a page of one of these", document.kind)


@cache
def _environment() -> Environment:
    with report_extra():
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    return Environment(
        loader=FunctionLoader(_text),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _text(name: str) -> str:
    """Return a file that stands beside this one in the package."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _finalize(value: Any) -> Any:
    """Escape what is no printable character in every text but what is markup already; HTML is escaped after that."""
    return said(value) if type(value) is str else value
