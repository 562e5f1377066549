"""Kernels as data: the names users write, the stages they resolve to."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

import lnaudit
from lnaudit.errors import LnauditError
from lnaudit.formats import FORMATS
from lnaudit.kernels import AXES, KERNELS, LADDER, get_kernel

from .oracles import COLUMNS, NAMES


def test_ladder_and_table():
    """The ladder climbs the five textbook kernels from the least to the most float32; every one says its source."""
    assert LADDER == ("native-serial", "native", "decomposed", "stored-stats", "fused")
    assert set(LADDER) <= set(KERNELS)
    for name, kernel in KERNELS.items():
        assert kernel.name == name
        assert kernel.stands_for
        assert kernel.source


def test_plain_names_give_the_table_row():
    """A name, padded or followed by an empty list of overrides, is the row itself; a Kernel is passed through."""
    for name, kernel in KERNELS.items():
        assert get_kernel(name) is kernel
        assert get_kernel(f"  {name} ") is kernel
        assert get_kernel(f"{name}:") is kernel
        assert get_kernel(kernel) is kernel


def contradicts(name: str, axis: str, value: str) -> bool:
    """Whether one override contradicts the rest of a textbook kernel: whether it divides, whether it sums by halves."""
    divides = name not in ("stored-stats", "fused")
    return (
        (axis == "apply" and (value == "div") != divides)
        or (axis == "epsilon_place" and value == "outside" and not divides)
        or (axis == "fma" and value in ("stats", "all") and name != "native-serial")
    )


OVERRIDES = [
    (name, axis, value) for name, (axis, values) in itertools.product(LADDER, AXES.items()) for value in values
]


@pytest.mark.parametrize(("name", "axis", "value"), [item for item in OVERRIDES if not contradicts(*item)])
def test_each_override_changes_its_axis_only(name, axis, value):
    """Every axis and value can be written; fields other than the one meant (and the default of square_sum) stay."""
    kernel = get_kernel(f"{name}:{axis}={value}")
    field = "algorithm" if value in ("two_pass", "one_pass", "welford") else axis
    expected = dataclasses.asdict(KERNELS[name]) | {"name": f"{name}:{axis}={value}", field: value}
    if axis == "sum":
        expected["square_sum"] = value
    expected["stands_for"] = f"{name} with {axis}={value}"
    assert dataclasses.asdict(kernel) == expected
    for fmt in FORMATS.values():
        kernel.stages(fmt)


@pytest.mark.parametrize(("name", "axis", "value"), [item for item in OVERRIDES if contradicts(*item)])
def test_an_override_that_contradicts_the_kernel_is_refused(name, axis, value):
    with pytest.raises(LnauditError, match=rf"^--kernel: {name}:{axis}={value}: .*{axis}={value}.*; use [^\n]*$"):
        get_kernel(f"{name}:{axis}={value}")


@pytest.mark.parametrize(
    ("text", "why", "remedies"),
    [
        (
            "native:apply=scale_shift",
            "apply=scale_shift multiplies by 1/std, inverse=div divides by the root"
            "; use inverse=recip_sqrt or inverse=rsqrt",
            ["native:apply=scale_shift,inverse=recip_sqrt", "native:apply=scale_shift,inverse=rsqrt"],
        ),
        (
            "fused:apply=div",
            "apply=div divides by the root, inverse=rsqrt gives 1/std; use inverse=div",
            ["fused:apply=div,inverse=div"],
        ),
        (
            "native:inverse=recip_sqrt,apply=div",
            "apply=div divides by the root, inverse=recip_sqrt gives 1/std; use inverse=div",
            ["native:inverse=div,apply=div"],
        ),
        (
            "fused:epsilon_place=outside",
            "epsilon_place=outside adds epsilon to the root, which inverse=rsqrt never has"
            "; use inverse=recip_sqrt or inverse=div",
            ["fused:epsilon_place=outside,inverse=recip_sqrt", "fused:epsilon_place=outside,inverse=div"],
        ),
        (
            "native:fma=stats",
            "fma=stats adds products to a running sum, reduction=tree has none; use reduction=serial, or fma=apply",
            ["native:fma=stats,reduction=serial", "native:fma=apply"],
        ),
        (
            "fused:variance=one_pass,fma=all",
            "fma=all adds products to a running sum, reduction=tree has none; use reduction=serial, or fma=apply",
            ["fused:variance=one_pass,fma=all,reduction=serial", "fused:variance=one_pass,fma=apply"],
        ),
        (
            "native:variance=welford,mean_scale=terms",
            "mean_scale=terms scales what is summed, variance=welford sums no terms"
            "; use mean_scale=divide or reciprocal",
            ["native:variance=welford,mean_scale=divide", "native:variance=welford,mean_scale=reciprocal"],
        ),
    ],
)
def test_a_refusal_is_one_line_and_its_remedies_work(text, why, remedies):
    with pytest.raises(LnauditError) as caught:
        get_kernel(text)
    assert str(caught.value) == f"--kernel: {text}: {why}"
    for remedy in remedies:
        kernel = get_kernel(remedy)
        assert np.isfinite(lnaudit.layer_norm([[1.0, 2.0, 4.0]], kernel=kernel)).all()


@pytest.mark.parametrize("fused", ["stats", "all"])
def test_welford_has_running_sums_whatever_the_reduction(fused):
    """From left to right: nothing to refuse, unlike `native:fma=stats`."""
    assert get_kernel(f"native:variance=welford,fma={fused}").fuses_statistics


def test_several_overrides():
    """Overrides combine; variance takes an algorithm and a dtype at once; square_sum follows sum unless given."""
    kernel = get_kernel("native:reduction=serial,variance=one_pass,variance=float32,clamp_negative=zero")
    assert (kernel.reduction, kernel.algorithm, kernel.variance) == ("serial", "one_pass", "float32")
    assert kernel.clamp_negative == "zero"
    assert kernel.name == "native:reduction=serial,variance=one_pass,variance=float32,clamp_negative=zero"
    for text in ("native:sum=float32,square_sum=T", "native:square_sum=T,sum=float32"):
        kernel = get_kernel(text)
        assert (kernel.sum, kernel.square_sum) == ("float32", "T")


def test_last_override_of_an_axis_wins():
    """Repeating an axis keeps the last value, square_sum's included."""
    kernel = get_kernel("fused:sum=T,sum=float64")
    assert (kernel.sum, kernel.square_sum) == ("float64", "float64")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("natve", "unknown kernel 'natve'; did you mean native"),
        ("fusedd:sum=T", "unknown kernel 'fusedd'; did you mean fused"),
        ("zzz", "unknown kernel 'zzz'; choose from native-serial, native"),
        ("", "unknown kernel ''; choose from"),
        ("native:reductoin=serial", "unknown axis 'reductoin' of kernel native; did you mean reduction"),
        ("native:qqqq=1", "unknown axis 'qqqq' of kernel native; choose from sum, "),
        ("native:reduction=pairwise", "reduction=pairwise is not known; choose from tree, serial"),
        ("native:reduction", "reduction= is not known; choose from tree, serial"),
        ("native:sum=bfloat16", "sum=bfloat16 is not known; choose from T, float32, float64"),
        ("native:variance=welford2", "variance=welford2 is not known; choose from two_pass, one_pass, welford, T"),
    ],
)
def test_errors_repeat_the_input_and_name_the_nearest(text, message):
    """A wrong name, axis or value is one line: what was written, and what could have been meant."""
    with pytest.raises(LnauditError) as caught:
        get_kernel(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith("--kernel: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("column", COLUMNS)
def test_stages_are_the_columns_of_the_table(column, name):
    """The last rounding of each stage is the table's: T, or A = float32, or T if T is wider."""
    wide = "float64" if name == "float64" else "float32"
    last = {stage: {"T": name, "A": wide}[letters[-1]] for stage, letters in COLUMNS[column].items()}
    at = KERNELS[column].stages(FORMATS[name])
    assert at.sum.name == at.square_sum.name == last["sum"]
    assert (at.mean.name, at.diff.name, at.square.name) == (last["mean"], last["diff"], last["square"])
    assert (at.variance.name, at.epsilon.name, at.rstd.name) == (last["variance"], last["epsilon"], last["inverse"])
    # the core's first rounding is the normalized stage, its last the output
    first = {"T": name, "A": wide}[COLUMNS[column]["core"][0]]
    assert (at.normalized.name, at.affine.name, at.output.name) == (first, last["affine"], name)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("T", {"float16": "float16", "bfloat16": "bfloat16", "float32": "float32", "float64": "float64"}),
        ("wide", {"float16": "float32", "bfloat16": "float32", "float32": "float32", "float64": "float64"}),
        ("float32", {"float16": "float32", "bfloat16": "float32", "float32": "float32", "float64": "float32"}),
        ("float64", dict.fromkeys(NAMES, "float64")),
    ],
)
def test_where_epsilon_is_held(value, expected):
    """Epsilon alone may be narrower than T (a float attribute of a double model); "wide" is at least float32."""
    kernel = get_kernel(f"native:epsilon={value}")
    assert {name: kernel.stages(FORMATS[name]).epsilon.name for name in NAMES} == expected


def test_float32_means_at_least_float32():
    """A stage fixed to float32 is float64 when float64 is audited; float64 is float64 everywhere."""
    kernel = get_kernel("native:sum=float32,diff=float64")
    assert kernel.stages(FORMATS["float16"]).sum.name == "float32"
    assert kernel.stages(FORMATS["float64"]).sum.name == "float64"
    assert {kernel.stages(fmt).diff.name for fmt in FORMATS.values()} == {"float64"}
