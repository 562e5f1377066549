"""From sites to a report: rows -> Summary -> recommendation -> findings -> remedies."""

from __future__ import annotations

from .scanning import audit_site, run
from .settings import Settings
from .sweeping import sweep

__all__ = ["Settings", "audit_site", "run", "sweep"]
