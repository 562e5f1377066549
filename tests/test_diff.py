"""`lnaudit diff`: what changed between two runs, and what does not compare."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lnaudit import LnauditError
from lnaudit.comparison import Comparison, Run, compare_runs, nothing_of
from lnaudit.findings import at_or_above
from lnaudit.render.diff import render_diff, render_diff_json
from lnaudit.render.style import Style
from lnaudit.report import Report
from lnaudit.site import NotAudited

from .program import run_in as run
from .report_samples import HOSTILE, SAMPLES, finding, recommendation, report, result, site
from .test_report_round_trip import damaged


def compared(old: Report, new: Report, fail_on: str = "never") -> Comparison:
    return compare_runs(Run(source="old.json", report=old), Run(source="new.json", report=new), fail_on)


def text_of(old: Report, new: Report, **style: Any) -> list[str]:
    return render_diff(compared(old, new), Style(**style)).splitlines()


def one(results: list[Any] | None = None, found: list[Any] | None = None, **changes: Any) -> Report:
    """A run of the site `a`, 765 rows, of which float16 native was judged."""
    run_of_one = report([site("a", [result("float16")] if results is None else results)], found or [], **changes)
    run_of_one.config["limits"] = {"float16": 0.02}
    return run_of_one


def collapsed(rows: int = 30, **changes: Any) -> Any:
    words = {"format": "float16", "kernel": "native", "rows": rows, "measured": 1e5, "limit": 65504.0}
    return finding("LN104", "collapsed-rows", "error", "a", **{**words, **changes})


@pytest.mark.parametrize("name", SAMPLES)
def test_a_run_beside_itself_is_one_line(name: str) -> None:
    run_of_many = SAMPLES[name]()
    comparison = compared(run_of_many, copy.deepcopy(run_of_many))
    assert comparison.changes == comparison.configured == comparison.counted == []
    sites = len(run_of_many.sites)
    expected = {0: "0 sites: there is nothing to compare.", 1: "1 site: the same."}
    lines = render_diff(comparison).splitlines()
    # what the new run could not audit is told whether or not the old one could
    lost = run_of_many.not_audited
    assert sum(line.startswith("not audited in the new run: ") for line in lines) == len(lost)
    assert [line for line in lines if not line.startswith(("not audited", " "))] == [
        expected.get(sites, f"{sites} sites: all the same."),
        *(["exit 2 (not audited)."] if lost or not sites else []),
    ]


def test_a_site_that_fails_now_says_what_became_worse() -> None:
    bad = result("float16", verdict="fail", errors=(0.5, 1.0), recommendation=recommendation(None))
    assert text_of(one(), one([bad], [collapsed()])) == [
        "worse  a  float16 native  verdict pass -> FAIL",
        "worse  a  float16 native  new error LN104 collapsed-rows: 30 rows",
        "worse  a  float16 native  recommended epsilon keep -> none",
        "worse  a  float16 native  greatest error 1.4e-3 -> 1 (limit 0.02)",
        "1 site: 1 got worse.",
    ]


def test_the_other_way_round_it_is_better() -> None:
    bad = result("float16", verdict="fail", errors=(0.5, 1.0), recommendation=recommendation(None))
    lines = text_of(one([bad], [collapsed()]), one())
    assert [line.split()[0] for line in lines] == ["better"] * 4 + ["1"]
    assert lines[-1] == "1 site: 1 better."
    assert "better  a  float16 native  gone error LN104 collapsed-rows: 30 rows" in lines


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ({"rows": 100}, {"rows": 109}, None),  # less than a tenth more of the rows
        ({"rows": 100}, {"rows": 112}, "worse"),
        ({"rows": 112}, {"rows": 100}, "better"),
        ({"measured": 1e5}, {"measured": 1.2e5}, "worse"),
        ({"measured": 1e5}, {"measured": 1.05e5}, None),
        ({"measured": math.nan}, {"measured": math.nan}, None),
        ({"measured": 1e5}, {"measured": math.nan}, "worse"),
        ({"severity": "warning"}, {"severity": "error"}, "worse"),
        ({"severity": "error"}, {"severity": "warning"}, "better"),
    ],
)
def test_findings_are_compared_as_a_baseline_does(old: Any, new: Any, change: str | None) -> None:
    pair = [collapsed(), collapsed()]
    before, after = (replace(f, **words) for f, words in zip(pair, (old, new), strict=True))
    comparison = compared(one(found=[before]), one(found=[after]))
    assert [c.change for c in comparison.changes] == ([change] if change else [])
    assert comparison.counted == ([after] if change == "worse" else [])


def test_the_share_of_the_rows_is_compared_not_their_number() -> None:
    before, after = one(found=[collapsed(100)]), one(found=[collapsed(200)])
    after.sites[0].rows *= 2
    assert compared(before, after).changes == []


@pytest.mark.parametrize(
    ("old", "new", "trend"),
    [
        (1e-3, 9e-3, None),  # far below the limit of 0.02
        (9e-3, 0.0105, "worse"),
        (0.018, 0.019, None),
        (0.05, 0.011, "better"),
        (0.011, math.inf, "worse"),
        (math.nan, 0.5, "better"),
        (math.inf, math.nan, None),
        (None, 0.5, None),
    ],
)
def test_an_error_matters_near_its_limit(old: float | None, new: float | None, trend: str | None) -> None:
    runs = [one([result("float16", errors=(0.0, worst))]) for worst in (old, new)]
    assert [(c.what, c.trend) for c in compared(*runs).changes] == ([("error", trend)] if trend else [])


def test_the_limit_of_a_site_counts_before_that_of_the_run() -> None:
    runs = [one([result("float16", errors=(0.0, worst))]) for worst in (1e-3, 9e-3)]
    assert compared(*runs).changes == []  # far below 0.02
    runs[1].sites[0].limits = {"float16": 0.01}
    (change,) = compared(*runs).changes
    assert (change.trend, change.limit) == ("worse", 0.01)


@pytest.mark.parametrize(
    ("old", "new", "trend"),
    [
        ((1e-5, "keeps"), (1e-6, "keeps"), None),  # of another model: that it is another is said once
        ((1e-5, "keeps"), (1e-4, "zero-rows"), "worse"),
        ((1e-4, "zero-rows"), (1e-3, "zero-rows"), "changed"),
        ((1e-4, "zero-rows"), (1e-4 * (1 + 1e-9), "zero-rows"), None),
        ((None, "overflow"), (1e-3, "zero-rows"), "better"),
        ((None, "overflow"), (None, "cast"), None),
    ],
)
def test_recommended_epsilons(old: Any, new: Any, trend: str | None) -> None:
    advice = [recommendation(epsilon, reason=reason) for epsilon, reason in (old, new)]
    runs = [one([result("float16", recommendation=advised)]) for advised in advice]
    assert [c.trend for c in compared(*runs).changes] == ([trend] if trend else [])


def test_a_note_makes_no_site_better_or_worse() -> None:
    note = finding("LN002", "zero-rows", "note", "a", rows=3, format=None, kernel=None)
    lines = text_of(one(), one(found=[note]))
    assert lines == ["changed  a  new note LN002 zero-rows: 3 rows", "1 site: 1 changed."]


def test_sites_that_come_and_go() -> None:
    other = finding("LN104", "collapsed-rows", "error", "b", format="float16", kernel="native", rows=1)
    new = report([site("b", [result("float16", verdict="fail")], verdict="fail")], [other])
    new.config["limits"] = {"float16": 0.02}
    comparison = compared(one(), new)
    assert render_diff(comparison).splitlines() == [
        "added    b  FAIL: LN104",
        "removed  a  pass",
        "2 sites: 1 added, 1 removed.",
    ]
    assert comparison.counted == [other]  # what nobody knew is new
    assert compared(new, one()).counted == []


def test_worst_first_and_the_changes_of_one_emulation_together() -> None:
    def sites(verdicts: dict[str, str], found: list[Any]) -> Report:
        return report([site(name, [result("float16", verdict=v)]) for name, v in verdicts.items()], found)

    where = {"format": "float16", "kernel": "native", "rows": 3}
    found = [
        finding("LN106", "low-headroom", "warning", "b", **where),
        finding("LN104", "collapsed-rows", "error", "c", **where),
        finding("LN106", "low-headroom", "warning", "c", **where),
    ]
    old = sites({"a": "fail", "b": "pass", "c": "pass", "d": "pass"}, [])
    new = sites({"a": "pass", "b": "warn", "c": "fail", "d": "pass"}, found)
    lines = text_of(old, new)
    assert [line.split()[:2] for line in lines[:-1]] == [["worse", "c"]] * 3 + [["worse", "b"]] * 2 + [["better", "a"]]
    assert lines[-1] == "4 sites: 2 got worse, 1 better, 1 the same."


def test_what_was_configured_differently_is_said_once() -> None:
    old = report([site(name, [result("float16"), result("float32")]) for name in "abcd"])
    new = report([site(name, [result("float16"), result("bfloat16")], epsilon=1e-6) for name in "abcd"])
    old.config = {"tolerance": 0.02, "limits": {"float16": 0.02}, "select": ["LN"], "fail_on": "never", "kernels": None}
    new.config = {"tolerance": 0.05, "limits": {"float16": 0.05}, "select": [], "fail_on": "error", "share": 0.5}
    new.lnaudit_version = "9.9"
    assert text_of(old, new, width=200) == [
        "Configured differently; figures that depend on it do not compare:",
        f"  lnaudit {old.lnaudit_version} -> 9.9",
        "  tolerance 0.02 -> 0.05",
        "  select LN -> none",
        "  epsilon 1e-5 -> 1e-6 (4 sites)",
        "  only the old run judged float32 native; only the new run judged bfloat16 native (4 sites)",
        "4 sites: 4 changed.",
    ]


def test_what_only_the_new_run_judged_is_told_where_it_does_not_pass() -> None:
    bad = [result("float16"), result("bfloat16", verdict="fail")]
    new = one(bad, [collapsed(format="bfloat16")])
    comparison = compared(one(), new)
    lines = render_diff(comparison).splitlines()
    assert lines[2] == "added  a  bfloat16 native  judged only in the new run: FAIL: LN104"
    assert lines[-1] == "1 site: 1 changed."
    assert len(comparison.counted) == 1
    assert render_diff(compared(new, one())).splitlines()[2:] == ["1 site: 1 changed."]


def test_what_could_not_be_audited_any_more_is_named() -> None:
    lines = text_of(SAMPLES["healthy"](), replace(SAMPLES["empty"](), sites=[]))
    assert "not audited in the new run: a.npy: does not exist" in lines


def test_hostile_names_are_escaped_and_fit_the_screen() -> None:
    lines = text_of(SAMPLES["hostile"](), report([]), width=60, color=True)
    assert all(character.isprintable() or character == "\x1b" for line in lines for character in line)
    assert HOSTILE not in "\n".join(lines)


@pytest.mark.parametrize("width", [60, 100, 200])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    plain = [of for name, of in SAMPLES.items() if name != "hostile"]  # names are not broken
    for old in plain:
        for new in plain:
            assert max(map(len, text_of(old(), new(), width=width))) <= width


def test_the_json_is_strict_and_deterministic() -> None:
    pairs = [(old(), new()) for old in SAMPLES.values() for new in SAMPLES.values()]
    for old, new in pairs:
        text = render_diff_json(compared(old, new))
        assert text == render_diff_json(compared(old, new))
        assert text.isascii()
        document = json.loads(text, parse_constant=lambda name: pytest.fail(f"bare {name}"))
        assert (document["schema_version"], document["kind"]) == (1, "diff")
        summary = document["summary"]
        fates = ("worse", "better", "changed", "same", "added", "removed")
        assert sum(summary[fate] for fate in fates) == summary["sites"]
        assert len({s.name for s in old.sites} | {s.name for s in new.sites}) == summary["sites"]


PARTS = st.tuples(
    st.sampled_from("abc"),
    st.sampled_from(["pass", "warn", "fail"]),
    st.sampled_from([None, "LN104", "LN202"]),
    st.sampled_from(["error", "warning", "note"]),
    st.integers(0, 765),
    st.sampled_from([None, 0.0, 0.01, 0.05, 0.5, math.inf, math.nan]),
)


@given(st.lists(PARTS, max_size=4), st.lists(PARTS, max_size=4))
def test_what_got_worse_one_way_is_not_worse_the_other_way(old: Any, new: Any) -> None:
    def of(parts: Any) -> Report:
        sites, found = {}, []
        for name, verdict, code, severity, rows, measured in parts:
            sites[name] = site(name, [result("float16", verdict=verdict)], verdict=verdict)
            where = {"format": "float16", "kernel": "native", "rows": rows, "measured": measured, "limit": 0.02}
            found += [finding(code, "x", severity, name, **where)] if code else []
        return report(list(sites.values()), found)

    there, back = compared(of(old), of(new)), compared(of(new), of(old))
    pairs = [{(c.what, c.site, c.code): c for c in comparison.changes} for comparison in (there, back)]
    for key in pairs[0].keys() & pairs[1].keys():
        trends = {pairs[0][key].trend, pairs[1][key].trend}
        both_worse = trends == {"worse"}  # more rows, less far: a gate lets neither pass
        assert key[0] == "finding" if both_worse else True
    assert {c.site for c in there.changes if c.change == "added"} == {
        c.site for c in back.changes if c.change == "removed"
    }
    assert at_or_above(there.counted, "note") == there.counted
    assert compared(of(old), of(old)).changes == []


@given(documents=st.tuples(damaged(), damaged()), width=st.sampled_from([40, 100]))
def test_whatever_a_report_says_it_is_compared(documents: Any, width: int) -> None:
    runs = []
    for document in documents:
        try:
            runs.append(Run(source="x", report=Report.from_dict(document)))
        except LnauditError:
            runs.append(Run(source="x", report=SAMPLES["several"]()))
    try:
        comparison = compare_runs(*runs)
    except LnauditError as error:
        comparison = nothing_of("x", "x", "never", NotAudited(source=error.source, reason=error.reason))
    text = render_diff(comparison, Style(width=width, color=True))
    assert all(character.isprintable() or character in "\n\x1b" for character in text)
    json.loads(render_diff_json(comparison), parse_constant=lambda name: pytest.fail(f"bare {name}"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two batches of two sites; in the second, one of them overflows."""
    place = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    for batch, scale in (("old", 1), ("new", 500)):
        (place / batch).mkdir()
        np.save(place / batch / "fine.npy", rng.standard_normal((30, 64)).astype(np.float32))
        np.save(place / batch / "large.npy", (rng.standard_normal((30, 64)) * scale).astype(np.float32))
        done = run(place, "scan", batch, "--save-stats", f"{batch}.stats", "--output-format", "json", "--isolated")
        (place / f"{batch}.json").write_text(done.stdout)
    (place / "sweep.json").write_text(run(place, "sweep", "old", "--output-format", "json", "--isolated").stdout)
    (place / "text").write_text("hello")
    (place / "list.json").write_text("[]")
    (place / "other.json").write_text('{"schema_version": 1, "kind": "baseline", "findings": []}')
    later = {**json.loads((place / "new.json").read_text()), "schema_version": 2}
    (place / "later.json").write_text(json.dumps(later))
    return place


@pytest.mark.parametrize("old", ["old.json", "old.stats"])
@pytest.mark.parametrize("new", ["new.json", "new.stats"])
def test_reports_and_statistics_in_any_mix(folder: Path, old: str, new: str) -> None:
    done = run(folder, "diff", old, new)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "worse    large  float16 native  verdict pass -> FAIL"
    assert lines[-1] == "2 sites: 1 got worse, 1 the same."
    assert done.stdout == run(folder, "diff", "old.json", "new.json").stdout


def test_a_run_beside_its_own_statistics_is_the_same(folder: Path) -> None:
    for pair in (("new.json", "new.stats"), ("new.stats", "new.json"), ("old.json", "old.json")):
        assert run(folder, "diff", *pair, "--fail-on", "note").stdout == "2 sites: all the same.\n"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("old.json", "new.json"), 0),
        (("old.json", "new.json", "--fail-on", "error"), 1),
        (("new.json", "old.json", "--fail-on", "error"), 0),
        (("new.json", "new.json", "--fail-on", "note"), 0),
        (("old.json", "new.json", "--fail-on", "bad"), 2),
        (("old.json", "new.json", "--output-format", "xml"), 2),
        (("old.json",), 2),
        (("missing.json", "new.json"), 2),
        (("old.json", "sweep.json"), 2),
        (("old.json", "later.json"), 2),
        (("text", "new.json"), 2),
        (("old.json", "list.json"), 2),
        (("other.json", "new.json"), 2),
        (("old", "new.json"), 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_exit_codes(folder: Path, words: tuple[str, ...], code: int) -> None:
    done = run(folder, "diff", *words)
    assert done.returncode == code
    if code == 2:
        assert done.stdout == ""
        assert done.stderr.startswith("lnaudit: ")
        assert done.stderr.count("\n") == 1


def test_a_refusal_says_what_to_do(folder: Path) -> None:
    said = run(folder, "diff", "old.json", "sweep.json").stderr
    assert said == "lnaudit: sweep.json: is a sweep; only scans and checks can be compared\n"
    said = run(folder, "diff", "other.json", "new.json").stderr
    assert said.startswith("lnaudit: other.json: is no report that can be read (kind 'baseline'")


def test_the_exit_code_is_explained(folder: Path) -> None:
    done = run(folder, "diff", "old.json", "new.json", "--fail-on", "error")
    assert done.stdout.splitlines()[-1] == "exit 1 (1 new or worse finding at or above --fail-on error)."


@pytest.mark.parametrize(("other", "code"), [("new.json", 1), ("missing.json", 2)])
def test_json_whatever_happens(folder: Path, other: str, code: int) -> None:
    done = run(folder, "diff", "old.json", other, "--fail-on", "error", "--output-format", "json")
    document = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"bare {name}"))
    assert (done.returncode, document["kind"]) == (code, "diff")
    assert bool(document["not_audited"]) == (code == 2)
    assert [f["code"] for f in document["counted"] if f["severity"] == "error"] == (["LN104"] if code == 1 else [])
    if code == 1:
        head = {"source": "old.json", "kind": "scan", "lnaudit_version": document["lnaudit_version"], "sites": 2}
        assert document["old"] == head


def test_a_site_that_is_named_twice_is_refused(folder: Path) -> None:
    document = json.loads((folder / "new.json").read_text())
    document["sites"].append(document["sites"][0])
    (folder / "twice.json").write_text(json.dumps(document))
    done = run(folder, "diff", "old.json", "twice.json")
    assert (done.returncode, done.stderr) == (2, "lnaudit: twice.json: names a site twice; name a run of lnaudit\n")


def test_findings_that_the_policy_accepted_are_accepted_in_statistics_too(folder: Path) -> None:
    (folder / "accepting.toml").write_text('[ignore-sites.large]\nLN1 = "known"\n')
    run(folder, "scan", "new", "--config", "accepting.toml", "--save-stats", "accepted.stats")
    document = run(folder, "scan", "new", "--config", "accepting.toml", "--output-format", "json").stdout
    (folder / "accepted.json").write_text(document)
    assert run(folder, "diff", "accepted.stats", "accepted.json").stdout == "2 sites: all the same.\n"
    found = run(folder, "diff", "accepted.stats", "new.json").stdout
    assert found == run(folder, "diff", "accepted.json", "new.json").stdout
    assert found.startswith("worse")


def test_a_new_run_that_audited_nothing_or_not_all_is_not_clean(folder: Path) -> None:
    (folder / "nothing.json").write_text(run(folder, "check", "nowhere", "--output-format", "json").stdout)
    for old in ("old.json", "nothing.json"):
        for fail_on in ("never", "note"):
            done = run(folder, "diff", old, "nothing.json", "--fail-on", fail_on)
            assert done.returncode == 2
            assert done.stdout.endswith("exit 2 (not audited).\n")
