"""`lnaudit check`: exit codes that do not lie, statistics, baselines."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .program import run_in as run

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    for name in ("silent_zero.npy", "quiet.npy"):
        if (EXAMPLES / name).exists():
            shutil.copy(EXAMPLES / name, tmp_path)
    rng = np.random.default_rng(0)
    np.save(tmp_path / "fine.npy", rng.standard_normal((30, 64)).astype(np.float32))
    np.save(tmp_path / "large.npy", (rng.standard_normal((30, 64)) * 500).astype(np.float32))
    (tmp_path / "lnaudit.toml").write_text('formats = ["float16"]\nkernels = ["native"]\n')
    return tmp_path


def document(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    return dict(json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"bare {name}")))


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("fine.npy",), 0),
        (("large.npy",), 1),
        (("fine.npy", "large.npy"), 1),
        (("large.npy", "--fail-on", "never"), 0),
        (("fine.npy", "--fail-on", "note"), 1),  # 1e-5 is subnormal in float16
        (("large.npy", "missing.npy"), 2),  # before 1: what was not seen may be worse
        (("missing.npy",), 2),
        ((".git",), 2),  # nothing to audit
        (("large.npy", "--share", "2"), 2),
        (("large.npy", "--nope"), 2),
        (("large.npy", "--ignore", "LN104,LN106"), 0),
        (("large.npy", "--select", "LN3"), 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_exit_codes(project: Path, words: tuple[str, ...], code: int) -> None:
    assert run(project, "check", *words).returncode == code


def test_a_crash_is_3_and_an_interrupt_130(project: Path) -> None:
    for raised, code in (("RuntimeError('x')", 3), ("KeyboardInterrupt", 130)):
        (project / "sitecustomize.py").write_text(
            f"import lnaudit.pipeline\ndef stop(*a, **k):\n    raise {raised}\n"
            "lnaudit.pipeline.scanning.audit_site = stop\n"
        )
        done = run(project, "check", "fine.npy", "missing.npy", "--output-format", "json", PYTHONPATH=str(project))
        assert done.returncode == code
        assert document(done)["kind"] == "check"


def test_without_a_policy_the_last_line_says_how_to_name_what_is_shipped(project: Path) -> None:
    (project / "lnaudit.toml").unlink()
    done = run(project, "check", "fine.npy")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == (
        "Every default format and kernel was judged. Name those that you ship, in pyproject.toml: [tool.lnaudit] "
        "formats = [...], kernels = [...] or runtime = [...]."
    )
    assert "Name those" not in run(project, "check", "fine.npy", "--format", "float16").stdout
    # nor where that is not true: nothing was judged, or what was saved holds less
    assert "Every default" not in run(project, "check", "missing.npy").stdout
    run(project, "scan", "fine.npy", "--format", "float16", "--save-stats", "run.json")
    assert "Every default" not in run(project, "check", "run.json").stdout
    run(project, "scan", "fine.npy", "--save-stats", "run.json")
    assert "Every default" in run(project, "check", "run.json").stdout
    (project / "lnaudit.toml").write_text('formats = ["float16"]\n')
    assert "Name those" not in run(project, "check", "fine.npy").stdout


def test_the_policy_decides_what_fails(project: Path) -> None:
    policy = project / "lnaudit.toml"
    policy.write_text('formats = ["float16"]\nkernels = ["fused"]\n')
    assert run(project, "check", "large.npy").returncode == 0
    policy.write_text('formats = ["float16"]\nkernels = ["native"]\nfail-on = "error"\n')
    assert run(project, "check", "large.npy").returncode == 1
    assert run(project, "scan", "large.npy").returncode == 0  # a scan fails only where that is asked for
    policy.write_text('formats = ["float16"]\nkernels = ["native"]\n[ignore-sites.large]\nLN1 = "known overflow"\n')
    done = run(project, "check", "large.npy")
    assert done.returncode == 0
    assert "accepted by the policy: 1 finding of LN1 at 'large': known overflow" in done.stdout.replace("\n  ", " ")


def test_statistics_are_judged_without_the_dumps(project: Path) -> None:
    done = run(project, "scan", "fine.npy", "large.npy", "--save-stats", "run.json")
    assert done.returncode == 0
    fresh = run(project, "check", "fine.npy", "large.npy", "--output-format", "json")
    for name in ("fine.npy", "large.npy"):
        (project / name).unlink()
    again = run(project, "check", "run.json", "--output-format", "json")
    assert again.returncode == fresh.returncode == 1
    expected, found = document(fresh), document(again)
    assert found == expected
    assert run(project, "check", "run.json", "--tolerance", "0.05").returncode == 1
    done = run(project, "check", "run.json", "--tolerance", "0.03")
    assert done.returncode == 2
    assert "lnaudit: large.npy: in run.json it can be judged under the tolerances 0.001" in done.stderr
    done = run(project, "check", "run.json", "--eps", "1e-3")
    assert (done.returncode, done.stderr) == (
        2,
        "lnaudit: --eps: concerns rows, which statistics do not hold; check the dumps\n",
    )
    for words in (("--ftz",), ("--loss-scale", "65536"), ("--verify", "all")):
        done = run(project, "check", "run.json", *words)
        said = f"lnaudit: {words[0]}: concerns rows, which statistics do not hold; check the dumps\n"
        assert (done.returncode, done.stderr) == (2, said)
    done = run(project, "check", "run.json", "--format", "float64")
    assert done.returncode == 2


def test_two_saved_runs_are_the_same_bytes(project: Path) -> None:
    for name in ("a.json", "b.json"):
        run(project, "scan", "large.npy", "--save-stats", name)
    assert (project / "a.json").read_bytes() == (project / "b.json").read_bytes()
    assert sorted(p.name for p in project.glob(".lnaudit*")) == []


def test_a_file_that_cannot_be_written_is_one_line(project: Path) -> None:
    for option in ("--save-stats", "--write-baseline"):
        done = run(project, "check", "fine.npy", option, "nowhere/x.json")
        assert done.returncode == 2
        assert done.stderr == (
            "lnaudit: nowhere/x.json: cannot be written (no such file or directory); name another place\n"
        )


def test_known_findings_pass_and_new_ones_fail(project: Path) -> None:
    assert run(project, "check", "large.npy", "--write-baseline", "known.json").returncode == 1
    done = run(project, "check", "large.npy", "--baseline", "known.json")
    assert done.returncode == 0
    assert "known, 0 new or worse, 0 vanished" in done.stdout
    x = np.load(project / "large.npy")
    np.save(project / "other.npy", x)
    assert run(project, "check", "large.npy", "other.npy", "--baseline", "known.json").returncode == 1
    np.save(project / "large.npy", x / 1000)
    done = run(project, "check", "large.npy", "--baseline", "known.json")
    assert done.returncode == 0
    assert "vanished: LN104 large float16 native" in done.stdout
    findings = document(run(project, "check", "large.npy", "--baseline", "known.json", "--output-format", "json"))
    assert all(isinstance(finding["known"], bool) for finding in findings["findings"])


def test_a_baseline_is_sorted_and_has_an_entry_a_line(project: Path) -> None:
    run(project, "check", "large.npy", "fine.npy", "--write-baseline", "known.json", "--fail-on", "never")
    lines = (project / "known.json").read_text().splitlines()
    entries = [json.loads(line.rstrip(",")) for line in lines[1:-1]]
    keys = [(e["code"], e["site"], e["format"], e["kernel"]) for e in entries]
    assert keys == sorted(keys)
    assert len(keys) > 2
    assert json.loads("\n".join(lines))["kind"] == "baseline"


def test_a_file_that_is_no_baseline_is_one_line(project: Path) -> None:
    (project / "x.json").write_text("[]")
    done = run(project, "check", "fine.npy", "--baseline", "x.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "lnaudit: x.json: is no document of lnaudit; name what lnaudit has written\n"
    (project / "x.json").write_text('{"kind": "scan"}')
    done = run(project, "check", "fine.npy", "--baseline", "x.json")
    assert done.stderr == "lnaudit: x.json: is no baseline; write one with --write-baseline\n"


@pytest.mark.parametrize(("more", "said"), [(1, "1 byte after the array was"), (12, "12 bytes after the array were")])
def test_bytes_are_counted_as_one_says_it(project: Path, more: int, said: str) -> None:
    with (project / "fine.npy").open("ab") as file:
        file.write(bytes(more))
    (found,) = document(run(project, "check", "fine.npy", "--select", "unread-bytes", "--output-format", "json"))[
        "findings"
    ]
    assert found["title"] == f"{said} not read"
