"""Saved statistics: what is judged again is what a fresh check finds, under any policy that they can answer."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lnaudit import pipeline
from lnaudit.errors import LnauditError
from lnaudit.formats import FORMATS
from lnaudit.kernels import get_kernel
from lnaudit.pipeline.rejudging import rejudge_all
from lnaudit.pipeline.saving import Saved, judged_by, lines_of, read_saved
from lnaudit.pipeline.settings import JUDGED_TOO, Settings
from lnaudit.policy import POLICY, Policy, SiteWords
from lnaudit.report import Report
from lnaudit.site import ArrayRows, NotAudited, Site

from .rows import REAL, named_rows, real_rows
from .test_compiled_epsilon import parts


def sites() -> list[Site]:
    rng = np.random.default_rng(4)
    noisy = 5 + rng.standard_normal((30, 48)) * 10.0 ** rng.uniform(-5, 3, (30, 1))
    rows = {
        "nan": np.concatenate([list(named_rows("float16", 32).values())]),
        "encoder.noisy": noisy.astype(np.float32),
        "encoder.rms": (noisy * 100).astype(np.float32),
        REAL[0]: real_rows(REAL[0])[:40],
    }
    weight = rng.standard_normal(48) * 1e4
    return [
        Site(
            name=name,
            source=f"{name}.npy",
            rows=ArrayRows(x),
            norm="rms" if "rms" in name else "layer",
            epsilon=1e-12 if "noisy" in name else 1e-5,
            weight=weight if x.shape[1] == 48 else None,
        )
        for name, x in rows.items()
    ]


def run(what: Settings) -> tuple[Report, Saved]:
    """Audit and save, through the text of the file."""
    kept: list[Any] = []
    report = pipeline.run([*sites(), NotAudited(source="b.npy", reason="broken")], what, "check", save=kept.append)
    saved = Saved(
        config=report.config,
        judged_by=judged_by(what.policy),
        not_audited=report.not_audited,
        notes=report.notes,
        sites=kept,
    )
    return report, read_saved(json.loads("".join(lines_of(saved))), "run.json")


BASE = Settings(
    formats=(FORMATS["float16"], FORMATS["float32"]),
    kernels=tuple(map(get_kernel, ("native", "fused", "torch-cpu"))),
    compare_epsilon=1e-3,
)
BASE.config.update(BASE.named(), fail_on="error", **POLICY.config())


@cache
def saved_once() -> Saved:
    return run(BASE)[1]


@pytest.fixture
def saved() -> Saved:
    return saved_once()


def without_remedies(report: Report) -> list[dict[str, Any]]:
    return [{**vars(finding), "remedy": ""} for finding in report.findings]


def test_a_summary_comes_back_to_the_last_bit() -> None:
    kept: list[Any] = []
    report = pipeline.run(sites(), BASE, save=kept.append)
    saved = Saved(config=report.config, judged_by={}, sites=kept)
    again = read_saved(json.loads("".join(lines_of(saved))), "run.json")
    for before, after in zip(kept, again.sites, strict=True):
        for mine, theirs in zip(
            (before.summary, *before.summary.variants), (after.summary, *after.summary.variants), strict=True
        ):
            expected, found = dict(parts(mine)), dict(parts(theirs))
            assert expected.keys() == found.keys()
            for name, value in expected.items():
                if mine is before.summary or "input" not in name:
                    assert repr(value) == repr(found[name]) or value == found[name], name


def test_under_the_same_policy_the_documents_are_the_same() -> None:
    report, saved = run(BASE)
    again = rejudge_all(saved, "run.json", replace(BASE, formats=(), kernels=None))
    assert again.to_dict() == report.to_dict()


thresholds = st.fixed_dictionaries(
    {},
    optional={
        "LN202": st.fixed_dictionaries({"share": st.floats(0, 1)}, optional={"factor": st.floats(1, 1e3)}),
        "LN204": st.fixed_dictionaries({"factor": st.floats(1, 1e3)}),
        "LN303": st.fixed_dictionaries({"share": st.floats(0, 1)}),
        "LN106": st.fixed_dictionaries({"peak": st.floats(0.5, 1)}),
        "LN401": st.fixed_dictionaries({"gain": st.floats(0, 1e6)}),
        "LN004": st.fixed_dictionaries({"share": st.floats(0, 1)}),
        "LN007": st.fixed_dictionaries({"share": st.floats(0, 1)}),
        "LN102": st.fixed_dictionaries({"share": st.floats(0, 1)}),
    },
)
tolerance = st.sampled_from([None, *JUDGED_TOO])
policies = st.builds(
    Policy,
    tolerance=tolerance,
    tolerances=st.dictionaries(st.sampled_from(["float16", "float32"]), st.sampled_from(JUDGED_TOO)),
    share=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    select=st.sampled_from([("LN",), ("LN1", "LN2"), ("LN202",)]),
    ignore=st.sampled_from([(), ("LN106",), ("LN3",)]),
    thresholds=thresholds,
    sites=st.lists(
        st.builds(
            SiteWords,
            pattern=st.sampled_from(["encoder.*", "nan", "*"]),
            tolerance=tolerance,
            share=st.sampled_from([None, 0.2]),
            formats=st.sampled_from([None, ("float16",), ("float32", "float16")]),
            kernel=st.sampled_from([None, "fused"]),
        ),
        max_size=2,
    ).map(tuple),
)


@settings(max_examples=12, deadline=None)
@given(policy=policies)
def test_under_any_policy_the_findings_are_those_of_a_fresh_check(policy: Policy) -> None:
    """But for remedies, which only the rows can prove."""
    what = replace(BASE, policy=policy, kernels_asked=False)
    fresh = pipeline.run([*sites(), NotAudited(source="b.npy", reason="broken")], what, "check")
    again = rejudge_all(saved_once(), "run.json", replace(what, kernels=None))
    if any(words.kernel for words in policy.sites):
        wanted = {(f.site, f.format, f.kernel) for f in fresh.findings}
        assert {(f.site, f.format, f.kernel) for f in again.findings} >= wanted - {
            (s, None, None) for s, _, _ in wanted
        }
    assert [f for f in without_remedies(again) if f["kernel"] in (None, "fused")] == [
        f for f in without_remedies(fresh) if f["kernel"] in (None, "fused")
    ]
    if not any(words.kernel for words in policy.sites):
        assert without_remedies(again) == without_remedies(fresh)
        for mine, theirs in zip(again.sites, fresh.sites, strict=True):
            assert mine.verdict == theirs.verdict
            for a, b in zip(mine.results, theirs.results, strict=True):
                assert (a.verdict, a.failing_rows, a.recommendation.epsilon) == (
                    b.verdict, b.failing_rows, b.recommendation.epsilon
                )  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (Policy(tolerance=0.03), "can be judged under the tolerances 0.001, 0.002, 0.005, 0.01, 0.02, 0.05"),
        (Policy(sites=(SiteWords(pattern="*", epsilon=1e-3),)), "was saved with epsilon 1e-05, the policy says 0.001"),
        (Policy(sites=(SiteWords(pattern="*", norm="rms"),)), "was saved with norm layer, the policy says rms"),
        (Policy(sites=(SiteWords(pattern="*", kernel="decomposed"),)), "holds nothing of decomposed; check the dump"),
    ],
)
def test_what_only_the_rows_could_tell_is_not_audited(saved: Saved, policy: Policy, said: str) -> None:
    report = rejudge_all(saved, "run.json", replace(BASE, policy=policy, formats=(), kernels=None))
    reasons = {entry.source: entry.reason for entry in report.not_audited}
    assert reasons["b.npy"] == "broken"
    assert reasons["nan.npy"].startswith(f"in run.json it {said}")


def test_formats_and_kernels_can_be_fewer(saved: Saved) -> None:
    fewer = replace(BASE, formats=(FORMATS["float32"],), kernels=(get_kernel("fused"),))
    report = rejudge_all(saved, "run.json", fewer)
    assert {(r.format, r.kernel) for site in report.sites for r in site.results} == {("float32", "fused")}
    more = replace(BASE, formats=(FORMATS["float64"],), kernels=None)
    report = rejudge_all(saved, "run.json", more)
    assert report.sites == []
    assert "it holds nothing of float64; check the dump" in report.not_audited[1].reason


def test_the_kernel_of_a_site_goes_before_that_of_all_sites_and_after_the_command_line(saved: Saved) -> None:
    policy = Policy(kernels=("native",), sites=(SiteWords(pattern="encoder.*", kernel="fused"),))
    what = replace(BASE, policy=policy, kernels=(get_kernel("native"),))
    for asked, expected in ((False, {"fused"}), (True, {"native"})):
        here = replace(what, kernels_asked=asked)
        for report in (rejudge_all(saved, "run.json", here), pipeline.run(sites(), here, "check")):
            kernels = {site.name: {result.kernel for result in site.results} for site in report.sites}
            assert kernels["encoder.noisy"] == expected
            assert kernels["nan"] == {"native"}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d.pop("sites"),
        lambda d: d["sites"][0].pop("summary"),
        lambda d: d["sites"][0]["plan"].update(norm=5),
        lambda d: d["sites"][0]["plan"]["results"][0].__setitem__(0, "float17"),
        lambda d: d["sites"][0]["summary"]["results"][0]["table"].pop("worst"),
        lambda d: d.update(sites=7),
        lambda d: d["sites"][0]["figures"].update(more=1),
    ],
)
def test_files_that_are_not_what_is_saved_are_one_line(saved: Saved, spoil: Any, tmp_path: Path) -> None:
    document = json.loads("".join(lines_of(saved)))
    spoil(document)
    with pytest.raises(LnauditError, match=r"^run\.json: is not what lnaudit saves; save it again"):
        read_saved(document, "run.json")


def test_another_version_has_to_save_again(saved: Saved) -> None:
    document = json.loads("".join(lines_of(saved)))
    document["lnaudit_version"] = "0.0.1"
    with pytest.raises(LnauditError, match=r"was saved by lnaudit 0\.0\.1, this is .*; save it again"):
        read_saved(document, "run.json")
