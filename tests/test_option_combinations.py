"""Any combination of options either runs or says in one line why not: exit code 0, 1 or 2, never a traceback."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from lnaudit.cli.app import app
from lnaudit.kernels import AXES, KERNELS

CODES = {"scan": (0, 1, 2), "check": (0, 1, 2), "sweep": (0, 2)}


def listed(choices: list[str]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(choices), min_size=1, max_size=2).map(",".join)


axis_values = st.sampled_from([f"{axis}={value}" for axis, values in AXES.items() for value in values])
kernels = st.builds(
    lambda name, overrides: ":".join(filter(None, [name, ",".join(overrides)])),
    st.sampled_from([*KERNELS, "ladder", "nonsense"]),
    st.lists(axis_values, max_size=4),
)
common = {
    "--axis": st.sampled_from(["-1", "0", "0,1", "7", "x"]),
    "--norm": st.sampled_from(["layer", "rms", "group", "x"]),
    "--weight": st.sampled_from(["gamma.npy", "none.npy"]),
    "--dtype": st.sampled_from(["bfloat16", "float16", "tf32", "e5m2", "x"]),
    "--format": listed(["fp16", "bf16", "float32", "double", "tf32", "e4m3", "e5m2", "json"]),
    "--kernel": kernels,
    "--ftz": st.sampled_from([None, "none", "float32", "T", "all", "x"]),
    "--tolerance": st.sampled_from(["0.02", "1e-9", "0", "nan"]),
    "--loss-scale": st.sampled_from(["1", "65536", "-1"]),
    "--output-format": st.sampled_from(["table", "concise", "json", "yaml"]),
    "--ascii": st.none(),
    "--quiet": st.none(),
    "--color": st.sampled_from(["auto", "always", "never", "x"]),
    "--select": st.sampled_from(["LN", "LN1,LN202", "LN9", ","]),
    "--ignore": st.sampled_from(["LN3", "LN104", ""]),
    "--share": st.sampled_from(["0", "0.5", "2", "x"]),
    "--report": st.sampled_from(["page.svg", "page.xyz", "none/page.svg"]),
}
by_command = {
    "scan": {
        "--eps": st.sampled_from(["0", "1e-5", "1e-30", "1e30", "0.1,0.2"]),
        "--compare-eps": st.sampled_from(["1e-3", "0", "x"]),
        "--verify": st.sampled_from(["all", "witness", "x"]),
        "--fail-on": st.sampled_from(["error", "note", "never", "x"]),
    },
    "check": {
        "--eps": st.sampled_from(["0", "1e-5"]),
        "--fail-on": st.sampled_from(["warning", "never"]),
        "--baseline": st.sampled_from(["none.json", "acts.npy"]),
        "--write-baseline": st.sampled_from(["known.json", "none/known.json"]),
    },
    "sweep": {
        "--plot": st.none(),
        "--eps": st.sampled_from([None, "0", "1e-8..1e-5", "1e-5..1e-8", "1e-5,1e30", "x"]),
        "--points": st.sampled_from(["2", "3", "1", "x"]),
        "--family": st.sampled_from(
            ["bump", "antisymmetric:t=1e-3..1", "zeros:rows=2,features=3", "normal:mean=1..2,std=1..2", "x"]
        ),
    },
}


@st.composite
def commands(draw: st.DrawFn) -> list[str]:
    command = draw(st.sampled_from(sorted(by_command)))
    known = {**common, **by_command[command]}
    chosen = draw(st.lists(st.sampled_from(sorted(known)), max_size=5, unique=True))
    words = [command]
    for option in chosen:
        value = draw(known[option])
        words += [option] if value is None else [option, value]
    paths = ["acts.npy", "half.npy", "constant.npy", "no.npy"]
    return words + draw(st.lists(st.sampled_from(paths), min_size=command != "sweep", max_size=2))


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("acts")
    rng = np.random.default_rng(3)
    np.save(folder / "acts.npy", np.r_[rng.normal(5, 2, (3, 6)), np.zeros((1, 6)), [[1e3, -3e4, 7, 0, 0, 9e4]]])
    np.save(folder / "half.npy", rng.normal(0, 300, (2, 6)).astype(np.float16))
    np.save(folder / "constant.npy", np.full((2, 6), 5.1, np.float32))
    np.save(folder / "gamma.npy", np.linspace(-2, 3e4, 6).astype(np.float32))
    return folder


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=commands())
def test_it_runs_or_says_why_not(here, words):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        done = CliRunner().invoke(app, words)
    assert done.exception is None or isinstance(done.exception, SystemExit), (words, done.exception)
    assert done.exit_code in CODES[words[0]], (words, done.stderr)
    if done.exit_code == 2:
        assert done.stderr, words
        assert all(line.startswith("lnaudit: ") for line in done.stderr.strip().splitlines()), (words, done.stderr)
    else:
        assert not done.stderr, (words, done.stderr)
    if "json" in words[words.index("--output-format") + 1 :][:1] if "--output-format" in words else False:
        assert json.loads(done.stdout)["kind"] == words[0]
