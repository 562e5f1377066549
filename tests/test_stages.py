"""The interpreter, stage by stage, against a naive kernel on exact rationals: the dtype of each stage, moved about."""

from __future__ import annotations

import numpy as np
import pytest

from .exact_kernel import PRESETS, ExactKernel
from .oracles import ALL_NAMES, equal
from .test_interpreter import emulate, parameters

DTYPES = ("T", "float32", "float64")
OVERRIDES = {
    **dict.fromkeys(
        ("sum", "square_sum", "mean", "diff", "square", "variance", "rstd", "normalized", "affine", "output"), DTYPES
    ),
    "reduction": ("tree", "serial"),
    "mean_scale": ("divide", "reciprocal", "terms"),
    "epsilon": ("T", "wide", "float32", "float64"),
    "inverse": ("div", "recip_sqrt", "rsqrt"),
}
ALGORITHMS = ("two_pass", "one_pass", "welford")


def moderate_rows(d: int) -> np.ndarray:
    """Return rows of shape (4, d) that stay far from the ends of the ranges."""
    noise = np.random.default_rng([27, d]).standard_normal((4, d)) * [[1.0], [3.0], [0.5], [10.0]]
    noise[1] += 5.0
    return noise


def compare(kernel_name: str, name: str, x: np.ndarray, epsilon: float, *, rms: bool = False) -> None:
    """Assert that every stage agrees to the last bit, row by row."""
    weight, bias = parameters(x.shape[1])
    exact = ExactKernel(kernel_name, name, rms=rms)
    rows = [exact.centre(row) for row in x.tolist()]
    h = np.array([[value for value, _ in row.h] for row in rows]).T
    got = emulate(h, name, kernel_name, rms=rms, epsilons=(epsilon,), weight=weight, bias=bias)
    for i, row in enumerate(rows):
        finished = exact.finish(row, epsilon, weight.tolist(), bias.tolist())
        stages = {
            "mean": (got.mean[i], row.mean[0]),
            "v": (got.v[:, i], [value for value, _ in row.v]),
            "raw_variance": (got.raw_variance[i], row.raw_variance[0]),
            "variance": (got.variance[i], row.variance[0]),
            "inverse": (got.inverse[0][i], finished.inverse),
            "core": (got.core[0][:, i], finished.core),
            "output": (got.output[0][:, i], finished.output),
        }
        for stage, (found, expected) in stages.items():
            assert equal(found, expected), (stage, i)
        maximum = np.abs(finished.core).max()
        assert got.core_maximum[0][i] == maximum or not np.isfinite(maximum)
        assert np.isfinite(got.core_maximum[0][i]) == np.isfinite(maximum)


@pytest.mark.parametrize(
    "override",
    [f"{axis}={value}" for axis, values in OVERRIDES.items() for value in values]
    + [f"variance={algorithm}" for algorithm in ALGORITHMS],
)
@pytest.mark.parametrize("preset", ["native", "fused"])
@pytest.mark.parametrize("name", ALL_NAMES)
def test_one_override_follows_the_rule(name, preset, override):
    """Each axis moved by itself: every operation in the widest dtype of operands and stage, stored in its stage's."""
    compare(f"{preset}:{override}", name, moderate_rows(7), 0.0625)
    compare(f"{preset}:{override}", name, moderate_rows(3), 0.0625, rms=True)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("name", ALL_NAMES)
def test_many_overrides_follow_the_rule(name, seed):
    """Random combinations."""
    rng = np.random.default_rng([28, seed])
    chosen = {axis: rng.choice(values) for axis, values in OVERRIDES.items()}
    algorithm = rng.choice(ALGORITHMS)
    if algorithm == "welford" and chosen["mean_scale"] == "terms":
        chosen["mean_scale"] = "divide"
    if chosen["inverse"] != "div":
        chosen["apply"] = rng.choice(["sub_mul", "scale_shift", "folded", "gamma_rstd_first", "gamma_center_first"])
    fused = ["off", "apply"] if chosen["reduction"] == "tree" else ["off", "stats", "apply", "all"]
    chosen |= {"fma": rng.choice(fused), "flush_subnormals": rng.choice(["none", "float32", "T", "all"])}
    axes = ",".join(f"{axis}={value}" for axis, value in chosen.items())
    kernel = f"{rng.choice(list(PRESETS))}:{axes},variance={algorithm}"
    compare(kernel, name, moderate_rows(7), 0.0625)
    # among the subnormal numbers of float16 and float8, and with a cast that overflows them
    compare(kernel, name, moderate_rows(5) * 2.0**-9, 1e-5)
    compare(kernel, name, moderate_rows(3) * 2.0**11, 1e-5, rms=True)
