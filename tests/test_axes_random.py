"""Any combination of axes runs as the naive scalar code on exact rationals does, or says in one line why not."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import lnaudit
from lnaudit.errors import LnauditError
from lnaudit.kernels import AXES, get_kernel

from .exact_kernel import PRESETS, ExactKernel
from .oracles import ALL_NAMES, equal
from .test_axes import EPSILONS, parameters, rows


def refusal_of(text: str) -> str:
    try:
        get_kernel(text)
    except LnauditError as error:
        return str(error)
    return ""


overrides = st.fixed_dictionaries({}, optional={axis: st.sampled_from(values) for axis, values in AXES.items()})


@settings(max_examples=200, deadline=None)
@given(
    preset=st.sampled_from(list(PRESETS)),
    overrides=overrides,
    name=st.sampled_from(ALL_NAMES),
    norm=st.sampled_from(["layer", "rms"]),
    d=st.sampled_from([1, 2, 3, 4, 5, 9, 21]),
    first=st.integers(0, 16),
    epsilon=st.sampled_from(EPSILONS),
    with_parameters=st.tuples(st.booleans(), st.booleans()),
)
def test_any_combination_runs_or_says_why_not(preset, overrides, name, norm, d, first, epsilon, with_parameters):
    text = f"{preset}:" + ",".join(f"{axis}={value}" for axis, value in overrides.items())
    refusal = refusal_of(text)
    if refusal:
        assert refusal.startswith(f"--kernel: {text}: ")
        assert "; use " in refusal
        assert "\n" not in refusal
        return
    x = rows(name, d)[1][first : first + 3]
    x = x[np.isfinite(x).all(axis=1)]
    weight, bias = (values if kept else None for values, kept in zip(parameters(name, d), with_parameters, strict=True))
    exact = ExactKernel(text, name, rms=norm == "rms")
    lists = [None if values is None else values.tolist() for values in (weight, bias)]
    finished = [exact.finish(exact.centre(row), epsilon, *lists) for row in x.tolist()]
    core, output = (np.array([getattr(row, part) for row in finished]) for part in ("core", "output"))
    kept = {"epsilon": epsilon, "norm": norm, "weight": weight, "bias": bias}
    got = lnaudit.layer_norm(x, format=name, kernel=text, **kept)
    assert equal(got, output)
    report = lnaudit.audit(x, formats=name, kernels=text, **kept).to_dict()["sites"][0]["results"][0]
    assert (report["nan"], report["inf"]) == (np.isnan(core).sum(), np.isinf(core).sum())
    assert report["nonfinite_rows"] == (~np.isfinite(core)).any(axis=1).sum()
    affine = report["affine"]
    assert (affine["nan"], affine["inf"]) == (np.isnan(output).sum(), np.isinf(output).sum())
