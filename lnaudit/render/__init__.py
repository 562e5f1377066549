"""From a report to text: a renderer is one function and one line of RENDERERS."""

from __future__ import annotations

from collections.abc import Callable

from ..report import Document, SweepReport
from .concise import render_concise, render_concise_sweep
from .json import render_json
from .style import Style, terminal_width
from .sweep import render_sweep
from .terminal import render_table

# (kind of report, output format) -> renderer
RENDERERS: dict[tuple[str, str], Callable[..., str]] = {
    ("scan", "table"): render_table,
    ("scan", "concise"): render_concise,
    ("scan", "json"): render_json,
    ("sweep", "table"): render_sweep,
    ("sweep", "concise"): render_concise_sweep,
    ("sweep", "json"): render_json,
}


def render(document: Document, output_format: str, style: Style) -> str:
    """Return a report as text."""
    return RENDERERS["sweep" if isinstance(document, SweepReport) else "scan", output_format](document, style)


__all__ = ["RENDERERS", "Style", "render", "render_json", "render_sweep", "render_table", "terminal_width"]
