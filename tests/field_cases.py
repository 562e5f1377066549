"""Field cases: what went wrong for others, as small inputs with the right answer, a line a case.

Counts are exact, printed numbers hold to their last digit, percentages within two points (they came from another order
of summation). The ids are those of the collection of field reports that the project was given; their classes:
A overflow, B out of range before the norm (test_cases_overflow), C epsilon lost, D epsilon replaced
(test_cases_epsilon), E cancellation, F degenerate rows (test_cases_cancellation), G precision, H gradients
(test_cases_precision).

Which report speaks of RMSNorm follows from its title or from the printed maximum.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from unittest import mock

import numpy as np

import lnaudit
from lnaudit.arithmetic import Workspace, quiet
from lnaudit.engine import numpy_engine
from lnaudit.engine.rows import KernelStatistics, Plan
from lnaudit.formats import get_format
from lnaudit.kernels import get_kernel
from lnaudit.pipeline import scanning

TWO_POINTS = 0.02
RMS = {"norm": "rms"}
SILENT = {"nan": 0, "inf": 0, "nonfinite_rows": 0}
CLEAN: dict[str, Any] = {"counts": {**SILENT, "collapsed_rows": 0, "failing_rows": 0}, "codes": ()}
# constant rows only: nothing can collapse
ZEROS: dict[str, Any] = {"counts": {**SILENT, "collapsed_rows": None, "failing_rows": 0}, "codes": ()}


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def alternating(d: int, m: float) -> np.ndarray:
    return np.where(np.arange(d) % 2, m, -m)[None]


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


@dataclass(frozen=True, kw_only=True)
class Case:
    """One input under one emulation.

    counts: keys of the JSON result, exactly. zeros: elements of the core that are 0. largest: max |core| as printed.
    first: the first element. variance: of every row, before a clamp. codes: those of all error findings.
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

    @property
    def wanted(self) -> dict[str, Any]:
        """What the line says, and that the report counts NaN and Inf as they are."""
        said = {name: getattr(self, name) for name in ("zeros", "largest", "first", "verdict", "codes")}
        said["variance"] = self.variance or None
        return {**self.counts, **{name: value for name, value in said.items() if value is not None}, "recounted": True}

    def found(self) -> dict[str, Any]:
        """What is found of that; a number that agrees with the printed one stands there as it is printed."""
        emulation = {"epsilon": self.epsilon, "norm": self.norm}
        large = np.size(self.x) > 20_000 or "serial" in self.kernel
        with without_remedies(large):
            report = lnaudit.audit(self.x, formats=self.format, kernels=self.kernel, **emulation)
        result = report.to_dict()["sites"][0]["results"][0]
        core = lnaudit.layer_norm(self.x, format=self.format, kernel=self.kernel, **emulation)
        recounted = (int(np.isnan(core).sum()), int(np.isinf(core).sum()))
        found = {key: result[key] for key in self.counts}
        found |= {
            "zeros": int((core == 0).sum()),
            "largest": as_printed(np.abs(core).max(), self.largest),
            "first": as_printed(core.flat[0], self.first),
            "verdict": result["verdict"],
            "codes": tuple(sorted({f.code for f in report.findings if f.severity == "error"})),
            "recounted": recounted == (result["nan"], result["inf"]),
        }
        if self.variance:
            variance = statistics(self.x, self.format, self.kernel, self.norm).raw_variance
            found["variance"] = as_printed(variance, self.variance)
        return {key: found[key] for key in self.wanted}


def as_printed(value: Any, printed: str | None) -> Any:
    """Return the printed number if the value, or all of several, agree with it; else the value."""
    values = np.ravel(value)
    if printed == "Infinity":
        agree = bool((values == np.inf).all())
    else:
        agree = printed is not None and all(close_to(float(number), printed) for number in values)
    return printed if agree else value


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


def report_of(x: Any, **options: Any) -> dict[str, Any]:
    """Return the JSON of the one site."""
    return lnaudit.audit(x, **options).to_dict()["sites"][0]


@contextmanager
def without_remedies(left_out: bool = True) -> Iterator[None]:
    """Leave out the search for remedies, which runs kernels again and again."""
    if not left_out:
        yield
        return
    with (
        mock.patch.object(scanning, "offer", return_value=[]),
        mock.patch.object(scanning, "weakest_clean_kernel", return_value=(None, True)),
    ):
        yield
