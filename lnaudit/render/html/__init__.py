"""A report as one self-contained page: no network, and no script needed to read it."""

from __future__ import annotations

from .page import render_html

__all__ = ["render_html"]
