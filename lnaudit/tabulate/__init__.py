"""From Summaries to the rows of the report."""

from __future__ import annotations

from .scan import result_of, site_of
from .sweep import point_of, swept_result, swept_site

__all__ = ["point_of", "result_of", "site_of", "swept_result", "swept_site"]
