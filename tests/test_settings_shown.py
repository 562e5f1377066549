"""`--show-settings`: a policy that means what counts, read back; each line says where it comes from."""

from __future__ import annotations

import json
import math
import string
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from lnaudit.cli.app import app
from lnaudit.formats import FORMATS
from lnaudit.kernels import KERNELS
from lnaudit.policy import Policy, read_policy
from lnaudit.rules import RULES

from .program import run_in

# as long as one is written that `tomllib` reads, whatever is in it
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
patterns = texts | st.sampled_from(["a.b", "encoder.*", "[", 'a"b', "#", "a\nb", "\x7f", "\u202e"])
lines = st.builds("{}:{}".format, texts.filter(bool), st.integers(1, 10**9 - 1))
shares = st.floats(0, 1)
tolerances = st.floats(0, 1e300, exclude_min=True)
formats = st.lists(st.sampled_from([*FORMATS, "fp16", "half", "e4m3"]), min_size=1, max_size=3)
kernels = st.sampled_from([*KERNELS, "native:reduction=serial,variance=one_pass"])
runtimes = st.sampled_from(["torch==2.13", "onnxruntime==1.24.1"])
codes = st.sampled_from([*RULES, *(rule.name for rule in RULES.values()), "LN", "LN1", "LN30"])
reasons = st.text(string.printable + "\u202eü😀", min_size=1, max_size=8).filter(str.strip)
by_format = st.lists(st.tuples(st.sampled_from(list(FORMATS)), tolerances), unique_by=lambda pair: pair[0], min_size=1)
settable = [(code, name) for code, rule in RULES.items() for name in rule.thresholds]


@st.composite
def thresholds(draw: st.DrawFn) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for code, name in draw(st.lists(st.sampled_from(settable), unique=True, max_size=4)):
        one = RULES[code].thresholds[name]
        value = draw(st.floats(one.least, None if one.most == math.inf else one.most, allow_infinity=False))
        found.setdefault(code, {})[name] = value
    return found


def table(**optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={key.replace("_", "-"): value for key, value in optional.items()})


policies = table(
    formats=formats,
    kernels=st.lists(kernels | st.just("ladder"), min_size=1, max_size=2),
    runtime=st.lists(runtimes, min_size=1, max_size=2),
    tolerance=tolerances | by_format.map(dict),
    share=shares,
    fail_on=st.sampled_from(["error", "warning", "note", "never"]),
    select=st.lists(codes, min_size=1, max_size=3),
    ignore=st.lists(codes, max_size=3),
    rules=thresholds(),
    sites=st.dictionaries(
        patterns,
        table(
            epsilon=shares,
            norm=st.sampled_from(["layer", "rms"]),
            axis=st.integers(-3, 3) | st.lists(st.integers(-3, 3), min_size=1, max_size=2),
            formats=formats,
            kernel=kernels,
            tolerance=tolerances,
            share=shares,
        ),
        max_size=3,
    ),
    ignore_sites=st.dictionaries(
        patterns, st.dictionaries(st.sampled_from([*RULES, "LN1"]), reasons, max_size=2), max_size=2
    ),
    anchors=st.dictionaries(patterns, lines, max_size=2),
)


def quoted(text: str) -> str:
    return '"' + "".join(c if c.isalnum() and c.isascii() else f"\\U{ord(c):08x}" for c in text) + '"'


def toml(value: Any) -> str:
    """TOML that has nothing in common with what the program writes."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{quoted(key)}={toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(toml, value)) + "]"
    return quoted(value) if isinstance(value, str) else repr(value)


def shown(folder: Path, *words: str) -> str:
    done = CliRunner().invoke(app, [*words, "--show-settings"])
    assert (done.exit_code, done.stderr) == (0, ""), (words, done.stderr)
    (folder / "again.toml").write_text(done.stdout, encoding="utf-8")
    return done.stdout


def again(folder: Path) -> Policy:
    return read_policy(folder / "again.toml", "again.toml")


CALM = settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


@CALM
@given(document=policies)
@pytest.mark.parametrize("command", ["check", "scan", "sweep"])
def test_what_is_shown_is_read_as_the_policy_that_counted(
    tmp_path: Path, command: str, document: dict[str, Any]
) -> None:
    path = tmp_path / "it.toml"
    path.write_text("\n".join(f"{key} = {toml(value)}" for key, value in document.items()))
    said = read_policy(path, "it.toml")
    text = shown(tmp_path, command, "x.npy", "--config", str(path))
    counted = said if said.tolerances or said.tolerance is not None else replace(said, tolerance=0.02)
    if command == "check" and said.fail_on is None:
        counted = replace(counted, fail_on="error")
    assert replace(again(tmp_path), source="") == replace(counted, source="")
    # shown once more it says the same, but for where it comes from
    once_more = shown(tmp_path, command, "x.npy", "--config", str(tmp_path / "again.toml"))
    assert [values(line) for line in once_more.splitlines()[1:]] == [values(line) for line in text.splitlines()[1:]]


def values(line: str) -> str:
    return line.rpartition("  # ")[0] or line


SITES = '[sites.a]\nformats = ["float64"]\nkernel = "fused"\ntolerance = 0.5\nepsilon = 0.25\n'
FILE = f'formats = ["float16"]\nkernels = ["native"]\ntolerance = {{float16 = 0.1}}\nfail-on = "note"\n{SITES}'


@pytest.mark.parametrize(
    ("words", "changed", "of_site"),
    [
        ((), {}, {}),
        (("--format", "bf16,tf32"), {"formats": ("bfloat16", "tfloat32")}, {"formats": None}),
        (("--kernel", "ladder,fused"), {"kernels": ("ladder", "fused")}, {"kernel": None}),
        (("--runtime", "torch==2.13"), {"kernels": (), "runtimes": ("torch==2.13",)}, {"kernel": None}),
        (("--tolerance", "0.3"), {"tolerance": 0.3, "tolerances": {}}, {"tolerance": None}),
        (("--share", "0.5"), {"share": 0.5}, {}),
        (("--fail-on", "never"), {"fail_on": "never"}, {}),
        (("--select", "LN1,collapsed-rows"), {"select": ("LN1", "LN104")}, {}),
        (("--ignore", "LN3"), {"ignore": ("LN3",)}, {}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_options_go_before_the_policy_at_single_sites_too(
    tmp_path: Path, words: tuple[str, ...], changed: dict[str, Any], of_site: dict[str, Any]
) -> None:
    path = tmp_path / "it.toml"
    path.write_text(FILE)
    said = read_policy(path, "again.toml")
    text = shown(tmp_path, "check", "x.npy", "--config", str(path), *words)
    expected = replace(said, **changed, sites=tuple(replace(site, **of_site) for site in said.sites))
    assert again(tmp_path) == expected
    if words:
        assert f"  # {words[0]}\n" in text


def test_a_scan_fails_only_where_it_is_asked_to_and_keeps_what_the_policy_says_of_checks(tmp_path: Path) -> None:
    (tmp_path / "it.toml").write_text(FILE)
    text = shown(tmp_path, "scan", "x.npy", "--config", str(tmp_path / "it.toml"), "--fail-on", "warning")
    assert again(tmp_path).fail_on == "note"
    assert text.splitlines()[-3:] == ['# fail-on = "warning"', '# engine = "auto"', '# jobs = "auto"']


def test_what_no_policy_says_is_a_comment(tmp_path: Path) -> None:
    words = ("--eps", "1e-3", "--ftz", "--loss-scale", "8", "--compare-eps", "0", "--axis", "1,2", "--jobs", "2")
    done = run_in(tmp_path, "check", "x.npy", "--show-settings", "--isolated", *words)
    comments = done.stdout.partition("# options beside the policy")[2].splitlines()[1:]
    expected = {"eps": 0.001, "compare-eps": 0.0, "axis": "1,2", "verify": "witness", "loss-scale": 8.0}
    expected |= {"ftz": "all", "engine": "auto", "jobs": "2"}
    assert comments == [f"# {key} = {json.dumps(value)}" for key, value in expected.items()]
    # what would mean more if it were said
    assert '# formats = ["float16", "bfloat16", "float32", "float64"]  # default\n' in done.stdout
    assert '# kernels = ["native", "fused"]  # default: fused below float32 only, and a manifest goes' in done.stdout


def test_where_each_line_comes_from(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.lnaudit]\nshare = 0\ntolerance = {fp16 = 0.1}\n")
    done = run_in(
        tmp_path, "check", "x.npy", "--show-settings", "--select", "LN1", LNAUDIT_FORMAT="fp16", LNAUDIT_SELECT="LN2"
    )
    assert done.stdout.partition("\n\n")[0].splitlines() == [
        "# pyproject.toml",
        'formats = ["float16"]  # LNAUDIT_FORMAT',
        '# kernels = ["native", "fused"]  # default: fused below float32 only, and a manifest goes before',
        "tolerance = {float16 = 0.1}  # pyproject.toml; other formats: 0.02",
        "share = 0.0  # pyproject.toml",
        'fail-on = "error"  # default',
        'select = ["LN1"]  # --select',
        "ignore = []  # default",
    ]
