"""A sweep obeys the policy: each point is judged as a scan with that epsilon under that policy judges it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lnaudit import pipeline
from lnaudit.errors import LnauditError
from lnaudit.formats import FORMATS
from lnaudit.kernels import get_kernel
from lnaudit.pipeline import sweeping
from lnaudit.policy import Accepted, Policy, SiteWords
from lnaudit.site import ArrayRows, Site

from .program import run_in
from .rows import named_rows

WIDTH = 17
DECADES = [0.0, *(float(f"1e{k}") for k in range(-12, -1))]
CODES = ("LN1", "LN106", "LN2", "LN202", "LN203", "LN3", "LN301", "LN4")
tolerances = st.sampled_from([None, 1e-3, 0.02, 0.3])
words = st.builds(
    SiteWords,
    pattern=st.sampled_from(["a", "*", "b"]),
    formats=st.sampled_from([None, ("bfloat16",), ("float32", "float16")]),
    kernel=st.sampled_from([None, "native", "fused"]),
    tolerance=tolerances,
    share=st.sampled_from([None, 0.0, 0.6]),
)
policies = st.builds(
    Policy,
    tolerance=tolerances,
    tolerances=st.sampled_from([{}, {"float16": 0.2}, {"float16": 1e-3, "bfloat16": 0.5}]),
    share=st.sampled_from([0.0, 0.2, 1.0]),
    select=st.sampled_from([("LN",), ("LN1", "LN301"), ("LN2",)]),
    ignore=st.lists(st.sampled_from(CODES), max_size=2).map(tuple),
    thresholds=st.fixed_dictionaries(
        {},
        optional={
            "LN102": st.fixed_dictionaries({"share": st.sampled_from([0.0, 1.0])}),
            "LN106": st.fixed_dictionaries({"peak": st.sampled_from([0.5, 0.9])}),
            "LN202": st.fixed_dictionaries({"share": st.sampled_from([0.0, 0.5])}),
            "LN204": st.fixed_dictionaries({"share": st.sampled_from([0.0, 0.5])}),
        },
    ),
    sites=st.lists(words, max_size=2).map(tuple),
    accepted=st.lists(
        st.builds(Accepted, pattern=st.sampled_from(["a", "b"]), code=st.sampled_from(CODES), reason=st.just("known")),
        max_size=2,
    ).map(tuple),
)


def site(x: np.ndarray, epsilon: float) -> Site:
    return Site(name="a", source="a", rows=ArrayRows(x), epsilon=epsilon)


@settings(max_examples=40, deadline=None)
@example(["zero"], [0.0], Policy(accepted=(Accepted(pattern="a", code="LN3", reason="known"),)), True, None)
@given(
    kinds=st.lists(st.sampled_from(sorted(named_rows("float16", WIDTH))), min_size=1, max_size=8),
    points=st.lists(st.sampled_from([0.0, 1e-12, 6e-8, 1e-5, 3e-3, 0.1]), min_size=1, max_size=3, unique=True),
    policy=policies,
    by_elements=st.booleans(),
    tolerance=tolerances,
)
def test_a_point_is_a_scan_at_its_epsilon_under_the_policy(kinds, points, policy, by_elements, tolerance):
    table = named_rows("float16", WIDTH)
    x = np.array([table[kind] for kind in kinds], np.float32)
    what = pipeline.Settings(
        policy=policy,
        formats=(FORMATS["float16"], FORMATS["bfloat16"]),
        kernels=(get_kernel("native"), get_kernel("native:variance=one_pass,reduction=serial")),
        kernels_asked=False,
        tolerance=tolerance,
    )
    with mock.patch.object(sweeping, "BY_ELEMENTS_BELOW", 1 << 20 if by_elements else 0):
        (swept,) = pipeline.sweep([site(x, 1e-5)], what, tuple(sorted(points))).sites
    for i, epsilon in enumerate(sorted(points)):
        scan = pipeline.run([site(x, epsilon)], what)
        for result, alone in zip(swept.results, scan.sites[0].results, strict=True):
            found = [
                f.code
                for f in scan.findings
                if (f.format, f.kernel) == (alone.format, alone.kernel) and f.severity != "note"
            ]
            assert (result.format, result.kernel) == (alone.format, alone.kernel)
            assert (result.points[i].verdict, result.points[i].codes) == (alone.verdict, found)


@pytest.mark.parametrize("code", ["LN202", "LN204"])
def test_a_factor_that_points_do_not_know_is_refused(code: str) -> None:
    policy = Policy(source="lnaudit.toml", thresholds={code: {"factor": 3.0}})
    with pytest.raises(LnauditError, match=rf"lnaudit.toml: rules.{code}.factor: of a sweep it can only be 5; "):
        pipeline.sweep([], pipeline.Settings(policy=policy), (1e-5,))
    policy = Policy(thresholds={code: {"factor": 5.0}})
    assert pipeline.sweep([], pipeline.Settings(policy=policy), (1e-5,)).sites == []


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    np.save(tmp_path / "a.npy", np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32))
    return tmp_path


def sweep(project: Path, policy: str, *more: str, **variables: str) -> dict[str, Any]:
    (project / "lnaudit.toml").write_text(policy)
    done = run_in(project, "sweep", *more, "--output-format", "json", **variables)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def results(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(result["format"], result["kernel"]) for result in document["sites"][0]["results"]]


def test_formats_and_kernels_are_those_of_the_policy(project: Path) -> None:
    shipped = 'formats = ["float16"]\nkernels = ["fused"]\n'
    assert results(sweep(project, shipped)) == [("float16", "fused")]
    assert results(sweep(project, shipped, "a.npy")) == [("float16", "fused")]
    assert results(sweep(project, shipped, "a.npy", "--format", "float32")) == [("float32", "fused")]
    assert results(sweep(project, shipped, "a.npy", "--kernel", "native")) == [("float16", "native")]
    assert results(sweep(project, shipped, "a.npy", LNAUDIT_KERNEL="decomposed")) == [("float16", "decomposed")]
    assert results(sweep(project, 'formats = ["float16"]\nruntime = ["onnxruntime==1.24.1"]', "a.npy")) == [
        ("float16", "ort-cpu-legacy")
    ]
    assert len(results(sweep(project, shipped, "a.npy", "--isolated"))) == 4
    own = '[sites."a"]\nkernel = "stored-stats"\n'
    assert {kernel for _, kernel in results(sweep(project, shipped + own, "a.npy"))} == {"stored-stats"}


def test_the_epsilon_and_norm_of_a_site_are_those_of_the_policy(project: Path) -> None:
    document = sweep(project, '[sites."a"]\nepsilon = 3e-6\nnorm = "rms"\naxis = 0\n', "a.npy", "--format", "float32")
    (found,) = document["sites"]
    assert (found["norm"], found["epsilon"], found["epsilon_source"], found["features"]) == ("rms", 3e-6, "policy", 4)
    assert [p["epsilon"] for p in found["results"][0]["points"]] == sorted([*DECADES, 3e-6])
    (family,) = sweep(project, '[sites."near*"]\nepsilon = 3e-6\nnorm = "rms"\n')["sites"]
    assert (family["norm"], family["epsilon"], family["epsilon_source"]) == ("rms", 3e-6, "policy")


def test_what_is_accepted_or_left_out_makes_no_verdict(project: Path) -> None:
    words = ("a.npy", "--format", "float16", "--eps", "1e-12")
    (point,) = sweep(project, "", *words)["sites"][0]["results"][0]["points"]
    assert (point["verdict"], point["codes"]) == ("warn", ["LN301"])
    (point,) = sweep(project, 'ignore = ["LN301"]\n', *words)["sites"][0]["results"][0]["points"]
    assert (point["verdict"], point["codes"]) == ("pass", [])
    assert sweep(project, "", *words, "--ignore", "LN3")["sites"][0]["results"][0]["points"] == [point]
    document = sweep(project, '[ignore-sites."a"]\nLN301 = "no zero rows"\nLN104 = "none"\n', *words)
    assert document["sites"][0]["results"][0]["points"] == [point]
    assert document["notes"] == ["accepted by the policy: 1 finding of LN301 at 'a': no zero rows"]


def test_settings_are_shown(project: Path) -> None:
    (project / "lnaudit.toml").write_text('formats = ["float16"]\ntolerance = 0.05\nfail-on = "note"\n')
    shown = run_in(project, "sweep", "--show-settings", "--share", "0.1").stdout
    assert shown.splitlines()[:2] == ["# lnaudit.toml", 'formats = ["float16"]  # lnaudit.toml']
    assert "tolerance = 0.05" in shown
    assert "share = 0.1" in shown
    assert "fail_on" not in shown


@pytest.mark.parametrize("option", ["--fail-on", "--save-stats", "--compare-eps", "--verify"])
def test_what_means_nothing_in_a_sweep_is_refused(project: Path, option: str) -> None:
    done = run_in(project, "sweep", option, "x")
    assert done.returncode == 2
    assert done.stderr.startswith(f"lnaudit: No such option: {option}")
