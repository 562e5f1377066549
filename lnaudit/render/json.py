"""The report as one JSON document (design 9), the same bytes for the same report."""

from __future__ import annotations

import json

from ..report import Document
from .style import DEFAULT_STYLE, Style


def render_json(report: Document, style: Style = DEFAULT_STYLE) -> str:
    """Return the JSON document: strict (no NaN, no Infinity), plain ASCII; the style changes nothing."""
    return json.dumps(report.to_dict(), indent=2, allow_nan=False, ensure_ascii=True) + "\n"
