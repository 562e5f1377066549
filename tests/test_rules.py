"""The rules: for each one an input on which it fires and one on which it is silent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import lnaudit
from lnaudit import pipeline
from lnaudit.findings import SEVERITIES, Finding, worst
from lnaudit.formats import FORMATS
from lnaudit.kernels import get_kernel
from lnaudit.rules import RULES, SiteFacts
from lnaudit.rules.input import unread_bytes
from lnaudit.site import ArrayRows, Site
from lnaudit.summary import OPERATIONS, PRIMARY_CODES


def normal(scale: float = 1.0, seed: int = 0, shape: tuple[int, ...] = (8, 256)) -> np.ndarray:
    return scale * np.random.default_rng(seed).normal(size=shape)


def changed(x: np.ndarray, row: int, values: Any) -> np.ndarray:
    x = x.copy()
    x[row] = values
    return x


@dataclass(frozen=True, kw_only=True)
class Example:
    """One input for one rule; severity None: silent. `rows` and `row` are checked where given."""

    code: str
    severity: str | None
    x: Any
    options: dict[str, Any] = field(default_factory=dict)
    format: str = "float16"
    kernel: str = "native"
    latent: bool = False
    rows: int | None = None
    row: int | None = None

    def __str__(self) -> str:
        return f"{self.code}-{self.severity or 'silent'}-{self.format}-{self.kernel}"


GOOD = normal()
CANCELLED = "variance=one_pass"
ONE_PASS = f"native:{CANCELLED}"
ALTERNATING = np.where(np.arange(768) % 2, 1.0, -1.0)[None]
NEAR_THREE = (np.random.default_rng(20).normal(0, 1e-3, (100, 512)) + 3.0).astype("f4")
STALLED = 150 + normal(1.0, 1, (4, 256))
# float16 spacing 1/8 at 200: the cast loses a third of a spread of 0.05, but leaves some
COARSE = 200 + normal(0.05)


def e(code: str, severity: str | None, x: Any, format: str = "float16", kernel: str = "native", **more: Any) -> Example:
    own = {key: more.pop(key) for key in ("latent", "rows", "row") if key in more}
    return Example(code=code, severity=severity, x=x, format=format, kernel=kernel, options=more, **own)


ALREADY = normal()
ALREADY = (ALREADY - ALREADY.mean(1, keepdims=True)) / ALREADY.std(1, keepdims=True)


EXAMPLES = [
    e("LN001", "error", changed(GOOD, 3, np.r_[np.nan, np.ones(255)]), rows=1, row=3),
    e("LN001", "error", changed(GOOD, 2, np.r_[np.inf, np.ones(255)]), rows=1, row=2),
    e("LN001", "error", changed(changed(GOOD, 0, np.nan), 5, np.r_[np.inf, np.ones(255)]), rows=2, row=5),
    e("LN001", "note", changed(GOOD, 4, np.nan), rows=1, row=4),
    e("LN001", None, GOOD),
    e("LN002", "note", changed(GOOD, 6, 0.0), rows=1, row=6),
    e("LN002", None, changed(GOOD, 6, 1.0)),
    e("LN003", "note", changed(GOOD, 6, 1.0), rows=1, row=6),
    e("LN003", "note", changed(changed(GOOD, 6, 1.0), 2, 0.0), rows=2, row=2),
    e("LN003", None, GOOD),
    e("LN003", None, changed(GOOD, 6, 1.0), norm="rms"),
    e("LN004", "warning", np.ones((4, 1)) * np.arange(4.0)[:, None], axis=1),
    e("LN004", "warning", np.repeat(normal(shape=(64, 1)), 8, axis=1)),
    e("LN004", None, GOOD),
    e("LN004", None, np.zeros((8, 256))),
    e("LN004", None, changed(GOOD, slice(0, 4), 1.0)),
    e("LN006", "error", GOOD, weight=np.r_[np.nan, np.ones(255)]),
    e("LN006", "error", GOOD, bias=np.r_[np.inf, np.ones(255)]),
    e("LN006", None, GOOD, weight=np.ones(256), bias=np.zeros(256)),
    e("LN007", "note", ALREADY, rows=8),
    e("LN007", None, ALREADY * 1.1),
    e("LN007", None, ALREADY + 0.01),
    e("LN007", "note", ALREADY + 0.01, rows=8, norm="rms"),
    e("LN007", None, np.r_[ALREADY, ALREADY * 2]),
    e("LN007", None, np.zeros((2, 8))),
    e("LN101", "error", changed(GOOD, 3, np.r_[7e4, np.ones(255)]), rows=1, row=3),
    e("LN101", None, changed(GOOD, 3, np.r_[65519.0, np.ones(255)]), kernel="fused"),
    e("LN101", None, changed(GOOD, 3, np.r_[7e4, np.ones(255)]), "bfloat16"),
    e("LN102", "warning", normal(6e-8), epsilon=1e-16, kernel="fused"),
    e("LN102", None, normal(1e-3), epsilon=1e-12, kernel="fused"),
    e("LN102", None, np.where(normal() > 0.5, 1e-9, normal()), kernel="fused"),
    e("LN103", "error", np.abs(normal(500.0)) + 500, rows=8),
    e("LN103", "error", 50000 + normal(500.0), rows=8),
    e("LN103", None, np.abs(normal(500.0)) + 500, kernel="fused"),
    e("LN104", "error", normal(30.0), rows=8),
    e("LN104", "error", 9.5 * ALTERNATING, rows=1, row=0),
    e("LN104", None, 9.0 * ALTERNATING),
    e("LN104", None, normal(1e-12), "float32"),  # all zero and rightly so
    e("LN105", "note", normal(1e-5, shape=(4, 64)), rows=4, row=0),
    e("LN105", None, GOOD),
    e("LN106", "warning", 9.0 * ALTERNATING, rows=1, row=0),
    e("LN106", "warning", 220.0 * ALTERNATING, kernel="decomposed", rows=1, row=0),
    e("LN106", None, 220.0 * ALTERNATING, kernel="fused"),
    e("LN106", None, 6.0 * ALTERNATING),
    e("LN106", None, 9.5 * ALTERNATING),  # that one fails
    e("LN107", "error", GOOD, weight=np.full(256, 3e4)),
    e("LN107", None, GOOD, weight=np.full(256, 1e4)),
    e("LN107", None, GOOD, "bfloat16", weight=np.full(256, 3e4)),
    e("LN107", None, GOOD, weight=np.r_[np.nan, np.ones(255)]),
    e("LN108", "error", changed(np.full((1, 64), 60000.0), (0, 0), 60032.0), kernel=f"fused:{CANCELLED}", epsilon=1e-8,
      rows=1, row=0),
    e("LN108", None, changed(np.full((1, 64), 60000.0), (0, 0), 60032.0), kernel="fused", epsilon=1e-8),
    e("LN201", "error", [[40000.0, 40001, 40002, 40003]], "float32", "native-serial:variance=one_pass", rows=1, row=0),
    e("LN201", "note", NEAR_THREE, "float32", ONE_PASS),
    e("LN201", "note", [[40000.0, 40001, 40002, 40003]], "float32",
      "native-serial:variance=one_pass,clamp_negative=zero", rows=1, row=0),
    e("LN201", None, NEAR_THREE, "float32"),
    e("LN201", None, GOOD, "float32", ONE_PASS),
    e("LN202", "error", [10000 + np.arange(16) * 1e-3], "float32", rows=1, row=0),  # case B43: the mean is rounded
    e("LN202", None, GOOD, kernel="native-serial"),
    e("LN204", "error", STALLED, kernel="native-serial", rows=4),
    e("LN203", "error", 1e6 + normal(), "bfloat16", "fused", rows=8),
    e("LN203", "warning", COARSE, kernel="fused", rows=8),
    e("LN203", None, GOOD),
    e("LN203", None, np.full((2, 8), 1 + 1e-6), "bfloat16"),  # constant before the cast
    e("LN204", "error", normal(1.0, 2, (8, 4096)), kernel="native-serial", norm="rms"),
    e("LN204", None, normal(1.0, 2, (8, 4096)), kernel="native", norm="rms"),
    e("LN301", "error", changed(GOOD, 5, 0.0), epsilon=1e-12, rows=1, row=5),
    e("LN301", "error", np.zeros((1, 10)), kernel="stored-stats", epsilon=1e-12, rows=1, row=0),
    e("LN301", "error", np.full((3, 8), 2.0), epsilon=0.0, rows=3, row=0),
    e("LN301", "warning", GOOD, epsilon=1e-12, latent=True),
    # epsilon is held in float32, variance + epsilon is stored in float16: case B27
    e("LN301", "warning", GOOD, kernel="stored-stats", epsilon=1e-12, latent=True),
    e("LN301", None, GOOD, kernel="fused", epsilon=1e-12),
    e("LN301", None, GOOD, "bfloat16", epsilon=1e-12),
    e("LN301", None, GOOD, epsilon=1e-7),
    e("LN301", None, GOOD, epsilon=0.0),
    e("LN302", "note", GOOD, epsilon=1e-5, latent=True),
    e("LN302", None, GOOD, epsilon=1e-4),
    e("LN302", None, GOOD, kernel="fused", epsilon=1e-5),
    e("LN302", None, GOOD, epsilon=1e-12),  # that is LN301
    e("LN303", "warning", normal(1e-3), rows=8),
    e("LN303", None, GOOD),
    e("LN303", None, np.zeros((4, 8))),
    e("LN303", None, np.r_[normal(1.0, 0, (200, 16)), normal(1e-3, 0, (2, 16))]),  # 2 of 202
    e("LN303", "warning", np.r_[normal(1.0, 0, (200, 16)), normal(1e-3, 0, (3, 16))], rows=3),
    e("LN304", "note", normal(30.0)),
    e("LN304", None, GOOD),
    e("LN304", None, changed(GOOD, 5, 0.0), epsilon=1e-12),
    e("LN401", "warning", normal(1e-4), epsilon=1e-12, rows=1),
    e("LN401", None, normal(1e-2), epsilon=1e-12),
    e("LN401", None, changed(GOOD, 5, 0.0), epsilon=1e-12),  # only a constant row has a gain of 1e6
    e("LN402", "error", normal(1e-5), kernel="fused", epsilon=1e-12, rows=8),
    e("LN402", "warning", changed(GOOD, 5, 0.0), kernel="fused", epsilon=1e-12, latent=True, rows=1, row=5),
    e("LN402", None, changed(GOOD, 5, 0.0), "bfloat16", "fused", epsilon=1e-12),
    e("LN402", None, normal(1e-4), kernel="fused", epsilon=1e-12),
]  # fmt: skip
# those that speak of the site, not of a format and a kernel; their findings change no verdict
SITE_RULES = {"LN001", "LN002", "LN003", "LN004", "LN005", "LN006", "LN007", "LN303", "LN305", "LN401"}
# nothing measured against a limit: the fact is a count
WITHOUT_LIMIT = {"LN002", "LN003", "LN004", "LN108", "LN304"}


def audited(example: Example) -> lnaudit.report.Report:
    return lnaudit.audit(example.x, formats=example.format, kernels=example.kernel, **example.options)


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_rule(example: Example):
    report = audited(example)
    found = [f for f in report.findings if f.code == example.code]
    if example.severity is None:
        assert found == []
        return
    (finding,) = found
    assert (finding.severity, finding.latent) == (example.severity, example.latent)
    assert finding.name == RULES[example.code].name
    assert (finding.site, finding.source) == ("array", "array")
    assert finding.title
    assert finding.message
    if example.code in SITE_RULES:
        assert (finding.format, finding.kernel) == (None, None)
    else:
        assert (finding.format, finding.kernel) == (example.format, example.kernel)
    if example.code not in WITHOUT_LIMIT:
        assert finding.measured is not None
        assert finding.limit is not None
    if example.rows is not None:
        assert finding.rows == example.rows
        assert finding.row is not None or example.severity == "note"
    if example.row is not None:
        assert finding.row == example.row


# an error finding of an emulation fails it, a warning is a warning (latent ones too), a note is nothing
@pytest.mark.parametrize("example", [x for x in EXAMPLES if x.severity], ids=str)
def test_the_verdict_follows_from_the_findings(example: Example):
    report = audited(example)
    own = [f for f in report.findings if f.format is not None]
    verdict = {"error": "fail", "warning": "warn"}.get(worst(own) or "", "pass")
    assert report.sites[0].results[0].verdict == report.sites[0].verdict == verdict
    assert report.summary == {"sites": 1, "fail": 0, "warn": 0, "pass": 0, verdict: 1}
    assert [SEVERITIES.index(f.severity) for f in report.findings] == sorted(
        SEVERITIES.index(f.severity) for f in report.findings
    )


# they need a file or an option of the command line: LN005 has a test below, LN305 one in test_cli
OWN_TESTS = {"LN005", "LN305"}


@pytest.mark.parametrize("code", sorted(set(RULES) - OWN_TESTS))
def test_every_rule_has_a_firing_and_a_silent_example(code: str):
    severities = {x.severity for x in EXAMPLES if x.code == code}
    assert None in severities
    assert severities - {None}


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


@pytest.mark.parametrize("code", sorted(RULES))
def test_every_rule_explains_itself(code: str):
    text = RULES[code].explanation
    for part in ("What it does:", "Why is this bad:", "What to do:"):
        assert part in text


def test_unread_bytes():
    rows = ArrayRows(GOOD)
    rows.unread_bytes = 24
    site = Site(name="a", source="a.npy", rows=rows)
    settings = pipeline.Settings(formats=(FORMATS["float32"],), kernels=(get_kernel("native"),))
    (finding,) = pipeline.run([site], settings).findings
    assert (finding.code, finding.severity, finding.measured) == ("LN005", "warning", 24.0)
    assert unread_bytes(SiteFacts(name="a", source="a", summary=None)) is None


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


def _slightly() -> np.ndarray:
    """Return a row whose error is one to five limits: the serial sum of an offset loses some of the mean."""
    for offset in np.linspace(5, 60, 111):
        x = offset + normal(1.0, 3, (1, 256))
        result = lnaudit.audit(x, formats="float16", kernels="native-serial").sites[0].results[0]
        if result.failing_rows and 1.2 * 0.02 < result.error["max"] < 4 * 0.02:
            return x
    raise AssertionError("no such row")


STALLED_SLIGHTLY = _slightly()


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
