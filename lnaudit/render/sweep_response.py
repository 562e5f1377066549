"""Response and sensitivity of the family (-t, 0, t) beside the closed form: a table an epsilon."""

from __future__ import annotations

from typing import Any

from .. import wording
from ..report import ResponseCurve, SweptSite
from .style import Style
from .sweep_table import column_name

_INDENT = "  "


def response_lines(site: SweptSite, style: Style) -> list[list[str]]:
    """Return the tables of a site; none for a site that is not of that family."""
    if not site.response:
        return []
    legend = style.wrap(
        "Response: last element of the norm of (-t, 0, t): h(t) = t/sqrt(2t^2/3+eps), which tends to sqrt(3/2) = "
        "1.22474, and as each kernel gives it. Sensitivity: h'(t) = eps/(2t^2/3+eps)^(3/2), and the central "
        "difference of the norm in float64.",
        _INDENT,
        _INDENT,
    )
    return [legend, *(_table(curve, site) for curve in site.response)]


def _name(kernel: dict[str, Any], site: SweptSite) -> str:
    return next(
        column_name(result, site)
        for result in site.results
        if (result.format, result.kernel) == (kernel["format"], kernel["kernel"])
    )


def _table(curve: ResponseCurve, site: SweptSite) -> list[str]:
    columns = [
        ["t", *map(wording.epsilon, curve.t)],
        ["h(t)", *map(wording.six, curve.response)],
        *([_name(kernel, site), *map(wording.six, kernel["response"])] for kernel in curve.kernels),
        ["h'(t)", *map(wording.six, curve.sensitivity)],
        ["difference", *map(wording.magnitude, curve.sensitivity_measured)],
    ]
    widths = [max(map(len, column)) for column in columns]
    lines = [f"{_INDENT}epsilon {wording.epsilon(curve.epsilon)}"]
    for cells in zip(*columns, strict=True):
        lines.append(_INDENT + "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)))
    return lines
