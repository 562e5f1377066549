"""The figures of a site and of an emulation, which a scan and a sweep share."""

from __future__ import annotations

from typing import Any

from ..advice.window import held
from ..formats import Format
from ..kernels import Kernel
from ..report import Cast
from ..site import Site, count_nonfinite
from ..summary import OPERATIONS, ResultSummary, Summary
from ..theory import largest_finite, lipschitz_bound

BIN_BITS = 2  # four bins for each power of two
VERDICTS = {"error": "fail", "warning": "warn"}


def site_figures(site: Site, summary: Summary) -> dict[str, Any]:
    """Return the fields of SiteFigures."""
    counts, rows = summary.input.counts, site.rows
    some = counts["varying_rows"] > 0
    return {
        "name": site.name,
        "source": site.source,
        "dtype": rows.dtype.name,
        "shape": list(rows.shape),
        "axis": rows.axis if isinstance(rows.axis, int) else list(rows.axis),
        "features": rows.features,
        "rows": rows.rows,
        "norm": site.norm,
        "epsilon": site.epsilon,
        "epsilon_source": site.epsilon_source,
        "input": {
            "nan": counts["nan"],
            "inf": counts["inf"],
            "finite_rows": counts["finite_rows"],
            "nan_rows": counts["nan_rows"],
            "partly_nan_rows": counts["partly_nan_rows"],
            "inf_rows": counts["inf_rows"],
            "zero_rows": counts["zero_rows"],
            "constant_rows": counts["constant_rows"],
            "max_abs": summary.input.extremes.value("max_abs"),
        },
        "parameters": _parameters(site),
        "variance": summary.input.variance.quantiles(min=0, p01=0.01, p50=0.5, p99=0.99, max=1),
        "variance_bins": summary.input.variance.bins(BIN_BITS),
        "collapse_ratio": summary.input.collapse_ratio(summary.plan.model_epsilon, min=0, p01=0.01, p50=0.5),
        "epsilon_dominated_rows": counts["epsilon_dominated_rows"] if some else None,
        "gain": {
            **summary.input.gain.quantiles(p50=0.5, max=1),
            "radial_max": summary.input.extremes.value("radial_gain"),
        },
        "lipschitz": lipschitz_bound(site.epsilon, site.weight),
        "notes": list(rows.notes),
        "overridden": list(site.overridden),
        "limits": {fmt.name: summary.plan.limit_of(fmt) for fmt, _ in summary.plan.results},
    }


def _parameters(site: Site) -> dict[str, Any]:
    return {
        "weight": site.weight is not None,
        "bias": site.bias is not None,
        "weight_nonfinite": count_nonfinite(site.weight),
        "bias_nonfinite": count_nonfinite(site.bias),
        "max_abs_weight": None if site.weight is None else largest_finite(site.weight),
    }


def verdict_of(severity: str | None) -> str:
    """Return the verdict that the worst finding of an emulation makes: fail, warn or pass."""
    return VERDICTS.get(severity or "", "pass")


def emulation_figures(summary: Summary, i: int, severity: str | None) -> dict[str, Any]:
    """Return the fields of Emulation; `severity` is that of the worst finding."""
    fmt, kernel = summary.plan.results[i]
    result, counts = summary.results[i], summary.results[i].counts
    value, kind = held(summary.plan.model_epsilon, fmt, kernel)
    peak = result.extremes.value("peak")
    change = value / summary.plan.model_epsilon - 1 if summary.plan.model_epsilon > 0 else None
    some = summary.input.counts["varying_rows"] > 0
    return {
        "format": fmt.name,
        "kernel": kernel.name,
        "verdict": verdict_of(severity),
        "epsilon_stored": value,
        "epsilon_class": kind,
        "epsilon_change": change,
        "cast": Cast(
            overflow_rows=counts["overflow_rows"],
            overflow=counts["overflow"],
            underflow=counts["underflow"],
            subnormal=counts["subnormal"],
            destroyed_rows=counts["destroyed_rows"],
            error_max=result.extremes.value("cast_error"),
        ),
        "peak": peak,
        "headroom": None if peak is None else 1 - peak,
        "variance_zero_rows": counts["variance_zero_rows"] if some else None,
        "variance_nonfinite_rows": counts["variance_nonfinite_rows"],
        "variance_negative_rows": counts["variance_negative_rows"],
        "variance_error": result.variance_error.quantiles(p50=0.5, max=1),
        "collapse_ratio": result.ratio.quantiles(min=0, p50=0.5),
        "nan": counts["nan"],
        "inf": counts["inf"],
        "nonfinite_rows": counts["nonfinite_rows"],
        "collapsed_rows": counts["collapsed_rows"] if some else None,
        "error": {**result.error.quantiles(p50=0.5, p99=0.99, max=1), "max_row": result.extremes.row("error")},
        "scale_error_max": result.extremes.value("scale_error"),
        "residual_error_max": result.extremes.value("residual_error"),
        "affine": {
            "nan": counts["affine_nan"],
            "inf": counts["affine_inf"],
            "nonfinite_rows": counts["affine_nonfinite_rows"],
        },
        "noise": result.noise.quantiles(p50=0.5, p99=0.99, max=1),
        "range": _range(fmt, kernel),
        "gradient_overflow_rows": counts["gradient_overflow_rows"],
        "failing_rows": counts["failing_rows"],
        "first_bad_operation": _operations(result),
    }


def _range(fmt: Format, kernel: Kernel) -> dict[str, float]:
    """Return between which numbers the kernel holds the variance with epsilon added."""
    held_in = kernel.stages(fmt).plus_epsilon
    return {"smallest": held_in.smallest_subnormal, "normal": held_in.smallest_normal, "max": held_in.max}


def _operations(result: ResultSummary) -> dict[str, int]:
    totals = dict.fromkeys(OPERATIONS, 0)
    for (_, operation), rows in result.operations.items():
        totals[operation] += rows
    return totals
