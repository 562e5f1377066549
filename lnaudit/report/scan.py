"""What a scan says of a site: which epsilon to use, and what else would help."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .. import wording
from .figures import Emulation, SiteFigures


@dataclass(kw_only=True)
class Recommendation:
    """The epsilon to use. `epsilon` is None where none is safe; `best_effort` is then the least bad, never advice."""

    epsilon: float | None
    lower: float | None
    upper: float | None
    robust: float | None
    reason: str
    verified: str | bool
    verified_rows: int
    total_error: float | None
    distortion: dict[str, float | None]
    best_effort: float | None = None

    @property
    def use(self) -> str:
        """Say which epsilon to use: keep, a number or none; a question mark if it was not verified."""
        if self.epsilon is None:
            return "none"
        text = "keep" if self.reason == "keeps" else wording.epsilon(self.epsilon)
        return text if self.verified else f"{text}?"


@dataclass(kw_only=True)
class ConstantCost:
    """A circulating epsilon: what the kernel holds, the rows it fails, its cost in the normalized scale."""

    epsilon: float
    held: float
    failing_rows: int
    distortion_max: float | None


@dataclass(kw_only=True)
class Remedy:
    """A change that was emulated: kind is epsilon, prescale, kernel or format; cures: codes that it takes away."""

    kind: str
    detail: str
    verified: str | bool
    error_max: float | None
    rows: int = 0
    cures: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class Result(Emulation):
    """What a scan says of an emulation: which epsilon to use, and what else would help."""

    recommendation: Recommendation
    constants: list[ConstantCost]
    remedies: list[Remedy]


@dataclass(kw_only=True)
class Disagreement:
    """The two programs and the row that differ most in a format; rms of the core's difference, Inf if one is lost."""

    format: str
    kernels: list[str]
    row: int
    rms: float


@dataclass(kw_only=True)
class SiteReport(SiteFigures):
    """One site of a scan."""

    weakest_clean_kernel: dict[str, str | None]
    weakest_clean_kernel_verified: dict[str, str]
    results: list[Result]
    disagreements: list[Disagreement] = field(default_factory=list)


@dataclass(kw_only=True)
class ModelEpsilon:
    """One epsilon for all sites with the same epsilon of the model; `sites` are those that bind it."""

    format: str
    kernel: str
    model_epsilon: float
    epsilon: float | None
    lower: float | None
    upper: float | None
    sites: list[str]
    site_count: int
