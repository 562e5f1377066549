"""Field cases of class J: checkers of numbers in CI that were flaky, or green over what was broken.

B94 to B96 and B92 are about the program, and are asked of it in a process of its own.
"""

from __future__ import annotations

import itertools
import json
import math
import warnings
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import lnaudit
from lnaudit import theory
from lnaudit.baseline import Known, is_worse
from lnaudit.kernels import KERNELS

from .exhaustive import sampled
from .field_cases import SILENT, report_of, rng, without_remedies
from .oracles import ALL_NAMES, EMAX, EMIN, NAMES, PRECISION
from .program import run_in
from .rows import KERNELS as TEXTBOOK
from .rows import named_rows

NORMS = ("layer", "rms")
GATE = "[tool.lnaudit]\n"


def spacing(y: np.ndarray, fmt: str) -> np.ndarray:
    """Return the distance of neighbours in a format (IEEE 754-2019, 3.3)."""
    exponent = np.maximum(np.frexp(y)[1] - 1, EMIN[fmt])
    return np.asarray(2.0 ** (exponent - (PRECISION[fmt] - 1)))


def exact_core(row: Any, norm: str = "layer", epsilon: float = 1e-5) -> list[Any]:
    """Return the normalized row, to 60 digits."""
    with mpmath.workdps(60):
        x = [mpmath.mpf(float(value)) for value in row]
        mean = sum(x) / len(x) if norm == "layer" else mpmath.mpf(0)
        v = [value - mean for value in x]
        w = sum(value**2 for value in v) / len(v) + mpmath.mpf(epsilon)
        return [value / mpmath.sqrt(w) if value else mpmath.mpf(0) for value in v]


def deviation(got: Any, exact: list[Any]) -> float:
    """Return the RMS of a row's difference, NaN if any element is not finite."""
    if not np.isfinite(np.asarray(got, np.float64)).all():
        return math.nan
    with mpmath.workdps(60):
        squares = [(mpmath.mpf(float(value)) - wanted) ** 2 for value, wanted in zip(got, exact, strict=True)]
        return float(mpmath.sqrt(sum(squares) / len(squares)))


def project(folder: Path, policy: str = "", **rows: Any) -> Path:
    """Make a project of dumps."""
    (folder / ".git").mkdir()
    if policy:
        (folder / "pyproject.toml").write_text(GATE + policy)
    for name, x in rows.items():
        np.save(folder / f"{name}.npy", x)
    return folder


def document(text: str) -> dict[str, Any]:
    """Return a JSON document; NaN and Infinity are not JSON."""
    return dict(json.loads(text, parse_constant=lambda name: pytest.fail(f"bare {name}")))


# B87: units of the format


def near_30() -> np.ndarray:
    """Return rows whose largest output, sqrt(d - 1), lies half way between numbers of bfloat16, 0.125 apart."""
    widths = [d for d in range(840, 960) if abs(math.sqrt(d - 1) / 0.125 % 1 - 0.5) < 0.01]
    x = np.zeros((len(widths), max(widths)))
    for row, d in zip(x, widths, strict=True):
        row[0], row[d:] = 4096.0, np.nan
    return x


def test_b87_half_a_unit_at_30_is_no_error_in_bfloat16():
    assert spacing(np.array(30.0), "bfloat16") == 0.125
    rows = near_30()
    assert len(rows) == 2
    for row in rows:
        x = row[~np.isnan(row)][None]
        got = lnaudit.layer_norm(x, format="bfloat16", kernel="fused")
        worst = abs(got[0, 0] - float(exact_core(x[0])[0]))
        assert 0.06 < worst <= 0.0626  # what failed one run in a hundred
        report = lnaudit.audit(x, formats="bfloat16", kernels="fused", tolerance=1e-9)
        assert report.sites[0].verdict == "pass"
        assert not [f for f in report.findings if f.severity != "note"]


@pytest.mark.parametrize("fmt", ALL_NAMES)
@pytest.mark.parametrize("tolerance", [5e-324, 1e-9, 1e-3])
def test_b87_no_limit_is_below_a_unit_of_the_format(fmt: str, tolerance: float):
    x = np.concatenate([rng(87).standard_normal((20, 64)), np.eye(64)[:4]])
    report = lnaudit.audit(x, formats=fmt, kernels="fused", tolerance=tolerance).to_dict()
    limit = report["config"]["limits"][fmt]
    for row in x:
        exact = np.array([float(value) for value in exact_core(row)])
        stored = lnaudit.round_to(exact, fmt)
        # a whole unit away from the best there is, everywhere and in one direction
        assert math.sqrt(np.mean((stored + spacing(stored, fmt) - exact) ** 2)) <= limit
    assert report["sites"][0]["results"][0]["failing_rows"] == 0
    # nor is it beyond all measure: eight units would be seen
    assert limit <= max(tolerance, 8 * 2.0 ** (1 - PRECISION[fmt]))


# B88, B89: relative to the row


def test_b88_an_error_is_measured_against_the_scale_of_its_row():
    exact, error = np.array([0.3, 1e4]), np.array([0.0015, 5.0])
    assert (error <= 1e-3 + 1e-3 * exact).tolist() == [False, True]  # what allclose made of it
    scaled = error / exact.max()
    assert scaled == pytest.approx([1.5e-7, 5e-4])
    # errors of that size: in float16 numbers near 1e4 are 8 apart, those near 0.3 a four-thousandth
    x = rng(88).uniform(0.999, 1.001, (8, 16)) * np.tile(exact, 8)
    (result,) = report_of(x, formats="float16", kernels="fused", norm="rms", tolerance=1e-9)["results"]
    core = lnaudit.layer_norm(x, format="float16", kernel="fused", norm="rms")
    absolute = np.abs(core * np.sqrt((x**2).mean(axis=1, keepdims=True)) - x)
    assert 1 < absolute.max() < 10
    errors = [deviation(got, exact_core(row, "rms")) for row, got in zip(x, core, strict=True)]
    assert result["error"]["max"] == pytest.approx(max(errors), rel=1e-5)
    assert result["error"]["max_row"] == int(np.argmax(errors))
    assert (result["verdict"], max(errors) < 2.0**-11) == ("pass", True)


@pytest.mark.parametrize("scale", [2.0**-40, 2.0**-8, 2.0**30])
@pytest.mark.parametrize("fmt", ["bfloat16", "float32"])
def test_b88_the_error_of_a_row_is_that_of_the_row_in_other_units(fmt: str, scale: float):
    x = rng(88).uniform(-2.8, 1e4, (16, 48)).astype(np.float32)
    options = {"formats": fmt, "kernels": "native"}
    errors = [
        report_of(x * s, epsilon=1e-5 * s * s, **options)["results"][0]["error"]
        for s in (1.0, scale)
    ]  # fmt: skip
    if fmt == "float32" or scale > 2.0**-30:  # epsilon stays exact enough: it is a millionth of the variance
        assert errors[0]["max_row"] == errors[1]["max_row"]
    assert errors[1]["max"] == pytest.approx(errors[0]["max"], rel=1e-3)
    # the weight is no unit of it either
    weighted = report_of(x, weight=np.full(48, 1e4), **options)["results"][0]["error"]
    assert weighted == errors[0]


def test_b89_a_sum_near_zero_is_no_error_of_a_row_that_is_far_from_it():
    x = np.array([1e-5, 100, -100], np.float16)
    exact = float(x[0])
    single = float(np.float32(x[0]) + np.float32(100) - np.float32(100))
    assert (float((x[0] + np.float16(100)) + np.float16(-100)), abs(single - exact) / exact) == (
        0.0,
        pytest.approx(0.237, abs=0.002),
    )
    for kernel, norm in itertools.product(TEXTBOOK, NORMS):
        site = report_of(x[None], formats="float16", kernels=kernel, norm=norm)
        (result,) = site["results"]
        got = lnaudit.layer_norm(x[None], format="float16", kernel=kernel, norm=norm)[0]
        assert result["error"]["max"] == pytest.approx(deviation(got, exact_core(x, norm)), rel=1e-5)
        # a hundred per cent of the mean, or of the first element, is nothing of the row
        assert result["error"]["max"] < 2.0**-11
        assert result["verdict"] == "pass"


# B90: NaN never passes


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("fmt", NAMES)
def test_b90_a_row_that_is_not_shown_to_be_right_fails(fmt: str, norm: str):
    rows = named_rows(fmt, 17)
    x = np.stack([row for name, row in rows.items() if name != "subnormal"])
    with without_remedies():
        report = lnaudit.audit(x, formats=fmt, kernels=TEXTBOOK, norm=norm).to_dict()
    limit = report["config"]["limits"][fmt]
    unit = 2.0 ** -PRECISION[fmt]
    assert len(report["sites"][0]["results"]) == len(TEXTBOOK)
    for result in report["sites"][0]["results"]:
        core = lnaudit.layer_norm(x, format=fmt, kernel=result["kernel"], norm=norm)
        right = 0
        for row, got in zip(x, core, strict=True):
            exact = exact_core(row, norm)
            if (norm == "layer" and np.ptp(row) == 0) or not row.any():
                exact = [mpmath.mpf(0)] * len(row)
            cast = lnaudit.round_to(row, fmt)
            cost = deviation(exact_core(cast, norm), exact) if np.isfinite(cast).all() else math.nan
            # the limit, widened by what the cast alone costs and by the rounding of the output
            right += not math.isnan(cost) and deviation(got, exact) <= max(limit, 2 * cost) + unit
        assert result["failing_rows"] >= len(x) - right
        assert sum(result["first_bad_operation"].values()) == result["failing_rows"]
        assert (result["verdict"] == "fail") >= (right < len(x) - 2)
        finite = np.isfinite(core).all(axis=1)
        assert result["nonfinite_rows"] == int((~finite).sum())
        if not finite.all():
            assert result["verdict"] == "fail"


@pytest.mark.parametrize("bad", [math.nan, -math.inf])
@pytest.mark.parametrize("where", ["x", "weight", "bias"])
def test_b90_nan_on_both_sides_is_not_alike(tmp_path: Path, bad: float, where: str):
    x, parameter = rng(90).standard_normal((8, 16)), np.ones(16)
    if where == "x":
        x[3, 5] = bad
    else:
        parameter[5] = bad
    words = [] if where == "x" else [f"--{where}", f"{where}.npy"]
    folder = project(tmp_path, 'formats = ["float32"]\n', x=x, **({} if where == "x" else {where: parameter}))
    done = run_in(folder, "check", "x.npy", *words, "--output-format", "json")
    assert done.returncode == 1
    found = document(done.stdout)
    assert [f["code"] for f in found["findings"] if f["severity"] == "error"] == ["LN001" if where == "x" else "LN006"]
    if where == "x":
        counts = found["sites"][0]["input"]
        assert (counts["nan"], counts["inf"], counts["finite_rows"]) == (math.isnan(bad), math.isinf(bad), 7)


def test_b90_a_file_of_nan_is_not_audited(tmp_path: Path):
    folder = project(tmp_path, x=np.full((4, 8), np.nan))
    for command in ("scan", "check"):
        assert run_in(folder, command, "x.npy", "--fail-on", "never").returncode == 2


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ({"measured": math.nan}, {}),
        ({}, {"measured": math.nan}),
        ({"measured": math.nan}, {"measured": math.nan}),
        ({"share": math.nan}, {}),
        ({}, {"share": math.nan}),
        ({"measured": math.nan}, {"measured": 1e-9}),
        ({"measured": 1e-9}, {"measured": math.nan, "limit": 1.0}),
        ({"measured": math.nan}, {"limit": math.nan}),
        ({"measured": math.inf}, {}),
        ({"measured": -math.inf}, {"measured": -5.0, "limit": 0.0}),
    ],
)
def test_b90_what_cannot_be_compared_with_a_baseline_is_worse(new: dict[str, float], old: dict[str, float]):
    plain = {"share": 0.5, "measured": 0.5, "limit": 0.02}
    assert not is_worse(Known(**plain), Known(**plain))
    assert is_worse(Known(**{**plain, **new}), Known(**{**plain, **old}))


@pytest.mark.parametrize("option", ["--tolerance", "--share", "--eps", "--loss-scale", "--compare-eps"])
@pytest.mark.parametrize("value", ["NaN", "1e999"])
def test_b90_no_limit_is_nan(tmp_path: Path, option: str, value: str):
    folder = project(tmp_path, x=np.ones((2, 4)))
    done = run_in(folder, "check", "x.npy", option, value)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"lnaudit: {option}: ")


# B92: exit codes


def test_b92_each_ending_has_its_own_code_and_the_help_says_so(tmp_path: Path):
    fine = rng(92).standard_normal((8, 16))
    folder = project(tmp_path, 'formats = ["float16"]\nkernels = ["native"]\n', fine=fine, large=fine * 500)
    (folder / "broken.npy").write_bytes(b"\x93NUMPY")
    endings = {
        0: ["fine.npy"],
        1: ["large.npy"],
        2: ["broken.npy"],
    }
    for code, words in endings.items():
        assert run_in(folder, "check", *words).returncode == code
    for words in (
        ["gone.npy"], ["large.npy", "gone.npy"], [], ["--nope"], ["large.npy", "--format", "float17"],
        ["large.npy", "--fail-on", "sometimes"], ["large.npy", "--baseline", "gone.json"], ["*.txt"],
    ):  # fmt: skip
        assert run_in(folder, "check", *words).returncode == 2, words
    (folder / "sitecustomize.py").write_text(
        "import lnaudit.pipeline\ndef stop(*a, **k):\n    raise RuntimeError('x')\n"
        "lnaudit.pipeline.scanning.audit_site = stop\n"
    )
    crash = run_in(folder, "check", "large.npy", PYTHONPATH=str(folder))
    assert crash.returncode == 3
    assert crash.stderr.startswith("lnaudit: internal error: RuntimeError: x")
    said = " ".join(run_in(folder, "--help").stdout.split())
    for meaning in ("0 clean", "1 findings", "2 something could not be audited", "3 internal error"):
        assert meaning in said


# B94: no warning but the finding


@pytest.mark.parametrize("engine", sampled(["numpy", "numba"], "numpy"))
def test_b94_what_overflows_everywhere_warns_nowhere(tmp_path: Path, engine: str):
    if engine == "numba":
        pytest.importorskip("numba")
    rows = [row for fmt in ("float16", "float32", "float64") for row in named_rows(fmt, 17).values()]
    x = np.concatenate([np.stack(rows), np.full((1, 17), 1e6), np.full((1, 17), np.nan), np.full((1, 17), -np.inf)])
    x[-3, :8] = -300.0
    folder = project(tmp_path, x=x)
    for norm in NORMS:
        done = run_in(
            folder, "scan", "x.npy", "--norm", norm, "--engine", engine, "--format", ",".join(ALL_NAMES),
            "--kernel", ",".join(KERNELS), "--output-format", "json", "--eps", "1e-30", "--loss-scale", "65536",
            "--compare-eps", "1e300",
        )  # fmt: skip
        assert (done.stderr, done.returncode) == ("", 0)
        results = document(done.stdout)["sites"][0]["results"]
        assert len(results) == len(ALL_NAMES) * len(KERNELS)
        assert all(r["cast"]["overflow_rows"] > 0 for r in results if r["format"] != "float64")


@pytest.mark.parametrize("kernel", TEXTBOOK)
@pytest.mark.parametrize("fmt", ALL_NAMES)
def test_b94_the_caller_s_own_settings_of_errors_neither_matter_nor_change(fmt: str, kernel: str):
    x = np.array([[1e6, -300.0, 300.0, 1e-30], [2.0 ** (EMAX[fmt] - 1)] * 3 + [0.0]])
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        before = np.geterr()
        with without_remedies():
            report = report_of(x, formats=fmt, kernels=kernel, epsilon=1e-30)
        lnaudit.layer_norm(x, format=fmt, kernel=kernel, epsilon=0.0)
        lnaudit.round_to([1.7e308, -3.5e38, 65520.0, 5e-324], fmt)
        assert np.geterr() == before
    assert report["results"][0]["verdict"] == "fail" or fmt in ("float32", "float64", "bfloat16", "tfloat32")


# B95: the same twice


def test_b95_the_same_bytes_whatever_the_hash_the_threads_and_the_folder(tmp_path: Path):
    x = rng(95).standard_normal((3000, 64)) * 10.0 ** rng(1).uniform(-4, 4, (3000, 1))
    folder = project(tmp_path, b=x.astype(np.float32), a=x[::-1].astype(np.float16))
    (folder / "deep").mkdir()
    command = ("scan", "b.npy", "a.npy", "--output-format", "json", "--kernel", "ladder")
    runs = [
        run_in(folder, *command, "--jobs", jobs, "--engine", engine, PYTHONHASHSEED=seed)
        for jobs, engine, seed in (("1", "numpy", "0"), ("2", "numpy", "1"), ("auto", "auto", "random"))
    ]
    assert {(run.returncode, run.stderr) for run in runs} == {(0, "")}
    assert len({run.stdout for run in runs}) == 1
    # reached from elsewhere only the paths differ
    deep = run_in(folder / "deep", "scan", "../b.npy", "../a.npy", *command[3:])
    assert deep.stdout.replace("../", "") == runs[0].stdout
    # each site is what it is, whatever stands before it
    turned = document(run_in(folder, "scan", "a.npy", "b.npy", *command[3:]).stdout)["sites"]
    assert turned[::-1] == document(runs[0].stdout)["sites"]


def test_b95_a_gate_does_not_depend_on_luck():
    # 300 fresh rows each, as in the case: what is exact to half a unit never fails
    for seed in range(40):
        x = np.random.default_rng(seed).standard_normal((300, 16)).astype(np.float32)
        with without_remedies():
            (result,) = report_of(x, formats="float32", kernels="native")["results"]
        assert (result["verdict"], result["failing_rows"]) == ("pass", 0)


# B96: a report for machines, whatever happens, and details without a second run


@pytest.mark.parametrize("kind", ["empty file", "empty folder", "missing", "usage", "policy", "crash"])
@pytest.mark.parametrize("command", ["scan", "check"])
def test_b96_a_report_of_nothing_is_a_report(tmp_path: Path, command: str, kind: str):
    folder = project(tmp_path, x=np.ones((2, 4)))
    (folder / "empty.npy").write_bytes(b"")
    (folder / "nothing").mkdir()
    words = {"empty file": "empty.npy", "empty folder": "nothing", "missing": "gone.npy"}.get(kind, "x.npy")
    variables = {}
    if kind == "policy":
        (folder / "lnaudit.toml").write_text("nonsense = 1")
    elif kind == "crash":
        (folder / "sitecustomize.py").write_text(
            "import lnaudit.pipeline\ndef stop(*a, **k):\n    raise ValueError(float('nan'))\n"
            "lnaudit.pipeline.scanning.audit_site = stop\n"
        )
        variables["PYTHONPATH"] = str(folder)
    more = ["--share", "2"] if kind == "usage" else []
    done = run_in(folder, command, words, "--output-format", "json", *more, **variables)
    assert done.returncode == (3 if kind == "crash" else 2)
    found = document(done.stdout)
    assert (found["schema_version"], found["kind"], found["sites"], found["findings"]) == (1, command, [], [])
    assert found["summary"] == {"sites": 0, "fail": 0, "warn": 0, "pass": 0}
    assert len(found["not_audited"]) == 1
    assert found["not_audited"][0]["reason"]


def test_b96_a_failing_run_names_sites_and_worst_rows(tmp_path: Path):
    x = rng(96).standard_normal((30, 64))
    x[17] *= 2000
    folder = project(tmp_path, 'formats = ["float16"]\nkernels = ["native"]\n', good=x[:9], bad=x)
    done = run_in(folder, "check", ".", "--output-format", "json")
    found = document(done.stdout)
    assert {site["name"]: site["verdict"] for site in found["sites"]} == {"good": "pass", "bad": "fail"}
    (error,) = [f for f in found["findings"] if f["severity"] == "error"]
    assert (error["site"], error["source"], error["code"], error["row"]) == ("bad", "bad.npy", "LN104", 17)
    page = run_in(folder, "check", ".").stdout
    paragraph = " ".join(page[page.index("LN104") :].split("\n\n")[0].split())
    assert "[float16 native]" in paragraph
    assert "1 of 30 rows" in paragraph
    assert "Worst row: 17." in paragraph
    # healthy sites and notes name none
    assert " ".join(page.split()).count("Worst row") == len(
        [f for f in found["findings"] if f["row"] is not None and f["severity"] != "note"]
    )


# B97: NaN is NaN, and an error an error


@pytest.mark.parametrize("fmt", ["float16", "bfloat16", "float8_e5m2"])
def test_b97_nan_inf_and_errors_are_told_apart(fmt: str):
    told = 0
    for name, row in named_rows(fmt, 17).items():
        with without_remedies():
            report = lnaudit.audit(row[None], formats=fmt, kernels=TEXTBOOK, name=name)
        for result in report.to_dict()["sites"][0]["results"]:
            core = lnaudit.layer_norm(row[None], format=fmt, kernel=result["kernel"])
            assert (result["nan"], result["inf"]) == (int(np.isnan(core).sum()), int(np.isinf(core).sum()))
            # an error is a number, and there is none where there is no output
            finite = bool(np.isfinite(core).all()) and result["cast"]["overflow_rows"] == 0
            assert (result["error"]["max"] is not None) is finite
            assert not finite or 0 <= result["error"]["max"] < math.inf
            own = [f for f in report.findings if f.kernel == result["kernel"] and f.severity == "error"]
            about_errors = [f for f in own if f.code in ("LN104", "LN202", "LN204")]
            told += len(about_errors)
            assert not about_errors or finite
            assert not any("nan" in f"{f.title} {f.message}".lower() for f in about_errors if f.code != "LN104")
    assert told > 2


def test_b97_a_difference_at_the_last_place_is_no_finding():
    x = rng(97).standard_normal((64, 256)).astype(np.float32) * np.float32(0.13)
    report = lnaudit.audit(x, formats="float16", kernels="fused")
    (result,) = report.to_dict()["sites"][0]["results"]
    core = lnaudit.layer_norm(x, format="float16", kernel="fused")
    worst = max(abs(float(got - wanted)) for row, out in zip(x, core, strict=True)
                for got, wanted in zip(out, exact_core(row), strict=True) if abs(got) < 0.25)  # fmt: skip
    assert 1e-7 < 5e-5 < worst  # what was called NaN, at magnitudes like 0.13
    assert {key: result[key] for key in SILENT} == SILENT
    assert (result["verdict"], result["failing_rows"]) == ("pass", 0)
    assert not [f for f in report.findings if not f.latent]


# B98: gradients in closed form

STEEP = [(d, scale, norm) for d in (2, 3, 5, 8) for scale in (1e-6, 1e-3, 1.0, 1e4) for norm in NORMS]


def jacobian(row: np.ndarray, norm: str, epsilon: float) -> Any:
    """Return the Jacobian of the core from central differences of 60 digits, whose step is far below float64."""
    d, h = len(row), mpmath.mpf(10) ** -25 * max(abs(float(value)) for value in row)
    found = mpmath.matrix(d, d)
    for j in range(d):
        ends = []
        for sign in (1, -1):
            x = [mpmath.mpf(float(value)) + (sign * h if i == j else 0) for i, value in enumerate(row)]
            mean = sum(x) / d if norm == "layer" else mpmath.mpf(0)
            root = mpmath.sqrt(sum((value - mean) ** 2 for value in x) / d + mpmath.mpf(epsilon))
            ends.append([(value - mean) / root for value in x])
        for i in range(d):
            found[i, j] = (ends[0][i] - ends[1][i]) / (2 * h)
    return found


@pytest.mark.parametrize(("d", "scale", "norm"), STEEP)
def test_b98_the_gain_is_the_operator_norm_of_the_jacobian(d: int, scale: float, norm: str):
    epsilon = 1e-5
    row = rng(d).standard_normal(d) * scale
    with mpmath.workdps(60):
        exact = jacobian(row, norm, epsilon)
        gain = float(mpmath.svd_r(exact, compute_uv=False)[0])
        wanted = np.array(exact.tolist(), dtype=float)
    assert theory.jacobian(row, epsilon, norm) == pytest.approx(wanted, rel=1e-9, abs=1e-12 * gain)
    site = report_of(row[None], formats="float64", norm=norm, epsilon=epsilon)
    assert site["gain"]["max"] == pytest.approx(gain, rel=1e-5)
    assert site["gain"]["p50"] == site["gain"]["max"]


def test_b98_differences_with_a_step_of_a_hundredth_are_no_gate():
    row, epsilon, step = rng(98).standard_normal(8).astype(np.float32) * np.float32(1e-3), 1e-5, np.float32(1e-2)

    def core(x: np.ndarray) -> np.ndarray:
        return np.asarray((x - x.mean()) / np.sqrt(x.var() + np.float32(epsilon)))

    ends = [[core(row + sign * step * np.eye(8, dtype=np.float32)[j]) for j in range(8)] for sign in (1, -1)]
    measured = (np.array(ends[0]) - np.array(ends[1])).T / (2 * step)
    with mpmath.workdps(60):
        wanted = np.array(jacobian(row, "layer", epsilon).tolist(), dtype=float)
    beyond = np.abs(measured - wanted) / (1e-3 + 1e-2 * np.abs(wanted))
    assert beyond.max() > 4.86
    assert theory.jacobian(row, epsilon) == pytest.approx(wanted, rel=1e-9, abs=1e-9)


# B99: finite outputs of a lost row


def spike(height: float = 795.0) -> np.ndarray:
    x = rng(0).normal(0, 1, (4, 768))
    x[2, 0] = height
    return x


@pytest.mark.parametrize("kernel", ["native-serial", "native", "decomposed"])
def test_b99_a_lost_row_fails_the_gate_though_every_output_is_finite(tmp_path: Path, kernel: str):
    out = lnaudit.layer_norm(spike(), format="float16", kernel=kernel)
    assert np.isfinite(out).all()
    assert not out[2].any()
    folder = project(tmp_path, f'formats = ["float16"]\nkernels = ["{kernel}"]\n', x=spike())
    done = run_in(folder, "check", "x.npy", "--output-format", "json")
    assert done.returncode == 1
    found = document(done.stdout)
    (result,) = found["sites"][0]["results"]
    assert {key: result[key] for key in SILENT} == SILENT
    assert (result["collapsed_rows"], result["variance_nonfinite_rows"], result["failing_rows"]) == (1, 1, 1)
    assert [(f["code"], f["row"]) for f in found["findings"] if f["severity"] == "error"] == [("LN104", 2)]
    page = run_in(folder, "check", "x.npy").stdout
    assert "no NaN, no Inf" in page
    assert "exit 1 (1 finding at or above --fail-on error)." in page


def test_b99_what_is_about_to_be_lost_can_fail_the_gate_too(tmp_path: Path):
    # 200^2 is 61 % of 65504
    folder = project(tmp_path, 'formats = ["float16"]\nkernels = ["native"]\n', x=spike(200.0))
    done = run_in(folder, "check", "x.npy", "--fail-on", "warning", "--output-format", "json")
    assert done.returncode == 1
    found = document(done.stdout)
    (result,) = found["sites"][0]["results"]
    assert (result["verdict"], result["failing_rows"]) == ("warn", 0)
    assert result["peak"] == pytest.approx(200**2 / 65504, rel=0.03)
    assert result["headroom"] == pytest.approx(1 - result["peak"], rel=1e-4)
    (warning,) = [f for f in found["findings"] if f["severity"] == "warning"]
    assert (warning["code"], warning["row"], warning["latent"]) == ("LN106", 2, False)
    assert run_in(folder, "check", "x.npy").returncode == 0


# latent findings stand apart


def test_what_has_not_happened_stands_last_and_is_counted_apart(tmp_path: Path):
    x = rng(5).standard_normal((30, 64)) * 0.01
    x[4] = np.where(np.arange(64) % 2, 150.0, -150.0)
    folder = project(tmp_path, 'formats = ["float16"]\nkernels = ["native"]\n', x=x, quiet=x[:4])
    for words, code, end in (
        (("quiet.npy",), 0, "1 site: 1 warn (float16 native; 1 latent warning)."),
        (
            ("quiet.npy", "--fail-on", "warning"),
            1,
            "exit 1 (1 finding at or above --fail-on warning, latent only: not on this data).",
        ),
    ):
        done = run_in(folder, "check", *words, "--eps", "1e-12")
        assert done.returncode == code
        assert done.stdout.splitlines()[-1] == end
        assert done.stdout.count("Latent: not on this data, but on other rows or hardware\n") == 1
    page = run_in(folder, "check", "x.npy", "--eps", "1e-12").stdout
    # the error is worse and has happened, and so has the warning beside it
    assert page.index("error    LN104") < page.index("Latent: not on this data") < page.index("warning  LN301")
    assert page.count("Latent:") == 1
    assert page.splitlines()[-1].startswith("exit 1 (1 finding at or above --fail-on error).")
    assert "1 latent warning" in page
    assert "Latent:" not in run_in(folder, "check", "quiet.npy", "--eps", "1e-3").stdout
