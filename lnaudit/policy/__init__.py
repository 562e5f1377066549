"""The policy: what a project ships and accepts, from pyproject.toml or lnaudit.toml."""

from __future__ import annotations

from .load import find_policy, read_policy
from .model import Policy, SiteWords

__all__ = ["Policy", "SiteWords", "find_policy", "read_policy"]
