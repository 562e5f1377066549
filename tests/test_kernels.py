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

from .exact_kernel import ExactKernel
from .oracles import COLUMNS, NAMES, equal
from .test_axes import parameters, rows


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
    """Whether one override contradicts the rest of a textbook kernel: whether it divides, what it sums by."""
    divides = name not in ("stored-stats", "fused")
    return (
        (axis == "apply" and (value == "div") != divides)
        or (axis == "epsilon_place" and value == "outside" and not divides)
        or (axis, value) == ("variance", "cascade")
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
        (
            "native:variance=cascade",
            "variance=cascade runs in vector lanes, reduction=tree has none; use reduction=lanes8 or reduction=lanes4",
            ["native:variance=cascade,reduction=lanes8", "native:variance=cascade,reduction=lanes4"],
        ),
        (
            "torch-cpu:reduction=cascade8",
            "variance=cascade runs in vector lanes, reduction=cascade8 has none"
            "; use reduction=lanes8 or reduction=lanes4",
            ["torch-cpu:reduction=lanes8", "torch-cpu:reduction=lanes4"],
        ),
        (
            "native:variance=cascade,reduction=lanes8,mean_scale=terms",
            "mean_scale=terms scales what is summed, variance=cascade sums no terms; use mean_scale=divide",
            ["native:variance=cascade,reduction=lanes8,mean_scale=divide"],
        ),
        (
            "fused:variance=cascade,reduction=lanes4,mean_scale=reciprocal",
            "mean_scale=reciprocal with variance=cascade, which divides; use mean_scale=divide",
            ["fused:variance=cascade,reduction=lanes4,mean_scale=divide"],
        ),
        (
            "native:reduction=cascade8,fma=stats",
            "fma=stats adds products to a running sum, reduction=cascade8 has none; use reduction=serial, or fma=apply",
            ["native:reduction=serial,fma=stats", "native:reduction=cascade8,fma=apply"],
        ),
        (
            "native-serial:square_reduction=pairwise,fma=stats",
            "fma=stats adds products to a running sum, square_reduction=pairwise has none"
            "; use square_reduction=serial, or fma=apply",
            [
                "native-serial:square_reduction=serial,fma=stats",
                "native-serial:square_reduction=pairwise,fma=apply",
            ],
        ),
        (
            "ort-cpu:reduction=tree",
            "fma=all adds products to a running sum, reduction=tree has none; use reduction=serial, or fma=apply",
            ["ort-cpu:reduction=serial", "ort-cpu:reduction=tree,fma=apply"],
        ),
        (
            "ort-cpu:apply=sub_mul",
            "apply=sub_mul multiplies by 1/std, inverse=div divides by the root"
            "; use inverse=recip_sqrt or inverse=rsqrt",
            ["ort-cpu:apply=sub_mul,inverse=recip_sqrt", "ort-cpu:apply=sub_mul,inverse=rsqrt"],
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


@pytest.mark.parametrize("order", ["serial", "lanes4", "lanes8", "lanes8_fours"])
def test_orders_in_which_products_can_be_fused(order):
    assert get_kernel(f"native:reduction={order},fma=stats").fuses_statistics
    assert get_kernel(f"native:square_reduction={order},fma=all").fuses_statistics


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
        ("native:reduction=halves", "reduction=halves is not known; choose from tree, serial, lanes4, lanes8, "),
        ("native:square_reduction=lanes16", "square_reduction=lanes16 is not known; choose from tree, serial"),
        ("native:reduction", "reduction= is not known; choose from tree, serial"),
        ("native:sum=bfloat16", "sum=bfloat16 is not known; choose from T, float32, float64"),
        ("native:variance=welford2", "variance=welford2 is not known; choose from two_pass, one_pass, welford, cas"),
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


# which row a program runs, written with the axes of a textbook kernel: by format, norm and number of features
TORCH = "fused:variance=cascade,reduction=lanes8,inverse=recip_sqrt,epsilon=T,fma=apply"
TORCH_SHIFT = "fused:variance=cascade,reduction=lanes8,inverse=recip_sqrt,epsilon=float32,apply=scale_shift"
TORCH_RMS = "fused:inverse=recip_sqrt,reduction"
LEGACY = "fused:variance=one_pass,reduction=serial,inverse=div,epsilon=float32"
WELFORD = "fused:variance=welford,inverse=div,epsilon=float32"
AVX2 = "fused:sum=float64,square_sum=float32,reduction=lanes4,inverse=recip_sqrt,epsilon=float32,fma=all"
REFERENCE = "native:reduction=pairwise,epsilon=float32,plus_epsilon=float32,rstd=float32,inverse=recip_sqrt"
REFERENCE += ",normalized=float32,affine=float32"
ROWS = [
    ("torch-cpu", "float32", "layer", 1, TORCH),
    ("torch-cpu", "float32", "layer", 100, TORCH),
    ("torch-cpu", "float64", "layer", 100, TORCH.replace("lanes8", "lanes4")),
    # two halves of a vector, and of what does not fill it the squares are fused in float16 only
    ("torch-cpu", "bfloat16", "layer", 100, f"{TORCH_SHIFT},fma=apply"),
    ("torch-cpu", "float16", "layer", 100, f"{TORCH_SHIFT},fma=all"),
    *(("torch-cpu", name, "rms", 100, f"{TORCH_RMS}=cascade8") for name in ("float16", "bfloat16", "float32")),
    ("torch-cpu", "float64", "rms", 100, f"{TORCH_RMS}=cascade4"),
    *(("ort-cpu-legacy", name, norm, 20, LEGACY) for name in NAMES for norm in ("layer", "rms")),
    *(("ort-cpu-skip", name, "layer", 20, WELFORD) for name in NAMES),
    *(("ort-cpu-skip", name, "rms", 20, LEGACY) for name in NAMES),
    # from 8 features on with vectors, RMSNorm and float16 from 16; never in float64
    ("ort-cpu", "float32", "layer", 7, WELFORD),
    ("ort-cpu", "float32", "layer", 8, f"{AVX2},square_reduction=lanes8_fours"),
    ("ort-cpu", "float32", "layer", 31, f"{AVX2},square_reduction=lanes8_fours"),
    ("ort-cpu", "float32", "rms", 15, LEGACY),
    ("ort-cpu", "float32", "rms", 16, f"{AVX2},square_reduction=lanes8_fours"),
    ("ort-cpu", "float16", "layer", 15, WELFORD),
    ("ort-cpu", "float16", "layer", 31, f"{AVX2},square_reduction=lanes8"),
    ("ort-cpu", "float16", "rms", 15, LEGACY),
    ("ort-cpu", "float16", "rms", 31, f"{AVX2},square_reduction=lanes8"),
    ("ort-cpu", "float64", "layer", 100, WELFORD),
    ("ort-cpu", "float64", "rms", 100, LEGACY),
    *(("onnx-reference", name, "layer", 20, REFERENCE) for name in NAMES),
    *(("onnx-reference", name, "rms", 20, f"{REFERENCE},square_sum=float32") for name in NAMES),
]


@pytest.mark.parametrize(("preset", "name", "norm", "d", "row"), ROWS)
def test_the_row_of_a_program_bit_for_bit(preset, name, norm, d, row):
    """Against naive scalars on exact rationals; the programs themselves are in real_kernels."""
    exact, x = ExactKernel(row, name, rms=norm == "rms"), rows(name, d)[1]
    weight, bias = parameters(name, d)
    with np.errstate(over="ignore"):
        centred = [exact.centre(values) for values in x.tolist()]
    for given in ({}, {"weight": weight}, {"weight": weight, "bias": bias}):
        got = lnaudit.layer_norm(x, format=name, kernel=preset, norm=norm, **given)
        lists = {key: values.tolist() for key, values in given.items()}
        assert equal(got, [exact.finish(values, 1e-5, **lists).output for values in centred])


@pytest.mark.parametrize("preset", ["torch-cpu", "ort-cpu", "ort-cpu-skip", "ort-cpu-legacy", "onnx-reference"])
def test_a_row_keeps_the_name_of_its_program(preset):
    """And what it flushes, where that was asked for, or the override of an axis."""
    for text, flushed in ((preset, "none"), (f"{preset}:flush_subnormals=all", "all")):
        kernel = get_kernel(text)
        for fmt, rms, d in itertools.product(FORMATS.values(), (False, True), (1, 7, 8, 15, 16, 1000)):
            row = kernel.at(fmt, rms, d)
            assert (row.name, row.stands_for, row.source) == (text, kernel.stands_for, kernel.source)
            assert row.flush_subnormals == flushed
            assert row.at(fmt, rms, d) == row
            changed = get_kernel(f"{preset}:output=float32").at(fmt, rms, d)
            assert dataclasses.replace(row, output="float32") == dataclasses.replace(
                changed,
                **{field: getattr(row, field) for field in ("name", "stands_for", "proven", "flush_subnormals")},
            )


def test_textbook_kernels_have_one_row():
    for name in LADDER:
        assert KERNELS[name].at(FORMATS["float16"], True, 3) is KERNELS[name]


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("preset", ["torch-cpu", "ort-cpu", "ort-cpu-skip", "ort-cpu-legacy"])
def test_reports_speak_of_the_row_that_runs(preset, name):
    """The error of each row is that of the outputs; 1000 leaves 2e-3 in bfloat16 where torch shifts."""
    x = np.array([np.full(20, 1000.0), 5 + 1e-2 * np.random.default_rng(61).standard_normal(20)])
    exact = x - x.mean(axis=1, keepdims=True)
    exact /= np.sqrt((exact**2).mean(axis=1, keepdims=True) + 1e-5)
    for row, meant in zip(x, exact, strict=True):
        core = lnaudit.layer_norm(row[None], format=name, kernel=preset)
        result = lnaudit.audit(row[None], formats=name, kernels=preset).to_dict()["sites"][0]["results"][0]
        assert result["kernel"] == preset
        if np.isnan(core).any():
            assert (result["nonfinite_rows"], result["error"]["max"]) == (1, None)
            continue
        error = np.sqrt(((core - meant) ** 2).mean())
        assert result["error"]["max"] == pytest.approx(error, rel=1e-5, abs=1e-12)
        if (preset, name, row[0]) == ("torch-cpu", "bfloat16", 1000.0):
            assert round(error, 4) == 2.0e-3
