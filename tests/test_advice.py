"""Advice: which epsilon, why, at what cost, and what else helps - every claim is recomputed here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lnaudit
from lnaudit import pipeline
from lnaudit.advice import Choice, candidates, choose, common_choice, remedies, trials
from lnaudit.formats import FORMATS
from lnaudit.kernels import KERNELS
from lnaudit.pipeline import judging
from lnaudit.report import Result
from lnaudit.site import ArrayRows, Site

from .rows import real_rows

HALF, NATIVE = FORMATS["float16"], KERNELS["native"]
TOLERANCE = 0.02


def normal(scale: float, seed: int = 0, shape: tuple[int, int] = (8, 256)) -> np.ndarray:
    return scale * np.random.default_rng(seed).normal(size=shape)


def audited(x: np.ndarray, kernel: str = "native", fmt: str = "float16", **options: Any) -> Result:
    return lnaudit.audit(x, formats=fmt, kernels=kernel, **options).sites[0].results[0]


def row_errors(core: np.ndarray, x: np.ndarray, epsilon: float) -> np.ndarray:
    """RMS of a core minus the exact norm of x, row by row."""
    v = x.astype(np.longdouble)
    v = v - v.mean(axis=1, keepdims=True)
    v = v - v.mean(axis=1, keepdims=True)
    v[(x == x[:, :1]).all(axis=1)] = 0
    w = (v * v).mean(axis=1, keepdims=True) + epsilon
    return np.sqrt(((core - np.where(w > 0, v / np.sqrt(np.where(w > 0, w, 1)), 0)) ** 2).mean(axis=1))


# rows whose serial sum reaches 38400 of 65504 and loses the mean on the way: halving changes no rounding
STALLED = 150 + normal(1.0, 1, (4, 256))
QUIET = normal(1.0, shape=(64, 256))
MINILM = real_rows("minilm-embeddings")
ZERO_ROW = np.zeros((1, 384), np.float32)


class TestCandidates:
    def test_the_grid(self):
        exponents = range(-14, -1)
        grid = sorted([float(f"{m}e{k}") for k in exponents for m in (1, 2, 5)] + [1e-1])
        assert candidates(1e-5) == tuple(grid)
        assert (grid[0], grid[-1], len(grid)) == (1e-14, 0.1, 40)

    def test_another_epsilon_of_the_model_is_tried_too(self):
        assert candidates(3e-5) == tuple(sorted([*candidates(1e-5), 3e-5]))
        assert candidates(0.0) == (0.0, *candidates(1e-5))
        assert candidates(10.0)[-1] == 10.0

    @pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 1e-5, 1e-3])
    def test_a_float32_literal_replaces_its_decimal(self, epsilon):
        literal = float(np.float32(epsilon))
        assert literal != epsilon
        assert candidates(literal) == tuple(literal if e == epsilon else e for e in candidates(1e-5))

    def test_a_near_miss_does_not(self):
        assert len(candidates(1e-5 * (1 + 1e-5))) == 41


class TestChoose:
    def choice(self, safe: tuple[float, ...], epsilon: float = 1e-12, fmt: str = "float16", kernel: str = "native"):
        return choose(safe, candidates(epsilon), epsilon, FORMATS[fmt], KERNELS[kernel])

    def window(self, low: float, high: float, epsilon: float = 1e-12) -> tuple[float, ...]:
        return tuple(e for e in candidates(epsilon) if low <= e <= high)

    def test_the_models_own_is_kept(self):
        found = self.choice(self.window(5e-8, 1e-2, 1e-5), 1e-5)
        assert (found.epsilon, found.lower, found.upper, found.robust) == (1e-5, 5e-8, 1e-2, 1e-4)

    def test_a_normal_number_is_preferred(self):
        # 5e-8 is the first above 1e-12, 5e-6 the first that float16 holds to 1 %, 1e-4 the first normal one
        found = self.choice(self.window(5e-8, 1e-3))
        assert (found.epsilon, found.lower, found.upper, found.robust) == (1e-4, 5e-8, 1e-3, 1e-4)

    def test_else_the_smallest_that_is_held_to_one_percent(self):
        # held as: 5e-8 and 1e-7 +19 %, 2e-7 -11 %, 5e-7 -5 %, 1e-6 and 2e-6 +1.3 %, 5e-6 +0.1 %
        found = self.choice(self.window(5e-8, 5e-5))
        assert (found.epsilon, found.lower, found.upper, found.robust) == (5e-6, 5e-8, 5e-5, None)

    def test_none_is_held_well(self):
        assert self.choice(self.window(5e-8, 2e-6)).epsilon is None

    def test_the_unit_roundoff_of_a_narrow_format_is_enough(self):
        # bfloat16: everything is within 2^-8
        found = self.choice((2e-3,), 1e-5, "bfloat16")
        assert found.epsilon == 2e-3

    def test_the_largest_below_where_none_is_above(self):
        found = self.choice((1e-5, 2e-5, 2e-4, 5e-4), 1e-2)
        assert (found.epsilon, found.lower, found.upper, found.robust) == (5e-4, 2e-4, 5e-4, 5e-4)

    def test_a_gap_ends_the_window(self):
        found = self.choice((1e-4, 2e-4, 1e-3, 2e-3))
        assert (found.epsilon, found.lower, found.upper) == (1e-4, 1e-4, 2e-4)

    def test_the_ends_of_the_grid(self):
        found = self.choice(candidates(1e-5), 1e-5, "float32")
        assert (found.epsilon, found.lower, found.upper, found.robust) == (1e-5, 1e-14, 0.1, 1e-5)

    def test_nothing_is_safe(self):
        found = self.choice(())
        assert (found.epsilon, found.lower, found.upper, found.robust) == (None, None, None, None)

    def test_epsilon_zero_of_a_model(self):
        # 0 itself is never safe; the smallest normal number of float16 above it
        found = self.choice(self.window(5e-8, 0.1, 0.0), 0.0)
        assert found.epsilon == 1e-4


class TestRecommendation:
    @pytest.mark.parametrize("site", ["minilm-embeddings", "minilm-layer-0-output", "minilm-layer-5-output"])
    def test_an_epsilon_that_float16_loses(self, site):
        found = audited(real_rows(site), epsilon=1e-12).recommendation
        assert (found.epsilon, found.reason, found.lower, found.robust) == (1e-4, "epsilon-lost", 5e-8, 1e-4)
        assert (found.verified, found.verified_rows) == ("all-rows", 40)
        assert found.upper >= 1e-4
        assert found.total_error <= TOLERANCE

    def test_a_zero_row_makes_it_an_error(self):
        found = audited(np.r_[MINILM, ZERO_ROW], epsilon=1e-12)
        assert (found.recommendation.epsilon, found.recommendation.reason) == (1e-4, "zero-rows")
        assert found.verdict == "fail"
        assert found.nan == 384

    def test_the_upper_end_is_where_the_layer_changes(self):
        q = MINILM.astype(np.float64).var(axis=1)
        distortion = {e: (1 - np.sqrt(q / (q + e))).max() for e in candidates(1e-12)}
        upper = max(e for e in distortion if distortion[e] <= TOLERANCE)
        # rounding of the kernel takes its share: one step of the grid
        found = audited(MINILM, epsilon=1e-12).recommendation.upper
        assert upper / 2.6 <= found <= upper

    def test_the_quiet_case_keeps_its_epsilon(self):
        found = audited(QUIET).recommendation
        assert (found.epsilon, found.reason, found.robust) == (1e-5, "keeps", 1e-4)
        assert (found.verified, found.verified_rows) == ("all-rows", 64)
        assert found.distortion == {"p50": 0.0, "p99": 0.0, "max": 0.0}
        fused = audited(QUIET, "fused").recommendation
        assert (fused.epsilon, fused.robust) == (1e-5, 1e-5)

    @pytest.mark.parametrize(
        ("x", "kernel", "fmt", "epsilon", "reason"),
        [
            (normal(30.0), "native", "float16", 1e-5, "overflow"),
            (STALLED, "native-serial", "float16", 1e-5, "rounding-noise"),
            (3 + normal(1e-3, 20, (40, 512)), "native:variance=one_pass", "float32", 1e-12, "negative-variance"),
            (1e6 + normal(1.0), "fused", "float16", 1e-5, "cast"),
            (1e6 + normal(1.0), "fused", "bfloat16", 1e-5, "cast"),
        ],
    )
    def test_no_epsilon_helps(self, x, kernel, fmt, epsilon, reason):
        found = audited(x, kernel, fmt, epsilon=epsilon)
        advice = found.recommendation
        assert (advice.epsilon, advice.lower, advice.upper, advice.robust) == (None, None, None, None)
        assert (advice.reason, advice.verified, advice.verified_rows) == (reason, False, 0)
        assert "epsilon" not in {remedy.kind for remedy in found.remedies}

    def test_the_least_bad_is_a_fact_and_no_advice(self):
        x = (3 + normal(1e-3, 20, (40, 512))).astype("f4")
        report = lnaudit.audit(x, formats="float32", kernels="native:variance=one_pass")
        advice = report.sites[0].results[0].recommendation
        assert advice.epsilon is None
        assert advice.best_effort in candidates(1e-5)
        assert not any(f"epsilon {advice.best_effort:g}" in f.remedy for f in report.findings)
        # nothing is the least bad where every candidate leaves NaN
        lost = audited(50000 + normal(500.0)).recommendation
        assert (lost.reason, lost.best_effort) == ("overflow", None)

    def test_non_finite_where_the_sum_with_epsilon_is_stored(self):
        # stored-stats holds 1e-12 in float32 and stores variance + epsilon as 0: case B27
        found = audited(np.r_[MINILM, ZERO_ROW], "stored-stats", epsilon=1e-12).recommendation
        assert (found.reason, found.lower, found.verified) == ("non-finite", 5e-8, "all-rows")
        assert found.epsilon >= 5e-8

    def test_negative_variance_that_a_larger_epsilon_outweighs(self):
        # the one-pass variance of a constant row is rounding alone: about 2^-24 * 12.34^2
        x = np.repeat(np.linspace(12.0, 13.0, 50)[:, None], 256, axis=1).astype(np.float32)
        found = audited(x, "native-serial:variance=one_pass", "float32", epsilon=1e-12)
        assert found.variance_negative_rows > 0
        assert (found.recommendation.reason, found.recommendation.verified) == ("negative-variance", "all-rows")
        assert found.recommendation.epsilon > 1e-12

    def test_a_larger_tolerance_opens_the_window(self):
        strict, loose = (audited(MINILM, epsilon=1e-12, tolerance=t).recommendation for t in (0.012, 0.1))
        assert strict.upper < loose.upper

    def test_four_unit_roundoffs_are_accepted_whatever_the_tolerance(self):
        found = audited(QUIET, "native", "bfloat16", tolerance=1e-9)
        assert found.error["max"] <= 4 * 2.0**-8
        assert found.recommendation.reason == "keeps"

    def test_the_function_gives_what_the_report_gives(self):
        found = lnaudit.recommend_epsilon(MINILM, format="float16", epsilon=1e-12)
        assert found == audited(MINILM, epsilon=1e-12).recommendation


class TestDistortion:
    def test_against_its_formula(self):
        q = MINILM.astype(np.float64).var(axis=1)
        cost = np.sort(np.abs(np.sqrt(q / (q + 1e-4)) - np.sqrt(q / (q + 1e-12))))
        found = audited(MINILM, epsilon=1e-12).recommendation.distortion
        assert found["max"] == pytest.approx(cost[-1], rel=1e-6)
        # quantiles are read from bins of q, 1/64 of a power of two wide
        assert found["p50"] == pytest.approx(cost[19], rel=0.02)
        assert found["p99"] == pytest.approx(cost[-1], rel=0.02)

    def test_of_the_constants_that_circulate(self):
        q = MINILM.astype(np.float64).var(axis=1)
        found = {c.epsilon: c for c in audited(MINILM, epsilon=1e-12).constants}
        assert list(found) == [6e-8, 1e-7, 6.1e-5, 1e-4, 1e-3]
        for epsilon, constant in found.items():
            cost = np.abs(np.sqrt(q / (q + epsilon)) - np.sqrt(q / (q + 1e-12)))
            assert constant.held == float(np.float16(epsilon))
            assert constant.distortion_max == pytest.approx(cost.max(), rel=1e-6)
            # all but rounding (below 1e-3 on these rows) decides which rows fail
            assert (cost > TOLERANCE + 1e-3).sum() <= constant.failing_rows <= (cost > TOLERANCE - 1e-3).sum()

    def test_zero_and_constant_rows_have_none(self):
        found = audited(np.zeros((2, 8)), epsilon=1e-12).recommendation
        assert found.distortion == {"p50": None, "p99": None, "max": None}


class TestVerification:
    def bad(self, epsilon: float):
        def recommend(summary: Any, i: int) -> Choice:
            return Choice(epsilon=epsilon, lower=epsilon, upper=epsilon, robust=None, reason="epsilon-lost")

        return recommend

    # 0.1 erases the layer (q is about 2.5e-3), 2e-8 is 0 in float16
    @pytest.mark.parametrize(("epsilon", "rows"), [(0.1, MINILM), (2e-8, np.r_[MINILM, ZERO_ROW])])
    def test_a_broken_recommendation_is_noticed(self, monkeypatch, epsilon, rows):
        monkeypatch.setattr(judging, "recommend", self.bad(epsilon))
        found = audited(rows, epsilon=1e-12)
        assert found.recommendation.epsilon == epsilon
        assert found.recommendation.verified is False
        assert "epsilon" not in {remedy.kind for remedy in found.remedies}

    def test_a_broken_choice_is_noticed(self, monkeypatch):
        def largest(safe, tried, model_epsilon, fmt, kernel):
            return Choice(epsilon=0.1, lower=0.1, upper=0.1, robust=0.1, safe=safe)

        monkeypatch.setattr("lnaudit.advice.window.choose", largest)
        assert audited(MINILM, epsilon=1e-12).recommendation.verified is False

    def test_the_same_machinery_accepts_a_good_one(self, monkeypatch):
        monkeypatch.setattr(judging, "recommend", self.bad(1e-4))
        assert audited(MINILM, epsilon=1e-12).recommendation.verified == "all-rows"

    def test_a_kept_epsilon_that_fails_is_noticed(self, monkeypatch):
        monkeypatch.setattr(judging, "recommend", self.bad(1e-5))
        assert audited(normal(30.0)).recommendation.verified is False

    def test_large_sites_are_verified_on_witness_rows_and_rows_between(self, monkeypatch):
        monkeypatch.setattr(trials, "ALL_ROWS_BELOW", 1000)
        monkeypatch.setattr(trials, "PROOF_ELEMENTS", 384 * 20)
        x = np.tile(MINILM, (5, 1)) * np.linspace(1, 2, 200, dtype=np.float32)[:, None]
        found = audited(x, epsilon=1e-12).recommendation
        assert found.verified == "witness-rows"
        assert 20 <= found.verified_rows <= 20 + 64

    def test_what_large_sites_are_offered_holds_on_all_their_rows(self, monkeypatch):
        # a quarter of the rows fails in bfloat16 native, none of them among the rows that fail in float16 native
        monkeypatch.setattr(trials, "ALL_ROWS_BELOW", 1000)
        monkeypatch.setattr(trials, "PROOF_ELEMENTS", 64 * 200)
        x = np.random.default_rng(2).standard_normal((2000, 64)).astype(np.float32)
        x[:20] *= 2000
        x[200:1800] += 8
        site = lnaudit.audit(x, epsilon=1e-8, formats="float16", kernels="native").sites[0]
        found = {remedy.kind: remedy.values for remedy in site.results[0].remedies}
        assert found["format"] == {"format": "float32"}
        for remedy in (found["format"], found["kernel"]):
            options = {"formats": remedy.get("format", "float16"), "kernels": remedy.get("kernel", "native")}
            findings = lnaudit.audit(x, epsilon=1e-8, **options).findings
            assert not [f.code for f in findings if f.severity == "error"]
        assert site.weakest_clean_kernel["float16"] == found["kernel"]["kernel"]

    @pytest.mark.parametrize("kernel", ["native-serial", "native", "decomposed", "stored-stats"])
    def test_the_recommended_epsilon_keeps_its_promise(self, kernel):
        x = np.r_[MINILM, ZERO_ROW]
        found = audited(x, kernel, epsilon=1e-12).recommendation
        core = lnaudit.layer_norm(x, format="float16", kernel=kernel, epsilon=found.epsilon)
        assert np.isfinite(core).all()
        assert row_errors(core, x, 1e-12).max() <= TOLERANCE + 2.0**-11


class TestRemedies:
    def remedy(self, result: Result, kind: str) -> Any:
        return next((r for r in result.remedies if r.kind == kind), None)

    def test_a_pre_scale_keeps_its_promise(self):
        x = normal(30.0)
        found = self.remedy(audited(x), "prescale")
        k, epsilon = found.values["k"], found.values["epsilon"]
        assert k < 0
        assert found.values["effective_epsilon"] == epsilon * 4.0**-k
        scaled = np.ldexp(x, k)
        errors = row_errors(lnaudit.layer_norm(scaled, format="float16", epsilon=epsilon), x, 1e-5)
        assert errors.max() <= TOLERANCE
        assert found.error_max == pytest.approx(float(errors.max()), rel=1e-6)
        assert (found.verified, found.rows, found.cures) == ("all-rows", 8, ["LN104"])
        # the largest k for which all that is held stays within half of the range
        assert audited(scaled, epsilon=epsilon).peak <= 0.5
        assert audited(2 * scaled, epsilon=epsilon).peak > 0.5

    def test_a_pre_scale_up_lifts_what_the_cast_cut_off(self):
        x = normal(2e-4, 11, (4, 768))
        result = audited(x, epsilon=1e-12)
        found = self.remedy(result, "prescale")
        assert result.verdict == "fail"
        k, epsilon = found.values["k"], found.values["epsilon"]
        assert k > 0
        core = lnaudit.layer_norm(np.ldexp(x, k), format="float16", epsilon=epsilon)
        assert row_errors(core, x, 1e-12).max() <= TOLERANCE + 2.0**-11

    def test_a_pre_scale_that_does_not_help_is_not_offered(self, monkeypatch):
        tried: set[int] = set()
        run = remedies.Trials.run

        def spy(self, fmt, kernel, **options):
            tried.add(options.get("prescale", 0))
            return run(self, fmt, kernel, **options)

        monkeypatch.setattr(remedies.Trials, "run", spy)
        result = audited(STALLED, "native-serial")
        assert 0.5 < result.peak < 0.7
        assert result.verdict == "fail"
        assert -1 in tried
        assert "prescale" not in {remedy.kind for remedy in result.remedies}
        # and indeed it would not have helped
        core = lnaudit.layer_norm(STALLED / 2, format="float16", kernel="native-serial", epsilon=2.5e-6)
        assert row_errors(core, STALLED, 1e-5).max() > 5 * TOLERANCE

    @pytest.mark.parametrize(
        ("x", "kernel", "fmt"),
        [
            (normal(30.0), "native", "float16"),
            (STALLED, "native-serial", "float16"),
            (300 * normal(1.0), "decomposed", "float16"),
            (np.array([[1e25, -2e25, 3e25, 0.5e25]]), "native", "float32"),
            ((3 + normal(1e-3, 20, (40, 512))).astype("f4"), "native:variance=one_pass", "float32"),
        ],
    )
    def test_kernels_and_formats_keep_their_promise(self, x, kernel, fmt):
        result = audited(x, kernel, fmt)
        assert result.verdict == "fail"
        offered = {r.kind: r for r in result.remedies if r.kind in ("kernel", "format")}
        assert offered
        for remedy in offered.values():
            new = {"format": fmt, "kernel": kernel, **remedy.values}
            core = lnaudit.layer_norm(x, **new)
            errors = row_errors(core, x, 1e-5)
            again = audited(x, new["kernel"], new["format"])
            # twice what the cast alone costs is accepted too
            limit = max(TOLERANCE, 4 * FORMATS[new["format"]].unit_roundoff, 2 * again.cast.error_max)
            assert errors.max() <= limit + FORMATS[new["format"]].unit_roundoff
            assert again.verdict != "fail"
            assert remedy.verified == "all-rows"
            assert remedy.error_max == pytest.approx(float(errors.max()), rel=1e-4, abs=1e-15)

    @pytest.mark.parametrize(
        ("scale", "epsilon", "kernel", "cured"),
        [
            (1e-7, 1e-16, "fused", "LN102"),  # most elements underflow in the cast
            (1e-8, 1e-18, "fused", "LN203"),  # rows become constant in the cast
            (1e-4, 1e-8, "native", "LN301"),  # q is about epsilon: only some k go with the grid of epsilons
        ],
    )
    def test_small_rows_are_scaled_up(self, scale, epsilon, kernel, cured):
        x = (scale * np.random.default_rng(0).standard_normal((64, 64))).astype(np.float32)
        found = self.remedy(audited(x, kernel, epsilon=epsilon), "prescale")
        assert found.values["k"] > 0
        assert cured in found.cures
        scaled = np.ldexp(x.astype(np.float64), found.values["k"])
        core = lnaudit.layer_norm(scaled, format="float16", kernel=kernel, epsilon=found.values["epsilon"])
        assert row_errors(core, x, epsilon).max() <= max(TOLERANCE, found.error_max * 1.001)

    @pytest.mark.parametrize("scale", [1e300, 1e30])
    def test_huge_rows_are_scaled_down_whatever_that_does_to_epsilon(self, scale):
        x = scale * np.random.default_rng(0).standard_normal((6, 16))
        found = self.remedy(audited(x, fmt="float32", epsilon=1e-5), "prescale")
        assert found.cures
        assert found.error_max < 1e-5

    def test_the_weakest_clean_kernel_has_no_error(self):
        report = lnaudit.audit(normal(30.0), formats="float16", kernels=list(KERNELS))
        weakest = report.sites[0].weakest_clean_kernel["float16"]
        failed = {f.kernel for f in report.findings if f.severity == "error"}
        clean = [name for name in KERNELS if name not in failed]
        assert weakest == clean[0] == "decomposed"
        assert self.remedy(audited(normal(30.0)), "kernel").values == {"kernel": "decomposed"}

    def test_no_kernel_is_clean_where_the_cast_overflows(self):
        report = lnaudit.audit(1e5 + normal(1e3), formats="float16", kernels="fused")
        assert report.sites[0].weakest_clean_kernel == {"float16": None}
        assert [r.kind for r in report.sites[0].results[0].remedies] == ["prescale", "format"]
        assert report.sites[0].results[0].remedies[1].values == {"format": "bfloat16"}

    def test_a_clean_result_needs_no_remedy(self):
        assert audited(QUIET).remedies == []

    def test_cheapest_first(self):
        kinds = [r.kind for r in audited(np.r_[MINILM, ZERO_ROW], epsilon=1e-12).remedies]
        order = ["epsilon", "prescale", "kernel", "format"]
        assert kinds == sorted(kinds, key=order.index)
        assert kinds[0] == "epsilon"


class TestOneEpsilonForTheModel:
    WINDOWS = {  # noqa: RUF012
        "low": tuple(e for e in candidates(1e-12) if 5e-8 <= e <= 1e-3),
        "high": tuple(e for e in candidates(1e-12) if 1e-4 <= e <= 1e-2),
        "wide": tuple(e for e in candidates(1e-12) if 5e-8 <= e),
    }

    def test_the_common_window_and_who_binds_it(self):
        choice, binding = common_choice(self.WINDOWS, 1e-12, HALF, NATIVE)
        assert (choice.epsilon, choice.lower, choice.upper) == (1e-4, 1e-4, 1e-3)
        assert binding == ["low", "high"]

    def test_no_common_epsilon(self):
        windows = {**self.WINDOWS, "low": (1e-6, 2e-6)}
        choice, binding = common_choice(windows, 1e-12, HALF, NATIVE)
        assert choice.epsilon is None
        assert binding

    def test_a_site_without_any_safe_epsilon_is_named(self):
        choice, binding = common_choice({**self.WINDOWS, "none": ()}, 1e-12, HALF, NATIVE)
        assert choice.epsilon is None
        assert binding == ["none"]

    def test_in_a_report(self):
        def site(name: str, x: np.ndarray, epsilon: float = 1e-12) -> Site:
            return Site(name=name, source=name, rows=ArrayRows(x), epsilon=epsilon)

        sites = [
            site("embeddings", MINILM),
            site("layer 0", real_rows("minilm-layer-0-output")),
            site("another epsilon", QUIET, 1e-5),
        ]
        settings = pipeline.Settings(formats=(HALF,), kernels=(NATIVE,))
        entries = {entry.model_epsilon: entry for entry in pipeline.run(sites, settings).epsilon}
        assert set(entries) == {1e-12, 1e-5}
        common = entries[1e-12]
        alone = [pipeline.run([s], settings).sites[0].results[0].recommendation for s in sites[:2]]
        assert common.site_count == 2
        assert common.epsilon == 1e-4
        assert common.lower == max(a.lower for a in alone)
        assert common.upper == min(a.upper for a in alone)
        assert "embeddings" in common.sites
        assert (entries[1e-5].epsilon, entries[1e-5].site_count) == (1e-5, 1)

    def test_it_is_null_where_one_site_cannot_be_helped(self):
        sites = [
            Site(name=name, source=name, rows=ArrayRows(x)) for name, x in (("good", QUIET), ("bad", normal(30.0)))
        ]
        (entry,) = pipeline.run(sites, pipeline.Settings(formats=(HALF,), kernels=(NATIVE,))).epsilon
        assert (entry.epsilon, entry.lower, entry.upper) == (None, None, None)
        assert entry.sites == ["bad"]


def test_choices_are_not_changed_by_accident():
    with pytest.raises(AttributeError):
        Choice(epsilon=1.0, lower=1.0, upper=1.0, robust=None).epsilon = 2.0
    assert replace(Choice(epsilon=1.0, lower=1.0, upper=1.0, robust=None), epsilon=2.0).epsilon == 2.0
