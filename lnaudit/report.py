"""The report: what was audited and found. Its fields are the keys of the JSON document, version 1 (design 9)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from .findings import Finding
from .site import NotAudited

SCHEMA_VERSION = 1
SIGNIFICANT_DIGITS = 6


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
class Emulation:
    """One site in one format under one kernel, at the epsilon of the site."""

    format: str
    kernel: str
    verdict: str
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
    error: dict[str, Any]
    scale_error_max: float | None
    residual_error_max: float | None
    affine: dict[str, int]
    gradient_overflow_rows: int
    failing_rows: int
    first_bad_operation: dict[str, int]


@dataclass(kw_only=True)
class Result(Emulation):
    """What a scan says of an emulation: which epsilon to use, and what else would help."""

    recommendation: Recommendation
    constants: list[ConstantCost]
    remedies: list[Remedy]


@dataclass(kw_only=True)
class Point:
    """The rows at one epsilon of a sweep, judged as a scan with that epsilon judges them.

    collapse_ratio: exact, of the median row that is not constant. error: of a row, as SweptResult.error_by says.
    output_std: of all elements of the core together, n - 1 in the denominator; None where the sums of squares do not
    tell, as of elements that are nearly alike. codes: what makes the verdict.
    """

    epsilon: float
    epsilon_stored: float
    collapse_ratio: float | None
    error: dict[str, float | None]
    nonfinite_rows: int
    collapsed_rows: int | None
    output_std: float | None
    verdict: str
    codes: list[str]


@dataclass(kw_only=True)
class SweptResult(Emulation):
    """What a sweep says of an emulation.

    error_by: "elements": the error of each row element by element with the output rounding, as in a scan;
    "closed-form": before that rounding, from the statistics of the row (large sites).
    """

    error_by: str
    points: list[Point]


@dataclass(kw_only=True)
class ResponseCurve:
    """The family (-t, 0, t) at one epsilon: its last element by formula and as the kernels give it, and the slope.

    sensitivity_measured: central difference of the norm in float64.
    """

    epsilon: float
    t: list[float]
    response: list[float]
    sensitivity: list[float]
    sensitivity_measured: list[float]
    kernels: list[dict[str, Any]]


@dataclass(kw_only=True)
class SiteFigures:
    """One site."""

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
    collapse_ratio: dict[str, float | None]
    epsilon_dominated_rows: int | None
    gain: dict[str, float | None]
    lipschitz: float
    notes: list[str] = field(default_factory=list)
    overridden: list[str] = field(default_factory=list)
    verdict: str = "pass"


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
class SweptSite(SiteFigures):
    """One site of a sweep; response: of the antisymmetric family only."""

    results: list[SweptResult]
    response: list[ResponseCurve] = field(default_factory=list)


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


@dataclass(kw_only=True)
class Document:
    """What one run found; `to_dict` gives the JSON document."""

    kind: str
    lnaudit_version: str
    config: dict[str, Any]
    summary: dict[str, int]
    not_audited: list[NotAudited]
    findings: list[Finding]
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document as plain objects: no NaN, no Inf, derived figures to 6 significant digits."""
        document = _encode(self)
        assert isinstance(document, dict)
        return {"schema_version": SCHEMA_VERSION, **{key: document[key] for key in _ORDER if key in document}}


@dataclass(kw_only=True)
class Report(Document):
    """Everything a scan found."""

    epsilon: list[ModelEpsilon]
    sites: list[SiteReport]


@dataclass(kw_only=True)
class SweepReport(Document):
    """Everything a sweep found; rules: the names of the codes at its points."""

    sites: list[SweptSite]
    rules: dict[str, str] = field(default_factory=dict)


_ORDER = (
    "kind",
    "lnaudit_version",
    "config",
    "summary",
    "not_audited",
    "epsilon",
    "sites",
    "findings",
    "rules",
    "notes",
)
# what a user gave or a file holds is reported as it is; everything else is derived
_EXACT = {"epsilon", "epsilon_stored", "model_epsilon", "lower", "upper", "robust", "held", "best_effort"}


def _encode(value: Any, exact: bool = False) -> Any:
    if is_dataclass(value):
        return {f.name: _encode(getattr(value, f.name), f.name in _EXACT) for f in fields(value)}
    if isinstance(value, dict):
        return {str(key): _encode(item, exact or key in _EXACT) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encode(item, exact) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
        return value if exact else float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    return value
