"""Runtimes by version, what `lnaudit kernels` says of them, and programs side by side."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import lnaudit
from lnaudit.cli.app import app
from lnaudit.errors import LnauditError
from lnaudit.kernels import KERNELS, RUNTIMES, find_runtime

from .rows import named_rows


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        # onnxruntime changed its algorithm twice between 1.26 and 1.30
        ("onnxruntime==1.24.1", "ort-cpu-legacy"),
        ("onnxruntime==1.26", "ort-cpu-legacy"),
        ("OnnxRuntime 1.20.1", "ort-cpu-legacy"),
        ("onnxruntime==1.28.0", "ort-cpu-skip"),
        ("onnxruntime==1.30", "ort-cpu"),
        ("onnxruntime==1.32.0", "ort-cpu"),
        ("torch==2.13", "torch-cpu"),
        ("torch==2.13.0", "torch-cpu"),
    ],
)
def test_the_kernel_of_a_version(text, kernel):
    assert find_runtime(text).kernel == kernel


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("onnxruntime==1.27.0", "what onnxruntime 1.27.0 computes is not known; known: 1.20 to 1.26, 1.28, 1.30 on"),
        ("onnxruntime==1.19", "what onnxruntime 1.19 computes is not known"),
        ("torch==2.5", "what torch 2.5 computes is not known; known: 2.13"),
        ("torhc==2.13", "unknown runtime 'torhc'; did you mean torch?"),
        ("torch", "'torch' is not program==version; as in onnxruntime==1.24.1"),
    ],
)
def test_what_is_not_known_is_said(text, said):
    with pytest.raises(LnauditError) as caught:
        find_runtime(text)
    assert said in str(caught.value)
    done = CliRunner().invoke(app, ["sweep", "--runtime", text])
    assert done.exit_code == 2
    assert done.stderr.startswith("lnaudit: --runtime: ")
    assert len(done.stderr.splitlines()) == 1


def test_every_runtime_names_a_kernel_and_how_it_is_known():
    for runtime in RUNTIMES:
        assert runtime.kernel in KERNELS
        assert "proven" in runtime.known or "not run" in runtime.known


@pytest.fixture
def offset(tmp_path):
    x = 1000 + 0.1 * np.random.default_rng(5).standard_normal((8, 96))
    np.save(tmp_path / "x.npy", x.astype(np.float32))
    return str(tmp_path / "x.npy")


def test_runtimes_are_audited_and_the_report_says_which(offset):
    words = ["scan", offset, "--runtime", "onnxruntime==1.24.1,torch==2.13", "--format", "float32"]
    done = CliRunner().invoke(app, words)
    assert "note: onnxruntime==1.24.1: kernel ort-cpu-legacy (proven on 1.24.1" in done.stdout
    document = json.loads(CliRunner().invoke(app, [*words, "--output-format", "json"]).stdout)
    results = document["sites"][0]["results"]
    assert [r["kernel"] for r in results] == ["ort-cpu-legacy", "torch-cpu"]
    assert document["notes"][0].startswith("onnxruntime==1.24.1: kernel ort-cpu-legacy")


def test_the_row_on_which_programs_differ_most(offset):
    """By hand: the largest RMS between the outputs of two kernels; a row that one of them loses differs by Inf."""
    x = np.load(offset)
    x[3] = np.random.default_rng(1).standard_normal(96)
    names = ["torch-cpu", "ort-cpu", "ort-cpu-legacy"]
    cores = {n: lnaudit.layer_norm(x, format="float32", kernel=n).astype(np.float64) for n in names}
    (found,) = lnaudit.audit(x, formats="float32", kernels=names).sites[0].disagreements
    apart = {}
    for a, b in (("torch-cpu", "ort-cpu"), ("torch-cpu", "ort-cpu-legacy"), ("ort-cpu", "ort-cpu-legacy")):
        lost = np.isfinite(cores[a]).all(axis=1) != np.isfinite(cores[b]).all(axis=1)
        rms = np.where(lost, np.inf, np.sqrt(((cores[a] - cores[b]) ** 2).mean(axis=1)))
        apart[a, b] = np.nan_to_num(rms, nan=0.0, posinf=np.inf)
    largest = max(values.max() for values in apart.values())
    assert found.rms == pytest.approx(largest)
    assert apart[tuple(found.kernels)][found.row] == pytest.approx(largest)
    assert lnaudit.audit(x, formats="float32", kernels=["native", "torch-cpu"]).sites[0].disagreements == []
    assert lnaudit.audit(np.zeros((2, 8)), formats="float32", kernels=names).sites[0].disagreements == []


@pytest.mark.parametrize("name", [name for name, kernel in KERNELS.items() if kernel.proven])
def test_a_kernel_is_explained_with_the_rows_on_which_it_fails(name):
    text = CliRunner().invoke(app, ["kernels", name]).stdout
    assert KERNELS[name].source in text
    assert "Bit for bit with" in text
    assert "near-constant:rows=16 (LN203)" in text
    # constant 1234 of 256 features: NaN in onnxruntime up to 1.26, and a sum beyond float16 where that is its type
    assert ("FAIL constant:value=1234" in text) == (name in ("ort-cpu-legacy", "onnx-reference"))


def test_the_list_says_what_differs_from_fused():
    text = " ".join(CliRunner().invoke(app, ["kernels"]).stdout.split())
    assert (
        "Bit for bit with onnxruntime 1.24.1. Unlike fused: reduction=serial, epsilon=float32, inverse=div, variance"
        in text
    )
    assert "A model, no program." in text


@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("width", [3, 8, 15, 16, 40])
@pytest.mark.parametrize("kernel", ["ort-cpu", "torch-cpu"])
def test_audit_and_layer_norm_take_the_same_row(kernel, width, norm):
    """The row depends on format, norm and width; the error that audit reports is that of what layer_norm gives."""
    x = np.array([named_rows("float16", width)[key] for key in ("normal", "offset 5 spread 1e-3")], np.float32)
    exact = lnaudit.theory.normalize(x.astype(np.float64), 1e-5, norm)
    for fmt in ("float16", "float32", "float64"):
        report = lnaudit.audit(x, norm=norm, formats=fmt, kernels=kernel)
        core = lnaudit.layer_norm(x, norm=norm, format=fmt, kernel=kernel).astype(np.float64)
        error = np.sqrt(((core - exact) ** 2).mean(axis=1)).max()
        assert report.sites[0].results[0].error["max"] == pytest.approx(error, rel=1e-3, abs=1e-14)
