"""Which epsilon to set, and what else helps: nothing is advised that was not run."""

from __future__ import annotations

from .remedies import offer, weakest_clean_kernel
from .trials import Trials
from .window import CONSTANTS, Choice, candidates, choose, common_choice, recommend

__all__ = [
    "CONSTANTS",
    "Choice",
    "Trials",
    "candidates",
    "choose",
    "common_choice",
    "offer",
    "recommend",
    "weakest_clean_kernel",
]
