"""What a scan and a sweep say alike: the figures of a site and of an emulation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

Verdict = Annotated[str, ("fail", "warn", "pass")]


@dataclass(kw_only=True)
class Cast:
    """What the cast to the format alone does: rows and elements over finite rows; error_max is G."""

    overflow_rows: int
    overflow: int
    underflow: int
    subnormal: int
    destroyed_rows: int
    error_max: float | None


@dataclass(kw_only=True)
class Emulation:
    """One site in one format under one kernel, at the epsilon of the site.

    noise: what rounding before the normalization adds to a row, mean((v_hat - v)^2), in units of the file's variances,
    over rows that are not constant. range: of the numbers that can hold variance + epsilon.
    """

    format: str
    kernel: str
    verdict: Verdict
    epsilon_stored: float
    epsilon_class: str
    epsilon_change: float | None
    cast: Cast
    peak: float | None
    headroom: float | None
    variance_zero_rows: int | None
    variance_nonfinite_rows: int
    variance_negative_rows: int
    variance_error: dict[str, float | None]
    collapse_ratio: dict[str, float | None]
    nan: int
    inf: int
    nonfinite_rows: int
    collapsed_rows: int | None
    error: dict[str, int | float | None]
    scale_error_max: float | None
    residual_error_max: float | None
    affine: dict[str, int]
    gradient_overflow_rows: int
    noise: dict[str, float | None]
    range: dict[str, float]
    failing_rows: int
    first_bad_operation: dict[str, int]


@dataclass(kw_only=True)
class SiteFigures:
    """One site.

    variance_bins: lower and upper ends of bins of variances, and how many rows are in each. limits: accepted row error
    by format, before the cast widens it. anchor: the line of source
    that it stands for, by the policy.
    """

    name: str
    source: str
    dtype: str
    shape: list[int]
    axis: int | list[int]
    features: int
    rows: int
    norm: str
    epsilon: float
    epsilon_source: str
    input: dict[str, Any]
    parameters: dict[str, Any]
    variance: dict[str, float | None]
    variance_bins: dict[str, list[Any]]
    collapse_ratio: dict[str, float | None]
    epsilon_dominated_rows: int | None
    gain: dict[str, float | None]
    lipschitz: float
    notes: list[str] = field(default_factory=list)
    overridden: list[str] = field(default_factory=list)
    limits: dict[str, float] = field(default_factory=dict)
    anchor: str | None = None
    verdict: Verdict = "pass"

    @property
    def judged(self) -> bool:
        """Whether there was a row to judge: a site without a finite one has no verdict."""
        return bool(self.input["finite_rows"])
