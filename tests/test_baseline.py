"""What counts as worse than what is known."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from lnaudit.baseline import Known, from_document, is_worse, to_text

from .program import run_in


@pytest.mark.parametrize(
    ("old", "new", "worse"),
    [
        # measured above its limit: more is worse, by more than a tenth
        ((0.1, 0.5, 0.02), (0.1, 0.5, 0.02), False),
        ((0.1, 0.5, 0.02), (0.1, 0.54, 0.02), False),
        ((0.1, 0.5, 0.02), (0.1, 0.56, 0.02), True),
        ((0.1, 0.5, 0.02), (0.1, 0.1, 0.02), False),
        ((0.1, 0.5, 0.02), (0.1, math.nan, 0.02), True),  # NaN never passes a gate
        ((0.1, 0.5, 0.02), (0.1, math.inf, 0.02), True),
        ((0.1, math.inf, 1.0), (0.1, math.inf, 1.0), False),
        # below it: less is worse
        ((0.1, 1e-8, 6e-5), (0.1, 9.5e-9, 6e-5), False),
        ((0.1, 1e-8, 6e-5), (0.1, 8e-9, 6e-5), True),
        ((0.1, 0.0, 6e-5), (0.1, 0.0, 6e-5), False),
        # more of the rows
        ((0.1, None, None), (0.11, None, None), False),
        ((0.1, None, None), (0.12, None, None), True),
        ((0.0, None, None), (0.001, None, None), True),
        ((0.1, None, None), (0.1, 5.0, 1.0), False),
        # what is below zero, as a negative variance, is worse the further down
        ((0.1, -5.0, 0.0), (0.1, -5.0, 0.0), False),
        ((0.1, -5.0, 0.0), (0.1, -5.4, 0.0), False),
        ((0.1, -5.0, 0.0), (0.1, -6.0, 0.0), True),
        ((0.1, -5.0, 0.0), (0.1, -1.0, 0.0), False),
        # what was above its limit is not worse for being smaller, whatever the limit is now
        ((0.1, 0.5, 0.02), (0.1, 0.015, 0.01), False),
        ((0.1, 0.015, 0.01), (0.1, 0.5, 0.02), True),
    ],
)
def test_worse_is_more_than_a_tenth(old: tuple, new: tuple, worse: bool) -> None:
    names = ("share", "measured", "limit")
    assert is_worse(Known(**dict(zip(names, new, strict=True))), Known(**dict(zip(names, old, strict=True)))) is worse


@pytest.mark.parametrize(("old", "new", "worse"), [
    ("note", "error", True), ("warning", "error", True), ("note", "warning", True), ("error", "error", False),
    ("error", "note", False), (None, "error", False),
])  # fmt: skip
def test_what_became_more_severe_is_worse(old: str | None, new: str, worse: bool) -> None:
    # fewer rows, as when negative variances that were clamped become NaN
    before = Known(share=0.9, measured=-5.0, limit=0.0, severity=old)
    assert is_worse(Known(share=0.1, measured=-5.0, limit=0.0, severity=new), before) is worse


def test_a_baseline_comes_back() -> None:
    known = {
        ("LN104", "a", "float16", "native"): Known(share=0.5, measured=math.inf, limit=65504.0, severity="error"),
        ("LN001", "a", "", ""): Known(share=0.0, measured=None, limit=None),
    }
    assert from_document(json.loads(to_text(known)), "x") == known
    assert to_text({}).count("\n") == 3


def test_what_became_worse_says_from_what_to_what(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((100, 16)).astype(np.float32)
    x[:10] *= 4000
    np.save(tmp_path / "a.npy", x)
    words = ("a.npy", "--format", "fp16", "--kernel", "native", "--select", "LN103,LN104")
    run_in(tmp_path, "check", *words, "--write-baseline", "known.json")
    x[:20] = x[0]
    np.save(tmp_path / "a.npy", x)
    done = run_in(tmp_path, "check", *words, "--baseline", "known.json")
    assert done.returncode == 1
    assert "note: worse: LN104 a float16 native: 10 % -> 20 % of the rows" in done.stdout.replace("\n  ", " ")


def test_only_what_was_looked_for_can_vanish(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.full((4, 16), 1e6) * np.arange(16))
    np.save(tmp_path / "b.npy", np.full((4, 16), 1e6) * np.arange(16))
    both = ("--format", "fp16,bf16", "--kernel", "native", "--baseline", "known.json")
    run_in(tmp_path, "check", "a.npy", "b.npy", *both[:-2], "--write-baseline", "known.json")
    found = len(json.loads((tmp_path / "known.json").read_text())["findings"])

    def said(*words: str) -> str:
        text = run_in(tmp_path, "check", *words).stdout
        return next(line for line in text.splitlines() if line.startswith("note: baseline"))

    assert said("a.npy", "b.npy", *both).endswith(f": {found} known, 0 new or worse, 0 vanished")
    assert " 0 vanished" in said("a.npy", *both)
    assert " 0 vanished" in said("a.npy", "b.npy", "--format", "bf16", *both[2:])
    assert " 0 vanished" in said("a.npy", "b.npy", *both, "--ignore", "LN1")
    (tmp_path / "accepting.toml").write_text('[ignore-sites."*"]\nLN1 = "known"\n')
    assert " 0 vanished" in said("a.npy", "b.npy", *both, "--config", "accepting.toml")
    np.save(tmp_path / "a.npy", np.eye(16)[:4])
    assert " 0 vanished" not in said("a.npy", "b.npy", *both)


def test_known_and_accepted_findings_are_counted_where_little_is_told(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.full((4, 16), 1e6) * np.arange(16))
    words = ("a.npy", "-q", "--format", "fp16", "--kernel", "native")
    run_in(tmp_path, "check", *words, "--write-baseline", "known.json")
    done = run_in(tmp_path, "check", *words, "--baseline", "known.json")
    assert done.returncode == 0
    assert re.search(r"1 FAIL \(float16 native; \d findings? known\)", done.stdout)
    (tmp_path / "lnaudit.toml").write_text('[ignore-sites."*"]\nLN1 = "known"\n')
    done = run_in(tmp_path, "check", *words)
    assert done.returncode == 0
    assert re.search(r"1 pass \(.*1 finding accepted\)", done.stdout)
    document = json.loads(run_in(tmp_path, "check", *words, "--output-format", "json").stdout)
    (entry,) = document["accepted"]
    assert (entry["finding"]["code"], entry["pattern"], entry["reason"]) == ("LN101", "*", "known")


@pytest.mark.parametrize("form", ["table", "concise"])
def test_rules_that_were_left_out_are_named(tmp_path: Path, form: str) -> None:
    np.save(tmp_path / "a.npy", np.full((4, 16), 1e6) * np.arange(16))
    for words, said in (
        (("--ignore", "LN1"), "Rules: without LN1."),
        (("--select", "LN2,LN3", "--ignore", "LN302"), "Rules: only LN2 and LN3, without LN302."),
    ):
        assert said in run_in(tmp_path, "check", "a.npy", "-q", *words, "--output-format", form).stdout
    assert "Rules:" not in run_in(tmp_path, "check", "a.npy").stdout


def test_a_site_without_a_finite_row_passes_nowhere(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.full((4, 16), np.nan))
    assert "1 site: 1 not judged" in run_in(tmp_path, "check", "a.npy").stdout
    summary = json.loads(run_in(tmp_path, "check", "a.npy", "--output-format", "json").stdout)["summary"]
    assert summary == {"sites": 1, "fail": 0, "warn": 0, "pass": 0}
