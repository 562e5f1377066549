"""Response and sensitivity of the family (-t, 0, t), by formula and as kernels give them (design 1)."""

from __future__ import annotations

import numpy as np

from ..arithmetic import Workspace, quiet
from ..engine.output import output_of
from ..engine.rows import Plan
from ..report import ResponseCurve
from ..site import Array, Site
from ..theory import normalize, response, sensitivity

STEP = 2.0**-7  # of t or sqrt(epsilon): five points so far apart are good to about 1e-8, where h' is not lost beside h


def curves(site: Site, plan: Plan) -> list[ResponseCurve]:
    """Return a curve for each point of the plan; none for a site that is not of that family.

    Its mean is 0, so that LayerNorm and RMSNorm are the same.
    """
    if site.family != "antisymmetric":
        return []
    rows = np.concatenate([np.array(block) for _, block in site.rows.blocks(1 << 20)])
    t = rows[:, 2].astype(np.float64)
    return [
        ResponseCurve(
            epsilon=epsilon,
            t=t.tolist(),
            response=[float(h) for h in np.atleast_1d(response(t, epsilon))],
            sensitivity=[float(slope) for slope in np.atleast_1d(sensitivity(t, epsilon))],
            sensitivity_measured=[float(slope) for slope in _slope(t, epsilon)],
            kernels=[
                {"format": fmt.name, "kernel": kernel.name, "response": _last(rows, plan, i, epsilon)}
                for i, (fmt, kernel) in enumerate(plan.results)
            ],
        )
        for epsilon in plan.points
    ]


def _last(rows: Array, plan: Plan, i: int, epsilon: float) -> list[float]:
    """Return the last element of the core of each row."""
    with quiet():
        core = output_of(rows, *plan.results[i], epsilon=epsilon, ws=Workspace())
    return [float(value) for value in core[2]]


def _slope(t: Array, epsilon: float) -> Array:
    """Return the five-point difference of the last element of the exact norm in float64."""

    step = STEP * np.hypot(t, np.sqrt(epsilon))

    def h(k: int) -> Array:
        return normalize(np.multiply.outer(t + k * step, (-1.0, 0.0, 1.0)), epsilon)[:, 2]

    with quiet():
        return np.asarray((8 * (h(1) - h(-1)) - (h(2) - h(-2))) / (12 * step))
