"""The policy: where it is looked for, what it says, and that nothing in it is passed over."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lnaudit.errors import LnauditError
from lnaudit.findings import Finding
from lnaudit.policy import POLICY, Policy, find_policy, read_policy
from lnaudit.rules import RULES

from .program import run_in as run

WHOLE = """
formats = ["fp16", "float32"]
kernels = ["native", "ladder"]
runtime = "onnxruntime==1.24.1"
tolerance = {float16 = 0.05, fp32 = 1e-4}
share = 0.001
fail-on = "warning"
select = ["LN1", "LN2"]
ignore = ["LN106"]

[rules]
LN303 = {share = 0.2}
LN401 = {gain = 1e4}

[sites."encoder.*"]
epsilon = 1e-12
norm = "rms"
axis = [1, 2]
formats = ["fp16"]
kernel = "fused"
tolerance = 0.1
share = 0.5

[sites."*"]
epsilon = 1e-6

[ignore-sites."*.ln1"]
LN104 = "checked by hand"

[anchors]
"encoder.*" = "src/model.py:88"
"""


def read(tmp_path: Path, text: str) -> Policy:
    path = tmp_path / "lnaudit.toml"
    path.write_text(text)
    return read_policy(path, "lnaudit.toml")


def test_a_whole_policy(tmp_path: Path) -> None:
    policy = read(tmp_path, WHOLE)
    assert policy.formats == ("float16", "float32")
    assert policy.kernels == ("native", "ladder")
    assert policy.runtimes == ("onnxruntime==1.24.1",)
    assert (policy.tolerance, policy.tolerances) == (None, {"float16": 0.05, "float32": 1e-4})
    assert (policy.share, policy.fail_on) == (0.001, "warning")
    assert policy.of_rule("LN303") == {"share": 0.2}
    assert policy.of_rule("LN102") == {"share": 0.01}
    first = policy.of_site("encoder.0")
    assert (first.epsilon, first.norm, first.axis) == (1e-12, "rms", (1, 2))
    assert (first.formats, first.kernel, first.tolerance, first.share) == (("float16",), "fused", 0.1, 0.5)
    assert policy.of_site("decoder").epsilon == 1e-6
    assert policy.of_site("decoder").norm is None
    assert (policy.anchor("encoder.7"), policy.anchor("decoder")) == ("src/model.py:88", None)


def test_a_policy_of_nothing_is_what_lnaudit_does_by_itself(tmp_path: Path) -> None:
    assert read(tmp_path, "") == Policy(source="lnaudit.toml")
    assert all(POLICY.selects(code) for code in RULES)


@pytest.mark.parametrize(
    ("select", "ignore", "chosen"),
    [
        (("LN",), (), {"LN104", "LN106", "LN303"}),
        (("LN1",), (), {"LN104", "LN106"}),
        (("LN",), ("LN1",), {"LN303"}),
        (("LN", "LN104"), ("LN1",), {"LN104", "LN303"}),
        (("LN104",), ("LN104",), set()),
    ],
)
def test_the_longer_beginning_of_a_code_decides(select: Any, ignore: Any, chosen: set[str]) -> None:
    policy = Policy(select=select, ignore=ignore)
    assert {code for code in ("LN104", "LN106", "LN303") if policy.selects(code)} == chosen


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tolerence = 0.1", "unknown key 'tolerence'; did you mean tolerance?"),
        ("tolerance = 0", "tolerance: 0 accepts no rounding at all; as in 0.02"),
        ("tolerance = -1", "tolerance: -1 is not a number >= 0"),
        ("tolerance = true", "tolerance: True is not a number >= 0"),
        ("tolerance = nan", "tolerance: nan is not a number >= 0"),
        ("tolerance = {float17 = 0.1}", "tolerance: unknown format 'float17'"),
        ("share = 1.5", "share: 1.5 is not a part of the rows"),
        ("formats = []", "formats: [] is not a list of names"),
        ("formats = [16]", "formats: [16] is not a list of names"),
        ('formats = ["float17"]', "formats: unknown format 'float17'"),
        ('kernels = ["nativ"]', "kernels: unknown kernel 'nativ'"),
        ('runtime = ["jax==1"]', "runtime: "),
        ('fail-on = "always"', "fail-on: unknown value 'always'; choose from error, warning, note, never"),
        ('select = ["XY"]', "select: no rule begins with 'XY'"),
        ('select = ["collapsed-row"]', "select: no rule begins with 'collapsed-row'; did you mean collapsed-rows?"),
        ('[ignore-sites."a"]\nLN104 = "x"\ncollapsed-rows = "y"', "ignore-sites.a: names LN104 twice; say it once"),
        ("[rules]\nLN303 = {share = 0.2}\nepsilon-dominates-variance = {share = 0.2}", "rules: names LN303 twice"),
        ("[rules]\nLN999 = {share = 1}", "rules: unknown rule 'LN999'"),
        ("[rules]\nLN001 = {share = 1}", "rules: LN001 has no threshold"),
        ("[rules]\nLN303 = {shar = 1}", "rules.LN303: unknown key 'shar'; did you mean share?"),
        ("[rules]\nLN303 = 1", "rules.LN303: 1 is not a table"),
        ("[rules]\nLN106 = {peak = 0.2}", "rules.LN106.peak: 0.2 is too small; from 0.5 on"),
        ('[sites."a"]\nepsilon = "x"', "sites.a.epsilon: 'x' is not a number >= 0"),
        ('[sites."a"]\neps = 1', "sites.a: unknown key 'eps'"),
        ('[sites."a"]\nnorm = "group"', "norm 'group' is not supported yet"),
        ('[sites."a"]\naxis = 1.5', "sites.a.axis: 1.5 is no axis"),
        ('[ignore-sites."a"]\nLN104 = ""', "ignore-sites.a.LN104: gives no reason"),
        ('[ignore-sites."a"]\nLN9 = "x"', "ignore-sites.a: no rule begins with 'LN9'"),
        ('[anchors]\n"a" = "model.py"', "anchors.a: 'model.py' is no line of a file"),
        ("formats = [", "is not valid TOML"),
    ],
)
def test_what_cannot_be_honoured_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(LnauditError) as caught:
        read(tmp_path, text)
    assert said in str(caught.value)
    assert str(caught.value).startswith("lnaudit.toml: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("code", RULES)
def test_a_rule_is_named_by_code_or_by_name(tmp_path: Path, code: str) -> None:
    def said(rule: str) -> Policy:
        words = "{" + ", ".join(f"{key} = {one.default!r}" for key, one in RULES[code].thresholds.items()) + "}"
        thresholds = f"[rules]\n{rule} = {words}\n" if RULES[code].thresholds else ""
        return read(
            tmp_path, f'select = ["LN1", "{rule}"]\nignore = "{rule}"\n{thresholds}[ignore-sites.a]\n{rule} = "x"'
        )

    policy = said(RULES[code].name)
    assert policy == said(code)
    assert (policy.select[-1], policy.ignore, policy.accepted[0].code) == (code, (code,), code)


def test_the_nearest_file_counts_up_to_the_root_of_the_repository(tmp_path: Path) -> None:
    project = tmp_path / "project"
    below = project / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / "lnaudit.toml").write_text("")
    (project / ".git").mkdir()
    assert find_policy(below) is None  # what lies outside of the repository is not its policy
    (project / "pyproject.toml").write_text('[project]\nname = "x"\n')
    assert find_policy(below) is None
    (project / "pyproject.toml").write_text("[tool.lnaudit]\nshare = 0\n")
    assert find_policy(below) == project / "pyproject.toml"
    (project / "a" / "lnaudit.toml").write_text("")
    assert find_policy(below) == project / "a" / "lnaudit.toml"


def finding(code: str, site: str) -> Finding:
    return Finding(code=code, name="x", severity="error", site=site, source=site, title="", message="")


def test_findings_are_accepted_by_code_and_site_with_a_reason(tmp_path: Path) -> None:
    policy = read(tmp_path, WHOLE)
    accepted = policy.accepts(finding("LN104", "a.ln1"))
    assert accepted is not None
    assert accepted.reason == "checked by hand"
    assert policy.accepts(finding("LN104", "a.ln2")) is None
    assert policy.accepts(finding("LN103", "a.ln1")) is None
    assert policy.notes([(finding("LN104", "a.ln1"), accepted)], ["a.ln1", "encoder.x"]) == [
        "accepted by the policy: 1 finding of LN104 at '*.ln1': checked by hand"
    ]
    assert policy.notes([], ["a.ln1", "encoder.x"]) == ["the policy accepts LN104 at '*.ln1', where there is none"]


def config(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    return dict(json.loads(done.stdout)["config"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    np.save(tmp_path / "acts.npy", np.random.default_rng(0).standard_normal((20, 16)).astype(np.float32))
    (tmp_path / "lnaudit.toml").write_text('formats = ["float16"]\ntolerance = 0.1\nkernels = ["fused"]\n')
    return tmp_path


def test_option_before_environment_before_file_before_default(project: Path) -> None:
    command = ("scan", "acts.npy", "--output-format", "json")
    found = config(run(project, *command))
    assert (found["formats"], found["tolerance"], found["kernels"]) == (["float16"], 0.1, ["fused"])
    assert found["policy"] == "lnaudit.toml"
    found = config(run(project, *command, LNAUDIT_FORMAT="bfloat16,float32", LNAUDIT_TOLERANCE="0.3"))
    assert (found["formats"], found["tolerance"]) == (["bfloat16", "float32"], 0.3)
    found = config(run(project, *command, "--format", "float64", "--tolerance", "0.4", LNAUDIT_TOLERANCE="0.3"))
    assert (found["formats"], found["tolerance"]) == (["float64"], 0.4)
    found = config(run(project, *command, "--isolated"))
    assert (len(found["formats"]), found["tolerance"], found["policy"]) == (4, 0.02, None)


def test_a_policy_is_found_from_below_and_named_as_it_lies(project: Path) -> None:
    (project / "deep").mkdir()
    found = config(run(project / "deep", "scan", "../acts.npy", "--output-format", "json"))
    assert found["policy"] == "../lnaudit.toml"
    other = project / "other.toml"
    other.write_text("tolerance = 0.7")
    found = config(run(project, "scan", "acts.npy", "--output-format", "json", "--config", "other.toml"))
    assert (found["policy"], found["tolerance"]) == ("other.toml", 0.7)


def test_single_sites_are_audited_as_the_policy_says(project: Path) -> None:
    (project / "lnaudit.toml").write_text(
        '[sites."acts"]\nepsilon = 1e-3\nnorm = "rms"\nkernel = "fused"\ntolerance = 0.3\n'
    )
    (site,) = json.loads(run(project, "scan", "acts.npy", "--output-format", "json").stdout)["sites"]
    assert (site["epsilon"], site["epsilon_source"], site["norm"]) == (1e-3, "policy", "rms")
    assert {result["kernel"] for result in site["results"]} == {"fused"}
    done = run(project, "scan", "acts.npy", "--output-format", "json", "--eps", "1e-4", "--kernel", "native")
    (site,) = json.loads(done.stdout)["sites"]
    assert (site["epsilon"], site["epsilon_source"]) == (1e-4, "option")
    assert {result["kernel"] for result in site["results"]} == {"native"}


def test_what_cannot_be_honoured_ends_the_run_in_one_line(project: Path) -> None:
    (project / "lnaudit.toml").write_text("tolerence = 1\n")
    for command in ("scan", "check"):
        done = run(project, command, "acts.npy")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "lnaudit: lnaudit.toml: unknown key 'tolerence'; did you mean tolerance?\n"
    done = run(project, "scan", "acts.npy", "--config", "nowhere.toml")
    assert (done.returncode, done.stderr) == (2, "lnaudit: nowhere.toml: does not exist\n")
    done = run(project, "scan", "acts.npy", "--config", "lnaudit.toml", "--isolated")
    assert done.stderr == "lnaudit: --config: cannot stand beside --isolated; leave one of them out\n"


def test_settings_are_shown_and_nothing_is_audited(project: Path) -> None:
    done = run(project, "check", "nothing.npy", "--show-settings", "--share", "0.25")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("# lnaudit.toml\n")
    for line in (
        'formats = ["float16"]  # lnaudit.toml',
        "tolerance = 0.1  # lnaudit.toml",
        "share = 0.25  # --share",
        'fail-on = "error"  # default',
        'select = ["LN"]  # default',
    ):
        assert line in done.stdout.splitlines()


def test_patterns_that_match_no_site_are_named(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.eye(4))
    (tmp_path / "lnaudit.toml").write_text(
        '[sites."encoder.*"]\nepsilon = 1e-6\n[sites."a"]\nshare = 0.1\n[anchors]\n"encodr.*" = "m.py:1"\n'
    )
    notes = json.loads(run(tmp_path, "check", "a.npy", "--output-format", "json").stdout)["notes"]
    assert notes == [f"the policy speaks of sites '{p}.*', and no site is called so" for p in ("encoder", "encodr")]


@pytest.mark.parametrize("words", [("--select", ","), ("--select", ""), ("--ignore", ""), ("--ignore", " , ")])
@pytest.mark.parametrize("command", ["scan", "check"])
def test_where_nothing_would_be_looked_for_the_option_is_refused(
    tmp_path: Path, command: str, words: tuple[str, str]
) -> None:
    np.save(tmp_path / "a.npy", np.full((4, 4), np.inf))
    done = run(tmp_path, command, "a.npy", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"lnaudit: {words[0]}: names no rule; as in LN1\n"


def test_an_empty_selection_of_the_environment_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.full((4, 4), np.inf))
    assert run(tmp_path, "check", "a.npy", LNAUDIT_SELECT=",").returncode == 2


def test_the_anchor_of_a_site_is_in_every_output(tmp_path: Path) -> None:
    np.save(tmp_path / "encoder.ln.npy", np.full((4, 4), 7e4) * np.eye(4))
    (tmp_path / "lnaudit.toml").write_text('[anchors]\n"encoder.*" = "src/model.py:88"\n')
    site = json.loads(run(tmp_path, "check", "encoder.ln.npy", "--output-format", "json").stdout)["sites"][0]
    assert site["anchor"] == "src/model.py:88"
    assert "  source: src/model.py:88\n" in run(tmp_path, "check", "encoder.ln.npy").stdout
    swept = json.loads(run(tmp_path, "sweep", "encoder.ln.npy", "--output-format", "json").stdout)["sites"][0]
    assert swept["anchor"] == "src/model.py:88"
    first = run(tmp_path, "check", "encoder.ln.npy", "--output-format", "concise").stdout.splitlines()[0]
    assert first.startswith("src/model.py:88: encoder.ln.npy: error: LN101")


def test_a_site_is_judged_in_its_own_formats_unless_the_command_line_names_others(tmp_path: Path) -> None:
    for name in ("head", "body"):
        np.save(tmp_path / f"{name}.npy", np.eye(4))
    (tmp_path / "lnaudit.toml").write_text(
        'formats = ["float16"]\nkernels = ["native"]\n[sites.head]\nformats = ["float32"]\n'
    )

    def judged(*words: str) -> dict[str, list[str]]:
        document = json.loads(run(tmp_path, "check", *words, "--output-format", "json").stdout)
        assert set(document["config"]["limits"]) == {r["format"] for s in document["sites"] for r in s["results"]}
        return {site["name"]: [result["format"] for result in site["results"]] for site in document["sites"]}

    assert judged("body.npy", "head.npy") == {"body": ["float16"], "head": ["float32"]}
    assert judged("body.npy", "head.npy", "--format", "bf16") == {"body": ["bfloat16"], "head": ["bfloat16"]}
    table = run(tmp_path, "check", "body.npy", "head.npy").stdout
    assert table.count("pass  float16  native") == table.count("pass  float32  native") == 1
    run(tmp_path, "scan", "body.npy", "head.npy", "--save-stats", "run.json")
    assert judged("run.json") == {"body": ["float16"], "head": ["float32"]}


def test_a_share_of_the_command_line_goes_before_that_of_a_site(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((10, 4096))
    x[0] += 3  # a serial sum of it stalls
    np.save(tmp_path / "a.npy", x)
    (tmp_path / "lnaudit.toml").write_text(
        'formats = ["bf16"]\nkernels = ["native:reduction=serial,square_reduction=tree"]\n[sites.a]\nshare = 0.5\n'
    )

    def codes(*words: str) -> set[str]:
        document = json.loads(run(tmp_path, "check", "a.npy", "--output-format", "json", *words).stdout)
        return {finding["code"] for finding in document["findings"]}

    assert codes("--share", "0") - codes() >= {"LN204"}
    assert codes("--share", "0") != codes() == codes("--share", "0.5")
