"""From a Report to text: a renderer is one function and one line of RENDERERS."""

from __future__ import annotations

from collections.abc import Callable

from ..report import Report
from .json import render_json
from .style import Style, terminal_width
from .terminal import render_table

RENDERERS: dict[str, Callable[[Report, Style], str]] = {"table": render_table, "json": render_json}

__all__ = ["RENDERERS", "Style", "render_json", "render_table", "terminal_width"]
