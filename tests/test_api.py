"""The Python API: what it promises, on every kind of input, twice."""

from __future__ import annotations

import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lnaudit
from lnaudit import LnauditError, pipeline, theory
from lnaudit.render import render_json
from lnaudit.site import Rows, Site

from .rows import FORMATS, KERNELS, REAL, real_rows

NEAR_CONSTANT = np.ones((1, 4, 8), np.float32) * 5
NEAR_CONSTANT[0, 0, 0] = 5.001
X = np.random.default_rng(0).normal(size=(6, 8))


def exact(x: np.ndarray, epsilon: float, axis: int | tuple[int, ...] = -1) -> np.ndarray:
    x = x.astype(np.float64)
    v = x - x.mean(axis=axis, keepdims=True)
    return v / np.sqrt((v * v).mean(axis=axis, keepdims=True) + epsilon)


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


class TestTheory:
    @pytest.mark.parametrize("kernel", ["native", "decomposed", "stored-stats", "fused"])
    @pytest.mark.parametrize(
        ("epsilon", "printed"), [(1e-12, "0.507998"), (1e-8, "0.486255"), (1e-5, "0.052836"), (1e-3, "0.005312")]
    )
    def test_the_near_constant_tensor(self, epsilon, printed, kernel):
        y = lnaudit.layer_norm(NEAR_CONSTANT, format="float32", kernel=kernel, epsilon=epsilon)
        assert y.shape == NEAR_CONSTANT.shape
        assert f"{y.std(ddof=1, dtype=np.float64):.6f}" == printed

    def test_the_near_constant_tensor_without_epsilon(self):
        y = lnaudit.layer_norm(NEAR_CONSTANT, epsilon=0)
        # three constant rows are 0/0, the other is well
        assert np.isnan(y.std(ddof=1))
        assert np.isnan(y[0, 1:]).all()
        assert np.isfinite(y[0, 0]).all()

    def test_its_unbiased_variance(self):
        assert f"{NEAR_CONSTANT[0, 0].var(ddof=1, dtype=np.float64):.3g}" == "1.25e-07"
        # biased, by the reference: 7/8 of it
        variance = lnaudit.audit(NEAR_CONSTANT, formats="float32").sites[0].variance["max"]
        assert variance == pytest.approx(NEAR_CONSTANT[0, 0].var(dtype=np.float64), rel=1e-12)

    @pytest.mark.parametrize(("epsilon", "factor"), [(1 / 3, 1.0), (4 / 3, 0.5**0.5)])
    def test_one_two_three(self, epsilon, factor):
        y = lnaudit.layer_norm([1.0, 2.0, 3.0], format="float64", epsilon=epsilon)
        np.testing.assert_allclose(y, np.array([-1, 0, 1]) * factor, rtol=1e-15)

    @pytest.mark.parametrize("t", [1e-6, 1e-3, 0.1, 1.0, 50.0, 1e3])
    def test_the_antisymmetric_family(self, t):
        y = lnaudit.layer_norm([-t, 0.0, t], format="float64", epsilon=1e-5)
        h = t / np.sqrt(2 * t * t / 3 + 1e-5)
        np.testing.assert_allclose(y, [-h, 0, h], rtol=1e-14)
        assert theory.response(t, 1e-5) == pytest.approx(h, rel=1e-14)
        assert abs(h) < np.sqrt(1.5)
        site = lnaudit.audit([-t, 0.0, t], formats="float64").sites[0]
        assert site.gain["radial_max"] == pytest.approx(float(theory.sensitivity(t, 1e-5)), rel=1e-12)
        assert site.gain["max"] == pytest.approx(float(theory.tangential_gain(2 * t * t / 3, 1e-5)), rel=1e-12)
        assert site.collapse_ratio["p50"] == pytest.approx(float(theory.collapse_ratio(2 * t * t / 3, 1e-5)), rel=1e-12)

    def test_shift_and_scale(self):
        # powers of two and a grid of eighths keep every step exact
        x = np.round(X * 8) / 8
        y = lnaudit.layer_norm(x, format="float64", epsilon=1e-5)
        np.testing.assert_allclose(lnaudit.layer_norm(x + 32, format="float64", epsilon=1e-5), y, rtol=1e-13)
        again = lnaudit.layer_norm(x * 8, format="float64", epsilon=theory.prescale(1e-5, 3))
        np.testing.assert_allclose(again, y, rtol=1e-14)


class TestJson:
    INPUTS = {  # noqa: RUF012
        "good": X,
        "not finite": np.array([[np.nan, 1, 2], [np.inf, 1, 2], [np.nan] * 3, [1, 2, 4]]),
        "nothing finite": np.full((2, 3), np.nan),
        "zeros": np.zeros((2, 3)),
        "one feature": np.ones((3, 1)),
        "huge": np.array([[1e38, -1e38, 3e38, 0]]),
        "tiny": np.array([[1e-45, 2e-45, 0, 1e-44]]),
    }

    @pytest.mark.parametrize("name", INPUTS)
    @pytest.mark.parametrize("epsilon", [0.0, 1e-12, 1e-5])
    @pytest.mark.parametrize("norm", ["layer", "rms"])
    def test_no_constant_of_javascript_survives(self, name, epsilon, norm):
        report = lnaudit.audit(self.INPUTS[name], epsilon=epsilon, norm=norm, weight=None)
        text = json.dumps(report.to_dict(), allow_nan=False)
        assert json.loads(text, parse_constant=refuse) == report.to_dict()
        assert json.loads(render_json(report), parse_constant=refuse) == report.to_dict()

    def test_infinity_is_a_word(self):
        # a row of the smallest float32 numbers: the gain at epsilon 0 is beyond float64's reciprocal roots
        site = lnaudit.audit(np.array([[5e-324, 0.0, 0.0, 0.0]]), epsilon=0.0, formats="float64").to_dict()["sites"][0]
        assert site["lipschitz"] == "inf"
        assert site["gain"]["max"] == "inf"

    def test_every_key_of_version_1(self):
        document = lnaudit.audit(X, weight=np.ones(8), formats="float16", kernels="native").to_dict()
        assert {
            "schema_version", "kind", "lnaudit_version", "config", "summary", "not_audited", "epsilon", "sites",
            "findings",
        } <= set(document)  # fmt: skip
        assert (document["schema_version"], document["kind"]) == (1, "scan")
        assert set(document["summary"]) == {"sites", "fail", "warn", "pass"}
        assert {"format", "kernel", "epsilon", "lower", "upper", "sites"} <= set(document["epsilon"][0])
        site = document["sites"][0]
        assert {
            "name", "source", "dtype", "shape", "axis", "features", "rows", "norm", "epsilon", "epsilon_source",
            "input", "parameters", "variance", "collapse_ratio", "epsilon_dominated_rows", "gain", "lipschitz",
            "weakest_clean_kernel", "results",
        } <= set(site)  # fmt: skip
        assert {
            "nan", "inf", "finite_rows", "nan_rows", "partly_nan_rows", "inf_rows", "zero_rows", "constant_rows",
            "max_abs",
        } <= set(site["input"])  # fmt: skip
        assert {"weight_nonfinite", "bias_nonfinite", "max_abs_weight"} <= set(site["parameters"])
        assert {"min", "p01", "p50", "p99", "max"} <= set(site["variance"])
        assert {"min", "p01", "p50"} <= set(site["collapse_ratio"])
        assert {"p50", "max", "radial_max"} <= set(site["gain"])
        result = site["results"][0]
        assert {
            "format", "kernel", "verdict", "epsilon_stored", "epsilon_class", "epsilon_change", "cast", "peak",
            "headroom", "variance_zero_rows", "variance_nonfinite_rows", "variance_negative_rows", "variance_error",
            "collapse_ratio", "nan", "inf", "nonfinite_rows", "collapsed_rows", "error", "scale_error_max",
            "residual_error_max", "affine", "gradient_overflow_rows", "failing_rows", "first_bad_operation",
            "recommendation", "constants", "remedies",
        } <= set(result)  # fmt: skip
        assert {"overflow_rows", "overflow", "underflow", "subnormal", "destroyed_rows", "error_max"} <= set(
            result["cast"]
        )
        assert {"p50", "p99", "max", "max_row"} <= set(result["error"])
        assert {
            "epsilon", "lower", "upper", "robust", "reason", "verified", "verified_rows", "total_error", "distortion",
        } <= set(result["recommendation"])  # fmt: skip
        assert {"epsilon", "held", "failing_rows", "distortion_max"} <= set(result["constants"][0])
        finding = document["findings"][0]
        assert {
            "code", "name", "severity", "latent", "site", "source", "format", "kernel", "rows", "row", "measured",
            "limit", "message", "remedy",
        } <= set(finding)  # fmt: skip

    def test_sets_that_are_empty_are_null(self):
        site = lnaudit.audit(np.zeros((2, 3)), formats="float16", kernels="fused").to_dict()["sites"][0]
        result = site["results"][0]
        assert set(site["variance"].values()) == set(site["collapse_ratio"].values()) == {None}
        assert site["gain"] == {"p50": None, "max": None, "radial_max": None}
        assert site["epsilon_dominated_rows"] is None
        assert (result["collapsed_rows"], result["variance_zero_rows"]) == (None, None)
        nothing = lnaudit.audit(np.full((2, 3), np.nan), formats="float16").to_dict()["sites"][0]
        assert nothing["results"][0]["error"] == dict.fromkeys(("p50", "p99", "max", "max_row"))
        assert nothing["weakest_clean_kernel"] == {"float16": None}

    def test_six_significant_digits_but_epsilon_as_given(self):
        epsilon = float(np.float32(1e-5))
        site = lnaudit.audit(X, epsilon=epsilon, formats="float32").to_dict()["sites"][0]
        assert site["epsilon"] == epsilon
        assert all(value == float(f"{value:.6g}") for value in site["variance"].values())


class TestEveryName:
    CALLS = {  # noqa: RUF012
        "audit": lambda: lnaudit.audit(X, formats=["float16", "float64"]).to_dict(),
        "layer_norm": lambda: lnaudit.layer_norm(X, format="bfloat16", weight=np.arange(8), bias=np.ones(8)).tolist(),
        "recommend_epsilon": lambda: lnaudit.recommend_epsilon(X, format="float16", epsilon=1e-12),
        "round_to": lambda: lnaudit.round_to(X, "bfloat16").tolist(),
        "LnauditError": lambda: str(LnauditError("what", "do", "where")),
        "theory": lambda: lnaudit.theory.collapse_ratio([0.0, 1.0], 1e-5).tolist(),
        "__version__": lambda: lnaudit.__version__,
    }

    def test_the_list_is_complete(self):
        assert set(self.CALLS) == set(lnaudit.__all__)

    @pytest.mark.parametrize("name", CALLS)
    def test_twice_the_same(self, name):
        first = self.CALLS[name]()
        assert first == self.CALLS[name]()
        assert first

    def test_inputs_are_not_changed(self):
        x, weight = X.copy(), np.ones(8)
        lnaudit.audit(x, weight=weight)
        lnaudit.layer_norm(x, format="float64", weight=weight)
        np.testing.assert_array_equal(x, X)
        assert (weight == 1).all()

    def test_unknown_names(self):
        with pytest.raises(AttributeError, match="no_such_name"):
            _ = lnaudit.no_such_name

    def test_theory_by_hand(self):
        for _ in range(2):
            assert theory.collapse_ratio(1e-5, 1e-5) == 0.5
            assert theory.collapse_ratio(0.0, 0.0) == 1.0
            assert theory.response(0.0, 1e-5) == 0.0
            assert theory.sensitivity(0.0, 1e-4) == pytest.approx(100.0)
            assert theory.tangential_gain(0.0, 1e-4) == pytest.approx(100.0)
            assert theory.radial_gain(0.0, 1e-4) == pytest.approx(100.0)
            assert theory.radial_gain(1.0, 0.0) == 0.0
            assert theory.lipschitz_bound(1e-4) == pytest.approx(100.0)
            assert theory.lipschitz_bound(1e-4, [-3.0, 2.0]) == pytest.approx(300.0)
            assert theory.lipschitz_bound(0.0) == np.inf
            assert theory.prescale(1e-5, -4) == 1e-5 / 256

    @pytest.mark.parametrize("z", [[1.0, 2.0, 4.0, -3.0], [5.0, 5.0, 5.0], [1.0, 3.0]])
    def test_the_jacobian_has_the_eigenvalues_of_the_table(self, z):
        epsilon, q, d = 1e-2, float(np.var(z)), len(z)
        found = np.sort(np.linalg.eigvalsh(theory.jacobian(z, epsilon)))
        wanted = [0.0, float(theory.radial_gain(q, epsilon)), *[float(theory.tangential_gain(q, epsilon))] * (d - 2)]
        np.testing.assert_allclose(found, np.sort(wanted), atol=1e-12)
        # and is the derivative of the exact core
        z0, step = np.array(z), 1e-6
        columns = [(exact(z0 + step * e, epsilon) - exact(z0 - step * e, epsilon)) / (2 * step) for e in np.eye(d)]
        np.testing.assert_allclose(theory.jacobian(z, epsilon), np.array(columns).T, atol=1e-7)


class TestShapes:
    @pytest.mark.parametrize(
        "axis", [-1, 0, 1, 2, 3, -4, -2, (1, 2), (2, 3), (0, 3), (3, 0), (-1, 0), (0, 1, 2), (0, 1, 2, 3), [1, 3]]
    )
    def test_axes(self, axis):
        x = np.random.default_rng(1).normal(size=(2, 3, 4, 5))
        axes = tuple(axis) if isinstance(axis, list) else axis
        y = lnaudit.layer_norm(x, format="float64", axis=axis)
        np.testing.assert_allclose(y, exact(x, 1e-5, axes), rtol=1e-9, atol=1e-13)
        site = lnaudit.audit(x, axis=axis, formats="float64").to_dict()["sites"][0]
        reduced = {a % 4 for a in np.atleast_1d(axes).tolist()}
        assert site["rows"] == int(np.prod([n for a, n in enumerate(x.shape) if a not in reduced]))
        assert site["features"] * site["rows"] == x.size
        assert site["axis"] == (axis if isinstance(axis, int) else list(axis))
        assert site["results"][0]["verdict"] == "pass"

    def test_weight_in_the_order_of_the_reduced_axes(self):
        x = np.random.default_rng(2).normal(size=(2, 3, 4))
        weight, bias = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3) / 7
        y = lnaudit.layer_norm(x, format="float64", axis=(0, 1), weight=weight, bias=bias)
        np.testing.assert_allclose(y, exact(x, 1e-5, (0, 1)) * weight[:, :, None] + bias[:, :, None], rtol=1e-12)

    def test_one_dimension_is_one_row(self):
        np.testing.assert_allclose(lnaudit.layer_norm(X[0], format="float64"), exact(X[0], 1e-5), rtol=1e-12)
        site = lnaudit.audit(X[0], formats="float64").sites[0]
        assert (site.rows, site.features) == (1, 8)
        assert site.notes

    def test_strides_do_not_matter(self):
        expected = lnaudit.layer_norm(X, format="float16")
        for other in (np.asfortranarray(X), X[::-1][::-1], np.repeat(X, 2, axis=1)[:, ::2]):
            np.testing.assert_array_equal(lnaudit.layer_norm(other, format="float16"), expected)

    def test_lists_integers_and_booleans(self):
        for rows in ([[1, 2, 4]], np.array([[1, 2, 4]], np.uint8), [[1.0, 2.0, 4.0]]):
            np.testing.assert_allclose(lnaudit.layer_norm(rows, format="float64"), exact(np.array([[1, 2, 4]]), 1e-5))
        assert lnaudit.audit(np.array([[True, False]]), formats="float16").sites[0].dtype == "float64"


class TestDtypes:
    @pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, ">f4", ">f2", ">f8"])
    @pytest.mark.parametrize("fmt", FORMATS)
    def test_a_file_of_any_dtype_is_rounded_once(self, dtype, fmt):
        x = X.astype(dtype)
        report = lnaudit.audit(x, formats=fmt, kernels="native")
        assert report.sites[0].dtype == np.dtype(dtype).name
        values = x.astype(np.float64)
        y = lnaudit.layer_norm(x, format=fmt)
        np.testing.assert_array_equal(y, lnaudit.layer_norm(values, format=fmt))
        assert y.dtype == (np.float64 if fmt == "float64" else np.float32)
        # nothing is lost in the cast to a format that holds the file's values
        assert (report.sites[0].results[0].cast.error_max == 0) == bool((lnaudit.round_to(values, fmt) == values).all())

    def test_float64_to_bfloat16_without_a_stop_in_between(self):
        # case B65: through float32 this would be 1.0
        assert lnaudit.round_to(1 + 2.0**-8 + 2.0**-40, "bfloat16") == 1.0078125

    @pytest.mark.parametrize("scale", [1e153, 1e-153, 1.0])
    def test_rows_of_extreme_scale_are_measured(self, scale):
        x = np.array([[1.0, 2.0, 3.0, 5.0]]) * scale
        report = lnaudit.audit(x, formats="float64", epsilon=0.0)
        site = report.sites[0]
        assert site.variance["max"] == pytest.approx(2.1875 * scale**2, rel=1e-12)
        assert site.collapse_ratio["min"] == 1.0
        assert site.results[0].error["max"] < 1e-15

    def test_rows_of_1e200(self):
        x = np.array([[1.0, 2.0, 3.0, 5.0], [5.0, 2.0, 3.0, 1.0]]) * 1e200
        report = lnaudit.audit(x, formats="float64", kernels=["native", "fused"])
        # squares pass the end of float64: the kernel gives zeros, the exact norm does not
        for result in report.to_dict()["sites"][0]["results"]:
            assert (result["collapsed_rows"], result["nan"], result["inf"]) == (2, 0, 0)
            assert result["error"]["max"] == pytest.approx(1.0, abs=1e-6)
        assert {f.code for f in report.findings if f.severity == "error"} == {"LN104"}
        json.dumps(report.to_dict(), allow_nan=False)

    def test_constant_rows_of_1e200(self):
        x = np.full((2, 4), 1e200)
        report = lnaudit.audit(x, formats="float64", kernels=["native", "fused"])
        assert [r.verdict for r in report.sites[0].results] == ["pass", "pass"]
        assert [r.recommendation.reason for r in report.sites[0].results] == ["keeps", "keeps"]
        assert [r.recommendation.verified for r in report.sites[0].results] == ["all-rows", "all-rows"]

    def test_rows_of_1e153_keep_their_epsilon_at_no_cost(self):
        x = np.array([[1.0, 2.0, 3.0, 5.0]]) * 1e153
        result = lnaudit.audit(x, formats="float64").sites[0].results[0]
        assert (result.recommendation.reason, result.recommendation.distortion["max"]) == ("keeps", 0.0)

    def test_rows_of_1e_minus_170(self):
        x = np.array([[1.0, 2.0, 3.0, 5.0]]) * 1e-170
        site = lnaudit.audit(x, formats="float64").sites[0]
        # epsilon dominates: the exact norm is 1e-167, which is 0 within any tolerance
        assert site.results[0].verdict == "pass"
        assert site.epsilon_dominated_rows == 1
        assert site.results[0].variance_zero_rows == 1
        without = lnaudit.audit(x, formats="float64", epsilon=0.0)
        assert without.sites[0].collapse_ratio["min"] == 1.0
        assert {f.code for f in without.findings if f.severity == "error"} == {"LN301"}

    @pytest.mark.parametrize("kernel", KERNELS)
    @pytest.mark.parametrize("fmt", FORMATS)
    def test_emulator_and_audit_agree_on_real_rows(self, fmt, kernel):
        for source in REAL:
            x = real_rows(source)[:6]
            result = lnaudit.audit(x, formats=fmt, kernels=kernel).sites[0].results[0]
            y = lnaudit.layer_norm(x, format=fmt, kernel=kernel)
            assert result.nan == np.isnan(y).sum()
            assert result.inf == np.isinf(y).sum()
            assert result.collapsed_rows == int((y == 0).all(axis=1).sum())

    def test_real_rows_on_which_float16_fails(self):
        # chgnet: NaN in every row of one site, all-zero output in another; float32 squares cure the second only
        def verdicts(source: str) -> list[str]:
            x = real_rows(source)
            return [r.verdict for r in lnaudit.audit(x, formats="float16", kernels=list(KERNELS)).sites[0].results]

        failing = {source for source in REAL if verdicts(source)[1] == "fail"}
        assert failing
        assert all(source.startswith("chgnet") for source in failing)


class TestParameters:
    def test_nan_in_the_weight_is_not_blamed_on_the_norm(self):
        # case B24: statistics clean, "1 non-finite of 512"
        x = np.random.default_rng(24).normal(size=(16, 512))
        gamma = np.r_[np.nan, np.ones(511)]
        report = lnaudit.audit(x, weight=gamma)
        finding = next(f for f in report.findings if f.code == "LN006")
        assert finding.severity == "error"
        assert "1 non-finite of 512" in finding.title + finding.message
        assert "LN107" not in {f.code for f in report.findings}
        for result in report.to_dict()["sites"][0]["results"]:
            assert (result["verdict"], result["nan"], result["inf"], result["failing_rows"]) == ("pass", 0, 0, 0)
            assert result["affine"] == {"nan": 16, "inf": 0, "nonfinite_rows": 16}
        assert report.sites[0].parameters == {
            "weight": True,
            "bias": False,
            "weight_nonfinite": 1,
            "bias_nonfinite": 0,
            "max_abs_weight": 1.0,
        }

    def test_weight_beyond_the_range(self):
        # case B19: the statistics are clean, 2.9 % of the outputs are Inf
        x = np.random.default_rng(0).normal(0, 1, (4, 2560))
        report = lnaudit.audit(x, weight=np.full(2560, 3e4), formats="float16", kernels="fused")
        result = report.sites[0].results[0]
        assert (result.nan, result.inf) == (0, 0)
        assert abs(result.affine["inf"] / x.size - 0.029) < 0.002
        assert "LN107" in {f.code for f in report.findings}

    def test_weight_and_bias_are_applied(self):
        weight, bias = np.linspace(-1, 2, 8), np.linspace(3, 4, 8)
        y = lnaudit.layer_norm(X, format="float64", weight=weight, bias=bias)
        np.testing.assert_allclose(y, exact(X, 1e-5) * weight + bias, rtol=1e-12)
        np.testing.assert_allclose(lnaudit.layer_norm(X, format="float64", bias=bias), exact(X, 1e-5) + bias)

    def test_lipschitz_bound(self):
        site = lnaudit.audit(X, weight=np.r_[-7.0, np.ones(7)], epsilon=1e-4, formats="float64").sites[0]
        assert site.lipschitz == pytest.approx(700.0)
        assert site.parameters["max_abs_weight"] == 7.0


class TestNonFiniteInput:
    ROWS = np.array([[np.nan, np.nan, np.nan], [np.nan, 1, 2], [np.inf, 1, 2], [1, 2, 4]])

    @pytest.mark.parametrize("fmt", FORMATS)
    def test_it_is_never_blamed_on_the_norm(self, fmt):
        report = lnaudit.audit(self.ROWS, formats=fmt, epsilon=1e-5)
        site = report.sites[0]
        assert (site.input["nan"], site.input["inf"], site.input["finite_rows"]) == (4, 1, 1)
        assert {f.code for f in report.findings if f.severity == "error"} == {"LN001"}
        for result in site.results:
            assert (result.verdict, result.nan, result.failing_rows) == ("pass", 0, 0)

    def test_the_emulator_passes_it_on(self):
        y = lnaudit.layer_norm(self.ROWS, format="float32")
        assert np.isnan(y[:3]).all()
        assert np.isfinite(y[3]).all()
        rms = lnaudit.layer_norm(self.ROWS, format="float32", norm="rms")
        # case B17: one NaN among zeros
        assert np.isnan(rms[2, 0])
        assert (rms[2, 1:] == 0).all()


class TestRmsNorm:
    def test_against_its_formula(self):
        y = lnaudit.layer_norm(X, format="float64", norm="rms", epsilon=1e-6)
        np.testing.assert_allclose(y, X / np.sqrt((X * X).mean(axis=1, keepdims=True) + 1e-6), rtol=1e-14)

    def test_a_constant_row_is_no_degenerate_one(self):
        y = lnaudit.layer_norm(np.full((1, 4), 3.0), format="float64", norm="rms", epsilon=0.0)
        np.testing.assert_array_equal(y, 1.0)
        site = lnaudit.audit(np.full((1, 4), 3.0), norm="rms", formats="float64").sites[0]
        assert (site.norm, site.input["constant_rows"], site.variance["max"]) == ("rms", 0, 9.0)

    def test_gain(self):
        # radial for one feature, tangential from two on
        one = lnaudit.audit([[2.0]], norm="rms", formats="float64", epsilon=1.0).sites[0].gain["max"]
        assert one == pytest.approx(float(theory.radial_gain(4.0, 1.0)))
        two = lnaudit.audit([[2.0, 2.0]], norm="rms", formats="float64", epsilon=1.0).sites[0].gain["max"]
        assert two == pytest.approx(float(theory.tangential_gain(4.0, 1.0)))

    @pytest.mark.parametrize(("features", "wanted"), [(1, None), (2, "radial"), (3, "tangential")])
    def test_gain_of_layer_norm(self, features, wanted):
        x = np.array([[1.0, 3.0, 2.0]])[:, :features]
        found = lnaudit.audit(x, formats="float64", epsilon=1.0).sites[0].gain["max"]
        if wanted is None:
            assert found is None  # one feature: every row is constant
        else:
            gain = {"radial": theory.radial_gain, "tangential": theory.tangential_gain}[wanted]
            assert found == pytest.approx(float(gain(x.var(), 1.0)))


class TestArguments:
    @pytest.mark.parametrize("epsilon", [-1e-5, float("nan"), float("inf"), -float("inf")])
    def test_epsilon(self, epsilon):
        for call in (lnaudit.audit, lnaudit.layer_norm):
            with pytest.raises(LnauditError, match="epsilon"):
                call(X, epsilon=epsilon)

    @pytest.mark.parametrize("epsilon", [0, 0.0, 1e-300, np.float32(1e-5)])
    def test_epsilon_that_is_fine(self, epsilon):
        assert lnaudit.audit(X, epsilon=epsilon, formats="float64").sites[0].epsilon == float(epsilon)

    @pytest.mark.parametrize("tolerance", [-1.0, float("nan")])
    def test_tolerance(self, tolerance):
        with pytest.raises(LnauditError, match="tolerance"):
            lnaudit.audit(X, tolerance=tolerance)

    @pytest.mark.parametrize("axis", [2, -3, (0, 0), (1, -1), ()])
    def test_axis(self, axis):
        for call in (lnaudit.audit, lnaudit.layer_norm):
            with pytest.raises(LnauditError, match="axis"):
                call(X, axis=axis)

    def test_axis_of_numpy(self):
        expected = lnaudit.layer_norm(X, axis=1)
        np.testing.assert_array_equal(lnaudit.layer_norm(X, axis=np.int64(1)), expected)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"norm": "batch"}, "unknown norm 'batch'; choose from layer, rms"),
            ({"formats": "float15"}, "unknown format 'float15'"),
            ({"formats": "json"}, "formats: unknown format 'json'; choose from float16, "),
            ({"kernels": "nativ"}, "unknown kernel 'nativ'; did you mean native?"),
            ({"kernels": "native:order=serial"}, "unknown axis 'order' of kernel native"),
            ({"kernels": "native:reduction=zigzag"}, "reduction=zigzag is not known; choose from"),
            ({"weight": np.ones(7)}, "weight has shape (7,), the reduced axes have (8,)"),
            ({"bias": np.ones((2, 8))}, "bias has shape (2, 8), the reduced axes have (8,)"),
        ],
    )
    def test_messages(self, options, message):
        with pytest.raises(LnauditError) as caught:
            lnaudit.audit(X, **options)
        assert message in str(caught.value)

    @pytest.mark.parametrize(
        "x",
        [3.0, [], np.zeros((0, 4)), np.zeros((4, 0)), np.zeros((2, 2), complex), np.array([["a"]]), np.array([[None]])],
    )
    def test_arrays_without_rows_of_numbers(self, x):
        for call in (lnaudit.audit, lnaudit.layer_norm):
            with pytest.raises(LnauditError):
                call(x)

    def test_a_ragged_list(self):
        with pytest.raises(LnauditError):
            lnaudit.audit([[1.0, 2.0], [3.0]])

    def test_the_other_functions_refuse_too(self):
        with pytest.raises(LnauditError, match="unknown format"):
            lnaudit.recommend_epsilon(X, format="float15")
        with pytest.raises(LnauditError, match="unknown kernel"):
            lnaudit.recommend_epsilon(X, format="float16", kernel="nope")
        with pytest.raises(LnauditError, match="unknown format"):
            lnaudit.round_to(X, "float15")

    def test_aliases(self):
        report = lnaudit.audit(X, formats=["fp16", "BF16", "double"], kernels="native")
        assert [r.format for r in report.sites[0].results] == ["float16", "bfloat16", "float64"]

    def test_the_defaults(self):
        report = lnaudit.audit(X)
        assert [(r.format, r.kernel) for r in report.sites[0].results] == [
            ("float16", "native"), ("float16", "fused"), ("bfloat16", "native"), ("bfloat16", "fused"),
            ("float32", "native"), ("float64", "native"),
        ]  # fmt: skip
        assert (report.sites[0].epsilon, report.sites[0].name, report.sites[0].norm) == (1e-5, "array", "layer")

    def test_an_error_that_cannot_be_read_is_not_audited(self):
        class Broken(Rows):
            shape, dtype, axes = (2, 2), np.dtype("float32"), (1,)

            def blocks(self, max_elements: int) -> Any:
                raise LnauditError("the file changed", "read it again", "a.npy")

            def take(self, indices: Any) -> Any:
                raise AssertionError("not asked for")

            def along(self, axis: int) -> Any:
                raise AssertionError("not asked for")

        report = pipeline.run([Site(name="a", source="a.npy", rows=Broken())], pipeline.Settings())
        assert report.summary["sites"] == 0
        assert (report.not_audited[0].source, report.not_audited[0].reason) == (
            "a.npy", "the file changed; read it again",
        )  # fmt: skip
