"""What a gate reads beside the dumps, with anything in it: policies, baselines, statistics. Exit 2 and one line."""

from __future__ import annotations

import copy
import json
import math
import os
import string
import tomllib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lnaudit
from lnaudit import pipeline
from lnaudit.baseline import compare, entries, from_document, to_text
from lnaudit.errors import LnauditError
from lnaudit.findings import Finding
from lnaudit.formats import FORMATS
from lnaudit.kernels import get_kernel
from lnaudit.pipeline import saving
from lnaudit.pipeline.settings import Settings
from lnaudit.policy import POLICY, Policy, find_policy, read_policy
from lnaudit.readers.discover import find_sites
from lnaudit.readers.manifest import read_manifest
from lnaudit.readers.sites import SiteOptions
from lnaudit.site import ArrayRows, Site

from .program import run_in

FUZZ = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
ROWS = np.random.default_rng(0).standard_normal((20, 16)) * 400
# Python's limit on digits of integers is 4300; a float ends at 1.8e308
LONG, HUGE = "9" * 5000, 10**400


def one_line(act: Callable[[], Any]) -> str:
    """Return the line that it is refused with."""
    with pytest.raises(LnauditError) as caught:
        act()
    text = str(caught.value)
    assert "\n" not in text
    return text


def policy_of(folder: Path, text: str | bytes, name: str = "lnaudit.toml") -> Policy:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_policy(folder / name, name)


# files, whoever reads them

READERS: dict[str, Callable[[Path], Any]] = {
    "policy": lambda path: read_policy(path, "it"),
    "statistics": lambda path: saving.load_json(path, "it"),
    "manifest": lambda path: read_manifest(path, "it"),
    "dump": lambda path: next(find_sites([str(path)], SiteOptions()).open()).reason,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("missing", "does not exist"),
        ("link to nowhere", "does not exist"),
        ("pipe", "is not a regular file; write it to disk first"),
    ],
)
def test_a_path_that_is_no_file_is_said_alike_by_every_reader(tmp_path: Path, reader: str, kind: str, said: str):
    path = tmp_path / "it.npy"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link to nowhere":
        path.symlink_to("nowhere")
    found = READERS[reader](path) if reader == "dump" else one_line(lambda: READERS[reader](path))
    assert found.removeprefix("it: ") == said


@pytest.mark.parametrize("reader", ["statistics", "manifest"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "is not JSON (line 1: Expecting value); write it again"),
        (b"{]", "is not JSON (line 1: Expecting property name enclosed in double quotes); write it again"),
        (b"[" * 100_000, "is not JSON; write it again"),
        (LONG.encode(), "is not JSON; write it again"),
        (b"\xff\xfe{", "is not JSON; write it again"),
        (b'{"a": {"b": 1, "b": 1}}', "has the key 'b' twice in one object; write it again"),
    ],
    ids=["empty", "bracket", "deep", "digits", "encoding", "twice"],
)
def test_json_is_read_in_one_way(tmp_path: Path, reader: str, text: bytes, said: str):
    (tmp_path / "x.json").write_bytes(text)
    assert one_line(lambda: READERS[reader](tmp_path / "x.json")) == f"it: {said}"


@FUZZ
@given(
    text=st.binary(max_size=60) | st.text(alphabet='{}[]"=.,:\n0123456789eE-+nabfls #\\', max_size=60).map(str.encode)
)
def test_any_bytes_are_read_or_refused(tmp_path: Path, text: bytes):
    path = tmp_path / "it"
    path.write_bytes(text)
    for read in (READERS["policy"], READERS["statistics"], READERS["manifest"]):
        with suppress(LnauditError):
            read(path)


# policies


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"tolerance = {HUGE}", "tolerance: 1000"),
        (f"tolerance = {LONG}", "is not valid TOML (too many digits or brackets)"),
        (f"tolerance = {'[' * 5000}", "is not valid TOML (too many digits or brackets)"),
        ("tolerance = {float16 = 0.1, fp16 = 0.5}", "tolerance: names float16 twice"),
        ("tolerance = 0.1\ntolerance = 0.5", "is not valid TOML (Cannot overwrite a value"),
        (b"\xff", "is not valid TOML (not UTF-8)"),
        ("[sites.a]\nkernel = ['native', 'fused']", "sites.a.kernel: ['native', 'fused'] is not the name of a kernel"),
        ("[sites.a]\ntolerance = {float16 = 1}", "sites.a.tolerance: {'float16': 1} is not a number >= 0"),
        (f"[sites.a]\nepsilon = {HUGE}", "sites.a.epsilon: 1000"),
        (f"[sites.a]\naxis = {HUGE}", "sites.a.axis: 1000"),
        ("[sites.a]\naxis = true", "sites.a.axis: True is no axis"),
        ("sites = 5", "sites: 5 is not a table"),
        ("[[sites]]\na = 1", "sites: [{'a': 1}] is not a table"),
        # TOML makes tables of dots
        ("[sites.encoder.ln1]\nepsilon = 1", 'sites.encoder.ln1: is a table in a table; quote a name with dots: "enc'),
        ('[ignore-sites.encoder.ln1]\nLN1 = "x"', "ignore-sites.encoder.ln1: is a table in a table"),
        ('[anchors]\nencoder.ln1 = "a.py:1"', "anchors.encoder.ln1: is a table in a table"),
        (f'[anchors]\na = "a.py:{LONG}"', "anchors.a: 'a.py:9"),
        ('[anchors]\na = "a.py:0"', "anchors.a: 'a.py:0' is no line of a file"),
        ('[anchors]\na = "a.py:\u0661"', "is no line of a file"),
        ('[ignore-sites.a]\n"" = "all of them"', "ignore-sites.a: no rule begins with ''"),
        ("[ignore-sites.a]\nLN1 = 5", "ignore-sites.a.LN1: gives no reason"),
        ('[ignore-sites.a]\nLN1 = " "', "ignore-sites.a.LN1: gives no reason"),
        # a gate that looks for nothing passes
        ("select = []", "select: [] is not a list of names; as in [\"LN1\"]"),
        ('select = ""', "select: '' is not a list of names"),
        ("[rules.LN303]\nshare = nan", "rules.LN303.share: nan is not a number >= 0"),
        ("[tool.lnaudit]\nshare = 1", "has [tool], as only pyproject.toml does; write the keys without [tool.lnaudit]"),
        ("formats = 1979-05-27", "formats: datetime.date(1979, 5, 27) is not a list of names"),
        ('"\\u202e" = 1', r"unknown key '\u202e'"),
    ],
)  # fmt: skip
def test_no_odd_value_of_a_policy_is_a_crash(tmp_path: Path, text: str | bytes, said: str):
    line = one_line(lambda: policy_of(tmp_path, text))
    assert line.startswith("lnaudit.toml: ")
    assert said in line
    assert len(line) < 600


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tool = 5", "has no table [tool.lnaudit]"),
        ("[tool]\nlnaudit = 5", "tool.lnaudit is 5; make it a table"),
        ("[[tool.lnaudit]]\nshare = 1", "tool.lnaudit is [{'share': 1}]; make it a table"),
        ("[tool.lnaudit]\nlnaudit = 5", "unknown key 'lnaudit'"),
    ],
)
def test_no_odd_table_of_a_pyproject_is_a_crash(tmp_path: Path, text: str, said: str):
    assert one_line(lambda: policy_of(tmp_path, text, "pyproject.toml")).startswith(f"pyproject.toml: {said}")
    if "lnaudit = 5" in text and "tool.lnaudit" not in text:
        assert one_line(lambda: find_policy(tmp_path)).startswith(f"pyproject.toml: {said}")


@pytest.mark.parametrize("encode", [lambda t: t.encode("utf-8-sig"), lambda t: t.replace("\n", "\r\n").encode()])
def test_what_windows_editors_write_is_read(tmp_path: Path, encode: Callable[[str], bytes]):
    text = 'share = 0.5\n[ignore-sites."encoder.ä"]\nLN104 = "geprüft"\n'
    policy = policy_of(tmp_path, encode(text))
    assert (policy.share, policy.accepted[0].pattern, policy.accepted[0].reason) == (0.5, "encoder.ä", "geprüft")


@pytest.mark.parametrize(
    "pattern", ["[", "[!", "[]a", "[[a--z]&&[~~||]", "a[", "", "*" * 40 + "b", "[z-a]", "\\", "é[é]"]
)
def test_any_pattern_of_sites_can_be_asked(tmp_path: Path, pattern: str):
    named = json.dumps(pattern)
    policy = policy_of(
        tmp_path, f"[sites.{named}]\nepsilon = 1\n[ignore-sites.{named}]\nLN1 = 'x'\n[anchors]\n{named} = 'a.py:1'\n"
    )
    for name in ("", "a", "[", "a" * 100, pattern):
        said = policy.of_site(name).epsilon == 1
        assert (policy.anchor(name) is not None) is said
        finding = Finding(code="LN104", name="x", severity="error", site=name, source="", title="", message="")
        assert (policy.accepts(finding) is not None) is said


def test_a_policy_that_cannot_be_followed_is_not_passed_over(tmp_path: Path):
    (tmp_path / ".git").mkdir()
    path = tmp_path / "lnaudit.toml"
    path.symlink_to("nowhere")
    (tmp_path / "a").mkdir()
    assert one_line(lambda: find_policy(tmp_path / "a")) == (
        "../lnaudit.toml: is a link that leads nowhere; mend it or remove it"
    )
    path.unlink()
    path.symlink_to(path)
    assert one_line(lambda: find_policy(tmp_path)) == "lnaudit.toml: is a link that leads nowhere; mend it or remove it"
    path.unlink()
    os.mkfifo(path)
    found = find_policy(tmp_path)
    assert found is not None
    assert one_line(lambda: read_policy(found, "it")) == "it: is not a regular file; write it to disk first"
    path.unlink()
    path.mkdir()  # a folder of that name is something else
    assert find_policy(tmp_path) is None
    (tmp_path / "real.toml").write_text("share = 0.25")
    path.rmdir()
    path.symlink_to("real.toml")
    assert read_policy(find_policy(tmp_path) or tmp_path, "it").share == 0.25
    (tmp_path / "pyproject.toml").write_text("[")
    path.unlink()
    assert one_line(lambda: find_policy(tmp_path / "a")).startswith("../pyproject.toml: is not valid TOML (")


KEYS = (
    "formats", "kernels", "runtime", "tolerance", "share", "fail-on", "select", "ignore", "rules", "sites",
    "ignore-sites", "anchors", "LN303", "LN202", "LN", "a.b", "*", "epsilon", "norm", "axis", "kernel", "float16",
    "peak", "",
)  # fmt: skip
keys = st.sampled_from(KEYS)
words = st.sampled_from(
    ("float16", "fused", "native", "ladder", "LN1", "error", "never", "rms", "a.py:1", "", "x", "torch==2.13")
) | st.text(alphabet=string.printable + "é\u202e", max_size=5)
leaves = st.one_of(st.booleans(), words, st.integers(-2, 2), st.just(HUGE), st.floats(), st.floats(0, 1))
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(key)} = {toml(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, str):
        return json.dumps(value).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)


@FUZZ
@given(document=st.dictionaries(keys, values, max_size=4))
def test_any_values_make_a_policy_or_one_line(tmp_path: Path, document: dict[str, Any]):
    text = "\n".join(f"{json.dumps(key)} = {toml(value)}" for key, value in document.items())
    tomllib.loads(text)
    try:
        policy = policy_of(tmp_path, text)
    except LnauditError:
        return
    # what is accepted can be used
    assert policy.selects("LN104") in (True, False)
    tolerance, _ = policy.accepted_errors("a.b", None, (0.02, ()))
    assert 0 < tolerance < math.inf
    assert 0 <= policy.facts("a.b")["share"] <= 1
    assert policy.select


# baselines


@cache
def known_text() -> str:
    return to_text(entries(lnaudit.audit(ROWS, formats="float16", kernels="native", name="a")))


def known() -> dict[str, Any]:
    document = json.loads(known_text())
    assert len(document["findings"]) >= 2
    return dict(document)


def changed(**words: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda document: document["findings"][0].update(words)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda d: d.update(kind="statistics"), "is no baseline; write one with --write-baseline"),
        (lambda d: d.pop("kind"), "is no baseline"),
        (lambda d: d.update(kind=["baseline"]), "is no baseline"),
        (lambda d: d.pop("findings"), "is no baseline"),
        (lambda d: d.update(findings={"code": 1}), "is no baseline"),
        (lambda d: d.update(findings="LN104"), "is no baseline"),
        (lambda d: d.update(findings=["LN104"]), "findings[0] is no finding of a baseline"),
        (lambda d: d.update(schema_version=2), "has schema_version 2; 1 is read"),
        (lambda d: d.update(schema_version="1"), "has schema_version '1'; 1 is read"),
        (lambda d: d.update(schema_version=True), "has schema_version True; 1 is read"),
        (lambda d: d.pop("schema_version"), "has schema_version None; 1 is read"),
        (lambda d: d["findings"].append(d["findings"][0]), "is the second "),
        (lambda d: d["findings"][1].pop("share"), "findings[1] is no finding of a baseline; write it again with"),
        *(
            (changed(**words), "findings[0] is no finding of a baseline")
            for words in (
                {"code": 5},
                {"code": None},
                {"site": ["a"]},
                {"site": {}},
                {"format": None},
                {"kernel": 1.5},
                {"share": "much"},
                {"share": "nan"},
                {"share": "inf"},
                {"share": -0.1},
                {"share": True},
                {"share": None},
                {"share": HUGE},
                {"measured": "1.5"},
                {"measured": "NaN"},
                {"measured": False},
                {"measured": [1]},
                {"measured": -HUGE},
                {"limit": {}},
                {"limit": " inf"},
                {"severity": "fatal"},
                {"severity": 3},
            )
        ),
    ],
)
def test_a_baseline_that_is_none_is_one_line(spoil: Callable[[dict[str, Any]], Any], said: str):
    document = known()
    spoil(document)
    line = one_line(lambda: from_document(document, "known.json"))
    assert line.startswith("known.json: ")
    assert said in line


@FUZZ
@given(data=st.data())
def test_any_value_in_a_baseline_is_read_or_refused(data: st.DataObject):
    document = known()
    entry = data.draw(st.sampled_from(document["findings"]))
    entry[data.draw(st.sampled_from(sorted(entry)))] = data.draw(values)
    try:
        baseline = from_document(document, "known.json")
    except LnauditError:
        return
    assert from_document(json.loads(to_text(baseline)), "x") is not None
    again = from_document(json.loads(to_text(baseline)), "x")
    assert to_text(again) == to_text(baseline)
    compared = compare(lnaudit.audit(ROWS, formats="float16", kernels="native", name="a"), again)
    assert compared.known + len(compared.counted) == len(document["findings"])


# statistics


@cache
def saved_text() -> str:
    kept: list[Any] = []
    what = Settings(formats=(FORMATS["float16"],), kernels=(get_kernel("native"),))
    sites = [Site(name="a", source="a.npy", rows=ArrayRows(ROWS), weight=np.arange(16.0))]
    report = pipeline.run(sites, what, save=kept.append)
    return "".join(saving.lines_of(saving.Saved(config=report.config, judged_by=saving.judged_by(POLICY), sites=kept)))


def saved() -> dict[str, Any]:
    return dict(json.loads(saved_text()))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


def test_what_was_saved_is_read_however_it_is_laid_out():
    document = saved()
    expected = saving.read_saved(document, "run.json").sites[0].figures
    for text in (json.dumps(document, indent=3), json.dumps(document, sort_keys=True)):
        assert saving.read_saved(json.loads(text), "run.json").sites[0].figures == expected


EDITS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a negative count": lambda d: d["sites"][0]["summary"]["results"][0]["primary"].update(LN104=-1),
    "a smaller count": lambda d: d["sites"][0]["summary"]["results"][0]["primary"].update(LN104=0),
    "a site twice": lambda d: d["sites"].append(d["sites"][0]),
    "no site": lambda d: d["sites"].clear(),
    "an unknown format": lambda d: d["sites"][0]["plan"]["results"][0].__setitem__(0, "float17"),
    "another format": lambda d: d["sites"][0]["plan"]["results"][0].__setitem__(0, "float32"),
    "an unknown kernel": lambda d: d["sites"][0]["plan"]["results"][0].__setitem__(1, "x"),
    "a key that is missing": lambda d: d["sites"][0]["facts"].pop("axes"),
    "a key too many": lambda d: d["sites"][0].update(more=1),
    "a text for a number": lambda d: d["sites"][0]["figures"].update(rows="20"),
    "a number for a text": lambda d: d["sites"][0]["figures"].update(name=20),
    "a large tolerance": lambda d: d["sites"][0]["plan"].update(tolerance=1e9),
    "a huge number": lambda d: d["sites"][0]["summary"]["results"][0]["table"]["failing"].__setitem__(0, HUGE),
    "a row less": lambda d: d["sites"][0]["summary"]["results"][0]["table"]["failing"].pop(),
    "NaN": lambda d: d["sites"][0]["summary"]["results"][0]["error"].update(max=math.nan),
    "no seal": lambda d: d.pop("sha256"),
    "another seal": lambda d: d.update(sha256=5),
    "a list for a seal": lambda d: d.update(sha256=[]),
    "a failure less": lambda d: d.update(not_audited=None),
    "sites of another kind": lambda d: d.update(sites={"a": 1}),
    "no sites at all": lambda d: d.update(sites=None),
    "one schema further": lambda d: d.update(schema_version=2),
}


@pytest.mark.parametrize("edit", EDITS)
def test_statistics_that_were_edited_are_no_measurement(edit: str):
    document = saved()
    EDITS[edit](document)
    line = one_line(lambda: saving.read_saved(document, "run.json"))
    assert line == "run.json: is not what lnaudit saves; save it again: lnaudit scan --save-stats"


@settings(deadline=None, max_examples=120)
@given(data=st.data())
def test_any_edit_of_statistics_is_noticed_and_no_crash_even_with_the_right_seal(data: st.DataObject):
    document = saved()
    *path, last = data.draw(st.sampled_from([place for place in places(document) if len(place) > 1]))
    holder = document
    for key in path:
        holder = holder[key]
    before = copy.deepcopy(holder[last])
    holder[last] = data.draw(values)
    if json.dumps(holder[last]) != json.dumps(before):
        assert "is not what lnaudit saves" in one_line(lambda: saving.read_saved(document, "run.json"))
    head = {key: value for key, value in document.items() if key not in ("sites", "sha256")}
    try:
        document["sha256"] = saving._seal([saving._seal(head), *map(saving._seal, document["sites"])])
        saving.read_saved(document, "run.json")
    except (LnauditError, ValueError):  # NaN cannot be sealed
        pass


def test_another_version_is_named_in_a_line(tmp_path: Path):
    for version in ("9.9", None, ["x" * 500], {"a": "\n"}):
        document = {**saved(), "lnaudit_version": version}
        line = one_line(lambda document=document: saving.read_saved(document, "run.json"))
        assert line.startswith("run.json: was saved by lnaudit ")
        assert len(line) < 250


# all of it through the program


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    np.save(tmp_path / "a.npy", ROWS[:2].astype(np.float32))
    (tmp_path / "known.json").write_text(known_text())
    (tmp_path / "run.json").write_text(saved_text())
    return tmp_path


@pytest.mark.parametrize(
    ("words", "files", "said"),
    [
        (["a.npy"], {"lnaudit.toml": f"share = {HUGE}"}, "lnaudit.toml: share: 1000"),
        (["a.npy"], {"lnaudit.toml": '"a\\nb\\u001b[31m" = 1'}, r"lnaudit.toml: unknown key 'a\nb\x1b[31m'"),
        (["a.npy"], {"lnaudit.toml": '[sites]\n"a\\nb" = 1'}, r"lnaudit.toml: sites.a\nb: 1 is not a table"),
        (["a.npy"], {"pyproject.toml": "[tool]\nlnaudit = 1"}, "pyproject.toml: tool.lnaudit is 1"),
        (["a.npy", "--config", "a.npy"], {}, "a.npy: is not valid TOML (not UTF-8)"),
        (["a.npy", "--config", "gone.toml"], {}, "gone.toml: does not exist"),
        (["a.npy", "--config", "."], {}, ".: is a directory; a file is expected here"),
        (["a.npy", "--baseline", "gone.json"], {}, "gone.json: does not exist"),
        (["a.npy", "--baseline", "a.npy"], {}, "a.npy: is not JSON"),
        (["a.npy", "--baseline", "run.json"], {}, "run.json: is no baseline"),
        (["a.npy", "--baseline", "x.json"], {"x.json": "[" * 9999}, "x.json: is not JSON"),
        (["known.json"], {}, "known.json: "),
        (["x.json"], {"x.json": '{"kind": "statistics"}'}, "x.json: was saved by lnaudit None"),
        (["run.json", "run.json"], {"b.json": "{}"}, "run.json: "),
    ],
)
def test_the_program_ends_with_2_and_one_line(project: Path, words: list[str], files: dict[str, str], said: str):
    for name, text in files.items():
        (project / name).write_text(text)
    done = run_in(project, "check", *words)
    assert done.returncode == 2
    assert done.stderr.startswith(f"lnaudit: {said}")
    assert done.stderr.count("\n") == 1
    assert done.stderr.rstrip("\n").isprintable()
