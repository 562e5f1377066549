"""Thresholds: every one that a rule declares can be set, and changes what is found."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lnaudit import pipeline
from lnaudit.errors import LnauditError
from lnaudit.formats import FORMATS
from lnaudit.kernels import get_kernel
from lnaudit.pipeline.rejudging import rejudge_all
from lnaudit.pipeline.saving import Saved, judged_by, lines_of, read_saved
from lnaudit.policy import Policy, read_policy
from lnaudit.rules import RULES
from lnaudit.site import ArrayRows, Site

from .rule_cases import ALREADY, ALTERNATING, SCALED_SLIGHTLY, SILENT, STALLED_SLIGHTLY, Case, case, normal, silent

# one row of many is slightly off, in its elements or as a whole
NOISY = case("LN202", "warning", np.r_[normal(shape=(99, 256)), STALLED_SLIGHTLY], kernel="native-serial")
SCALED = case("LN204", "warning", SCALED_SLIGHTLY, kernel="native-serial", norm="rms")
# one row of many is off by more than five limits
FAR = np.r_[normal(shape=(199, 256)), 150 + normal(1.0, 1, (1, 256))]
CONSTANT = case("LN004", "warning", np.repeat(normal(shape=(64, 1)), 8, axis=1))
SMALL = normal(shape=(200, 64))
SMALL[7] *= 1e-8
ONE_SMALL = silent("LN102", SMALL, kernel="fused", epsilon=1e-14)


@dataclass(frozen=True, kw_only=True)
class Changed:
    """A threshold by rule and name, its value, and what becomes of a case."""

    case: Case
    name: str
    value: float
    then: str

    def __str__(self) -> str:
        return f"{self.case.code}.{self.name}={self.value:g}: {self.then}"


CHANGED = [
    Changed(case=CONSTANT, name="share", value=1, then=SILENT),
    Changed(case=silent("LN007", np.r_[ALREADY, ALREADY * 2]), name="share", value=0.5, then="note"),
    Changed(case=silent("LN007", ALREADY + 0.01), name="mean", value=0.011, then="note"),
    Changed(case=silent("LN007", ALREADY * 1.1), name="variance", value=0.22, then="note"),
    Changed(case=case("LN007", "note", ALREADY * 1.004), name="variance", value=0.005, then=SILENT),
    Changed(case=ONE_SMALL, name="share", value=1e-3, then="warning"),
    Changed(case=case("LN106", "warning", 9.0 * ALTERNATING), name="peak", value=0.99, then=SILENT),
    Changed(case=NOISY, name="share", value=0.001, then="error"),
    Changed(case=NOISY, name="factor", value=1, then="error"),
    Changed(case=SCALED, name="share", value=0.001, then="error"),
    Changed(case=SCALED, name="factor", value=1, then="error"),
    Changed(case=case("LN204", "error", FAR, kernel="native-serial"), name="factor", value=1e3, then="warning"),
    Changed(case=case("LN303", "warning", normal(1e-3)), name="share", value=1, then=SILENT),
    Changed(case=case("LN401", "warning", normal(1e-4), epsilon=1e-12), name="gain", value=1e6, then=SILENT),
]


def severity(report: Any, code: str) -> str:
    return next((f.severity for f in report.findings if f.code == code), SILENT)


@pytest.mark.parametrize("changed", CHANGED, ids=str)
def test_a_threshold_changes_what_is_found(changed: Changed, tmp_path: Path) -> None:
    code = changed.case.code
    (tmp_path / "lnaudit.toml").write_text(f"[rules]\n{code} = {{{changed.name} = {changed.value}}}\n")
    policy = read_policy(tmp_path / "lnaudit.toml", "lnaudit.toml")
    assert severity(changed.case.run(tmp_path), code) == changed.case.expected
    assert severity(changed.case.run(tmp_path, policy), code) == changed.then


def test_every_threshold_is_tried() -> None:
    declared = {(code, name) for code, rule in RULES.items() for name in rule.thresholds}
    assert {(changed.case.code, changed.name) for changed in CHANGED} == declared


@pytest.mark.parametrize("code", sorted(code for code, rule in RULES.items() if rule.thresholds))
def test_the_defaults_are_what_a_policy_may_say(code: str, tmp_path: Path) -> None:
    defaults = {name: threshold.default for name, threshold in RULES[code].thresholds.items()}
    words = ", ".join(f"{name} = {value}" for name, value in defaults.items())
    path = tmp_path / "lnaudit.toml"
    path.write_text(f"[rules]\n{code} = {{{words}}}\n")
    assert read_policy(path, "lnaudit.toml").of_rule(code) == Policy().of_rule(code) == defaults
    for name, threshold in RULES[code].thresholds.items():
        for value in {threshold.least * 0.99, threshold.most * 1.01} - {0.0, math.inf}:
            path.write_text(f"[rules]\n{code} = {{{name} = {value}}}\n")
            with pytest.raises(LnauditError, match=rf"rules\.{code}\.{name}: .* is too (small|large); from "):
                read_policy(path, "lnaudit.toml")


@pytest.mark.parametrize(("share", "severity"), [(1, "warning"), (2, "error")])
def test_one_percent_of_the_rows_may_exceed_the_limit(share: int, severity: str, tmp_path: Path) -> None:
    x = np.r_[normal(shape=(100 - share, 256)), np.repeat(STALLED_SLIGHTLY, share, axis=0)]
    report = silent("", x, kernel="native-serial").run(tmp_path)
    found = [f for f in report.findings if f.code in ("LN202", "LN204")]
    assert [(f.severity, f.rows) for f in found] == [(severity, share)]
    assert found[0].limit is not None
    assert found[0].measured is not None
    assert found[0].limit < found[0].measured < 5 * found[0].limit


# the worst row is a known number of limits off: a factor on either side of it decides
@pytest.mark.parametrize("slightly", [NOISY, SCALED], ids=str)
def test_the_factor_is_in_limits(slightly: Case, tmp_path: Path) -> None:
    (finding,) = (f for f in slightly.run(tmp_path).findings if f.code == slightly.code)
    assert finding.measured is not None
    assert finding.limit is not None
    times = finding.measured / finding.limit
    for factor, expected in ((times * 0.999, "error"), (times * 1.001, "warning")):
        policy = Policy(thresholds={slightly.code: {"factor": factor}})
        assert severity(slightly.run(tmp_path, policy), slightly.code) == expected


BASE = pipeline.Settings(formats=(FORMATS["float16"],), kernels=(get_kernel("native-serial"),))
ROWS = {"slightly": NOISY.values, "far": FAR, "already": ALREADY + 0.01}


def saved(policy: Policy) -> Saved:
    """Return what is saved of an audit, as it comes back from the file."""
    kept: list[Any] = []
    sites = [Site(name=name, source=f"{name}.npy", rows=ArrayRows(x)) for name, x in ROWS.items()]
    what = replace(BASE, policy=policy)
    report = pipeline.run(sites, what, "check", save=kept.append)
    config = {**report.config, **what.named(), "fail_on": "error", **policy.config()}
    written = Saved(config=config, judged_by=judged_by(policy), sites=kept)
    return read_saved(json.loads("".join(lines_of(written))), "run.json")


def judged_again(kept: Saved, policy: Policy) -> Any:
    return rejudge_all(kept, "run.json", replace(BASE, policy=policy, formats=(), kernels=None))


def test_saved_statistics_are_judged_again_under_another_factor() -> None:
    kept = saved(Policy())
    for factor, slightly, far in ((5.0, "warning", "error"), (1.0, "error", "error"), (1e3, "warning", "warning")):
        policy = Policy(thresholds={code: {"factor": factor} for code in ("LN202", "LN204")})
        found = {f.site: f.severity for f in judged_again(kept, policy).findings if f.code in ("LN202", "LN204")}
        assert found == {"slightly": slightly, "far": far}


def test_what_counts_as_normalized_is_what_it_was_when_it_was_saved() -> None:
    wide = Policy(thresholds={"LN007": {"mean": 0.011}})
    assert "LN007" in {f.code for f in judged_again(saved(wide), wide).findings}
    for kept, policy in ((saved(wide), Policy()), (saved(Policy()), wide)):
        report = judged_again(kept, policy)
        assert report.sites == []
        assert {entry.reason.partition(" it ")[2].partition(" with ")[0] for entry in report.not_audited} == {
            "was saved"
        }
        assert all("LN007 = {mean = 0.0" in entry.reason for entry in report.not_audited)
        assert all(entry.reason.endswith("; check the dump") for entry in report.not_audited)


def test_which_thresholds_there_are_is_said_where_another_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lnaudit.toml"
    path.write_text("[rules]\nLN202 = {limit = 3}\n")
    with pytest.raises(LnauditError, match=r"rules\.LN202: unknown key 'limit'; choose from share, factor"):
        read_policy(path, "lnaudit.toml")
