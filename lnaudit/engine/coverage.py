"""What the compiled engine covers: the rest is analysed by the numpy engine."""

from __future__ import annotations

from functools import cache

import numpy as np

from ..formats import Format
from ..kernels import Kernel
from .rows import Plan

SUMMED = ("tree", "serial")  # orders of sums that the loops know


def covers(fmt: Format, kernel: Kernel, plan: Plan) -> bool:
    """Whether the compiled loops run a kernel in a format.

    Sums by halves or from left to right, two passes or one, nothing fused, flushed or scaled before it is summed, the
    mean taken off before the scaling, all stages in one carrier, weight and bias after all of it and finite.
    """
    affine = plan.weight is not None or plan.bias is not None
    return not plan.prescale and _runs(fmt, kernel, plan.rms, affine) and (not affine or bool(np.all(plan.defined)))


@cache
def _runs(fmt: Format, kernel: Kernel, rms: bool, affine: bool) -> bool:
    at = kernel.stages(fmt)
    statistics = (at.sum, at.square_sum, at.mean, at.diff, at.square, at.variance)
    stages = (at.T, *statistics, at.rstd, at.normalized, at.affine, at.output)
    return (
        len({stage.carrier for stage in stages}) == 1
        and not any(stage.flushes for stage in (*stages, at.plus_epsilon))
        and kernel.order_of_squares in SUMMED
        and (rms or (kernel.reduction in SUMMED and kernel.algorithm in ("two_pass", "one_pass")))
        and kernel.mean_scale != "terms"
        and not kernel.fuses_statistics
        and not kernel.shifts(rms)
        and (not affine or (kernel.association in ("div", "sub_mul", "scale_shift") and not kernel.fuses_apply))
    )
