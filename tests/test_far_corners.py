"""Figures at the ends of ranges: weights that round up to overflow, peaks of RMSNorm, gains of tiny and huge rows."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np
import pytest

import lnaudit
from lnaudit import pipeline
from lnaudit.formats import FORMATS
from lnaudit.kernels import get_kernel
from lnaudit.pipeline import sweeping
from lnaudit.site import ArrayRows, Site


def first_large(width: int, value: float) -> np.ndarray:
    weight = np.ones(width)
    weight[0] = value
    return weight


E5M2 = [2, 0.75, -1.25, -0.75, -0.5, -1.25, 1.75, -0.5]
E4M3 = [1.75, 0.5, 0.25, 0.25, -0.75, -0.25, 0.75, 1.5]


@pytest.mark.parametrize(
    ("fmt", "rows", "weight", "epsilon"),
    [
        ("float16", 1e-4 * np.random.default_rng(1).standard_normal((16, 64)), first_large(64, 7e4), 1e-2),
        ("float16", np.zeros((16, 64)), first_large(64, 7e4), 1e-5),
        ("float8_e5m2", np.tile(E5M2, (3, 1)), np.full(8, 36867.0), 1e-5),
        ("float8_e4m3fn", np.tile(E4M3, (3, 1)), np.full(8, 272.1), 1e-5),
    ],
)
def test_a_point_of_a_large_site_sees_weights_that_round_up_to_overflow(
    fmt: str, rows: np.ndarray, weight: np.ndarray, epsilon: float
) -> None:
    """Weight and product both round up: no bound from the unrounded ones holds."""
    settings = pipeline.Settings(formats=(FORMATS[fmt],), kernels=(get_kernel("native"),))
    site = Site(name="a", source="a", rows=ArrayRows(rows.astype(np.float32)), epsilon=epsilon, weight=weight)
    (scanned,) = pipeline.run([site], settings).sites[0].results
    assert scanned.affine["nonfinite_rows"] == len(rows)
    with mock.patch.object(sweeping, "BY_ELEMENTS_BELOW", 0):
        (swept,) = pipeline.sweep([site], settings, (epsilon,)).sites[0].results
    (point,) = swept.points
    assert point.verdict == scanned.verdict == "fail"
    assert "LN107" in point.codes


@pytest.mark.parametrize("kernel", ["native", "fused", "stored-stats", "native:diff=float32"])
def test_the_input_of_rmsnorm_counts_for_the_peak(kernel: str) -> None:
    """60000 of float16's 65504 is 0.916 of the range, whatever dtype v = x is kept in."""
    x = np.full((4, 8), 60000.0, np.float32)
    x[:, ::2] *= -0.9
    report = lnaudit.audit(x, norm="rms", formats=["float16"], kernels=[kernel])
    (result,) = report.sites[0].results
    if kernel == "fused":
        assert result.peak == pytest.approx(60000 / 65504, rel=1e-5)
    assert result.peak >= 60000 / 65504 * (1 - 1e-5)
    assert result.verdict != "pass"


def test_a_prescale_of_rmsnorm_brings_the_input_within_half_of_the_range() -> None:
    x = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32)
    x[:, 0] = 1e5
    (result,) = lnaudit.audit(x, norm="rms", formats=["float16"], kernels=["fused"]).sites[0].results
    scales = [remedy.values["k"] for remedy in result.remedies if remedy.kind == "prescale"]
    assert scales == [-2]  # 1e5 / 4 is within 65504 / 2, 1e5 / 2 is not


@pytest.mark.parametrize(("epsilon", "gain"), [(1e-5, 316.228), (0.1, 3.16228)])
def test_gains_of_rows_at_the_lower_end_of_float64(epsilon: float, gain: float) -> None:
    """1/sqrt(q + epsilon) with q = 0: neither the row nor its scale may cost digits."""
    x = np.zeros((2, 8))
    x[:, 0] = 5e-324
    site = lnaudit.audit(x, formats=["float64"], epsilon=epsilon).sites[0]
    assert site.gain["max"] == pytest.approx(1 / math.sqrt(epsilon), rel=1e-12)
    assert site.gain["radial_max"] == pytest.approx(gain, rel=1e-5)


def test_without_epsilon_nothing_is_radial() -> None:
    """epsilon/(q + epsilon)^(3/2) is 0 at epsilon 0, however small q is."""
    x = 1e-310 * np.random.default_rng(0).standard_normal((3, 8))
    assert lnaudit.audit(x, formats=["float64"], epsilon=0).sites[0].gain["radial_max"] == 0


@pytest.mark.parametrize("value", [1.0, 1e159, 1e160, 1e300])
def test_a_constant_row_has_the_gain_of_epsilon_whatever_its_value(value: float) -> None:
    x = np.full((2, 8), value)
    settings = pipeline.Settings(formats=(FORMATS["float16"],), kernels=(get_kernel("native"),), loss_scale=65536)
    report = pipeline.run([Site(name="a", source="a", rows=ArrayRows(x))], settings)
    assert [f.latent for f in report.findings if f.code == "LN402"] == [True]


def test_the_scale_error_of_a_row_that_its_offset_hides() -> None:
    """What the kernel holds of the row is its offset alone: nothing of it has the shape of the row, error -1."""
    x = 4 + 1e-15 * np.random.default_rng(2).standard_normal((3, 64))
    kernel = "native-serial:mean_scale=terms,fma=stats"
    (result,) = lnaudit.audit(x, formats=["tfloat32"], kernels=[kernel], epsilon=7e4).sites[0].results
    assert result.scale_error_max == pytest.approx(1, abs=1e-6)
