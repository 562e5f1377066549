"""Field cases of class C, epsilon too small for the type, zeroed or flushed, and D, epsilon replaced by another.

B25's "epsilon kept in float32" gives zeros where variance + epsilon is not stored in float16 again: with stored-stats
it is case B27.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import lnaudit
from lnaudit.findings import Finding
from lnaudit.pipeline import Settings, run
from lnaudit.render import render_table
from lnaudit.site import ArrayRows, Site

from .field_cases import (
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
)
from .program import run as run_program

ZERO_ROW = np.zeros((1, 10))
TINY = rng(11).normal(0, 2e-4, (4, 768))
FLUSHED = ("native:flush_subnormals=T", "decomposed:flush_subnormals=T", "stored-stats:flush_subnormals=T")
SMALLEST_NORMAL = 2.0**-14

CASES = [
    # B25: epsilon lost, zero rows give 0/0
    *(
        Case(case="B25", x=ZERO_ROW, kernel="native", epsilon=e, **all_nan(10, 1, "LN301"))
        for e in (1e-12, 1e-8)
    ),
    *(Case(case="B25", x=ZERO_ROW, kernel="native", epsilon=e, zeros=10, **ZEROS) for e in (1e-7, 1e-5)),
    *(
        Case(case="B25", x=ZERO_ROW, kernel=k, format=f, epsilon=e, zeros=10, **ZEROS)
        for k, f in (("fused", "float16"), ("native", "bfloat16"))
        for e in (1e-12, 1e-8, 1e-7, 1e-5)
    ),
    # B25, B29, B32: with flushed subnormals 1e-5 is lost too, and the 1e-7 of converters; 1e-4 survives
    *(
        Case(case="B32 zero row", x=ZERO_ROW, kernel=k, epsilon=e, **all_nan(10, 1, "LN301"))
        for k in FLUSHED
        for e in (1e-7, 1e-6, 1e-5)
    ),
    *(Case(case="B32 zero row", x=ZERO_ROW, kernel=k, epsilon=1e-4, zeros=10, **ZEROS) for k in FLUSHED),
    *(
        Case(case="B32 zero row", x=ZERO_ROW, kernel="fused:flush_subnormals=all", epsilon=e, zeros=10, **ZEROS)
        for e in (1e-12, 1e-7, 1e-6, 1e-5, 1e-4)
    ),
    # B27: float32 sums alone are not a pass
    Case(
        case="B27", x=ZERO_ROW, kernel="stored-stats", epsilon=1e-12, **all_nan(10, 1, "LN301")
    ),
    Case(case="B27", x=ZERO_ROW, kernel="stored-stats", zeros=10, **ZEROS),
    # B28: any constant row
    Case(case="B28", x=np.full((8, 4), 2.0), kernel="native", epsilon=1e-8, **all_nan(32, 8, "LN301")),
    # B32: squares below the smallest subnormal
    Case(case="B32", x=TINY, kernel="native", epsilon=1e-12, variance="5.96e-8", counts=SILENT),
    # B39: the biased variance, epsilon inside the root; not 1.5 and -0.5
    *(
        Case(case="B39", x=[[1.0, 0.0, 0.0, 0.0]], kernel=k, format="float32", largest="1.732", variance="0.1875")
        for k in ("native", "fused")
    ),
    Case(case="B39", x=[[0.0, 0.0, 0.0, 1.0]], kernel="native", format="float64", first="-0.5773"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case):
    assert case.found() == case.wanted


@pytest.mark.parametrize(
    ("fmt", "held"), [("float16", False), ("bfloat16", True), ("float32", True), ("float64", True)]
)
def test_b28_epsilon_must_be_held_to_one_percent(fmt, held):
    result = report_of(np.full((8, 4), 2.0), formats=fmt, kernels="native", epsilon=1e-8)["results"][0]
    assert (result["epsilon_stored"] > 0) is held
    assert (abs(result["epsilon_change"]) <= 0.01) is held
    assert result["verdict"] == ("pass" if held else "fail")


def test_b29_what_a_converter_really_uses():
    x = rng(11).normal(0, 1e-4, (4, 768))
    meant, used = (lnaudit.layer_norm(x, format="float64", epsilon=e) for e in (1e-12, 1e-7))
    shrunk = 1 - used.std(axis=1) / meant.std(axis=1)
    assert np.abs(shrunk - 0.697).max() < TWO_POINTS
    assert report_of(x, epsilon=1e-12, formats="float64")["collapse_ratio"]["min"] > 0.9998
    # q is about 1e-8: r is 0.09 with the epsilon that the converter puts there
    assert abs(report_of(x, epsilon=1e-7, formats="float64")["collapse_ratio"]["p50"] - 0.0915) < 0.01
    constants = report_of(x, epsilon=1e-12, formats="float16", kernels="fused")["results"][0]["constants"]
    cost = {c["epsilon"]: c["distortion_max"] for c in constants}
    assert abs(cost[1e-7] - 0.697) < TWO_POINTS


def test_b32_squares_vanish_and_the_variance_sticks_to_one_subnormal():
    h = lnaudit.round_to(TINY, "float16").astype(np.float64)
    assert abs((lnaudit.round_to(h * h, "float16") == 0).mean() - 0.615) < TWO_POINTS
    site = report_of(TINY, formats="float16", kernels="native", epsilon=1e-12)
    assert abs(site["variance"]["p50"] - 4e-8) < 2e-9  # sampling error of 768 squares: 5 %
    assert abs(site["results"][0]["scale_error_max"] - 0.18) < TWO_POINTS


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 1e-5, 1e-4])
def test_b32_flushed_squares_leave_epsilon_alone(epsilon):
    """All squares are 0, and the mean: an element is 0/0, or one that is not flushed itself is divided by 0."""
    flushed = int((np.abs(TINY.astype(np.float16)) < SMALLEST_NORMAL).sum())
    result = report_of(TINY, formats="float16", kernels=FLUSHED[0], epsilon=epsilon)["results"][0]
    assert result["variance_zero_rows"] == 4
    assert (result["cast"]["underflow"], result["cast"]["subnormal"]) == (flushed, 0)
    lost = epsilon < 1e-4
    assert (result["nan"], result["inf"]) == ((flushed, TINY.size - flushed) if lost else (0, 0))
    assert (result["epsilon_stored"] == 0, result["verdict"]) == (lost, "fail" if lost else "pass")


@pytest.mark.parametrize(("epsilon", "nan"), [("1e-5", 10), ("1e-4", 0)])
def test_b32_ftz_is_an_option(epsilon, nan, tmp_path):
    np.save(tmp_path / "padding.npy", ZERO_ROW)
    options = ("--ftz", "--eps", epsilon, "--format", "float16", "--kernel", "native", "--output-format", "json")
    done = run_program("scan", "padding.npy", *options, cwd=tmp_path)
    report = json.loads(done.stdout)
    assert report["config"]["flush_subnormals"] == "all"
    assert report["sites"][0]["results"][0]["nan"] == nan


def test_b33_epsilon_is_twice_the_mean_square():
    x = 0.058 * rng(12).normal(0, 1, (8, 32))
    used, meant = (lnaudit.layer_norm(x, format="float64", epsilon=e, **RMS) for e in (2**-7, 2**-23))
    ratio = float((used**2).mean())
    assert close_to(ratio, "0.278")
    assert close_to(ratio**0.5, "0.53")
    change = meant[:, 0] / used[:, 0]
    assert close_to(change.min(), "1.73")
    assert close_to(change.max(), "2.17")
    # the accumulation is not to blame
    report = lnaudit.audit(x, formats="bfloat16", epsilon=2**-7, **RMS)
    site = report.to_dict()["sites"][0]
    assert site["epsilon_dominated_rows"] == 8
    assert site["collapse_ratio"]["min"] == pytest.approx((used**2).mean(axis=1).min(), rel=1e-5)
    assert {f.code for f in report.findings if f.severity != "note"} == {"LN303"}
    assert [r["verdict"] for r in site["results"]] == ["pass", "pass"]


def mismatch(q: float, model: float, other: float, tolerance: float = 0.02) -> Finding | None:
    """Return what a comparison with another epsilon finds on a row of variance q."""
    rows = ArrayRows(alternating(64, q**0.5))
    site = Site(name="row", source="row", rows=rows, norm="layer", epsilon=model, epsilon_source="option")
    report = run([site], Settings(compare_epsilon=other, tolerance=tolerance))
    return next((f for f in report.findings if f.code == "LN305"), None)


@pytest.mark.parametrize(
    ("q", "model", "other", "printed"),
    [
        # B35: 1e-5 against 1e-12, Keras' 1e-3 against 1e-5
        (1e-3, 1e-5, 1e-12, "0.5"),
        (1e-5, 1e-5, 1e-12, "41.4"),
        (1e-2, 1e-3, 1e-5, "4.8"),
        (1e-4, 1e-3, 1e-5, "216"),
        # B37: what was 1e-12 has silently become 1e-5
        (1e-5, 1e-5, 1e-12, "41"),
        (1e-6, 1e-5, 1e-12, "232"),
    ],
)
def test_b35_b37_another_epsilon_is_another_scale(q, model, other, printed):
    x = alternating(64, q**0.5)
    one, two = (lnaudit.layer_norm(x, format="float64", epsilon=e) for e in (model, other))
    assert close_to(100 * (two / one - 1).max(), printed)
    found = mismatch(q, model, other, tolerance=0.001)
    assert found is not None
    assert found.measured == pytest.approx(np.abs(two - one).max(), rel=1e-9)
    # the message rounds to two digits
    assert f"scale by {'41' if printed == '41.4' else printed} %" in found.message


def test_b35_what_moves_no_row_beyond_the_tolerance_is_no_finding():
    assert mismatch(1e-3, 1e-5, 1e-12) is None
    assert mismatch(1e-5, 1e-5, 1e-12) is not None


@pytest.mark.parametrize("epsilon", [1e-5, 1e-6, 1e-12])
def test_b35_a_float32_literal_is_the_same_epsilon(epsilon):
    literal = float(np.float32(epsilon))
    assert literal != epsilon
    assert mismatch(1e-9, epsilon, literal, tolerance=1e-6) is None
    advice = lnaudit.recommend_epsilon(alternating(64, 1.0), format="float32", epsilon=literal)
    assert (advice.epsilon, advice.reason) == (literal, "keeps")


def test_b39_a_divisor_of_d_less_1_shows_in_short_rows():
    """What lnaudit does not compute: 1.5 and -0.5 of [1, 0, 0, 0]; with 768 elements the two agree to 0.065 %."""
    for d, printed in ((4, "15"), (768, "0.065")):
        x = rng(0).normal(size=(1, d))
        core = lnaudit.layer_norm(x, format="float64", epsilon=0)
        other = (x - x.mean()) / x.std(ddof=1)
        assert close_to(100 * (core / other - 1).max(), printed)


@pytest.mark.parametrize(("epsilon", "printed"), [(1e-6, "0.90"), (1e-3, "0.009")])
def test_b40_epsilon_decides_how_far_noise_is_amplified(epsilon, printed):
    noise = rng(0).normal(0, 3e-3, (1, 4096))  # the report names no seed: q is 9e-6 within 5 %
    site = report_of(noise, epsilon=epsilon, formats="float32")
    assert close_to(site["collapse_ratio"]["min"], printed)
    assert site["epsilon_dominated_rows"] == int(epsilon > 9e-6)


@pytest.mark.parametrize(
    ("norm", "formula"),
    [
        ("layer", "LayerNorm: (x-mean)/sqrt(q+eps) * weight + bias, q = mean((x-mean)^2)."),
        ("rms", "RMSNorm: x/sqrt(q+eps) * weight + bias, q = mean(x^2)."),
    ],
)
def test_b39_the_report_states_the_formula(norm: str, formula: str):
    assert formula in render_table(lnaudit.audit([[1.0, 0, 0, 0]], norm=norm))
