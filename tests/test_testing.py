"""`lnaudit.testing`: what it raises, and what it takes."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lnaudit
from lnaudit import LnauditError
from lnaudit.testing import UnstableNormError, assert_layernorm_stable

X = np.random.default_rng(0).standard_normal((40, 64))
LARGE = X * 500  # the squares of a row sum to more than 65504


def failure(x: Any, **arguments: Any) -> list[str]:
    """The lines of the message."""
    with pytest.raises(AssertionError) as caught:
        assert_layernorm_stable(x, **arguments)
    return str(caught.value).splitlines()


def test_what_is_stable_returns_the_report() -> None:
    report = assert_layernorm_stable(X, name="ln1", epsilon=1e-6)
    assert (report.sites[0].name, report.sites[0].epsilon) == ("ln1", 1e-6)
    assert [(r.format, r.kernel) for r in report.sites[0].results] == [("float16", "native")]
    assert json.dumps(report.to_dict(), allow_nan=False)
    expected = lnaudit.audit(X, name="ln1", epsilon=1e-6, formats="float16", kernels="native")
    assert report.sites == expected.sites
    assert report.findings == expected.findings


def test_the_message_is_that_of_torch_testing() -> None:
    assert (np.square(LARGE - LARGE.mean(axis=1, keepdims=True)).sum(axis=1) > 65504).all()
    lines = failure(LARGE)
    assert lines[0] == (
        "LayerNorm of x is not stable in float16 under native: 40 of 40 rows come out all zero; no NaN, no Inf "
        "(LN104 collapsed-rows)"
    )
    assert lines[1] == ""
    assert lines[2] == "Failing rows: 40 / 40 (100 %)"
    assert lines[3].startswith("Greatest error: 1 at row ")
    assert lines[3].endswith(" (up to 0.02 allowed)")
    assert lines[4] in ("First bad operation: square (40 rows)", "First bad operation: variance (40 rows)")
    assert lines[5].startswith("What to do: scale the input by 2^-")
    assert len(lines) == 6


def test_only_some_rows() -> None:
    x = X.copy()
    x[7] *= 500
    lines = failure(x)
    assert lines[2:4] == ["Failing rows: 1 / 40 (2.5 %)", "Greatest error: 1 at row 7 (up to 0.02 allowed)"]


def test_the_remedy_is_the_first_that_was_verified() -> None:
    with pytest.raises(UnstableNormError) as caught:
        assert_layernorm_stable(LARGE)
    remedies = caught.value.report.sites[0].results[0].remedies
    assert all(remedy.verified for remedy in remedies)
    assert f"What to do: {remedies[0].detail}" in str(caught.value)


def test_rows_that_become_nan() -> None:
    lines = failure(np.zeros((3, 4)), epsilon=1e-8)  # 1e-8 is 0 in float16, and a row of zeros is 0/0
    assert lines[0].endswith("(LN301 epsilon-rounds-to-zero)")
    assert "Rows with NaN or Inf: 3 / 3" in lines
    assert "First bad operation: add-epsilon (3 rows)" in lines
    assert not any(line.startswith("Greatest error") for line in lines)


def test_every_pair_is_asserted() -> None:
    text = "\n".join(failure(LARGE, format=["float16", "bfloat16"], kernel=["native", "fused", "native-serial"]))
    assert "\n\nfloat16 under native-serial: 40 of 40 rows" in text
    assert "fused:" not in text
    assert "bfloat16 under" not in text
    report = assert_layernorm_stable(X, format=("float16", "float32"), kernel=("native", "fused"))
    assert len(report.sites[0].results) == 4


def test_the_norm_is_named() -> None:
    assert failure(LARGE, norm="rms", name="final")[0].startswith("RMSNorm of final is not stable in float16")


def test_the_cast_may_widen_what_is_allowed() -> None:
    lines = failure(X + 100, format="bfloat16")
    with pytest.raises(UnstableNormError) as caught:
        assert_layernorm_stable(X + 100, format="bfloat16")
    worst = next(f for f in caught.value.report.findings if f.code == "LN202")
    assert worst.limit is not None
    assert worst.limit > 0.02
    assert any(f"(up to {worst.limit:.2g} allowed)" in line for line in lines)


def test_share_select_ignore_and_fail_on() -> None:
    noisy = X + 100
    assert failure(noisy, format="bfloat16")
    assert_layernorm_stable(noisy, format="bfloat16", share=1.0)
    assert_layernorm_stable(noisy, format="bfloat16", ignore="LN2")
    assert_layernorm_stable(noisy, format="bfloat16", tolerance=1.0)
    assert_layernorm_stable(LARGE, select=["LN2", "LN3"])
    assert failure(LARGE, select="LN1", ignore=[])
    assert assert_layernorm_stable(LARGE, fail_on="never").summary["fail"] == 1
    assert failure(X, fail_on="note")[0].endswith("(LN302 epsilon-subnormal)")  # 1e-5 < 2^-14
    assert_layernorm_stable(X, fail_on="warning")


def test_rows_that_are_not_finite_do_not_pass() -> None:
    x = X.copy()
    x[3, 5] = math.nan
    lines = failure(x)
    assert lines[0].startswith("LayerNorm of x cannot be called stable: rows that are not finite before the norm")
    assert lines[2] == "What to do: look at what produces these rows"
    assert failure(np.full((3, 4), math.nan))[0].startswith(
        "LayerNorm of x is not known to be stable: no row is finite"
    )


def test_parameters_count() -> None:
    assert failure(X, weight=np.full(64, math.inf))[0].endswith("(LN006 non-finite-parameters)")
    assert "affine-overflow" in failure(X, weight=np.full(64, 65504.0))[0]
    assert_layernorm_stable(X, weight=np.ones(64), bias=np.zeros(64))


def test_msg_replaces_the_message_or_is_given_it() -> None:
    assert failure(LARGE, msg="mine") == ["mine"]
    assert failure(LARGE, msg=lambda text: text.splitlines()[2]) == ["Failing rows: 40 / 40 (100 %)"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"x": []},
        {"x": [[1.0], [1.0, 2.0]]},
        {"x": "abc"},
        {"x": object()},
        {"x": None},
        {"epsilon": -1},
        {"epsilon": "small"},
        {"format": "float12"},
        {"format": []},
        {"kernel": "fusde"},
        {"kernel": 3},
        {"axis": 5},
        {"axis": "last"},
        {"norm": "batch"},
        {"weight": np.ones(3)},
        {"tolerance": 0},
        {"share": 2},
        {"share": "all"},
        {"share": math.nan},
        {"select": "XX"},
        {"select": []},
        {"select": 3},
        {"ignore": [3]},
        {"fail_on": "bad"},
    ],
    ids=lambda value: " ".join(value),
)
def test_bad_arguments_are_no_failed_assertion(arguments: dict[str, Any]) -> None:
    with pytest.raises(LnauditError) as caught:
        assert_layernorm_stable(**{"x": X, **arguments})
    assert "\n" not in str(caught.value)


class Dlpack:
    """An array that offers DLPack and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **words: Any) -> Any:
        return self.array.__dlpack__(**words)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class OnDevice:
    """An array that cannot be brought to the host."""

    def __array__(self, *words: Any, **more: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.\nUse .get()")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_arrays_of_every_dtype(dtype: Any) -> None:
    x = X.astype(dtype)
    report = assert_layernorm_stable(x, format=("float32",))
    assert report.sites[0].dtype == np.dtype(dtype).name


def test_what_offers_an_array() -> None:
    expected = assert_layernorm_stable(X).sites
    assert assert_layernorm_stable(X.tolist()).sites == expected
    assert assert_layernorm_stable(Dlpack(X)).sites == expected
    with pytest.raises(LnauditError, match=r"cannot be read as an array \(Implicit .* allowed\. Use \.get"):
        assert_layernorm_stable(OnDevice())


class TestTorch:
    @pytest.mark.parametrize("name", ["float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
    def test_tensors_are_read_to_the_last_bit(self, name: str) -> None:
        torch = pytest.importorskip("torch")
        x = torch.linspace(-3, 3, 40 * 64, dtype=torch.float64).reshape(64, 40).T.to(getattr(torch, name))
        numbers = x.to(torch.float64).numpy()
        report = lnaudit.audit(x, formats="float32")
        assert report.sites[0].dtype == name
        dtype = np.dtype(getattr(np, name, None) or getattr(ml_dtypes, name))
        assert report.sites == lnaudit.audit(numbers.astype(dtype), formats="float32").sites
        np.testing.assert_array_equal(
            lnaudit.layer_norm(x, format="float64"), lnaudit.layer_norm(numbers.astype(dtype), format="float64")
        )

    def test_tensors_that_need_gradients_and_parameters(self) -> None:
        torch = pytest.importorskip("torch")
        norm = torch.nn.LayerNorm(64).to(torch.bfloat16)
        x = torch.tensor(X, requires_grad=True)
        report = assert_layernorm_stable(x.to(torch.bfloat16), weight=norm.weight, bias=norm.bias, epsilon=norm.eps)
        assert report.sites[0].dtype == "bfloat16"
        assert report.sites[0].parameters["max_abs_weight"] == 1

    def test_other_tensors(self) -> None:
        torch = pytest.importorskip("torch")
        assert lnaudit.audit(torch.arange(12).reshape(3, 4), formats="float32").sites[0].dtype == "float64"
        with pytest.raises(LnauditError, match="elements of type complex64"):
            lnaudit.audit(torch.ones(2, 3, dtype=torch.complex64))
        with pytest.raises(LnauditError, match="cannot be read as an array"):
            lnaudit.audit(torch.ones(2, 3).to_sparse())
        with pytest.raises(LnauditError, match="cannot be read as an array"):
            lnaudit.audit(torch.ones(2, 3, device="meta"))


OPTION = re.compile(r"(?<!\S)--[a-z]")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"norm": "batch"}, "norm: unknown norm 'batch'; choose from layer, rms"),
        ({"axis": 5}, "axis 5 does not fit an array of 2 dimensions; name each once, from -2 to 1"),
        ({"format": "float12"}, "format: unknown format 'float12'; choose from "),
        ({"format": "json"}, "format: unknown format 'json'; choose from "),
        ({"format": []}, "format: is empty; name at least one, or leave it out"),
        ({"format": 3}, "format: 3 is not a name or a list of names; see lnaudit formats"),
        ({"kernel": "fusde"}, "kernel: unknown kernel 'fusde'; did you mean fused?"),
        ({"kernel": [3]}, "kernel: unknown kernel 3; choose from "),
        (
            {"kernel": "ladder"},
            "kernel: 'ladder': ladder stands for native-serial, native, decomposed, stored-stats and",
        ),
        ({"kernel": "native:x=y"}, "kernel: unknown axis 'x' of kernel native"),
        ({"kernel": "native:fma=all"}, "kernel: native:fma=all: "),
        ({"epsilon": -1}, "epsilon -1 is not a number >= 0"),
        ({"tolerance": 0}, "tolerance 0 is not a number > 0"),
        ({"share": 2}, "share: 2.0 is not a part of the rows"),
        ({"select": []}, "select: [] is not a list of names"),
        ({"select": "collapsed-row"}, "select: no rule begins with 'collapsed-row'; did you mean collapsed-rows?"),
        ({"fail_on": "bad"}, "fail_on: unknown value 'bad'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_errors_name_arguments_and_no_option(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(LnauditError) as caught:
        assert_layernorm_stable(X, **arguments)
    assert str(caught.value).startswith(said)
    assert not OPTION.search(str(caught.value))
    names = {"format": "formats", "kernel": "kernels"}
    own = {names.get(name, name): value for name, value in arguments.items()}
    if not own.keys() & {"share", "select", "fail_on"}:
        with pytest.raises(LnauditError) as caught:
            lnaudit.audit(X, **own)
        source = said.partition(":")[0]
        assert str(caught.value).startswith(said.replace(source, names.get(source, source), 1))
        assert not OPTION.search(str(caught.value))


def test_remedies_name_arguments() -> None:
    constant = np.repeat(np.arange(1.0, 41.0)[:, None], 64, axis=1)
    lines = failure(constant, fail_on="warning", select="degenerate-axis")
    assert lines[0].endswith("(LN004 degenerate-axis)")
    assert lines[2] == "What to do: axis=0"
