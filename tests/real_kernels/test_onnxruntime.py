"""The presets ort-cpu, ort-cpu-skip and ort-cpu-legacy against onnxruntime, bit for bit; the version says which."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from .comparison import NARROW, WIDTHS, Comparison, emulated, needed, parameters, rows, skip

onnxruntime = needed("onnxruntime", "onnx")
from .models import SKIPS, TYPES, model_of  # noqa: E402

VERSION = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])
LEGACY = VERSION <= (1, 26)
if (1, 26) < VERSION < (1, 30):
    skip("onnxruntime", f"onnxruntime is {onnxruntime.__version__}, no preset is between 1.26 and 1.30")
LAYER, SKIP = ("ort-cpu-legacy", "ort-cpu-legacy") if LEGACY else ("ort-cpu", "ort-cpu-skip")

# skip is zero here. Operator: the norm, the preset, the formats that it takes, whether it takes a bias
OPERATORS = {
    "LayerNormalization": ("layer", LAYER, tuple(TYPES), True),
    "RMSNormalization": ("rms", LAYER, tuple(TYPES), False),
    "SimplifiedLayerNormalization": ("rms", LAYER, tuple(TYPES), False),
    "SkipLayerNormalization": ("layer", SKIP, ("float16", "float32"), True),
    "SkipSimplifiedLayerNormalization": ("rms", SKIP, ("float16", "float32"), False),
}
CASES = [(operator, name) for operator, (_, _, names, _) in OPERATORS.items() for name in names]


@cache
def session(operator: str, name: str, epsilon: float, with_bias: bool) -> Any:
    """Return a model of one node, ready to run."""
    model = model_of(operator, name, epsilon, with_bias)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def normalized(operator: str, x: np.ndarray, epsilon: float, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """Run onnxruntime."""
    feed = {"x": x, "weight": weight} | ({"skip": np.zeros_like(x)} if operator in SKIPS else {})
    run = session(operator, x.dtype.name, epsilon, bias is not None).run
    return run(None, feed if bias is None else feed | {"bias": bias})[0].astype(np.float64)


def both(operator: str, x: np.ndarray, epsilon: float = 1e-5) -> tuple[np.ndarray, np.ndarray]:
    """Return what lnaudit says and what onnxruntime gives with a weight of ones."""
    norm, preset, _, _ = OPERATORS[operator]
    ones = np.ones(x.shape[1], x.dtype)
    got = emulated(x, x.dtype.name, preset, norm, epsilon, weight=ones.astype(np.float64))
    return got, normalized(operator, x, epsilon, ones, None)


@pytest.mark.parametrize(("operator", "name"), CASES)
def test_every_output(operator, name):
    """With a weight, which the operators demand, and with or without a bias."""
    norm, preset, _, takes_bias = OPERATORS[operator]
    found = Comparison()
    for d in sorted({*WIDTHS, *NARROW}):
        labels, x = rows(name, d)
        with np.errstate(over="ignore"):
            x = x.astype(name)
        weight, bias = (values.astype(name) for values in parameters(d))
        for epsilon, given in ((1e-5, bias if takes_bias else None), (1e-12, None), (0.0, None)):
            real = normalized(operator, x, epsilon, weight, given)
            ours = {key: v.astype(np.float64) for key, v in (("weight", weight), ("bias", given)) if v is not None}
            got = emulated(x, name, preset, norm, epsilon, **ours)
            found.add(f"{epsilon:g}", labels, got, real)
    found.check()


@pytest.mark.parametrize(("operator", "name"), CASES)
def test_rows_alone(operator, name):
    for d in (5, 17, 777):
        labels, x = rows(name, d)
        with np.errstate(over="ignore"):
            x = x.astype(name)
        for label, row in zip(labels, x, strict=True):
            got, real = both(operator, row[None])
            assert np.array_equal(got, real, equal_nan=True), (d, label)


class TestConstantAndOffsetRows:
    """onnxruntime#21935 and #28463: up to 1.26 the variance is E[x^2] - E[x]^2, which may be negative."""

    layer_norms = pytest.mark.parametrize("operator", ["LayerNormalization", "SkipLayerNormalization"])

    @layer_norms
    def test_1234(self, operator):
        """256 NaN up to 1.26, zeros since."""
        got, real = both(operator, np.full((1, 256), 1234.0, np.float32))
        assert np.array_equal(got, real, equal_nan=True)
        assert np.isnan(real).all() if LEGACY else (real == 0).all()

    @layer_norms
    @pytest.mark.parametrize(("offset", "spread"), [(1000.0, 0.1), (5.0, 1e-3)])
    def test_offset_rows(self, operator, offset, spread):
        """Which rows are NaN depends on the random numbers: of 400 rows some up to 1.26, since then none."""
        x = (offset + spread * np.random.default_rng(85).standard_normal((400, 768))).astype(np.float32)
        got, real = both(operator, x)
        assert np.array_equal(got, real, equal_nan=True)
        nan = np.isnan(real)
        assert np.array_equal(nan.any(axis=1), nan.all(axis=1))
        assert 0 < nan.all(axis=1).sum() < 400 if LEGACY else not nan.any()

    @layer_norms
    def test_40000_to_40003(self, operator):
        got, real = both(operator, np.array([[40000.0, 40001.0, 40002.0, 40003.0]], np.float32))
        assert np.array_equal(got, real, equal_nan=True)
        assert np.isnan(real).all() if LEGACY else round(real[0, 3], 4) == 1.3416


@pytest.mark.parametrize("norm", ["LayerNormalization", "RMSNormalization"])
def test_epsilon_of_double_models_is_a_float(norm):
    """9.99999975e-6 for 1e-5, which the outputs of rows with a small variance show."""
    x = 1e-3 * np.random.default_rng(86).standard_normal((4, 768))
    x -= x.mean(axis=1, keepdims=True)
    got, real = both(norm, x)
    assert np.array_equal(got, real)
    variance = (x**2).mean(axis=1, keepdims=True)
    as_float, as_double = (x / np.sqrt(variance + epsilon) for epsilon in (float(np.float32(1e-5)), 1e-5))
    assert np.allclose(real, as_float, rtol=1e-10, atol=1e-15)
    assert not np.allclose(real, as_double, rtol=1e-10, atol=1e-15)


def test_a_variance_that_overflows():
    """Rows of +-3e19: zeros since 1.30; up to 1.26 the mean of squares is infinite, and the output 0 too."""
    row = np.where(np.arange(768) % 2, 3e19, -3e19).astype(np.float32)[None]
    for operator in ("LayerNormalization", "RMSNormalization"):
        got, real = both(operator, row)
        assert np.array_equal(got, real)
        assert (real == 0).all()
