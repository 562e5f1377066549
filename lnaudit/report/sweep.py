"""What a sweep says of a site, at every epsilon, and of a grid of families."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .figures import Emulation, SiteFigures, Verdict


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
    failing_rows: int
    nonfinite_rows: int
    collapsed_rows: int | None
    output_std: float | None
    verdict: Verdict
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
class SweptSite(SiteFigures):
    """One site of a sweep; response: of the antisymmetric family only."""

    results: list[SweptResult]
    response: list[ResponseCurve] = field(default_factory=list)


@dataclass(kw_only=True)
class VerdictMap:
    """What becomes of a family as two of its parameters vary, in one emulation at one epsilon.

    values: of each of the two parameters. verdicts, errors (of the worst row that is finite), nonfinite_rows, codes:
    for each value of the second a list with an entry for each value of the first.
    """

    family: str
    format: str
    kernel: str
    epsilon: float
    parameters: list[str]
    values: list[list[float]]
    verdicts: list[list[str]]
    errors: list[list[float | None]]
    nonfinite_rows: list[list[int]]
    codes: list[list[list[str]]]
