"""The closed form in epsilon against kernels that are run element by element, for every epsilon.

The exact norm is computed here, in 80-bit arithmetic, and that again is held against mpmath on some rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product

import mpmath
import numpy as np
import pytest

import lnaudit
from lnaudit.arithmetic import Workspace, quiet
from lnaudit.engine import interpreter, numpy_engine
from lnaudit.engine.epsilon import Response, inverse_roots, normalized_scale, respond, row_error, scale_error
from lnaudit.engine.rows import Plan, RowStatistics
from lnaudit.formats import FORMATS, Format
from lnaudit.kernels import Kernel, get_kernel
from lnaudit.summary.codes import judge

from .exhaustive import sampled_cases
from .rows import KERNELS, REAL, WIDTHS, named_rows, real_rows
from .test_kernels import ROWS

EPSILONS = (0.0, 1e-14, 1e-12, 1e-8, 1e-5, 1e-3, 0.1, 10.0)
MODEL_EPSILONS = (1e-5, 1e-12)
VARIANTS = {
    "layer": ("", "variance=one_pass", "variance=one_pass,clamp_negative=zero", "clamp_negative=zero-nan"),
    "rms": ("", "clamp_negative=zero-nan"),
}
SHIFT = "apply=scale_shift,fma=apply"
# the other axes; a kernel that scales before it shifts has a closed form where the shift is fused
AXES = (
    "native:variance=welford",
    "fused:variance=welford,mean_scale=reciprocal,fma=all",
    "native:mean_scale=reciprocal",
    "fused:mean_scale=terms",
    "native-serial:mean_scale=terms,fma=stats",
    "native:inverse=recip_sqrt",
    "fused:inverse=recip_sqrt,apply=gamma_rstd_first",
    "native:inverse=rsqrt,apply=gamma_center_first",
    f"native:inverse=recip_sqrt,{SHIFT}",
    f"fused:inverse=recip_sqrt,{SHIFT}",
    f"decomposed:inverse=rsqrt,{SHIFT},variance=one_pass",
    f"fused:mean=T,normalized=T,{SHIFT}",
    f"fused:mean=float64,rstd=float64,normalized=float64,{SHIFT}",
    "stored-stats:apply=folded,fma=apply",
    "fused:apply=folded,fma=apply,flush_subnormals=all",
    "native:epsilon_place=outside",
    "fused:inverse=recip_sqrt,epsilon_place=outside",
    "native:epsilon_place=none",
    f"fused:epsilon_place=none,{SHIFT}",
    "native:flush_subnormals=T",
    "native-serial:flush_subnormals=all",
    "fused:flush_subnormals=float32",
    f"native:inverse=recip_sqrt,{SHIFT},flush_subnormals=T",
)
# torch-cpu, ort-cpu and the others
PRESETS = sorted({row for *_, row in ROWS})
WITHOUT_CLOSED_FORM = (
    "fused:apply=scale_shift",
    "native:inverse=recip_sqrt,apply=folded",
    "decomposed:inverse=rsqrt,apply=scale_shift,fma=stats,reduction=serial",
    "stored-stats:apply=folded,flush_subnormals=all",
)
EXTENDED = np.finfo(np.longdouble).nmant >= 63
needs_extended = pytest.mark.skipif(not EXTENDED, reason="longdouble is no wider than float64 on this machine")


def specifications(norm: str) -> list[str]:
    return [f"{kernel}:{variant}".rstrip(":") for kernel in KERNELS for variant in VARIANTS[norm]] + [*AXES, *PRESETS]


def exact_norm(x: np.ndarray, epsilon: float, norm: str) -> np.ndarray:
    """Return the exact core of rows in longdouble: centred, centred again, 0 for constant rows."""
    v = x.astype(np.longdouble)
    if norm == "layer":
        v = v - v.mean(axis=1, keepdims=True)
        v = v - v.mean(axis=1, keepdims=True)
        v[(x == x[:, :1]).all(axis=1)] = 0
    q = (v * v).mean(axis=1, keepdims=True)
    w = q + np.longdouble(epsilon)
    return np.where(w > 0, v / np.sqrt(np.where(w > 0, w, 1)), 0)


def emulate(x: np.ndarray, name: str, kernel_name: str, norm: str) -> list[np.ndarray]:
    """Return the core of rows, element by element, for each of EPSILONS."""
    fmt, kernel, ws = FORMATS[name], get_kernel(kernel_name), Workspace()
    h = np.ascontiguousarray(lnaudit.round_to(x, kernel.stages(fmt).T).T.astype(fmt.carrier))
    with quiet():
        centered = interpreter.center(h, h.max(axis=0), h.min(axis=0), fmt, kernel, norm == "rms", ws)
        _, inverses = interpreter.inverse(centered.variance, EPSILONS, fmt, kernel)
        rms = norm == "rms"
        normalized = (interpreter.normalize(centered, inverse, fmt, kernel, rms, ws) for inverse in inverses)
        return [interpreter.core(n, fmt, kernel, ws).T.copy() for n in normalized]


def plan_of(x: np.ndarray, name: str, norm: str, model_epsilon: float, kernels: Iterable[str]) -> Plan:
    return Plan(
        results=tuple((FORMATS[name], get_kernel(kernel)) for kernel in kernels),
        norm=norm,
        features=x.shape[1],
        model_epsilon=model_epsilon,
        epsilon=model_epsilon,
    )


@dataclass
class Closed:
    """The closed form of one kernel on some rows; F for each of the model's epsilons."""

    statistics: RowStatistics
    response: Response
    E: np.ndarray
    F: list[np.ndarray]
    rounding: np.ndarray


def rounding_of(fmt: Format, kernel: Kernel, response: Response) -> np.ndarray:
    """Return what the final rounding may add: a unit roundoff, half of a subnormal step or all that is flushed."""
    A = np.broadcast_to(response.A, response.scale.shape)
    # 1/std may be infinite where nothing is left
    relative = fmt.unit_roundoff * np.where(A > 0, response.scale * np.sqrt(np.maximum(A, 0)), 0.0)
    flushed = fmt.smallest_normal if kernel.flush_subnormals != "none" else 0.0
    return relative + fmt.smallest_subnormal / 2 + flushed


def closed_forms(x: np.ndarray, name: str, norm: str, kernels: Iterable[str], *model_epsilons: float) -> list[Closed]:
    plan = plan_of(x, name, norm, model_epsilons[0], kernels)
    found = []
    with quiet():
        rows = numpy_engine.analyse(x, 0, plan, Workspace())
        for (fmt, kernel), stats in zip(plan.results, rows.kernels, strict=True):
            cast = rows.casts[kernel.stages(fmt).T]
            response = respond(rows.input, cast, stats, EPSILONS, fmt, kernel, plan)
            found.append(
                Closed(
                    statistics=rows,
                    response=response,
                    E=row_error(rows.input, response, EPSILONS, fmt),
                    F=[row_error(rows.input, response, (epsilon,), fmt) for epsilon in model_epsilons],
                    rounding=rounding_of(fmt, kernel, response),
                )
            )
    return found


def rms(values: np.ndarray) -> np.ndarray:
    return np.sqrt((values.astype(np.longdouble) ** 2).mean(axis=1))


def check(x: np.ndarray, name: str, norm: str, labels: list[str], kernels: list[str], *model_epsilons: float) -> None:
    """Compare E, F and the fate of every row for every kernel and epsilon."""
    exact = [exact_norm(x, e, norm) for e in EPSILONS]
    meant = [exact_norm(x, e, norm) for e in model_epsilons]
    for kernel, closed in zip(kernels, closed_forms(x, name, norm, kernels, *model_epsilons), strict=True):
        for i, (epsilon, core) in enumerate(zip(EPSILONS, emulate(x, name, kernel, norm), strict=True)):
            where = f"{name} {kernel} {norm} d={x.shape[1]} epsilon={epsilon:g}"
            finite = np.isfinite(core).all(axis=1)
            check_fate(closed.response, i, core, f"{where} {labels}")
            # in the float64 format errors are 1e-16: the closed form of them is good to a part in a thousand
            slack = 1e-9 if name != "float64" else 1e-19
            compared = [("E", closed.E[i], exact[i])]
            compared += [("F", F[i], goal) for F, goal in zip(closed.F, meant, strict=True)]
            with quiet():
                for letter, found, goal in compared:
                    assert np.isnan(found[~finite]).all()
                    true = rms(core - goal)
                    off = np.abs(true - found) - closed.rounding[i] - slack - 1e-3 * true * (name == "float64")
                    bad = [labels[r] for r in np.flatnonzero(finite & ~(off <= 0))]
                    assert not bad, (
                        f"{letter}: {where}: {bad} {true[finite & ~(off <= 0)]} {found[finite & ~(off <= 0)]}"
                    )


def check_fate(response: Response, i: int, core: np.ndarray, where: str) -> None:
    """Compare what one number a row says at an epsilon with the elements of the core."""
    np.testing.assert_array_equal(response.nonfinite[i], ~np.isfinite(core).all(axis=1), f"non-finite rows: {where}")
    np.testing.assert_array_equal(response.zero[i], (core == 0).all(axis=1), f"all-zero rows: {where}")


@needs_extended
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("name", FORMATS)
def test_synthetic_rows(name: str, norm: str, width: int):
    table = named_rows(name, width)
    check(np.array(list(table.values())), name, norm, list(table), specifications(norm), *MODEL_EPSILONS)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", FORMATS)
def test_rows_of_kernels_that_round_before_they_shift(name: str, width: int):
    """No closed form: their fate is exact for every epsilon all the same, and their error is that of the elements."""
    x = np.array(list(named_rows(name, width).values()))
    plan = plan_of(x, name, "layer", 1e-5, WITHOUT_CLOSED_FORM)
    exact = exact_norm(x, 1e-5, "layer")
    with quiet():
        rows = numpy_engine.analyse(x, 0, plan, Workspace())
        for (fmt, kernel), stats in zip(plan.results, rows.kernels, strict=True):
            assert (kernel.has_closed_form(rms=False), kernel.has_closed_form(rms=True)) == (False, True)
            cast, cores = rows.casts[kernel.stages(fmt).T], emulate(x, name, kernel.name, "layer")
            response = respond(rows.input, cast, stats, EPSILONS, fmt, kernel, plan)
            for i, core in enumerate(cores):
                check_fate(response, i, core, f"{name} {kernel.name} d={width} epsilon={EPSILONS[i]:g}")
            judged = judge(rows.input, cast, stats, fmt, kernel, plan)
            core = cores[EPSILONS.index(1e-5)]
            finite = np.isfinite(core).all(axis=1)
            true = rms(core - exact)[finite]
            assert np.isnan(judged.error[~finite]).all()
            assert (np.abs(judged.error[finite] - true) <= 1e-6 * true + (1e-9 if name != "float64" else 1e-19)).all()


@needs_extended
@pytest.mark.parametrize(
    ("name", "source"),
    sampled_cases(
        [*product(FORMATS, REAL)],
        *((name, source) for i, name in enumerate(FORMATS) for source in REAL[i % 2 :: 2]),
    ),
)
def test_real_rows(name: str, source: str):
    """Every kernel meets a third of the sources; the usual suite takes half of them in a format."""
    x = real_rows(source)[:10]
    kernels = specifications("layer")[REAL.index(source) % 3 :: 3]
    check(x, name, "layer", [str(i) for i in range(len(x))], kernels, 1e-5)


@needs_extended
@pytest.mark.parametrize("name", FORMATS)
def test_real_rows_without_centring(name: str):
    x = real_rows("minilm-layer-0-output")[:10]
    check(x, name, "rms", [str(i) for i in range(len(x))], specifications("rms"), 1e-12)


@needs_extended
@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("name", FORMATS)
def test_the_exact_norm_of_these_tests_against_mpmath(name: str, norm: str):
    x = np.array(list(named_rows(name, 17).values()))
    with mpmath.workprec(400):
        for row, found in zip(x, exact_norm(x, 1e-5, norm), strict=True):
            z = [mpmath.mpf(float(value)) for value in row]
            mean = mpmath.fsum(z) / len(z) if norm == "layer" else 0
            v = [value - mean for value in z]
            rho = 1 / mpmath.sqrt(mpmath.fsum(a * a for a in v) / len(v) + mpmath.mpf(1e-5))
            if (row == row[0]).all() and norm == "layer":
                v = [mpmath.mpf(0)] * len(z)
            for a, b in zip(v, found, strict=True):
                high = float(b)
                assert abs(a * rho - high - mpmath.mpf(float(b - np.longdouble(high)))) <= 2.0**-58 * (1 + abs(a * rho))


@pytest.mark.parametrize(("name", "kernel"), [("float16", "fused"), ("bfloat16", "native"), ("float32", "native")])
def test_rows_that_the_cast_empties_lose_everything(name: str, kernel: str):
    x = named_rows(name, 100)["emptied by the cast"][None]
    assert len(np.unique(lnaudit.round_to(x, name))) == 1
    closed = closed_forms(x, name, "layer", [kernel], 1e-14)[0]
    at = EPSILONS.index(1e-14)
    # at this epsilon the exact row has mean square 1, the emulated one is 0
    assert closed.E[at][0] == pytest.approx(1.0, abs=1e-14)
    assert closed.F[0][at][0] == pytest.approx(1.0, abs=1e-14)
    assert closed.response.zero[at][0]


def test_the_largest_cancellation_of_the_first_form():
    # design 4: q = 1e4, epsilon = 1e-14 would give 0 instead of 1
    x = 1e6 + 100 * np.where(np.arange(64) % 2, 1.0, -1.0)[None]
    assert len(np.unique(lnaudit.round_to(x, "bfloat16"))) == 1
    closed = closed_forms(x, "bfloat16", "layer", ["native"], 1e-14)[0]
    assert closed.statistics.input.variance[0] == 1e4
    assert closed.E[EPSILONS.index(1e-14)][0] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("name", FORMATS)
def test_scale_error_and_residual_make_up_the_error(name: str, norm: str):
    """r_hat v_hat - rho v splits into a part along v and one across it."""
    x = np.array([named_rows(name, 100)[key] for key in ("normal", "offset 5 spread 1e-3", "outlier 3000")])
    for kernel, closed in zip(
        specifications(norm), closed_forms(x, name, norm, specifications(norm), 1e-5), strict=True
    ):
        rows = closed.statistics.input
        core = emulate(x, name, kernel, norm)[EPSILONS.index(1e-5)].astype(np.longdouble)
        exact = exact_norm(x, 1e-5, norm)
        with quiet():
            shared = scale_error(rows, closed.response, inverse_roots(rows, (1e-5,), 0)[0])[EPSILONS.index(1e-5)]
            true = (core * exact).mean(axis=1) / (exact**2).mean(axis=1) - 1
            # rounding of the core adds at most a unit roundoff of its size
            size = closed.rounding[EPSILONS.index(1e-5)] / normalized_scale(rows, 1e-5) + 1e-15
            finite = np.isfinite(core).all(axis=1)
        assert (np.abs(shared - true)[finite] <= size[finite]).all(), kernel


def test_scale_error_of_constant_rows_is_zero():
    x = np.full((1, 8), 5.0)
    closed = closed_forms(x, "float16", "layer", ["native"], 1e-5)[0]
    with quiet():
        rows = closed.statistics.input
        shared = scale_error(rows, closed.response, inverse_roots(rows, (1e-5,), 0)[0])
    assert shared[EPSILONS.index(1e-5)][0] == 0


@needs_extended
@pytest.mark.parametrize("k", [-9, -1, 3, 14])
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_prescaled_rows(name: str, k: int):
    """A kernel that is given x * 2^k with its own epsilon is measured against the norm of x."""
    table = {key: row for key, row in named_rows(name, 17).items() if "overflow" not in key}
    x, labels = np.array(list(table.values())), list(table)
    plan = replace(plan_of(x, name, "layer", 1e-5, specifications("layer")), prescale=k)
    meant = exact_norm(x, 1e-5, "layer")
    with quiet():
        rows = numpy_engine.analyse(x, 0, plan, Workspace())
        for (fmt, kernel), stats in zip(plan.results, rows.kernels, strict=True):
            cast = rows.casts[kernel.stages(fmt).T]
            response = respond(rows.input, cast, stats, EPSILONS, fmt, kernel, plan)
            F, rounding = row_error(rows.input, response, (1e-5,), fmt), rounding_of(fmt, kernel, response)
            for i, core in enumerate(emulate(np.ldexp(x, k), name, kernel.name, "layer")):
                finite = np.isfinite(core).all(axis=1)
                check_fate(response, i, core, f"{kernel.name} {labels}")
                true = rms(core - meant)[finite]
                assert (np.abs(true - F[i][finite]) <= rounding[i][finite] + 1e-9).all(), (kernel.name, EPSILONS[i])


TORCH_CPU_HALF = f"fused:inverse=recip_sqrt,{SHIFT}"


@pytest.mark.parametrize(
    ("name", "rows", "epsilon", "residue", "decimals"),
    [
        # what torch on a CPU leaves of a bfloat16 row of 1000
        ("bfloat16", [1000.0], 1e-5, [2.0e-3], 4),
        # pytorch/pytorch#108072
        ("float32", [2.0, 14.0], 1e-5, [0, 0], 8),
        ("float32", [2.0, 14.0], 1e-6, [0, 1.2207e-4], 8),
    ],
)
def test_what_a_shift_leaves_of_constant_rows(
    name: str, rows: list[float], epsilon: float, residue: list[float], decimals: int
):
    x = np.repeat(np.array(rows)[:, None], 2, axis=1)
    core = lnaudit.layer_norm(x, format=name, kernel=TORCH_CPU_HALF, epsilon=epsilon)
    assert [round(abs(value), decimals) for value in core[:, 0].tolist()] == residue
    plan = plan_of(x, name, "layer", epsilon, [TORCH_CPU_HALF])
    with quiet():
        found = numpy_engine.analyse(x, 0, plan, Workspace())
        (fmt, kernel), stats = plan.results[0], found.kernels[0]
        judged = judge(found.input, found.casts[kernel.stages(fmt).T], stats, fmt, kernel, plan)
    assert judged.error.tolist() == pytest.approx(np.abs(core[:, 0]).tolist(), rel=FORMATS[name].unit_roundoff)
    assert stats.error.tolist() == np.abs(core[:, 0]).tolist()
    # taken off before the scaling, the mean leaves nothing
    assert not lnaudit.layer_norm(x, format=name, kernel="fused:inverse=recip_sqrt", epsilon=epsilon).any()


def test_an_infinite_variance_leaves_nothing_to_shift():
    """1/std is 0 and so is the core; the mean that a kernel takes off is no quotient by it."""
    x = np.array([[30000.0, -30000.0, 1000.0, 0.0]])
    kernel = f"native:inverse=recip_sqrt,{SHIFT}"
    assert not lnaudit.layer_norm(x, format="float16", kernel=kernel).any()
    closed = closed_forms(x, "float16", "layer", [kernel], 1e-5)[0]
    at = EPSILONS.index(1e-5)
    assert closed.response.scale[at, 0] == 0
    assert closed.E[at, 0] == pytest.approx(1.0, abs=1e-9)


def test_the_reported_error_is_the_element_by_element_one():
    x = real_rows("minilm-embeddings")[:8]
    exact = exact_norm(x, 1e-5, "layer")
    for name in ("float16", "bfloat16", "float32"):
        report = lnaudit.audit(x, formats=name, kernels="fused")
        core = lnaudit.layer_norm(x, format=name, kernel="fused")
        error = rms(core - exact)
        assert report.sites[0].results[0].error["max"] == pytest.approx(float(error.max()), rel=1e-6)
        assert report.sites[0].results[0].error["max_row"] == int(error.argmax())
