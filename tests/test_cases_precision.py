"""Field cases of class G, precision of sums, statistics and casts without overflow, and H, gradients through the norm.

B59's 0.5 % of a fused kernel is the cast of the outlier, 3000 to 3008, not the norm. B61 names no input of the norm;
here it is drawn after the weight. B67 prints gains of 1 - 2/d times the operator norm, d = 256.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import lnaudit
from lnaudit import theory

from .field_cases import (
    CLEAN,
    RMS,
    SILENT,
    TWO_POINTS,
    ZEROS,
    Case,
    all_nan,
    alternating,
    close_to,
    report_of,
    rng,
    statistics,
)

ONES = np.ones((1, 768), ml_dtypes.bfloat16)
CONTROL = rng(4).random((5, 128)) * 0.1
DEAD = np.full((1, 128), 6.3e-38)
OUTSIDE = "native:epsilon_place=outside"

CASES = [
    # B57: 768 ones whose sum sticks at 256, of squares at 128
    Case(case="B57", x=ONES, kernel="native-serial", format="bfloat16", counts={**SILENT, "failing_rows": 1},
         verdict="fail", codes=("LN202",)),
    *(Case(case="B57", x=ONES, kernel=k, format="bfloat16", zeros=768, **ZEROS) for k in ("native", "fused")),
    # B62: a control that must pass
    *(
        Case(case="B62", x=CONTROL, kernel=k, format=f, verdict="pass", **CLEAN)
        for f, k in (("float16", "native"), ("float16", "native-serial"), ("float16", "fused"), ("bfloat16", "fused"))
    ),
    # B64: a nearly dead row is no trouble where epsilon is held; 1e-5 is 0 in float8_e4m3fn, a subnormal in float8_e5m2
    *(
        Case(case="B64", x=DEAD, kernel="fused", format=f, zeros=128, verdict="pass", counts=SILENT, codes=(), **RMS)
        for f in ("float8_e4m3fn", "float8_e5m2", "float16")
    ),
    Case(case="B64", x=DEAD, kernel="native", format="float8_e5m2", zeros=128, counts=SILENT, codes=(), **RMS),
    Case(case="B64", x=DEAD, kernel="native", format="float8_e4m3fn", **all_nan(128, 1, "LN301"), **RMS),
    # B66: with epsilon outside the root a zero row is no trouble on the way forward
    *(
        Case(case="B66", x=np.zeros((1, 8)), kernel=f"{OUTSIDE},inverse={i}", format="float32", epsilon=1e-3, zeros=8,
             **ZEROS)
        for i in ("div", "recip_sqrt")
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case):
    assert case.found() == case.wanted


def test_b57_a_bfloat16_accumulator_gives_the_reported_mean_and_deviation():
    found = statistics(ONES, "bfloat16", "native-serial")
    assert (found.total[0], found.square_sum[0]) == (256, 128)
    assert close_to(found.mean[0], "0.33398")
    assert close_to(float(lnaudit.round_to(np.sqrt(found.variance), "bfloat16")[0]), "0.40820")


@pytest.mark.parametrize("count", [10_000, 20_000])
def test_b57_a_sum_that_sticks(count):
    x = rng(21).uniform(size=20_000)[None, :count]  # the seed between those of B51 and B59
    assert statistics(x, "bfloat16", "native-serial").total[0] == 256
    total = statistics(x, "float32", "native").total[0]
    assert total == pytest.approx(x.sum(), rel=1e-6)
    assert count < 20_000 or close_to(total, "10087")


def test_b57_statistics_about_the_data_never_run_in_the_dtype_of_the_file():
    ones = report_of(ONES, formats="bfloat16", kernels="native-serial", **RMS)
    assert ones["variance"] == dict.fromkeys(("min", "p01", "p50", "p99", "max"), 1.0)
    constant = report_of(ONES, formats="bfloat16", kernels="native-serial")
    assert (constant["dtype"], constant["input"]["constant_rows"]) == ("bfloat16", 1)
    x = rng(21).uniform(size=(1, 20_000)).astype(ml_dtypes.bfloat16)
    variance = report_of(x, formats="bfloat16", kernels="fused")["variance"]["p50"]
    assert variance == pytest.approx(x.astype(np.float64).var(), rel=1e-5)


@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize(("kernel", "printed"), [("native", "0.3"), ("fused", "0.5")])
def test_b59_an_outlier_dominates_the_sum(kernel, printed, norm):
    x = rng(22).normal(0, 1, (16, 5376))
    x[:, 100] = 3000.0
    result = report_of(x, formats="bfloat16", kernels=kernel, norm=norm)["results"][0]
    assert close_to(100 * result["variance_error"]["max"], printed)
    assert result["verdict"] == "pass"
    # what the kernel itself makes of the cast rows: a scale that the whole row shares
    h = lnaudit.round_to(x, "bfloat16").astype(np.float64)
    assert set(h[:, 100]) == {3008.0}
    q = (h**2).mean(axis=1) if norm == "rms" else h.var(axis=1)
    own = statistics(x, "bfloat16", kernel, norm).variance / q - 1
    largest, shared = np.abs(own).max(), result["scale_error_max"]
    assert (largest < 1e-6 and shared < 1e-6) if kernel == "fused" else (0.5 * largest > shared > 0.3 * largest)
    # and its elements do not differ in it
    assert result["residual_error_max"] < 2e-4


def test_b60_a_rounded_reciprocal_root_is_off_by_a_third_of_a_percent():
    exact = 1 / np.sqrt(rng(23).uniform(0.5, 2, 10000))
    error = np.abs(lnaudit.round_to(exact, "bfloat16") / exact - 1)
    assert close_to(100 * error.max(), "0.387")
    assert close_to(100 * error.mean(), "0.135")


def test_b60_the_scale_of_a_row_is_told_apart_from_the_rounding_of_its_elements():
    sizes = np.sqrt(rng(23).uniform(0.5, 2, 10000))[:400, None]
    x = lnaudit.round_to(sizes * rng(23).normal(size=(400, 64)), "bfloat16")
    w = x.astype(np.float64).var(axis=1) + 1e-5
    shared = lnaudit.round_to(1 / np.sqrt(w), "bfloat16") * np.sqrt(w) - 1
    report = report_of(x, formats="bfloat16", kernels=["fused:rstd=T", "fused"])
    rounded, fused = report["results"]
    assert rounded["scale_error_max"] == pytest.approx(np.abs(shared).max(), rel=1e-4)
    assert rounded["residual_error_max"] < 1e-6
    assert max(fused["scale_error_max"], fused["residual_error_max"]) < 1e-6
    # the rounding of the output comes on top, of elements that do not share it
    assert rounded["error"]["max"] > fused["error"]["max"] > 1e-3
    # same sign for the whole row
    core = lnaudit.layer_norm(x, format="bfloat16", kernel="fused:rstd=T,output=float32")
    ratio = core / lnaudit.layer_norm(x, format="float64") - 1
    np.testing.assert_allclose(ratio[x != 0], np.broadcast_to(shared[:, None], x.shape)[x != 0], atol=1e-4)


@pytest.mark.parametrize(
    ("kernel", "weight_in"), [("fused:normalized=T", "float32"), ("fused:normalized=T,affine=T", "bfloat16")]
)
def test_b61_the_cast_before_gamma_moves_elements_by_one_unit(kernel, weight_in):
    random = rng(24)
    w = lnaudit.round_to(1 + 0.05 * random.normal(size=4096), weight_in)
    x = random.normal(size=(1, 4096))
    before, after = (
        lnaudit.layer_norm(x, format="bfloat16", kernel=k, weight=w, **RMS).astype(np.float64)
        for k in (kernel, "fused")
    )
    moved = before != after
    assert abs(moved.mean() - 0.241) < TWO_POINTS
    assert close_to(np.abs(before - after).max(), "0.0156")
    unit = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(before), np.abs(after)))) - 7)
    assert (np.abs(before - after)[moved] <= unit[moved]).all()
    # no failure
    results = report_of(x, formats="bfloat16", kernels=[kernel, "fused"], weight=w, **RMS)["results"]
    assert [r["verdict"] for r in results] == ["pass", "pass"]


@pytest.mark.parametrize(("kernel", "share"), [("native", 0.76), ("native-serial", 0.96)])
def test_b62_most_elements_differ_and_nothing_is_wrong(kernel, share):
    ours, fused = (lnaudit.layer_norm(CONTROL, format="float16", kernel=k) for k in (kernel, "fused"))
    assert abs((ours != fused).mean() - share) < TWO_POINTS
    assert 1e-3 < np.abs(ours - fused).max() < 5e-3
    assert close_to(report_of(CONTROL, formats="float16")["collapse_ratio"]["p50"], "0.99")


def test_b62_float32_statistics_give_the_rounded_reference():
    h = lnaudit.round_to(CONTROL, "bfloat16").astype(np.float64)
    v = h - h.mean(axis=1, keepdims=True)
    reference = v / np.sqrt((v * v).mean(axis=1, keepdims=True) + 1e-5)
    core = lnaudit.layer_norm(CONTROL, format="bfloat16", kernel="fused")
    assert (core == lnaudit.round_to(reference, "bfloat16")).all()


def test_b64_the_end_of_the_range_of_8_bits():
    assert lnaudit.round_to([448.0, 464.0], "float8_e4m3fn").tolist() == [448.0, 448.0]
    assert np.isnan(lnaudit.round_to([465.0, 500.0], "float8_e4m3fn")).all()
    assert lnaudit.round_to([57344.0, 61439.0, 61440.0], "float8_e5m2").tolist() == [57344.0, 57344.0, np.inf]


@pytest.mark.parametrize(
    ("fmt", "row", "overflow"),
    [
        ("float8_e4m3fn", [448.0, 464.0, 465.0, 500.0], 2),
        ("float8_e4m3fn", [448.0, 464.0, 1.0, 2.0], 0),
        ("float8_e5m2", [448.0, 464.0, 465.0, 500.0], 0),
        ("float8_e5m2", [57344.0, 61440.0, 1.0, 2.0], 1),
    ],
)
def test_b64_8_bit_formats_have_their_own_counters(fmt, row, overflow):
    report = lnaudit.audit([row], formats=fmt, kernels="fused")
    result = report.to_dict()["sites"][0]["results"][0]
    assert (result["cast"]["overflow"], result["cast"]["overflow_rows"]) == (overflow, min(overflow, 1))
    # one that overflows takes the whole row along, as NaN
    assert (result["nan"], result["inf"]) == (4 if overflow else 0, 0)
    errors = {f.code for f in report.findings if f.severity == "error"}
    assert errors == ({"LN101"} if overflow else set())


@pytest.mark.parametrize(("fmt", "lost"), [("float8_e4m3fn", 128), ("float8_e5m2", 128), ("bfloat16", 0)])
def test_b64_a_nearly_dead_row_becomes_zero(fmt, lost):
    report = lnaudit.audit(DEAD, formats=fmt, kernels="fused", norm="rms")
    result = report.to_dict()["sites"][0]["results"][0]
    assert (result["cast"]["underflow"], result["cast"]["overflow"]) == (lost, 0)
    assert result["cast"]["destroyed_rows"] == min(lost, 1)


def test_b65_a_float64_file_is_rounded_once():
    """By way of float32 the row would be constant, and its output zero."""
    x = np.array([[1 + 2**-8 + 2**-40, 1.0, 1.0, 1.0]])
    assert lnaudit.round_to(x, "bfloat16")[0].tolist() == [1.0078125, 1.0, 1.0, 1.0]
    assert report_of(x, formats="bfloat16")["results"][0]["cast"]["destroyed_rows"] == 0
    core = lnaudit.layer_norm(x, format="bfloat16", kernel="fused")
    assert (core == lnaudit.layer_norm([[1.0078125, 1.0, 1.0, 1.0]], format="bfloat16", kernel="fused")).all()
    assert (core != 0).all()


@pytest.mark.parametrize(("kernel", "bound"), [(OUTSIDE, "1000"), ("native", "31.6")])
def test_b66_the_gain_of_a_zero_row_is_larger_where_epsilon_is_outside_the_root(kernel, bound):
    """1/epsilon instead of 1/sqrt(epsilon), by the slope of the output beside the row."""
    step = 2.0**-40
    core = lnaudit.layer_norm(alternating(8, step), format="float64", kernel=kernel, epsilon=1e-3)
    assert close_to(core[0, 1] / step, bound)


def test_b66_the_report_bounds_what_the_formula_means():
    site = report_of(np.zeros((1, 8)), epsilon=1e-3, formats="float32")
    assert close_to(site["lipschitz"], "31.6")


@pytest.mark.parametrize(
    ("spread", "gains"),
    [
        (1.0, ("1.0", "1.0", "1.0")),
        (1e-2, ("30", "96", "101")),
        (1e-4, ("31", "314", "1.0e4")),
        (0.0, ("31", "314", "9.9e5")),
    ],
)
def test_b67_gradient_gain(spread, gains):
    x = 1 + rng(27).normal(size=(1, 256)) * spread
    for epsilon, printed in zip((1e-3, 1e-5, 1e-12), gains, strict=True):
        found = float(theory.tangential_gain(x.var(), epsilon))
        assert close_to((1 - 2 / 256) * found, printed)
        gain = report_of(x, epsilon=epsilon, formats="float64")["gain"]["max"]
        assert gain == (pytest.approx(found, rel=1e-5) if spread else None)


def test_b69_rows_without_a_gradient_of_their_own_are_counted():
    x = np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 2.0], [1e-4, 2e-4, 2e-4]])
    site = report_of(x[:2], formats="float32", **RMS)
    # 1/sqrt(3) of the second row; the first, whose gain is 1/sqrt(epsilon), is a bucket of its own
    assert close_to(site["gain"]["max"], "0.58")
    assert site["gain"]["max"] == pytest.approx(3**-0.5, rel=1e-5)
    assert site["lipschitz"] == pytest.approx(1e-5**-0.5, rel=1e-5)
    assert (site["input"]["zero_rows"], site["epsilon_dominated_rows"]) == (1, 0)
    # q = 3e-8 < epsilon
    critical = report_of(x, formats="float32", **RMS)
    assert critical["epsilon_dominated_rows"] == 1
    assert critical["gain"]["max"] == pytest.approx((3e-8 + 1e-5) ** -0.5, rel=1e-5)
