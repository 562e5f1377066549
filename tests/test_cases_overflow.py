"""Field cases of class A, overflow of squares, sums and stored variances, and B, out of range before the norm.

Two sentences of the collection do not follow from exact arithmetic. B14 calls 9.0 clean under plain float16 sums: it
is so by halves only, from left to right each 81 beyond 32768 counts as 96 and the sum overflows. The limits of sums
whose terms are scaled first, rms 256 and a spike of 11582 for d = 2048, are those of exact numbers: 256 itself and
11584, the float16 number next to 11582, overflow already.
"""

from __future__ import annotations

import numpy as np
import pytest

import lnaudit
from lnaudit import theory

from .field_cases import (
    CLEAN,
    RMS,
    SILENT,
    TWO_POINTS,
    Case,
    all_nan,
    alternating,
    close_to,
    collapsed,
    report_of,
    rng,
    statistics,
    without_remedies,
)

TERMS = "native:mean_scale=terms"
TERMS_SERIAL = "native-serial:mean_scale=terms"
NORMAL5 = rng(2).normal(0, 5, (64, 4096))
BEYOND_CAST = rng(9).uniform(60000, 70000, (1, 512))
NORMAL_HALF = rng(7).normal(size=100000).astype(np.float16)


def spike() -> np.ndarray:
    x = rng(0).normal(0, 1, (1, 768))
    x[0, 0] = 795.0
    return x


def residual_overflow() -> np.ndarray:
    x = rng(8).normal(0, 3, (1, 768))
    x[0, 5] = 66246.39
    return x


CASES = [
    # B01, B99: an infinite variance gives zeros, and no check for NaN or Inf sees it
    *(Case(case="B01", x=spike(), kernel=k, **collapsed(1, 768)) for k in ("native-serial", "native", "decomposed")),
    Case(case="B01", x=spike(), kernel="fused", largest="27.67", **CLEAN),
    # B03: 180 is beyond the plain sum long before the limit that was reported
    *(
        Case(case=f"B03 m={m}", x=alternating(2048, m), kernel=k, **collapsed(1, 2048), **RMS)
        for m in (9.0, 180.0, 255.0, 257.0)
        for k in ("native-serial", "native")
    ),
    # B03, B10: terms scaled before the sum fit up to rms 256, beyond it the variance itself does not: no fix
    *(
        Case(case=f"B10 m={m}", x=alternating(2048, m), kernel=k, zeros=0, **CLEAN, **RMS)
        for m in (9.0, 180.0, 255.0)
        for k in (TERMS, TERMS_SERIAL)
    ),
    *(
        Case(case=f"B10 m={m}", x=alternating(2048, m), kernel=k, **collapsed(1, 2048), **RMS)
        for m in (256.0, 257.0)
        for k in (TERMS, TERMS_SERIAL)
    ),
    # B04: only the stored variance overflows
    Case(
        case="B04", x=rng(1).normal(0, 496.4, (4, 512)), kernel="stored-stats", **collapsed(4, 2048)
    ),
    Case(case="B04", x=rng(1).normal(0, 496.4, (4, 512)), kernel="fused", largest="3.617", **CLEAN),
    # B05: a sharp edge between 255.875 and 256
    Case(case="B05 m=255", x=alternating(64, 255.0), kernel="decomposed", variance="65024", largest="1", **CLEAN),
    Case(case="B05 m=255.875", x=alternating(64, 255.875), kernel="decomposed", variance="65472", largest="1", **CLEAN),
    Case(case="B05 m=256", x=alternating(64, 256.0), kernel="decomposed", **collapsed(1, 64)),
    *(
        Case(case=f"B05 m={m}", x=alternating(64, m), kernel=k, **collapsed(1, 64))
        for m in (255.0, 255.875, 256.0)
        for k in ("native-serial", "native")
    ),
    *(
        Case(case=f"B05 m={m}", x=alternating(64, m), kernel="fused", largest="1", **CLEAN)
        for m in (255.0, 255.875, 256.0)
    ),
    # B07: overflow by halves, a stalled sum from left to right: both orders must be checked
    Case(case="B07", x=alternating(65792, 1.0), kernel="native", **collapsed(1, 65792)),
    Case(
        case="B07", x=alternating(65792, 1.0), kernel="native-serial", variance="0.0311", largest="5.66",
        counts={**SILENT, "collapsed_rows": 0, "failing_rows": 1}, verdict="fail", codes=("LN204",),
    ),
    Case(case="B07", x=alternating(65792, 1.0), kernel="fused", largest="1", **CLEAN),
    # terms scaled first do not overflow; from left to right they stall too, at 2^-5 whose spacing is twice 1/65792
    Case(case="B07", x=alternating(65792, 1.0), kernel=TERMS, largest="1", **CLEAN),
    Case(
        case="B07", x=alternating(65792, 1.0), kernel=TERMS_SERIAL, variance="0.03125", largest="5.66",
        counts={**SILENT, "collapsed_rows": 0, "failing_rows": 1}, verdict="fail", codes=("LN204",),
    ),
    # B09: RMSNorm with everything in float16
    *(
        Case(case="B09 s=5", x=NORMAL5, kernel=k, **collapsed(64, 262144), **RMS)
        for k in ("native-serial", "native")
    ),
    Case(case="B09 s=1", x=rng(2).normal(0, 1, (64, 4096)), kernel="native-serial", counts=SILENT, **RMS),
    *(
        Case(case=f"B09 s={s}", x=rng(2).normal(0, s, (64, 4096)), kernel="fused", **CLEAN, **RMS) for s in (1, 5)
    ),
    # B11: tests on unit-scale data only
    *(
        Case(case="B11", x=rng(3).uniform(-1000, 1000, (8, 128)), kernel=k, norm=n, **collapsed(8, 1024))
        for n in ("layer", "rms")
        for k in ("native-serial", "native")
    ),
    Case(case="B11", x=rng(3).uniform(-1000, 1000, (8, 128)), kernel="fused", largest="1.894", **CLEAN, **RMS),
    # B13: needs float32 accumulation; the zero row is harmless
    *(
        Case(case="B13", x=np.r_[NORMAL5, np.zeros((1, 4096))], kernel=k, **collapsed(64, 266240, ""), **RMS)
        for k in ("native-serial", "native")
    ),
    Case(case="B13", x=np.r_[NORMAL5, np.zeros((1, 4096))], kernel="fused", **CLEAN, **RMS),
    # B14: pin or no need to pin, per tensor; 62208 of 65504 is no failure
    Case(case="B14 m=9", x=alternating(768, 9.0), kernel="native", largest="1", **CLEAN),
    Case(case="B14 m=9", x=alternating(768, 9.0), kernel="native-serial", **collapsed(1, 768)),
    Case(case="B14 m=9.5", x=alternating(768, 9.5), kernel="native", **collapsed(1, 768)),
    # B15: bfloat16 and float32 overflow too
    *(
        Case(case="B15", x=[[1e25, -2e25, 3e25, 0.5e25]], format=f, kernel="native", norm=n, **collapsed(1, 4))
        for n in ("layer", "rms")
        for f in ("float32", "bfloat16")
    ),
    Case(
        case="B15", x=[[1e25, -2e25, 3e25, 0.5e25]], format="float64", kernel="native", largest="1.589", **CLEAN, **RMS
    ),
    # B16: what numpy's own float16 variance does, as an emulation
    Case(case="B16", x=NORMAL_HALF[None], kernel="native", **collapsed(1, 100000)),
    Case(case="B16", x=NORMAL_HALF[None, :10000], kernel="native", variance="0.989", **CLEAN),
    # B17: a row that the cast loses is a cast finding whatever the norm
    *(
        Case(case="B17", x=residual_overflow(), kernel=k, **all_nan(768, 1, "LN101"))
        for k in ("native", "stored-stats", "fused")
    ),
    Case(
        case="B17", x=residual_overflow(), kernel="fused", zeros=767, **all_nan(1, 1, "LN101"), **RMS
    ),
    Case(case="B17", x=residual_overflow(), kernel="fused", format="bfloat16", largest="27.75", **CLEAN),
    Case(case="B17 clamped", x=np.minimum(residual_overflow(), 64504), kernel="fused", **CLEAN),
    # B21: absorption, not overflow
    *(
        Case(case="B21", x=[rng(10).uniform(-7, 7, 1152) + 53760.0], kernel="fused", format=f, verdict="fail",
             counts={**SILENT, "variance_zero_rows": 1, "collapsed_rows": 1}, zeros=1152, codes=("LN203",))
        for f in ("float16", "bfloat16")
    ),
    # B22: the cast is guilty, not epsilon
    *(
        Case(case="B22", x=BEYOND_CAST, kernel=k, epsilon=e, **all_nan(512, 1, "LN101"))
        for k in ("native", "fused")
        for e in (1e-12, 1e-3)
    ),
    Case(case="B22", x=BEYOND_CAST, kernel="native", format="float32", epsilon=1e-12, **CLEAN),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case):
    assert case.found() == case.wanted


@pytest.mark.parametrize(("d", "limit", "held", "lost"), [(768, 7093, 7092, 7096), (2048, 11582, 11576, 11584)])
@pytest.mark.parametrize("kernel", [TERMS, TERMS_SERIAL])
def test_b03_one_spike_overflows_scaled_terms(kernel, d, limit, held, lost):
    """Neighbours of float16 on both sides of the printed limit."""
    assert held <= limit <= lost == np.nextafter(np.float16(held), np.float16(np.inf))
    for size, finite in ((held, True), (lost, False)):
        row = np.zeros((1, d))
        row[0, 1] = size
        assert np.isfinite(statistics(row, "float16", kernel, "rms").variance[0]) == finite


def test_b04_a_scaled_input_needs_a_scaled_epsilon():
    x = alternating(512, 0.01)  # q = 1e-4
    meant = lnaudit.layer_norm(x, format="float64")
    shrunk = lnaudit.layer_norm(x / 16, format="float64")
    assert close_to(shrunk[0, 1] / meant[0, 1], "0.203")
    right = lnaudit.layer_norm(x / 16, format="float64", epsilon=theory.prescale(1e-5, -4))
    np.testing.assert_allclose(right, meant, rtol=1e-15)


def test_b09_a_serial_sum_loses_up_to_an_eighth():
    x = rng(2).normal(0, 1, (64, 4096))
    variance = statistics(x, "float16", "native-serial", "rms").variance
    assert close_to(variance.min(), "0.875")
    assert close_to(variance.max(), "0.996")
    # outputs up to 6 % too large
    with without_remedies():
        result = report_of(x, formats="float16", kernels="native-serial", norm="rms")
    assert abs(result["results"][0]["scale_error_max"] - 0.06) < TWO_POINTS


def test_b13_the_weakest_clean_kernel_is_named():
    # squares of |x| < 256 fit, their sum in float32 does too
    x = np.r_[NORMAL5[:4], np.zeros((1, 4096))]
    site = report_of(x, formats="float16", kernels=["native", "fused"], norm="rms")
    assert site["weakest_clean_kernel"] == {"float16": "decomposed"}
    assert [r["verdict"] for r in site["results"]] == ["fail", "pass"]
    assert {r["kind"]: r["detail"] for r in site["results"][0]["remedies"]}["kernel"].startswith("kernel decomposed")


def test_b16_statistics_about_the_data_do_not_run_in_its_dtype():
    with without_remedies():
        variance = lnaudit.audit(NORMAL_HALF, formats="float16", kernels="fused").sites[0].variance
    assert all(close_to(value, "0.9966") for value in variance.values())


@pytest.mark.parametrize(("kernel", "total"), [("native-serial", 2048), ("native", 4096)])
def test_b16_no_result_depends_on_the_layout_of_the_array(kernel, total):
    ones = np.ones((4096, 2), np.float16)
    assert statistics(ones.T, "float16", kernel, "rms").square_sum.tolist() == [total, total]
    for layout in (ones, np.asfortranarray(ones)):
        with without_remedies():
            site = report_of(layout, axis=0, formats="float16", kernels=kernel, norm="rms")
        assert site["variance"] == dict.fromkeys(("min", "p01", "p50", "p99", "max"), 1.0)
        core = lnaudit.layer_norm(layout, axis=0, format="float16", kernel=kernel, norm="rms")
        # epsilon is below half a spacing at 1/2 and at 1
        assert (core == np.float16(1) / np.sqrt(np.float16(total / 4096))).all()


def test_b17_the_edge_of_the_cast():
    assert lnaudit.round_to([65519.99, 65520.0, 66246.39], "float16").tolist() == [65504.0, np.inf, np.inf]


@pytest.mark.parametrize("kernel", ["native", "fused"])
def test_b19_only_gamma_takes_the_output_out_of_range(kernel):
    y = rng(0).normal(0, 1, (4, 2560))
    gamma = np.full(2560, 3e4)
    # the report's own count takes y for the normalized values
    assert close_to(100 * float((np.abs(y) * gamma >= 65520).mean()), "2.9")
    report = lnaudit.audit(y, formats=["float16", "bfloat16"], kernels=kernel, weight=gamma)
    half, brain = report.to_dict()["sites"][0]["results"]
    assert {key: half[key] for key in (*SILENT, "variance_nonfinite_rows", "collapsed_rows")} == {
        **SILENT, "variance_nonfinite_rows": 0, "collapsed_rows": 0,
    }  # fmt: skip
    assert abs(half["affine"]["inf"] / y.size - 0.029) < 0.001
    assert (half["affine"]["nan"], half["affine"]["nonfinite_rows"], half["failing_rows"]) == (0, 4, 4)
    assert half["first_bad_operation"]["affine"] == 4
    assert [(f.code, f.format) for f in report.findings if f.severity == "error"] == [("LN107", "float16")]
    assert (half["verdict"], brain["verdict"], brain["affine"]["inf"]) == ("fail", "pass", 0)


def test_b21_nothing_overflows_the_spacing_absorbs():
    x = rng(10).uniform(-7, 7, (1, 1152)) + 53760.0
    assert close_to(report_of(x, formats="float32")["variance"]["p50"], "16.7")
    assert np.spacing(np.float16(53760)) == 32
    for fmt in ("float16", "bfloat16"):
        assert set(lnaudit.round_to(53760.0 + np.linspace(-16, 16, 129), fmt)) == {53760.0}
    cast = report_of(x, formats="float16", kernels="fused")["results"][0]["cast"]
    assert (cast["overflow"], cast["destroyed_rows"]) == (0, 1)


@pytest.mark.parametrize("kernel", ["native", "decomposed", "stored-stats", "fused"])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-5, 1e-3])
def test_b22_no_epsilon_is_advised_for_a_cast_that_overflows(kernel, epsilon):
    report = lnaudit.audit(BEYOND_CAST, formats="float16", kernels=kernel, epsilon=epsilon)
    result = report.to_dict()["sites"][0]["results"][0]
    assert (result["cast"]["overflow"], result["cast"]["overflow_rows"]) == (229, 1)
    assert result["recommendation"]["epsilon"] is None
    assert result["recommendation"]["reason"] == "cast"
    assert "epsilon" not in {remedy["kind"] for remedy in result["remedies"]}
    assert not any("larger epsilon" in f.remedy or f.remedy.startswith("epsilon") for f in report.findings)


@pytest.mark.parametrize("kernel", ["native", "fused"])
def test_b24_a_gamma_that_is_nan_is_named_and_the_norm_is_not_blamed(kernel):
    gamma = np.r_[np.nan, np.ones(511)]
    report = lnaudit.audit(rng(0).normal(size=(8, 512)), formats="float16", kernels=kernel, weight=gamma)
    site = report.to_dict()["sites"][0]
    result = site["results"][0]
    assert [(f.code, f.title) for f in report.findings if f.severity != "note"] == [
        ("LN006", "weight: 1 non-finite of 512")
    ]
    assert (site["parameters"]["weight_nonfinite"], site["parameters"]["bias_nonfinite"]) == (1, 0)
    assert (result["verdict"], result["nan"], result["inf"], result["failing_rows"]) == ("pass", 0, 0, 0)
    # it is only where it is noticed: one NaN a row
    assert result["affine"] == {"nan": 8, "inf": 0, "nonfinite_rows": 8}
