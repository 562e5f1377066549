"""Two saved runs side by side: what changed between them, and what cannot be compared."""

from __future__ import annotations

from .compare import compare_runs
from .model import Change, Comparison, Run, nothing_of

__all__ = ["Change", "Comparison", "Run", "compare_runs", "nothing_of"]
