"""Figures that pictures need: bins of variances, the noise of an emulation, the range that holds it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import lnaudit

X = np.random.default_rng(3).normal(5.0, [[1e-3], [0.1], [1.0], [40.0]] * 32, (128, 96)).astype(np.float32)


def test_bins_hold_every_row_whose_variance_they_span() -> None:
    (site,) = lnaudit.audit(X, formats=["float32"]).sites
    bins = site.variance_bins
    variances = X.astype(np.float64).var(axis=1)
    ends = list(zip(bins["lower"], bins["upper"], strict=True))
    counted = [int(((variances >= low) & (variances < high)).sum()) for low, high in ends]
    assert counted == bins["rows"]
    assert sum(counted) == len(X)
    # four bins for each power of two
    assert {high / low for low, high in ends} <= {5 / 4, 6 / 5, 7 / 6, 8 / 7}


def test_bins_of_zero_variances_and_of_no_rows() -> None:
    (constant,) = lnaudit.audit(np.ones((3, 8))).sites
    assert constant.variance_bins == {"lower": [], "upper": [], "rows": []}


def test_variances_that_no_float64_holds_are_in_a_bin_of_their_own() -> None:
    (site,) = lnaudit.audit(np.ldexp(X.astype(np.float64), 600), formats=["float64"]).sites
    assert site.variance_bins == {"lower": [np.inf], "upper": [np.inf], "rows": [len(X)]}


@pytest.mark.parametrize(("fmt", "dtype"), [("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)])
def test_noise_is_the_mean_square_of_what_rounding_adds(fmt: str, dtype: type) -> None:
    (site,) = lnaudit.audit(X, formats=[fmt], kernels=["native:sum=float64"]).sites
    h = X.astype(dtype)
    mean = (h.astype(np.float64).sum(axis=1) / X.shape[1]).astype(dtype)
    held = (h - mean[:, None]).astype(np.float64)
    exact = X.astype(np.float64) - X.astype(np.float64).mean(axis=1, keepdims=True)
    noise = ((held - exact) ** 2).mean(axis=1)
    assert site.results[0].noise["max"] == pytest.approx(noise.max(), rel=1e-6)
    assert site.results[0].noise["p50"] == pytest.approx(np.sort(noise)[63], rel=2**-6)


def test_noise_is_in_the_units_of_the_file_where_rows_are_so_large_that_they_are_scaled() -> None:
    x = X.astype(np.float64)
    plain, large = (lnaudit.audit(rows, formats=["float64"]).sites[0] for rows in (x, np.ldexp(x, 400)))
    assert plain.results[0].noise["max"] > 0
    assert large.results[0].noise["max"] == np.ldexp(plain.results[0].noise["max"], 800)


def test_the_range_is_that_of_what_holds_variance_and_epsilon() -> None:
    (site,) = lnaudit.audit(X, formats=["float16"], kernels=["native", "stored-stats", "fused"]).sites
    half, single = np.finfo(np.float16), np.finfo(np.float32)
    found = [(r.range["smallest"], r.range["normal"], r.range["max"]) for r in site.results]
    expected = [(f.smallest_subnormal, f.smallest_normal, f.max) for f in (half, half, single)]
    assert found == [tuple(map(float, ends)) for ends in expected]


def test_a_kernel_without_closed_form_has_no_noise() -> None:
    (site,) = lnaudit.audit(X, formats=["float16"], kernels=["fused:apply=scale_shift"]).sites
    assert site.results[0].noise == {"p50": None, "p99": None, "max": None}
