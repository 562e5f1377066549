"""The program as users run it: exit codes, streams, one-line errors."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from .program import run

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def quiet(tmp_path):
    path = tmp_path / "quiet.npy"
    np.save(path, np.random.default_rng(0).standard_normal((20, 64), dtype=np.float32))
    return path


def test_findings_alone_do_not_fail_a_scan():
    done = run("scan", "silent_zero.npy", cwd=EXAMPLES)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\n  FAIL  float16   native" in done.stdout


@pytest.mark.parametrize(
    ("fail_on", "code"), [("error", 0), ("warning", 1), ("note", 1), ("never", 0)], ids=lambda value: str(value)
)
def test_fail_on_counts_findings_at_or_above(fail_on, code):
    done = run("scan", "minilm", "--format", "float16", "--fail-on", fail_on, cwd=EXAMPLES)
    assert done.returncode == code, done.stdout


def test_error_findings_with_fail_on_error_exit_1():
    assert run("scan", "silent_zero.npy", "--fail-on", "error", cwd=EXAMPLES).returncode == 1


def test_what_cannot_be_audited_makes_2_and_the_rest_is_audited(quiet):
    broken = quiet.with_name("broken.npy")
    broken.write_bytes(quiet.read_bytes()[:500])
    done = run("scan", broken, quiet, "--fail-on", "error")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"lnaudit: {broken.as_posix()}: has 500 of the ")
    assert "quiet" in done.stdout


@pytest.mark.parametrize(
    "args",
    [
        ("scan", "missing.npy"),
        ("scan", "*.nothing"),
        ("scan", "."),
        ("scan", "quiet.npy", "--eps", "-1"),
        ("scan", "quiet.npy", "--eps", "1e-5,1e-6"),
        ("scan", "quiet.npy", "--eps", "nan"),
        ("scan", "quiet.npy", "--format", "float17"),
        ("scan", "quiet.npy", "--format", "json"),
        ("scan", "quiet.npy", "--kernel", "nativ"),
        ("scan", "quiet.npy", "--kernel", "native:reduction=sideways"),
        ("scan", "quiet.npy", "--kernel", "native:reductoin=serial"),
        ("scan", "quiet.npy", "--axis", "x"),
        ("scan", "quiet.npy", "--axis", "5"),
        ("scan", "quiet.npy", "--norm", "batch"),
        ("scan", "quiet.npy", "--weight", "missing.npy"),
        ("scan", "quiet.npy", "--tolerance", "0"),
        ("scan", "quiet.npy", "--fail-on", "sometimes"),
        ("scan", "quiet.npy", "--output-format", "yaml"),
        ("scan", "quiet.npy", "--dtype", "int7"),
        ("kernels", "nativ"),
    ],
    ids=" ".join,
)
def test_bad_input_is_one_line_and_exit_2(args, tmp_path):
    (tmp_path / "empty").mkdir()
    where = tmp_path / "empty" if args[-1] in (".", "*.nothing", "missing.npy") and len(args) == 2 else tmp_path
    np.save(tmp_path / "quiet.npy", np.ones((4, 8), np.float32))
    done = run(*args, cwd=where)
    assert done.returncode == 2
    assert done.stderr.startswith("lnaudit: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr + done.stdout


def test_format_json_names_the_right_option(quiet):
    done = run("scan", quiet, "--format", "json")
    assert done.stderr == "lnaudit: --format: json is an output: --output-format json\n"


@pytest.mark.parametrize(
    "args",
    [("quiet.npy",), ("missing.npy",), ("quiet.npy", "missing.npy"), ("quiet.npy", "--format", "float17")],
    ids=" ".join,
)
def test_stdout_is_one_strict_json_document_whatever_happens(args, quiet):
    done = run("scan", *args, "--output-format", "json", cwd=quiet.parent)
    document = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"bare {name}"))
    assert document["schema_version"] == 1
    assert document["kind"] == "scan"
    assert (done.returncode == 2) == bool(document["not_audited"])


def test_a_crash_is_3_and_one_line(quiet, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import lnaudit.pipeline\n"
        "def crash(*a, **k):\n    raise RuntimeError('boom')\n"
        "lnaudit.pipeline.scanning.audit_site = crash\n"
    )
    done = run("scan", quiet, env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 3
    assert done.stderr == "lnaudit: internal error: RuntimeError: boom; run it again with -v and report it\n"
    assert "RuntimeError: boom" in run("scan", quiet, "-v", env={"PYTHONPATH": str(tmp_path)}).stderr


def test_an_interrupt_still_gives_a_json_document(quiet, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import lnaudit.pipeline\n"
        "def stop(*a, **k):\n    raise KeyboardInterrupt\n"
        "lnaudit.pipeline.scanning.audit_site = stop\n"
    )
    done = run("scan", quiet, "--output-format", "json", env={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stderr) == (130, "lnaudit: interrupted\n")
    assert json.loads(done.stdout)["not_audited"][0]["reason"] == "interrupted"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("scan",), "lnaudit: Missing argument 'PATH...'; see lnaudit scan --help\n"),
        (("scan", "x.npy", "--nope"), "lnaudit: No such option: --nope"),
        (("scn", "x.npy"), "lnaudit: No such command 'scn'. Did you mean 'scan'?; see lnaudit --help\n"),
        (("kernels", "a", "b"), "lnaudit: Got unexpected extra argument"),
    ],
)
def test_usage_errors_are_one_line(args, said):
    done = run(*args)
    assert done.returncode == 2
    assert done.stderr.startswith(said)
    assert len(done.stderr.splitlines()) == 1


def test_an_interrupt_is_130(quiet, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import lnaudit.pipeline\n"
        "def stop(*a, **k):\n    raise KeyboardInterrupt\n"
        "lnaudit.pipeline.scanning.audit_site = stop\n"
    )
    done = run("scan", quiet, env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 130
    assert "Traceback" not in done.stderr


def test_a_reader_that_leaves_early_is_no_error():
    command = f"{sys.executable} -m lnaudit scan silent_zero.npy | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=EXAMPLES, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("closed", ["2>&-", ">&-", "2>&- >&-"])
def test_closed_streams_change_no_exit_code(closed):
    command = f"{sys.executable} -m lnaudit scan {{}} {closed}; exit $?"
    for name, code in (("quiet.npy", 0), ("missing.npy", 2)):
        done = subprocess.run(["bash", "-c", command.format(name)], capture_output=True, cwd=EXAMPLES, timeout=60)
        assert done.returncode == code


def test_names_that_an_encoding_cannot_say_are_escaped(quiet):
    quiet.rename(quiet.with_name("r\u00fcck\n.npy"))
    done = run("scan", quiet.parent, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert "r\\xfcck\\n" in done.stdout
    done = run("scan", quiet.with_name("no\x1b\n.npy"))
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize(
    "args", [("scan", "--frmat", "x", "--output-format", "json"), ("scan", "--output-format=json")]
)
def test_words_that_cannot_be_parsed_still_give_a_json_document(args):
    done = run(*args)
    assert done.returncode == 2
    assert json.loads(done.stdout)["not_audited"][0]["source"] == "scan"


def test_nothing_finite_is_not_audited(tmp_path):
    np.save(tmp_path / "padding.npy", np.full((4, 8), np.nan, np.float32))
    done = run("scan", "padding.npy", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("lnaudit: padding.npy: no row is finite")


def test_version_and_tables():
    assert run("--version").stdout == "lnaudit 0.1.0\n"
    assert "bfloat16" in run("formats").stdout
    assert "stored-stats" in run("kernels").stdout
    assert "serial" in run("kernels", "native:reduction=serial").stdout


def test_comma_lists_and_repeats_both_work(quiet):
    one = run("scan", quiet, "--format", "fp16,bf16", "--kernel", "native:reduction=serial,variance=one_pass,fused")
    two = run(
        "scan",
        quiet,
        *("--format", "half", "--format", "bfloat16"),
        *("--kernel", "native:reduction=serial,variance=one_pass", "--kernel", "fused"),
    )
    assert one.returncode == 0
    assert one.stdout == two.stdout


def test_two_runs_give_the_same_bytes(quiet):
    first, second = (run("scan", EXAMPLES, "--output-format", "json").stdout for _ in range(2))
    assert first == second
    assert str(EXAMPLES) not in json.dumps(json.loads(first)["sites"])


def test_options_override_a_manifest_and_the_header_says_so():
    done = run("scan", "minilm", "--eps", "1e-5", "--format", "float32", cwd=EXAMPLES)
    assert "epsilon 1e-5 (--eps" in done.stdout
    assert json.loads(run("scan", "minilm", "--eps", "1e-5", "--output-format", "json", cwd=EXAMPLES).stdout)["sites"][
        0
    ]["overridden"] == ["epsilon"]


def test_a_loss_scale_makes_gradients_overflow(tmp_path):
    # the gain is about 1/1e-2 = 100: 100 x 100 fits float16, 100 x 1000 does not
    np.save(tmp_path / "small.npy", (1e-2 * np.random.default_rng(1).standard_normal((6, 64))).astype(np.float32))
    options = ("--format", "float16", "--kernel", "fused", "--eps", "1e-9", "--output-format", "json")
    for scale, codes in (("100", []), ("1000", ["LN402"])):
        done = run("scan", "small.npy", "--loss-scale", scale, *options, cwd=tmp_path)
        assert [f["code"] for f in json.loads(done.stdout)["findings"] if f["severity"] == "error"] == codes


def test_ladder_means_the_five_textbook_kernels(quiet):
    done = run("scan", quiet, "--kernel", "ladder", "--format", "float16", "--output-format", "json")
    kernels = [r["kernel"] for r in json.loads(done.stdout)["sites"][0]["results"]]
    assert kernels == ["native-serial", "native", "decomposed", "stored-stats", "fused"]


def test_verify_all_runs_a_large_site_in_full(tmp_path):
    rows = 20_000
    x = np.random.default_rng(2).standard_normal((rows, 256), dtype=np.float32) * np.float32(30)
    np.save(tmp_path / "large.npy", x)
    options = ("--format", "float16", "--kernel", "native", "--output-format", "json")
    for verify, kind, least in (("witness", "witness-rows", 1), ("all", "all-rows", rows)):
        done = run("scan", "large.npy", "--verify", verify, *options, cwd=tmp_path)
        remedies = json.loads(done.stdout)["sites"][0]["results"][0]["remedies"]
        assert {r["verified"] for r in remedies} == {kind}
        assert all(least <= r["rows"] <= rows for r in remedies)


@pytest.mark.parametrize(
    ("q", "model", "other", "change"),
    # case B35: 1e-5 against 1e-12 is 0.5 % at q = 1e-3 and 41.4 % at 1e-5; Keras' 1e-3 against 1e-5: 216 % at 1e-4
    [(1e-3, "1e-5", "1e-12", None), (1e-5, "1e-5", "1e-12", "41 %"), (1e-4, "1e-3", "1e-5", "216 %")],
)
def test_another_epsilon_is_compared(q, model, other, change, tmp_path):
    row = np.where(np.arange(64) % 2, 1.0, -1.0) * np.sqrt(q)
    np.save(tmp_path / "row.npy", row[None])
    options = ("--eps", model, "--compare-eps", other, "--format", "float64", "--output-format", "json")
    found = json.loads(run("scan", "row.npy", *options, cwd=tmp_path).stdout)["findings"]
    drift = abs(np.sqrt(q / (q + float(other))) - np.sqrt(q / (q + float(model))))
    mismatch = [f for f in found if f["code"] == "LN305"]
    if change is None:
        assert drift < 0.02
        assert not mismatch
    else:
        assert mismatch[0]["measured"] == pytest.approx(drift, rel=1e-5)
        assert change in mismatch[0]["message"]
