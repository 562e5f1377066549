"""The preset onnx-reference against the reference evaluator of onnx, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from .comparison import NARROW, WIDTHS, Comparison, emulated, needed, parameters, rows, skip

onnx = needed("onnx")
if not onnx.__version__.startswith("1.23."):
    skip("onnx", f"onnx is {onnx.__version__}, onnx-reference is 1.23")
from onnx.reference import ReferenceEvaluator  # noqa: E402

from .models import TYPES, model_of  # noqa: E402


@pytest.mark.parametrize("operator", ["LayerNormalization", "RMSNormalization"])
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numpy, which the evaluator runs in
def test_every_output(name, operator):
    found = Comparison()
    for epsilon, with_bias in ((1e-5, operator == "LayerNormalization"), (1e-12, False)):
        run = ReferenceEvaluator(model_of(operator, name, epsilon, with_bias)).run
        for d in sorted({*WIDTHS, *NARROW}):
            labels, x = rows(name, d)
            x, weight, bias = (values.astype(name) for values in (x, *parameters(d)))
            given = {"weight": weight, "bias": bias} if with_bias else {"weight": weight}
            real = run(None, {"x": x, **given})[0].astype(np.float64)
            norm = "layer" if operator == "LayerNormalization" else "rms"
            ours = {key: values.astype(np.float64) for key, values in given.items()}
            got = emulated(x, name, "onnx-reference", norm, epsilon, **ours)
            found.add(f"{epsilon:g}", labels, got, real)
    found.check()
