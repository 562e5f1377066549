"""The policy: what a project ships and accepts, from pyproject.toml or lnaudit.toml."""

from __future__ import annotations

from .load import find_policy, read_policy
from .model import Accepted, Policy, SiteWords

POLICY = Policy()  # of no file: what lnaudit does by itself

__all__ = ["POLICY", "Accepted", "Policy", "SiteWords", "find_policy", "read_policy"]
