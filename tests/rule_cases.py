"""For every rule inputs on which it fires, on which it is silent, and on which its question does not arise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lnaudit import pipeline
from lnaudit.formats import get_format
from lnaudit.kernels import get_kernel
from lnaudit.policy import POLICY, Policy
from lnaudit.readers.npy import open_npy
from lnaudit.report import Report
from lnaudit.site import ArrayRows, Site

SILENT, NOT_APPLICABLE = "silent", "not applicable"


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """One input for one rule.

    expected: a severity, SILENT or NOT_APPLICABLE; then `why` is a word of REASONS. left_over: bytes after the array of
    a file, None if there is no file. `rows` and `row` are checked where given; options: of a site and of settings.
    """

    code: str
    expected: str
    x: Any
    format: str
    kernel: str
    latent: bool = False
    rows: int | None = None
    row: int | None = None
    left_over: int | None = None
    why: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.code}-{self.expected}-{self.format}-{self.kernel}"

    @property
    def values(self) -> np.ndarray:
        return np.asarray(self.x)

    def run(self, folder: Path, policy: Policy = POLICY) -> Report:
        """Audit the input, from a file if there is one."""
        of_settings = {key: self.options[key] for key in ("compare_epsilon", "loss_scale") if key in self.options}
        of_site = {key: value for key, value in self.options.items() if key not in of_settings}
        axis, rows = of_site.pop("axis", -1), None
        if self.left_over is not None:
            np.save(folder / "x.npy", self.values)
            with (folder / "x.npy").open("ab") as file:
                file.write(bytes(self.left_over))
            rows = open_npy(folder / "x.npy", axis=axis)
        else:
            x = self.values
            rows = ArrayRows(x if x.dtype.kind == "f" else x.astype(np.float64), axis)
        settings = pipeline.Settings(
            formats=(get_format(self.format),), kernels=(get_kernel(self.kernel),), policy=policy, **of_settings
        )
        return pipeline.run([Site(name="array", source="array", rows=rows, **{"epsilon": 1e-5, **of_site})], settings)


def normal(scale: float = 1.0, seed: int = 0, shape: tuple[int, ...] = (8, 256)) -> np.ndarray:
    return scale * np.random.default_rng(seed).normal(size=shape)


def changed(x: np.ndarray, row: Any, values: Any) -> np.ndarray:
    x = x.copy()
    x[row] = values
    return x


def case(code: str, expected: str, x: Any, format: str = "float16", kernel: str = "native", **more: Any) -> Case:
    own = {key: more.pop(key) for key in ("latent", "rows", "row", "left_over", "why") if key in more}
    return Case(code=code, expected=expected, x=x, format=format, kernel=kernel, options=more, **own)


def silent(code: str, x: Any, *where: str, **more: Any) -> Case:
    return case(code, SILENT, x, *where, **more)


def absent(code: str, why: str, x: Any, *where: str, **more: Any) -> Case:
    return case(code, NOT_APPLICABLE, x, *where, why=why, **more)


def _constant_rows(case: Case) -> np.ndarray:
    x = np.moveaxis(case.values, case.options.get("axis", -1), -1)
    return (x == x[..., :1]).all(axis=-1)


def _survives_the_cast(case: Case) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.isfinite(case.values.astype(case.format)).all(axis=-1)


# why the question of a rule does not arise: found from the input alone, but for what is said of the outcome
REASONS: dict[str, Callable[[Case, Report], Any]] = {
    "whole numbers": lambda case, _: case.values.dtype.kind in "iu",
    "no finite row": lambda case, _: not np.isfinite(case.values).all(axis=-1).any(),
    "only zeros": lambda case, _: not case.values.any(),
    "only constant rows": lambda case, _: _constant_rows(case).all(),
    "one axis": lambda case, _: case.values.ndim == 1,
    "one feature": lambda case, _: case.values.shape[-1] == 1,
    "no file": lambda case, _: case.left_over is None,
    "no weight and no bias": lambda case, _: not {"weight", "bias"} & set(case.options),
    "no cast": lambda case, _: case.format == case.values.dtype.name,
    "no row survives the cast": lambda case, _: not _survives_the_cast(case).any(),
    "RMSNorm": lambda case, _: case.options.get("norm") == "rms",
    "epsilon 0": lambda case, _: case.options.get("epsilon") == 0,
    "epsilon 0 and no constant row": lambda c, _: c.options.get("epsilon") == 0 and not _constant_rows(c).any(),
    "no other epsilon": lambda case, _: "compare_epsilon" not in case.options,
    "every row fails": lambda case, report: report.sites[0].results[0].failing_rows == case.values.shape[0],
    "no error": lambda _, report: all(finding.severity != "error" for finding in report.findings),
}

GOOD = normal()
ONE_PASS = "native:variance=one_pass"
CLAMPED = "native-serial:variance=one_pass,clamp_negative=zero"
ALTERNATING = np.where(np.arange(768) % 2, 1.0, -1.0)[None]
NEAR_THREE = (np.random.default_rng(20).normal(0, 1e-3, (100, 512)) + 3.0).astype("f4")
STALLED = 150 + normal(1.0, 1, (4, 256))
# float16 spacing 1/8 at 200: the cast loses a third of a spread of 0.05, but leaves some
COARSE = 200 + normal(0.05)
ALREADY = normal()
ALREADY = (ALREADY - ALREADY.mean(1, keepdims=True)) / ALREADY.std(1, keepdims=True)
BUMP = changed(np.full((1, 64), 60000.0), (0, 0), 60032.0)
FORTY = np.array([[40000.0, 40001, 40002, 40003]])
LOST = np.full((2, 8), 1e5)
ROUNDED_MEAN = 10000 + np.arange(16)[None] * 1e-3  # of case B43 in float32
HEAVY = np.full(256, 3e4)
# the sum of the squares of the last row loses a few percent in float16 (case B09)
SCALED_SLIGHTLY = np.r_[np.eye(150, 4096), normal(1.0, 2, (1, 4096))]


def _slightly() -> np.ndarray:
    """Return a row whose error is one to five limits: the serial sum of an offset loses some of the mean."""
    for offset in np.linspace(5, 60, 111):
        x = offset + normal(1.0, 3, (1, 256))
        result = silent("", x, kernel="native-serial").run(Path()).sites[0].results[0]
        if result.failing_rows and 1.2 * 0.02 < result.error["max"] < 4 * 0.02:
            return x
    raise AssertionError("no such row")


STALLED_SLIGHTLY = _slightly()

CASES = [
    case("LN001", "error", changed(GOOD, 3, np.r_[np.nan, np.ones(255)]), rows=1, row=3),
    case("LN001", "error", changed(GOOD, 2, np.r_[np.inf, np.ones(255)]), rows=1, row=2),
    case("LN001", "error", changed(changed(GOOD, 0, np.nan), 5, np.r_[np.inf, np.ones(255)]), rows=2, row=5),
    case("LN001", "note", changed(GOOD, 4, np.nan), rows=1, row=4),
    silent("LN001", GOOD),
    absent("LN001", "whole numbers", np.arange(16).reshape(2, 8)),
    case("LN002", "note", changed(GOOD, 6, 0.0), rows=1, row=6),
    silent("LN002", changed(GOOD, 6, 1.0)),
    absent("LN002", "no finite row", np.full((2, 8), np.nan)),
    case("LN003", "note", changed(GOOD, 6, 1.0), rows=1, row=6),
    case("LN003", "note", changed(changed(GOOD, 6, 1.0), 2, 0.0), rows=2, row=2),
    silent("LN003", GOOD),
    absent("LN003", "RMSNorm", changed(GOOD, 6, 1.0), norm="rms"),
    case("LN004", "warning", np.ones((4, 1)) * np.arange(4.0)[:, None], axis=1),
    case("LN004", "warning", np.repeat(normal(shape=(64, 1)), 8, axis=1)),
    silent("LN004", GOOD),
    silent("LN004", np.zeros((8, 256))),
    silent("LN004", changed(GOOD, slice(0, 4), 1.0)),
    absent("LN004", "one axis", np.ones(8)),
    case("LN005", "warning", GOOD, left_over=24),
    silent("LN005", GOOD, left_over=0),
    absent("LN005", "no file", GOOD),
    case("LN006", "error", GOOD, weight=np.r_[np.nan, np.ones(255)]),
    case("LN006", "error", GOOD, bias=np.r_[np.inf, np.ones(255)]),
    silent("LN006", GOOD, weight=np.ones(256), bias=np.zeros(256)),
    absent("LN006", "no weight and no bias", GOOD),
    case("LN007", "note", ALREADY, rows=8),
    case("LN007", "note", ALREADY + 0.01, rows=8, norm="rms"),
    silent("LN007", ALREADY * 1.1),
    silent("LN007", ALREADY + 0.01),
    silent("LN007", np.r_[ALREADY, ALREADY * 2]),
    absent("LN007", "only constant rows", np.zeros((2, 8))),
    case("LN101", "error", changed(GOOD, 3, np.r_[7e4, np.ones(255)]), rows=1, row=3),
    silent("LN101", changed(GOOD, 3, np.r_[65519.0, np.ones(255)]), kernel="fused"),
    silent("LN101", changed(GOOD, 3, np.r_[7e4, np.ones(255)]), "bfloat16"),
    absent("LN101", "no cast", changed(GOOD, 3, np.r_[7e4, np.ones(255)]), "float64"),
    case("LN102", "warning", normal(6e-8), epsilon=1e-16, kernel="fused"),
    silent("LN102", normal(1e-3), epsilon=1e-12, kernel="fused"),
    silent("LN102", np.where(normal() > 0.5, 1e-9, normal()), kernel="fused"),
    absent("LN102", "only zeros", np.zeros((2, 8)), kernel="fused"),
    case("LN103", "error", np.abs(normal(500.0)) + 500, rows=8),
    case("LN103", "error", 50000 + normal(500.0), rows=8),
    silent("LN103", np.abs(normal(500.0)) + 500, kernel="fused"),
    absent("LN103", "no row survives the cast", LOST),
    case("LN104", "error", normal(30.0), rows=8),
    case("LN104", "error", 9.5 * ALTERNATING, rows=1, row=0),
    silent("LN104", 9.0 * ALTERNATING),
    silent("LN104", normal(1e-12), "float32"),  # all zero and rightly so
    absent("LN104", "only constant rows", np.full((2, 8), 5.0)),
    case("LN105", "note", normal(1e-5, shape=(4, 64)), rows=4, row=0),
    silent("LN105", GOOD),
    absent("LN105", "only constant rows", np.full((2, 8), 5.0)),
    case("LN106", "warning", 9.0 * ALTERNATING, rows=1, row=0),
    case("LN106", "warning", 220.0 * ALTERNATING, kernel="decomposed", rows=1, row=0),
    silent("LN106", 220.0 * ALTERNATING, kernel="fused"),
    silent("LN106", 6.0 * ALTERNATING),
    absent("LN106", "every row fails", 9.5 * ALTERNATING),
    case("LN107", "error", GOOD, weight=HEAVY),
    silent("LN107", GOOD, weight=np.full(256, 1e4)),
    silent("LN107", GOOD, "bfloat16", weight=HEAVY),
    silent("LN107", GOOD, weight=np.r_[np.nan, np.ones(255)]),
    absent("LN107", "no weight and no bias", normal(1e3), kernel="fused"),
    case("LN108", "error", BUMP, kernel="fused:variance=one_pass", epsilon=1e-8, rows=1, row=0),
    silent("LN108", BUMP, kernel="fused", epsilon=1e-8),
    absent("LN108", "no row survives the cast", LOST),
    case("LN201", "error", FORTY, "float32", "native-serial:variance=one_pass", rows=1, row=0),
    case("LN201", "note", NEAR_THREE, "float32", ONE_PASS),
    case("LN201", "note", FORTY, "float32", CLAMPED, rows=1, row=0),
    silent("LN201", NEAR_THREE, "float32"),
    silent("LN201", GOOD, "float32", ONE_PASS),
    absent("LN201", "RMSNorm", NEAR_THREE, "float32", ONE_PASS, norm="rms"),
    case("LN202", "error", ROUNDED_MEAN, "float32", rows=1, row=0),
    case("LN202", "warning", np.r_[normal(shape=(150, 16)), ROUNDED_MEAN], "float32", rows=1, row=150),
    silent("LN202", GOOD, kernel="native-serial"),
    absent("LN202", "no row survives the cast", LOST),
    case("LN203", "error", 1e6 + normal(), "bfloat16", "fused", rows=8),
    case("LN203", "warning", COARSE, kernel="fused", rows=8),
    silent("LN203", GOOD),
    absent("LN203", "only constant rows", np.full((2, 8), 1 + 1e-6), "bfloat16"),
    case("LN204", "error", normal(1.0, 2, (8, 4096)), kernel="native-serial", norm="rms"),
    case("LN204", "error", STALLED, kernel="native-serial", rows=4),
    case("LN204", "warning", SCALED_SLIGHTLY, kernel="native-serial", norm="rms", rows=1, row=150),
    silent("LN204", normal(1.0, 2, (8, 4096)), kernel="native", norm="rms"),
    absent("LN204", "only constant rows", np.full((2, 8), 5.0)),
    case("LN301", "error", changed(GOOD, 5, 0.0), epsilon=1e-12, rows=1, row=5),
    case("LN301", "error", np.zeros((1, 10)), kernel="stored-stats", epsilon=1e-12, rows=1, row=0),
    case("LN301", "error", np.full((3, 8), 2.0), epsilon=0.0, rows=3, row=0),
    case("LN301", "warning", GOOD, epsilon=1e-12, latent=True),
    # epsilon is held in float32, variance + epsilon is stored in float16: case B27
    case("LN301", "warning", GOOD, kernel="stored-stats", epsilon=1e-12, latent=True),
    silent("LN301", GOOD, kernel="fused", epsilon=1e-12),
    silent("LN301", GOOD, "bfloat16", epsilon=1e-12),
    silent("LN301", GOOD, epsilon=1e-7),
    absent("LN301", "epsilon 0 and no constant row", GOOD, epsilon=0.0),
    case("LN302", "note", GOOD, epsilon=1e-5, latent=True),
    silent("LN302", GOOD, epsilon=1e-4),
    silent("LN302", GOOD, kernel="fused", epsilon=1e-5),
    silent("LN302", GOOD, epsilon=1e-12),  # that is LN301
    absent("LN302", "epsilon 0", GOOD, epsilon=0.0),
    case("LN303", "warning", normal(1e-3), rows=8),
    case("LN303", "warning", np.r_[normal(shape=(200, 16)), normal(1e-3, 0, (3, 16))], rows=3),
    silent("LN303", GOOD),
    silent("LN303", np.r_[normal(shape=(200, 16)), normal(1e-3, 0, (2, 16))]),  # 2 of 202
    absent("LN303", "only constant rows", np.zeros((4, 8))),
    case("LN304", "note", normal(30.0)),
    silent("LN304", changed(GOOD, 5, 0.0), epsilon=1e-12),
    absent("LN304", "no error", GOOD),
    case("LN305", "warning", normal(1e-2), epsilon=1e-12, compare_epsilon=1e-5, rows=8),
    silent("LN305", GOOD, epsilon=1e-12, compare_epsilon=1e-5),
    absent("LN305", "no other epsilon", normal(1e-2), epsilon=1e-12),
    case("LN401", "warning", normal(1e-4), epsilon=1e-12, rows=1),
    silent("LN401", normal(1e-2), epsilon=1e-12),
    silent("LN401", changed(GOOD, 5, 0.0), epsilon=1e-12),  # only a constant row has a gain of 1e6
    absent("LN401", "only constant rows", np.zeros((4, 8)), epsilon=1e-12),
    case("LN402", "error", normal(1e-5), kernel="fused", epsilon=1e-12, rows=8),
    case("LN402", "error", normal(1e-2), kernel="fused", loss_scale=1024.0, rows=8),
    case("LN402", "warning", changed(GOOD, 5, 0.0), kernel="fused", epsilon=1e-12, latent=True, rows=1, row=5),
    silent("LN402", normal(1e-2), kernel="fused"),
    silent("LN402", changed(GOOD, 5, 0.0), "bfloat16", "fused", epsilon=1e-12),
    silent("LN402", normal(1e-4), kernel="fused", epsilon=1e-12),
    absent("LN402", "one feature", np.arange(8.0)[:, None], kernel="fused", epsilon=1e-12),  # the output is the bias
]  # fmt: skip
FIRING = [c for c in CASES if c.expected not in (SILENT, NOT_APPLICABLE)]
