"""What the audit says about real sites whose failures are known; figures typed from the field notes."""

from pathlib import Path

import numpy as np
import pytest

import lnaudit

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
LADDER = ["native-serial", "native", "decomposed", "stored-stats", "fused"]


def audited(path, epsilon, **options):
    return lnaudit.audit(np.load(path), epsilon=epsilon, kernels=LADDER, **options).to_dict()["sites"][0]


@pytest.fixture(scope="module")
def silent():
    site = audited(EXAMPLES / "silent_zero.npy", 1e-5, formats=["float16", "bfloat16"])
    return site, {(r["format"], r["kernel"]): r for r in site["results"]}


def test_float16_native_collapses_all_rows_and_no_nan_check_sees_it(silent):
    _, results = silent
    native = results["float16", "native"]
    assert (native["collapsed_rows"], native["nan"], native["inf"]) == (600, 0, 0)
    assert native["verdict"] == "fail"
    assert native["first_bad_operation"]["square"] == native["failing_rows"] == 600


def test_no_epsilon_cures_it_but_three_other_things_do(silent):
    site, results = silent
    native = results["float16", "native"]
    assert native["recommendation"]["epsilon"] is None
    remedies = {r["kind"]: r for r in native["remedies"]}
    assert set(remedies) == {"prescale", "kernel", "format"}
    assert all(r["verified"] == "all-rows" and r["rows"] == 600 for r in remedies.values())
    assert remedies["kernel"]["values"] == {"kernel": "stored-stats"}
    assert remedies["format"]["values"] == {"format": "bfloat16"}
    assert site["weakest_clean_kernel"]["float16"] == "stored-stats"
    # summing in float32 alone does not help: the square itself is too large
    assert results["float16", "decomposed"]["collapsed_rows"] == 600


def test_the_offered_pre_scale_holds_when_it_is_done_by_hand(silent):
    _, results = silent
    values = next(r["values"] for r in results["float16", "native"]["remedies"] if r["kind"] == "prescale")
    x = np.load(EXAMPLES / "silent_zero.npy")
    y = lnaudit.layer_norm(x * 2.0 ** values["k"], format="float16", epsilon=values["epsilon"])
    z = x.astype(np.float64)
    exact = (z - z.mean(-1, keepdims=True)) / np.sqrt(z.var(-1, keepdims=True) + 1e-5)
    assert np.sqrt(((y - exact) ** 2).mean(-1)).max() <= 0.02


def test_only_fused_survives_the_widest_site():
    site = audited(HERE / "data" / "chgnet-bond-conv-2-bn2-whole.npy", 1e-5, formats=["float16"])
    results = {r["kernel"]: r for r in site["results"]}
    assert results["native"]["nonfinite_rows"] == 600
    assert results["native"]["nan"] == 600 * 64
    assert results["decomposed"]["collapsed_rows"] == results["stored-stats"]["collapsed_rows"] == 600
    assert [k for k, r in results.items() if r["failing_rows"] == 0] == ["fused"]
    assert round(results["fused"]["peak"], 2) == 0.88
    assert results["fused"]["verdict"] == "warn"


def test_an_epsilon_of_bert_is_lost_in_float16():
    report = lnaudit.audit(np.load(EXAMPLES / "minilm" / "00_embeddings_LayerNorm.npy"), epsilon=1e-12)
    results = {(r.format, r.kernel): r for r in report.sites[0].results}
    native = results["float16", "native"]
    assert (native.epsilon_stored, native.epsilon_class, native.verdict) == (0.0, "zero", "warn")
    assert [(f.code, f.latent) for f in report.findings if f.kernel == "native" and f.format == "float16"] == [
        ("LN301", True)
    ]
    assert (native.recommendation.epsilon, native.recommendation.reason) == (1e-4, "epsilon-lost")
    kept = [results["float16", "fused"], results["bfloat16", "native"], results["bfloat16", "fused"]]
    assert [r.recommendation.reason for r in kept] == ["keeps"] * 3
    assert all(r.recommendation.verified == "all-rows" for r in (native, *kept))


def test_the_quiet_site_keeps_its_epsilon():
    report = lnaudit.audit(np.load(EXAMPLES / "quiet.npy"), epsilon=1e-5)
    assert {r.verdict for r in report.sites[0].results} == {"pass"}
    assert {r.recommendation.reason for r in report.sites[0].results} == {"keeps"}
    assert report.sites[0].results[0].recommendation.robust == 1e-4
    assert [(f.code, f.severity, f.latent) for f in report.findings] == [("LN302", "note", True)]
