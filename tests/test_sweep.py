"""A sweep judges every epsilon as a scan with that epsilon does, from one pass over the rows."""

from __future__ import annotations

import json
import math
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from lnaudit import pipeline
from lnaudit.cli.app import app
from lnaudit.cli.options import epsilons
from lnaudit.errors import LnauditError
from lnaudit.families import parse_family, site_of
from lnaudit.formats import FORMATS
from lnaudit.kernels import get_kernel
from lnaudit.pipeline import sweeping
from lnaudit.site import ArrayRows, Site

from .rows import named_rows

WIDTH = 17
KERNELS = (
    "native",
    "stored-stats",
    "fused",
    "native:variance=one_pass,reduction=serial",
    "fused:variance=welford",
    "fused:apply=scale_shift",
    "fused:apply=scale_shift,fma=apply",
    "native:epsilon_place=outside",
    "native:flush_subnormals=all",
)
NAMED = ("float16", "bfloat16", "float32", "float8_e4m3fn")
DECADES = [0.0, *(float(f"1e{k}") for k in range(-12, -1))]


def site(x: np.ndarray, epsilon: float, norm: str, weight: np.ndarray | None = None) -> Site:
    return Site(name="a", source="a", rows=ArrayRows(x), norm=norm, epsilon=epsilon, weight=weight)


def run_settings(names: tuple[str, ...], kernels: tuple[str, ...]) -> pipeline.Settings:
    return pipeline.Settings(
        formats=tuple(FORMATS[name] for name in names), kernels=tuple(map(get_kernel, kernels)), loss_scale=100.0
    )


def rows_of(kinds: list[str]) -> np.ndarray:
    table = named_rows("float16", WIDTH)
    return np.array([table[kind] for kind in kinds], np.float32)


@settings(max_examples=25, deadline=None)
@example(["zero"], [1.0], ["float8_e4m3fn"], ["native"], "layer", 3e4, False)  # a weight that e4m3 cannot hold
@given(
    kinds=st.lists(st.sampled_from(sorted(named_rows("float16", WIDTH))), min_size=1, max_size=8),
    points=st.lists(st.sampled_from([0.0, 1e-12, 6e-8, 1e-5, 3e-3, 0.1]) | st.floats(1e-14, 1), min_size=1, max_size=3),
    names=st.lists(st.sampled_from(NAMED), min_size=1, max_size=2, unique=True),
    kernels=st.lists(st.sampled_from(KERNELS), min_size=1, max_size=3, unique=True),
    norm=st.sampled_from(["layer", "rms"]),
    weight=st.sampled_from([None, 1.0, 3e4]),
    by_elements=st.booleans(),
)
def test_a_point_is_a_scan_at_its_epsilon(kinds, points, names, kernels, norm, weight, by_elements):
    """Everything that a point says, at any epsilon; the row error too, but for the last rounding on large sites."""
    x, what = rows_of(kinds), run_settings(tuple(names), tuple(kernels))
    gamma = None if weight is None else np.full(WIDTH, weight)
    points = sorted(set(points))
    with mock.patch.object(sweeping, "BY_ELEMENTS_BELOW", 1 << 20 if by_elements else 0):
        swept = pipeline.sweep([site(x, 1e-5, norm, gamma)], what, tuple(points)).sites[0]
    for i, epsilon in enumerate(points):
        scanned = pipeline.run([site(x, epsilon, norm, gamma)], what).sites[0]
        for result, alone in zip(swept.results, scanned.results, strict=True):
            point = result.points[i]
            assert point.epsilon == epsilon
            assert point.epsilon_stored == alone.epsilon_stored
            assert (point.verdict, point.nonfinite_rows) == (alone.verdict, alone.nonfinite_rows)
            assert point.collapsed_rows == alone.collapsed_rows
            assert point.collapse_ratio == scanned.collapse_ratio["p50"]
            exact = by_elements or not get_kernel(result.kernel).has_closed_form(norm == "rms")
            assert result.error_by == ("elements" if exact else "closed-form")
            for key in ("p50", "max"):
                if exact or alone.error[key] is None:
                    assert point.error[key] == alone.error[key]
            if not exact and point.error["max"] is not None:
                # one rounding of the output: u times the largest RMS that a core can have, half a subnormal step
                fmt = FORMATS[result.format]
                largest = math.sqrt(WIDTH) * (1 + point.error["max"])
                slack = fmt.unit_roundoff * largest + fmt.smallest_normal
                assert point.error["max"] == pytest.approx(alone.error["max"], rel=1e-6, abs=slack)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(["near-constant:rows=3,features=8", "normal:rows=2,features=5"]))
def test_the_closed_form_of_the_output_std(seed, family):
    """Standard deviation of all elements together, from the statistics of the rows and from the elements."""
    where, what = parse_family(f"{family},seed={seed}"), run_settings(("float32",), ("native",))
    found = []
    for below in (0, 1 << 20):
        with mock.patch.object(sweeping, "BY_ELEMENTS_BELOW", below):
            (result,) = pipeline.sweep([site_of(where, 1e-5)], what, (0.0, 1e-7, 1e-3)).sites[0].results
        found.append([point.output_std for point in result.points])
    assert found[0] == pytest.approx(found[1], rel=1e-5)


def test_the_table_of_the_textbook():
    """`ones(1, 4, 8) * 5` with one element 5.001: what torch prints of its normalized tensor (standard deviation)."""
    (result,) = (
        pipeline.sweep(
            [site_of(parse_family("bump"), 1e-5)],
            run_settings(("float32",), ("native",)),
            (0.0, 1e-12, 1e-8, 1e-5, 1e-3),
        )
        .sites[0]
        .results
    )
    shown = [f"{point.output_std:.6f}" for point in result.points]
    assert shown == ["nan", "0.507998", "0.486255", "0.052836", "0.005312"]
    assert [point.nonfinite_rows for point in result.points] == [3, 0, 0, 0, 0]
    assert [point.verdict for point in result.points] == ["fail", "pass", "pass", "pass", "pass"]


def cli(*words: str) -> Any:
    return CliRunner().invoke(app, list(words), env={"COLUMNS": "100"})


def document(*words: str) -> dict[str, Any]:
    done = cli(*words, "--output-format", "json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def swept_epsilons(found: dict[str, Any]) -> list[float]:
    return [point["epsilon"] for point in found["sites"][0]["results"][0]["points"]]


def test_without_data_a_family_is_swept_and_it_says_so():
    found = document("sweep")
    (only,) = found["sites"]
    assert only["name"] == "near-constant:offset=5,spread=1e-3,rows=64,features=768,seed=0"
    assert [(r["format"], r["kernel"]) for r in only["results"]] == [
        (name, "native") for name in ("float16", "bfloat16", "float32", "float64")
    ]
    assert swept_epsilons(found) == DECADES
    assert "no PATH given" in cli("sweep").stdout.splitlines()[0]
    assert "Yours: lnaudit sweep acts.npy" in cli("sweep").stdout


def test_eps_alone_means_the_default(tmp_path):
    np.save(tmp_path / "acts.npy", np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32))
    acts = str(tmp_path / "acts.npy")
    for words in (("sweep", "--eps"), ("sweep", "--eps", acts), ("sweep", acts, "--eps"), ("sweep", acts)):
        assert swept_epsilons(document(*words)) == DECADES, words
    assert swept_epsilons(document("sweep", "--eps", "1e-12..1e-2")) == DECADES[1:]


def test_a_dump_is_swept_at_its_own_epsilon_too(tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32))
    (tmp_path / "manifest.json").write_text(
        json.dumps({"schema_version": 1, "sites": [{"name": "n", "file": "a.npy", "epsilon": 3e-6}]})
    )
    assert swept_epsilons(document("sweep", str(tmp_path))) == sorted([*DECADES, 3e-6])
    assert "3e-6 *" in cli("sweep", str(tmp_path)).stdout
    assert swept_epsilons(document("sweep", str(tmp_path), "--eps", "1e-3")) == [1e-3]
    assert swept_epsilons(document("sweep", str(tmp_path), "--points", "2")) == [0.0, 1e-12, 3e-6, 1e-2]
    assert "*: the site's own epsilon" in cli("sweep", str(tmp_path)).stdout


def test_a_float32_literal_of_a_grid_value_takes_its_place(tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32))
    (tmp_path / "manifest.json").write_text(
        json.dumps({"schema_version": 1, "sites": [{"name": "n", "file": "a.npy", "epsilon": 9.999999747378752e-06}]})
    )
    found = swept_epsilons(document("sweep", str(tmp_path)))
    assert found == [e if e != 1e-5 else 9.999999747378752e-06 for e in DECADES]


def test_repeats_add_up_in_a_sweep_and_are_refused_in_a_scan(tmp_path):
    assert swept_epsilons(document("sweep", "--eps", "1e-5", "--eps", "1e-4")) == [1e-5, 1e-4]
    done = cli("scan", "a.npy", "--eps", "1e-5", "--eps", "1e-4")
    assert done.exit_code == 2
    assert done.stderr == "lnaudit: --eps: is given more than once; one epsilon; lnaudit sweep takes several\n"


def test_a_value_that_is_no_path_is_not_taken_for_one(tmp_path):
    for words, said in (
        (("sweep", "--ftz", "banana"), "--ftz: unknown value 'banana'"),
        (("sweep", "--eps", "a"), "--eps: 'a' is not one number"),
        (("sweep", "--family", ","), "--family: names nothing"),
    ):
        done = cli(*words)
        assert done.exit_code == 2
        assert said in done.stderr


def test_what_passes_because_the_whole_output_is_small_is_said():
    assert "pass at 1e-2 (the whole output is 1 % of its size)" in " ".join(cli("sweep").stdout.split())


def test_a_long_sweep_keeps_its_tables_side_by_side():
    text = cli("sweep", "--points", "64").stdout
    assert text.count("error 1e-8..1") == 1
    assert all(len(line) <= 100 for line in text.splitlines())


def test_an_epsilon_beyond_the_format_is_called_that(tmp_path):
    """float8_e4m3fn ends at 448 and has no infinity: 1e5 is NaN there, Inf in float16; neither is safe."""
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32))
    words = ("scan", str(tmp_path / "a.npy"), "--eps", "1e5", "--format", "e4m3,fp16", "--kernel", "native")
    e4m3, half = document(*words)["sites"][0]["results"]
    assert (e4m3["epsilon_class"], half["epsilon_class"]) == ("overflow", "overflow")
    assert e4m3["recommendation"]["epsilon"] != 1e5
    assert half["recommendation"]["epsilon"] != 1e5
    text = " ".join(cli(*words).stdout.split())
    assert "overflows in float8_e4m3fn" in text
    assert "becomes 0" not in text


@pytest.mark.parametrize(
    ("text", "points", "expected"),
    [
        ("1e-3", None, [1e-3]),
        ("1e-5,0,1e-5", None, [0.0, 1e-5]),
        ("1e-12..1e-9", None, [1e-12, 1e-11, 1e-10, 1e-9]),
        ("3e-6..1e-4", None, [3e-6, 3e-5, 1e-4]),
        ("1e-4..1e-2", "5", [1e-4, 3.16e-4, 1e-3, 3.16e-3, 1e-2]),
        ("0,1e-4..1e-2", "2", [0.0, 1e-4, 1e-2]),
        ("default", None, DECADES),
        (None, None, DECADES),
        (None, "3", [0.0, 1e-12, 1e-7, 1e-2]),
        ("1e-5,1.0000001e-5", None, [1e-5]),
        (" 1e-5 , 1e-4", None, [1e-5, 1e-4]),
    ],
)
def test_lists_and_ranges(text, points, expected):
    found, own = epsilons(text, points)
    assert found == pytest.approx(expected, rel=1e-9)
    assert own == (text in (None, "default"))


def test_points_of_a_narrow_range_stay_apart():
    found, _ = epsilons("1e-5..1.001e-5", "64")
    assert len(set(found)) == 64
    assert (found[0], found[-1]) == (1e-5, 1.001e-5)


@pytest.mark.parametrize(
    ("text", "points", "said"),
    [
        ("0..1e-2", None, "'0' is not one number > 0"),
        ("1e-2..1e-5", None, "is not a range; the smaller end first"),
        ("1e-5,nan", None, "'nan' is not one number >= 0"),
        ("1e-5...1e-3", None, "two dots, as in 1e-12..1e-2"),
        ("1_0", None, "'1_0' is not one number"),
        ("1e-5", "4", "--points: there is no range"),
        ("1e-5..1e-2", "1", "is not a number from 2 to 1024"),
        (",", None, "names no epsilon"),
    ],
)
def test_what_is_no_list(text, points, said):
    with pytest.raises(LnauditError, match=said.replace("(", r"\(")):
        epsilons(text, points)


def test_the_antisymmetric_family_beside_the_closed_form():
    """h(t) and h'(t) worked out here from the formula of the design; the float64 kernel agrees, float16 loses it."""
    found = document("sweep", "--family", "antisymmetric:t=1e-3..1", "--eps", "1e-5", "--format", "float64,float16")
    (curve,) = found["sites"][0]["response"]
    assert curve["t"] == pytest.approx([1e-3, 1e-2, 0.1, 1], rel=1e-6)
    for i, t in enumerate(np.array([1e-3, 1e-2, 0.1, 1], np.float32).astype(float)):
        w = 2 * t * t / 3 + 1e-5
        assert curve["response"][i] == pytest.approx(t / math.sqrt(w), rel=1e-5)
        assert curve["sensitivity"][i] == pytest.approx(1e-5 / w**1.5, rel=1e-5)
        assert curve["sensitivity_measured"][i] == pytest.approx(1e-5 / w**1.5, rel=1e-4)
    by_format = {kernel["format"]: kernel["response"] for kernel in curve["kernels"]}
    assert by_format["float64"] == pytest.approx(curve["response"], rel=1e-5)
    assert max(abs(a / b - 1) for a, b in zip(by_format["float16"], curve["response"], strict=True)) > 1e-5
    text = cli("sweep", "--family", "antisymmetric", "--eps", "1e-5").stdout
    assert "1.22474" in text
    assert "h'(t)" in text
    (rms,) = document("sweep", "--family", "antisymmetric:t=1e-3..1", "--eps", "1e-5", "--norm", "rms")["sites"]
    assert rms["response"][0]["sensitivity_measured"] == curve["sensitivity_measured"]  # its mean is 0


def test_the_keys_of_a_point():
    found = document("sweep", "--family", "bump", "--format", "float16,float32", "--kernel", "native,fused")
    assert found["kind"] == "sweep"
    results = found["sites"][0]["results"]
    assert [(r["format"], r["kernel"]) for r in results] == [
        (name, kernel) for name in ("float16", "float32") for kernel in ("native", "fused")
    ]
    for result in results:
        assert not {"recommendation", "constants", "remedies"} & result.keys()
        for point in result["points"]:
            assert {
                "epsilon", "epsilon_stored", "collapse_ratio", "error", "nonfinite_rows", "collapsed_rows",
                "output_std", "verdict",
            } <= point.keys()  # fmt: skip
            assert {"p50", "max"} <= point["error"].keys()


def test_curves_without_unicode():
    for line in cli("sweep", "--ascii").stdout.splitlines():
        assert line.isascii()
    assert "█" in cli("sweep").stdout


def test_what_cannot_be_swept_is_one_line(tmp_path):
    for words, said in (
        (("sweep", str(tmp_path / "no.npy")), "does not exist"),
        (("sweep", "--family", "nonsense"), "unknown family"),
        (("sweep", "--axis", "1"), "--axis: concerns dumps, and there is no PATH"),
        (("sweep", "--format", "json"), "json is an output: --output-format json"),
        (("sweep", "--ftz=sometimes"), "--ftz: unknown value"),
    ):
        done = cli(*words)
        assert done.exit_code == 2
        assert said in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_many_kernels_stand_in_several_tables():
    text = cli("sweep", "--family", "bump", "--kernel", "ladder,native:variance=one_pass,reduction=serial").stdout
    assert "kernel 6: native:variance=one_pass,reduction=serial" in text
    assert all(len(line) <= 100 for line in text.splitlines())
    assert text.count("epsilon     ratio") > 1


def stds(x: np.ndarray, fmt: str, epsilons: tuple[float, ...], below: int, **words: Any) -> list[float | None]:
    site = Site(name="x", source="x", rows=ArrayRows(x), **words)
    with mock.patch.object(sweeping, "BY_ELEMENTS_BELOW", below):
        report = pipeline.sweep([site], run_settings((fmt,), ("native",)), epsilons)
    return [point.output_std for point in report.sites[0].results[0].points]


@pytest.mark.parametrize("below", [0, 1 << 20])
def test_a_standard_deviation_that_the_sums_do_not_tell_is_not_told(below):
    """RMSNorm of 1 + 1e-4 z puts out 1 + 1e-4 z: of 1 + 1e-9 z no sum of squares knows the 1e-9."""
    z = np.random.default_rng(1).standard_normal((50, 64))
    (known,) = stds(1 + 0.1 * z, "float64", (1e-12,), below, norm="rms")
    exact = (1 + 0.1 * z) / np.sqrt(np.mean((1 + 0.1 * z) ** 2, axis=1, keepdims=True))
    assert known == pytest.approx(float(np.std(exact, ddof=1)), rel=1e-6)
    assert stds(1 + 1e-9 * z, "float64", (1e-12,), below, norm="rms") == [None]
    assert stds(np.full((4, 8), 3.0), "float32", (1e-5,), below, norm="rms") == [None]
    assert stds(np.full((4, 8), 3.0), "float32", (1e-5,), below) == [0.0]  # all of it is 0


def test_a_closed_form_does_not_tell_what_rounding_of_the_output_hides():
    """1 + 1e-3 z in float16 comes out in steps of 2^-10 or 2^-11: its standard deviation is theirs."""
    z = np.random.default_rng(1).standard_normal((50, 64)).astype(np.float32)
    assert stds(1 + 1e-3 * z, "float16", (1e-12,), 0, norm="rms") == [None]
    (seen,) = stds(1 + 1e-3 * z, "float16", (1e-12,), 1 << 20, norm="rms")
    assert seen == pytest.approx(1e-3, rel=0.2)
