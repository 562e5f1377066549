"""The rules: on every input of the table, and what their findings say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lnaudit
from lnaudit.findings import SEVERITIES, Finding, worst
from lnaudit.rules import RULES, SiteFacts
from lnaudit.summary import OPERATIONS, PRIMARY_CODES

from .rule_cases import (
    ALTERNATING,
    CASES,
    FIRING,
    GOOD,
    NOT_APPLICABLE,
    REASONS,
    SILENT,
    STALLED_SLIGHTLY,
    Case,
    normal,
)

# those that speak of the site, not of a format and a kernel; their findings change no verdict
SITE_RULES = {"LN001", "LN002", "LN003", "LN004", "LN005", "LN006", "LN007", "LN303", "LN305", "LN401"}
# nothing measured against a limit: the fact is a count
WITHOUT_LIMIT = {"LN002", "LN003", "LN004", "LN108", "LN304"}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rule(case: Case, tmp_path: Path):
    report = case.run(tmp_path)
    found = [f for f in report.findings if f.code == case.code]
    if case not in FIRING:
        assert found == []
        return
    (finding,) = found
    assert (finding.severity, finding.latent) == (case.expected, case.latent)
    assert finding.name == RULES[case.code].name
    assert (finding.site, finding.source) == ("array", "array")
    assert finding.title
    assert finding.message
    if case.code in SITE_RULES:
        assert (finding.format, finding.kernel) == (None, None)
    else:
        assert (finding.format, finding.kernel) == (case.format, case.kernel)
    if case.code not in WITHOUT_LIMIT:
        assert finding.measured is not None
        assert finding.limit is not None
    if case.rows is not None:
        assert finding.rows == case.rows
        assert finding.row is not None or case.expected == "note"
    if case.row is not None:
        assert finding.row == case.row


# an error finding of an emulation fails it, a warning is a warning (latent ones too), a note is nothing
@pytest.mark.parametrize("case", FIRING, ids=str)
def test_the_verdict_follows_from_the_findings(case: Case, tmp_path: Path):
    report = case.run(tmp_path)
    own = [f for f in report.findings if f.format is not None]
    verdict = {"error": "fail", "warning": "warn"}.get(worst(own) or "", "pass")
    assert report.sites[0].results[0].verdict == report.sites[0].verdict == verdict
    assert report.summary == {"sites": 1, "fail": 0, "warn": 0, "pass": 0, verdict: 1}
    assert [SEVERITIES.index(f.severity) for f in report.findings] == sorted(
        SEVERITIES.index(f.severity) for f in report.findings
    )


@pytest.mark.parametrize("code", sorted(RULES))
def test_every_rule_has_a_firing_a_silent_and_a_not_applicable_case(code: str):
    expected = {case.expected for case in CASES if case.code == code}
    assert {SILENT, NOT_APPLICABLE} < expected


@pytest.mark.parametrize("code", sorted(RULES))
def test_the_severities_of_a_rule_are_those_that_its_cases_show(code: str):
    shown = {case.expected for case in FIRING if case.code == code}
    assert RULES[code].severities == tuple(sorted(shown, key=SEVERITIES.index))


# why a question does not arise: true of that case, and of no case in which the rule fires or is silent
@pytest.mark.parametrize("absent", [c for c in CASES if c.expected == NOT_APPLICABLE], ids=str)
def test_where_a_rule_does_not_apply_its_question_does_not_arise(absent: Case, tmp_path: Path):
    reason = REASONS[absent.why]
    assert reason(absent, absent.run(tmp_path))
    for case in CASES:
        if case.code == absent.code and case.expected != NOT_APPLICABLE:
            assert not reason(case, case.run(tmp_path)), case


def test_the_names_are_those_of_the_design():
    names = {
        "LN001": "non-finite-input", "LN002": "zero-rows", "LN003": "constant-rows", "LN004": "degenerate-axis",
        "LN005": "unread-bytes", "LN006": "non-finite-parameters", "LN007": "already-normalized",
        "LN101": "cast-overflow", "LN102": "cast-underflow", "LN103": "variance-overflow", "LN104": "collapsed-rows",
        "LN105": "variance-underflow", "LN106": "low-headroom", "LN107": "affine-overflow",
        "LN108": "non-finite-output", "LN201": "negative-variance", "LN202": "rounding-error",
        "LN203": "cast-destroys-variance", "LN204": "scale-error", "LN301": "epsilon-rounds-to-zero",
        "LN302": "epsilon-subnormal", "LN303": "epsilon-dominates-variance", "LN304": "no-safe-epsilon",
        "LN305": "epsilon-mismatch", "LN401": "high-gain", "LN402": "gradient-overflow",
    }  # fmt: skip
    assert {code: rule.name for code, rule in RULES.items()}.items() <= names.items()
    assert set(PRIMARY_CODES) <= set(RULES)
    assert {code for code, rule in RULES.items() if rule.scope is SiteFacts} & set(names) >= SITE_RULES


def test_what_is_measured():
    report = lnaudit.audit(normal(30.0), formats="float16", kernels=["native", "decomposed"])
    by_code = {f.code: f for f in report.findings}
    q, d = normal(30.0).var(axis=1), 256
    # the sum of the squares of the worst row, against the end of the range
    assert by_code["LN104"].measured == pytest.approx(q.max() * d)
    assert by_code["LN104"].limit == 65504
    assert by_code["LN104"].row == int(q.argmax())
    cast = {f.code: f for f in lnaudit.audit(1e5 + normal(), formats="float16", kernels="fused").findings}["LN101"]
    assert (cast.measured, cast.limit) == (pytest.approx(np.abs(1e5 + normal()).max()), 65504)
    subnormal = {f.code: f for f in lnaudit.audit(GOOD, formats="float16", kernels="native").findings}["LN302"]
    assert (subnormal.measured, subnormal.limit) == (float(np.float16(1e-5)), 2.0**-14)


def test_a_range_is_that_of_the_dtype_that_holds_the_value():
    # the sum of squares is 37 million: no matter in float32; 220^2 = 48400 is stored as 48384, spacing 32
    report = lnaudit.audit(220.0 * ALTERNATING, formats="float16", kernels=["decomposed", "stored-stats", "fused"])
    peaks = {r.kernel: r.peak for r in report.sites[0].results}
    assert peaks["decomposed"] == peaks["stored-stats"] == 48384 / 65504
    assert peaks["fused"] == 220 / 65504


@pytest.mark.parametrize(
    ("rows", "operation", "code"),
    [
        ([[7e4, 1, 2, 3]], "cast", "LN101"),
        ([[50000.0, 50064, 50000, 50064]], "sum", "LN103"),
        ([[300.0, -300, 300, -300]], "square", "LN104"),
        ([[200.0, -200, 200, -200]], "variance", "LN104"),
        ([[0.0, 0, 0, 0]], "add-epsilon", "LN301"),
    ],
)
def test_the_first_bad_operation(rows, operation, code):
    report = lnaudit.audit(rows, formats="float16", kernels="native", epsilon=1e-12)
    result = report.to_dict()["sites"][0]["results"][0]
    assert result["first_bad_operation"] == {**dict.fromkeys(OPERATIONS, 0), operation: 1}
    assert {f.code for f in report.findings if f.severity == "error"} == {code}


def test_affine_is_the_first_bad_operation_of_a_row_that_only_its_weight_breaks():
    report = lnaudit.audit(GOOD, formats="float16", kernels="native", weight=np.full(256, 3e4))
    result = report.to_dict()["sites"][0]["results"][0]
    bad = int(
        (np.abs(lnaudit.layer_norm(GOOD, format="float16", weight=np.full(256, 3e4))) == np.inf).any(axis=1).sum()
    )
    assert result["first_bad_operation"] == {**dict.fromkeys(OPERATIONS, 0), "affine": bad}
    assert result["affine"]["nonfinite_rows"] == result["failing_rows"] == bad > 0
    assert (result["nan"], result["inf"]) == (0, 0)


def test_the_message_about_an_affine_overflow_names_the_largest_weight_though_another_is_nan():
    weight = np.r_[np.nan, np.full(255, 6e4)]
    finding = next(f for f in lnaudit.audit(GOOD, formats="float16", weight=weight).findings if f.code == "LN107")
    assert "nan" not in finding.message


@pytest.mark.parametrize(("share", "severity"), [(1, "warning"), (2, "error")])
def test_one_percent_of_the_rows_may_exceed_the_limit(share, severity):
    x = np.r_[normal(1.0, 0, (100 - share, 256)), np.repeat(STALLED_SLIGHTLY, share, axis=0)]
    report = lnaudit.audit(x, formats="float16", kernels="native-serial")
    found = [f for f in report.findings if f.code in ("LN202", "LN204")]
    assert [(f.severity, f.rows) for f in found] == [(severity, share)]
    assert found[0].limit < found[0].measured < 5 * found[0].limit


def test_findings_are_frozen():
    with pytest.raises(AttributeError):
        Finding(code="", name="", severity="note", site="", source="", title="", message="").code = "x"


def test_one_underflow_in_two_hundred_is_no_finding():
    # the row with the smallest number is off by more than the limit, but hardly an element is lost
    x = np.random.default_rng(3).standard_normal((200, 64)).astype(np.float32)
    x[7] *= 1e-8
    codes = {f.code for f in lnaudit.audit(x, epsilon=1e-14, formats="float16", kernels="fused").findings}
    assert "LN102" not in codes
    x[:40] *= np.float32(1e-8)
    codes = {f.code for f in lnaudit.audit(x, epsilon=1e-14, formats="float16", kernels="fused").findings}
    assert "LN102" in codes


def test_the_weight_counts_in_what_overflows_backwards():
    x = np.random.default_rng(3).standard_normal((5, 64)) * 3e-3
    weight = np.full(64, 1000.0)
    options = {"epsilon": 1e-12, "formats": "float16", "kernels": "fused"}
    # the gain is about 1/3e-3: 333 fits float16, 333,000 does not
    assert lnaudit.audit(x, **options).sites[0].results[0].gradient_overflow_rows == 0
    assert lnaudit.audit(x, weight=weight, **options).sites[0].results[0].gradient_overflow_rows == 5
