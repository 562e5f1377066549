"""Field cases: what went wrong for others, as small inputs with the right answer, a line a case.

Counts are exact, printed numbers hold to their last digit, percentages within two points (they came from another order
of summation). The ids are those of the collection of field reports that the project was given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import lnaudit
from lnaudit.advice import candidates
from lnaudit.arithmetic import quiet
from lnaudit.engine import numpy_engine
from lnaudit.engine.interpreter import Workspace
from lnaudit.engine.rows import KernelStatistics, Plan
from lnaudit.formats import get_format
from lnaudit.kernels import get_kernel

TWO_POINTS = 0.02
ONE_PASS = "native:variance=one_pass"
ONE_PASS_SERIAL = "native-serial:variance=one_pass"


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def alternating(d: int, m: float) -> np.ndarray:
    return np.where(np.arange(d) % 2, m, -m)[None]


def spike() -> np.ndarray:
    x = rng(0).normal(0, 1, (1, 768))
    x[0, 0] = 795.0
    return x


def residual_overflow() -> np.ndarray:
    x = rng(8).normal(0, 3, (1, 768))
    x[0, 5] = 66246.39
    return x


def padded() -> np.ndarray:
    x = np.zeros((8, 512))
    x[:5] = rng(4).normal(size=(5, 512))
    return x


def close_to(value: float, printed: str) -> bool:
    """Whether a number agrees with a printed one to its last digit."""
    number = Decimal(printed)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    # half a unit of the last digit, and a little for the print's own rounding of a tie
    return abs(value - float(number)) <= 0.5000001 * 10.0**exponent


def statistics(x: Any, fmt: str, kernel: str, norm: str = "layer") -> KernelStatistics:
    """Return the row statistics of one emulation at epsilon 1e-5."""
    rows = np.asarray(x)
    plan = Plan(
        results=((get_format(fmt), get_kernel(kernel)),),
        norm=norm,
        features=rows.shape[-1],
        model_epsilon=1e-5,
        epsilon=1e-5,
    )
    with quiet():
        return numpy_engine.analyse(rows, 0, plan, Workspace()).kernels[0]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One input under one emulation.

    counts: keys of the JSON result, exactly. zeros: elements of the core that are 0. largest: max |core| as printed.
    variance: of every row, as printed. codes: those of all error findings. absent: codes that must not be there.
    """

    case: str
    x: Any
    kernel: str
    format: str = "float16"
    epsilon: float = 1e-5
    norm: str = "layer"
    counts: dict[str, int] = field(default_factory=dict)
    zeros: int | None = None
    largest: str | None = None
    first: str | None = None
    variance: str | None = None
    verdict: str | None = None
    codes: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return f"{self.case}-{self.format}-{self.kernel}-{self.epsilon:g}"


SILENT = {"nan": 0, "inf": 0, "nonfinite_rows": 0}
CLEAN: dict[str, Any] = {"counts": {**SILENT, "collapsed_rows": 0, "failing_rows": 0}, "codes": ()}


def collapsed(rows: int, zeros: int, variance: str = "Infinity", code: str = "LN104") -> dict[str, Any]:
    """What a row divided by infinity looks like: all zero, no NaN, no Inf - and reported."""
    return {
        "counts": {**SILENT, "collapsed_rows": rows, "failing_rows": rows, "variance_nonfinite_rows": rows},
        "zeros": zeros,
        "variance": variance,
        "verdict": "fail",
        "codes": (code,),
    }


def all_nan(elements: int, rows: int, code: str, **counts: int) -> dict[str, Any]:
    return {
        "counts": {"nan": elements, "inf": 0, "nonfinite_rows": rows, "failing_rows": rows, **counts},
        "verdict": "fail",
        "codes": (code,),
    }


ZEROS: dict[str, Any] = {"counts": {**SILENT, "collapsed_rows": None, "failing_rows": 0}, "codes": ()}
ROW = np.array([[40000.0, 40001.0, 40002.0, 40003.0]])
NEAR_THREE = (rng(20).normal(0, 1e-3, (1000, 512)) + 3.0).astype("f4")
NORMAL5 = rng(2).normal(0, 5, (64, 4096))
TINY = rng(11).normal(0, 2e-4, (4, 768))
AT_A_MILLION = 1e6 + rng(18).uniform(0, 512, (1, 1024))
BEYOND_CAST = rng(9).uniform(60000, 70000, (1, 512))
RMS = {"norm": "rms"}

CASES = [
    # B01, B99: an infinite variance gives zeros, and no check for NaN or Inf sees it
    *(Case(case="B01", x=spike(), kernel=k, **collapsed(1, 768)) for k in ("native-serial", "native", "decomposed")),
    Case(case="B01", x=spike(), kernel="fused", largest="27.67", **CLEAN),
    # B03: 180 is beyond the plain sum long before the limit that was reported
    *(
        Case(case=f"B03 m={m}", x=alternating(2048, m), kernel=k, **collapsed(1, 2048), **RMS)
        for m in (9.0, 180.0, 255.0, 257.0)
        for k in ("native-serial", "native")
    ),
    # B04: only the stored variance overflows
    Case(
        case="B04", x=rng(1).normal(0, 496.4, (4, 512)), kernel="stored-stats", **collapsed(4, 2048)
    ),
    Case(case="B04", x=rng(1).normal(0, 496.4, (4, 512)), kernel="fused", largest="3.617", **CLEAN),
    # B05: a sharp edge between 255.875 and 256
    Case(case="B05 m=255", x=alternating(64, 255.0), kernel="decomposed", variance="65024", largest="1", **CLEAN),
    Case(case="B05 m=255.875", x=alternating(64, 255.875), kernel="decomposed", variance="65472", largest="1", **CLEAN),
    Case(case="B05 m=256", x=alternating(64, 256.0), kernel="decomposed", **collapsed(1, 64)),
    *(
        Case(case=f"B05 m={m}", x=alternating(64, m), kernel=k, **collapsed(1, 64))
        for m in (255.0, 255.875, 256.0)
        for k in ("native-serial", "native")
    ),
    *(
        Case(case=f"B05 m={m}", x=alternating(64, m), kernel="fused", largest="1", **CLEAN)
        for m in (255.0, 255.875, 256.0)
    ),
    # B07: overflow by halves, a stalled sum from left to right: both orders must be checked
    Case(case="B07", x=alternating(65792, 1.0), kernel="native", **collapsed(1, 65792)),
    Case(
        case="B07", x=alternating(65792, 1.0), kernel="native-serial", variance="0.0311", largest="5.66",
        counts={**SILENT, "collapsed_rows": 0, "failing_rows": 1}, verdict="fail", codes=("LN204",),
    ),
    Case(case="B07", x=alternating(65792, 1.0), kernel="fused", largest="1", **CLEAN),
    # B09: RMSNorm with everything in float16
    *(
        Case(case="B09 s=5", x=NORMAL5, kernel=k, **collapsed(64, 262144), **RMS)
        for k in ("native-serial", "native")
    ),
    Case(case="B09 s=1", x=rng(2).normal(0, 1, (64, 4096)), kernel="native-serial", counts=SILENT, **RMS),
    *(
        Case(case=f"B09 s={s}", x=rng(2).normal(0, s, (64, 4096)), kernel="fused", **CLEAN, **RMS) for s in (1, 5)
    ),
    # B11: tests on unit-scale data only
    *(
        Case(case="B11", x=rng(3).uniform(-1000, 1000, (8, 128)), kernel=k, **collapsed(8, 1024))
        for k in ("native-serial", "native")
    ),
    Case(case="B11", x=rng(3).uniform(-1000, 1000, (8, 128)), kernel="fused", largest="1.894", **CLEAN),
    # B13: needs float32 accumulation; the zero row is harmless
    *(
        Case(case="B13", x=np.r_[NORMAL5, np.zeros((1, 4096))], kernel=k, **collapsed(64, 266240, ""), **RMS)
        for k in ("native-serial", "native")
    ),
    Case(case="B13", x=np.r_[NORMAL5, np.zeros((1, 4096))], kernel="fused", **CLEAN, **RMS),
    # B14: pin or no need to pin, per tensor; 62208 of 65504 is no failure
    Case(case="B14 m=9", x=alternating(768, 9.0), kernel="native", largest="1", **CLEAN),
    Case(case="B14 m=9.5", x=alternating(768, 9.5), kernel="native", **collapsed(1, 768)),
    # B15: bfloat16 and float32 overflow too
    *(
        Case(case="B15", x=[[1e25, -2e25, 3e25, 0.5e25]], format=f, kernel="native", **collapsed(1, 4))
        for f in ("float32", "bfloat16")
    ),
    Case(
        case="B15", x=[[1e25, -2e25, 3e25, 0.5e25]], format="float64", kernel="native", largest="1.589", **CLEAN
    ),
    # B17: a row that the cast loses is a cast finding whatever the norm
    *(
        Case(case="B17", x=residual_overflow(), kernel=k, **all_nan(768, 1, "LN101"))
        for k in ("native", "stored-stats", "fused")
    ),
    Case(
        case="B17", x=residual_overflow(), kernel="fused", zeros=767, **all_nan(1, 1, "LN101"), **RMS
    ),
    Case(case="B17", x=residual_overflow(), kernel="fused", format="bfloat16", largest="27.75", counts=SILENT, codes=()),
    # B21: absorption, not overflow
    *(
        Case(case="B21", x=[rng(10).uniform(-7, 7, 1152) + 53760.0], kernel="fused", format=f, verdict="fail",
             counts={**SILENT, "variance_zero_rows": 1, "collapsed_rows": 1}, zeros=1152, codes=("LN203",))
        for f in ("float16", "bfloat16")
    ),
    # B22: the cast is guilty, not epsilon
    *(
        Case(case="B22", x=BEYOND_CAST, kernel=k, epsilon=e, **all_nan(512, 1, "LN101"))
        for k in ("native", "fused")
        for e in (1e-12, 1e-3)
    ),
    Case(case="B22", x=BEYOND_CAST, kernel="native", format="float32", epsilon=1e-12, **CLEAN),
    # B25: epsilon lost, zero rows give 0/0
    *(
        Case(case="B25", x=np.zeros((1, 10)), kernel="native", epsilon=e, **all_nan(10, 1, "LN301"))
        for e in (1e-12, 1e-8)
    ),
    *(Case(case="B25", x=np.zeros((1, 10)), kernel="native", epsilon=e, zeros=10, **ZEROS) for e in (1e-7, 1e-5)),
    *(
        Case(case="B25", x=np.zeros((1, 10)), kernel=k, format=f, epsilon=e, zeros=10, **ZEROS)
        for k, f in (("fused", "float16"), ("native", "bfloat16"))
        for e in (1e-12, 1e-8, 1e-7, 1e-5)
    ),
    # B27: float32 sums alone are not a pass
    Case(
        case="B27", x=np.zeros((1, 10)), kernel="stored-stats", epsilon=1e-12, **all_nan(10, 1, "LN301")
    ),
    Case(case="B27", x=np.zeros((1, 10)), kernel="stored-stats", zeros=10, **ZEROS),
    # B28: any constant row
    Case(case="B28", x=np.full((8, 4), 2.0), kernel="native", epsilon=1e-8, **all_nan(32, 8, "LN301")),
    # B32: squares below the smallest subnormal
    Case(case="B32", x=TINY, kernel="native", epsilon=1e-12, variance="5.96e-8", counts=SILENT),
    # B43: one pass in float32
    Case(case="B43 M=100", x=[100 + np.arange(16) * 1e-3], kernel=ONE_PASS, format="float32", first="-2.3716",
         counts=SILENT),
    Case(case="B43 M=1000", x=[1000 + np.arange(16) * 1e-3], kernel=ONE_PASS, format="float32", first="-2.3740",
         variance="0", counts=SILENT),
    Case(case="B43 M=10000", x=[10000 + np.arange(16) * 1e-3], kernel=ONE_PASS, format="float32", variance="-16",
         **all_nan(16, 1, "LN201", variance_negative_rows=1)),
    Case(case="B43 M=10000", x=[10000 + np.arange(16) * 1e-3], kernel="native", format="float32", first="-1.4145",
         counts=SILENT),
    # B44: NaN or 350 times too large, by the order of the sum alone
    Case(case="B44", x=ROW, kernel=ONE_PASS_SERIAL, format="float32", variance="-128",
         **all_nan(4, 1, "LN201", variance_negative_rows=1)),
    Case(case="B44", x=ROW, kernel=ONE_PASS, format="float32", variance="0", largest="474",
         counts={**SILENT, "failing_rows": 1}, verdict="fail", codes=("LN204",)),
    Case(case="B44", x=ROW, kernel="native", format="float32", first="-1.3416", largest="1.3416", **CLEAN),
    # B45: a constant row
    Case(case="B45", x=np.full((1, 256), 1234.0), kernel=ONE_PASS_SERIAL, format="float32", variance="-3.25",
         **all_nan(256, 1, "LN201", variance_negative_rows=1)),
    *(
        Case(case="B45", x=np.full((1, 256), 1234.0), kernel=k, format="float32", variance="0", zeros=256, **ZEROS)
        for k in (ONE_PASS, "native")
    ),
    # B47: a variance slightly below zero
    Case(case="B47", x=NEAR_THREE, kernel=ONE_PASS, format="float32",
         counts={**SILENT, "variance_negative_rows": 27}),
    Case(case="B47", x=NEAR_THREE, kernel=ONE_PASS_SERIAL, format="float32",
         counts={**SILENT, "variance_negative_rows": 449}),
    # B49: an offset of a million
    Case(case="B49", x=AT_A_MILLION, kernel="fused", format="bfloat16", zeros=1024, verdict="fail", codes=("LN203",),
         counts={**SILENT, "variance_zero_rows": 1, "collapsed_rows": 1}),
    Case(case="B49", x=AT_A_MILLION, kernel="fused", format="float16", **all_nan(1024, 1, "LN101")),
    # B50: variance lost when the input is rounded
    Case(case="B50", x=100 + 0.01 * rng(6).normal(size=(50, 768)), kernel="fused", format="bfloat16", variance="0",
         counts={**SILENT, "variance_zero_rows": 50, "collapsed_rows": 50}, zeros=38400, codes=("LN203",)),
    # B52: (x-mean)*rstd gives 0 on constant rows
    *(
        Case(case="B52", x=[[2.0, 2.0], [14.0, 14.0]], kernel=k, format="float32", epsilon=1e-6, zeros=4, **ZEROS)
        for k in ("native", "stored-stats", "fused")
    ),
    # B54: zero rows are a bucket of their own
    Case(case="B54", x=padded(), kernel="native", counts={**SILENT, "collapsed_rows": 0, "failing_rows": 0}),
    # B59: one outlier of 3000
    # B62: a control that must pass
    *(
        Case(case="B62", x=rng(4).random((5, 128)) * 0.1, kernel=k, format=f, verdict="pass", **CLEAN)
        for f, k in (("float16", "native"), ("float16", "fused"), ("bfloat16", "fused"))
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: Case):
    emulation = {"epsilon": case.epsilon, "norm": case.norm}
    report = lnaudit.audit(case.x, formats=case.format, kernels=case.kernel, **emulation)
    result = report.to_dict()["sites"][0]["results"][0]
    core = lnaudit.layer_norm(case.x, format=case.format, kernel=case.kernel, **emulation)
    assert {key: result[key] for key in case.counts} == case.counts
    assert (int(np.isnan(core).sum()), int(np.isinf(core).sum())) == (result["nan"], result["inf"])
    if case.zeros is not None:
        assert int((core == 0).sum()) == case.zeros
    if case.largest is not None:
        assert close_to(np.abs(core).max(), case.largest)
    if case.first is not None:
        assert close_to(core.flat[0], case.first)
    if case.variance:
        variance = statistics(case.x, case.format, case.kernel, case.norm).raw_variance
        assert (variance == np.inf).all() if case.variance == "Infinity" else all(
            close_to(q, case.variance) for q in variance
        )
    if case.verdict is not None:
        assert result["verdict"] == case.verdict
    if case.codes is not None:
        assert sorted({f.code for f in report.findings if f.severity == "error"}) == sorted(case.codes)


if __name__ == "__main__":
    pass
