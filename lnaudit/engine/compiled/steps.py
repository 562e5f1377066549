"""How a kernel runs in the loops of `emulation`: rounding constants and flags of its stages."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np

from ...arithmetic import round_number
from ...formats import Format, wider
from ...kernels import Kernel, Stages
from .emulation import Steps
from .rounding import How, how

INVERSES = ("div", "recip_sqrt", "rsqrt")
CLAMPS = ("none", "zero", "zero-nan")


def first_how(carrier: str, *formats: Format) -> How:
    """Return how numbers are rounded to one format after the other; in one carrier only one of them changes any."""
    return next((constants for fmt in formats if (constants := how(fmt, carrier))), ())


def sum_format(at: Stages) -> Format:
    """Return the widest format that takes part in variance + epsilon."""
    return wider(wider(at.variance, at.epsilon), at.plus_epsilon)


@cache
def covers_inverse(fmt: Format, kernel: Kernel, rms: bool) -> bool:
    """Whether the loops run what follows the variance in a kernel, up to the core.

    Epsilon added inside the root, the mean taken off before the scaling, nothing flushed, all stages in one carrier,
    1/sqrt rounded once to less than float64.
    """
    at = kernel.stages(fmt)
    stages = (at.T, at.diff, at.variance, at.plus_epsilon, at.rstd, at.normalized, at.output, sum_format(at))
    return (
        kernel.epsilon_place == "inside"
        and not kernel.shifts(rms)
        and not (kernel.inverse == "rsqrt" and wider(at.plus_epsilon, at.rstd).precision == 53)
        and len({stage.carrier for stage in stages}) == 1
        and not any(stage.flushes for stage in (*stages, at.epsilon))
    )


def inverse_hows(at: Stages, inverse: str) -> dict[str, Any]:
    """Return how the loops take the root and invert it; what does not apply is left empty, to compile less often."""
    carrier, once = at.variance.carrier, wider(at.plus_epsilon, at.rstd)
    return {
        "inverse": flag(INVERSES.index(inverse)),
        "w": first_how(carrier, sum_format(at), at.plus_epsilon),
        "once": how(once, "float64") if inverse == "rsqrt" else (),
        "root": first_how(carrier, once, at.rstd) if inverse != "rsqrt" else (),
        "rstd": how(at.rstd, carrier) if inverse != "div" else (),
    }


@lru_cache
def steps_of(fmt: Format, kernel: Kernel, dtype: str, *, rms: bool, features: int, means: bool, finish: bool) -> Steps:
    """Return how a kernel runs on elements of a dtype; means: of v_hat too; finish: to the core."""
    at, carrier = kernel.stages(fmt), kernel.stages(fmt).T.carrier
    mean_wide, variance_wide = wider(at.sum, at.mean), wider(at.square_sum, at.variance)
    one_pass = kernel.algorithm == "one_pass" and not rms
    inverse = (
        inverse_hows(at, kernel.inverse) if finish else dict.fromkeys(("inverse", "w", "once", "root", "rstd"), ())
    )
    return Steps(
        cast=how(at.T, dtype),
        sum=() if rms else how(at.sum, carrier),
        mean_wide=() if rms else how(mean_wide, "float64"),
        mean=() if rms else how(at.mean, carrier),
        diff=() if rms else how(at.diff, carrier),
        square=how(at.square, carrier),
        term=how(at.square if at.square.precision < at.square_sum.precision else at.square_sum, carrier),
        square_sum=how(at.square_sum, carrier),
        variance_wide=how(variance_wide, "float64"),
        variance=how(at.variance, carrier),
        normalized=how(at.normalized, carrier) if finish else (),
        output=how(at.output, carrier) if finish and at.output is not at.normalized else (),
        serial=flag(kernel.reduction == "serial" and not rms),
        square_serial=flag(kernel.order_of_squares == "serial"),
        mean_reciprocal=() if rms else _reciprocal(kernel, features, at.sum),
        variance_reciprocal=_reciprocal(kernel, features, at.square_sum),
        clamp=flag(CLAMPS.index(kernel.clamp_negative)),
        of_h=flag(one_pass),
        rms=flag(rms),
        low=flag(fmt.precision == 53),
        means=flag(means),
        finish=flag(finish),
        **inverse,
    )


def flag(times: int) -> tuple[int, ...]:
    """Return what asks the loops for something, or leaves it out."""
    return (0,) * times


def _reciprocal(kernel: Kernel, d: int, fmt: Format) -> tuple[Any, ...]:
    if kernel.mean_scale != "reciprocal":
        return ()
    return (np.dtype(fmt.carrier).type(round_number(1 / d, fmt)),)
