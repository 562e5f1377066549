"""Many epsilons by the compiled loops against numpy: whole summaries of rows to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lnaudit.arithmetic import Workspace, quiet
from lnaudit.engine import numpy_engine
from lnaudit.engine.rows import Plan
from lnaudit.formats import FORMATS
from lnaudit.kernels import KERNELS
from lnaudit.summary import Summary, fold
from lnaudit.summary.parts import Extremes, Histogram

from .test_compiled_engine import TEXTBOOK, hard_rows, plan_of

numba_epsilon = pytest.importorskip(
    "lnaudit.engine.numba_epsilon", reason="numba is not installed: pip install 'lnaudit[fast]'", exc_type=ImportError
)

EPSILONS = (0.0, 1e-300, 1e-45, 1e-30, 1e-12, 1e-8, 1e-7, 1e-6, 1e-5, 1e-3, 0.1, 10.0, 1e5, 1e40)
# partly in float32 and partly in float64, or with 1/sqrt in float64: left to numpy
LEFT = {"tfloat32": ("stored-stats", "fused"), "float64": ("stored-stats", "fused")}
INVERSES = ("native:inverse=recip_sqrt", "native:inverse=rsqrt", "fused:inverse=rsqrt,rstd=T", "fused:epsilon=T")


def parts(summary: Summary, where: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all that a summary holds, by name."""
    held = [("input", summary.input), *((f"result {i}", result) for i, result in enumerate(summary.results))]
    for name, holder in held:
        for part, value in vars(holder).items():
            if isinstance(value, Histogram):
                keys, counts = value._bins()
                value = (keys.tolist(), counts.tolist(), value.min, value.max)
            elif isinstance(value, Extremes):
                value = value._best
            elif part == "table":
                value = [column.tolist() for column in vars(value).values()]
            elif isinstance(value, np.ndarray):
                value = value.tolist()
            yield f"{where}{name} {part}", value
    for number in range(len(summary.plan.points)):
        yield from parts(summary.at_point(number), f"{where}point {number} ")
    if summary.fixed is not None:
        yield from parts(summary.fixed, f"{where}fixed ")


def assert_folds_agree(x: np.ndarray, plan: Plan) -> None:
    with quiet():
        statistics = numpy_engine.analyse(x, 5, plan, Workspace())
        expected, found = (dict(parts(fold(statistics, plan, engine))) for engine in ("numpy", "numba"))
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        # repr: NaN is NaN, and -0 is not 0
        assert value == found[name] or repr(value) == repr(found[name]), name


def is_covered(x: np.ndarray, plan: Plan) -> list[bool]:
    with quiet():
        rows = numpy_engine.analyse(x, 0, plan, Workspace()).input
    return [numba_epsilon.covers(rows, fmt, kernel, plan) for fmt, kernel in plan.results]


@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("fmt", FORMATS)
def test_textbook_kernels_agree_at_every_epsilon(fmt: str, norm: str) -> None:
    for width in (1, 2, 3, 17, 100, 777):
        x = hard_rows(fmt, width)
        if fmt == "float64":  # digits that float32 does not have, no rows that the reference scales
            x = x.astype(np.float64) * (1 + 1e-12)
        words = {"norm": norm, "epsilons": EPSILONS, "points": EPSILONS}
        plan = plan_of((fmt,), TEXTBOOK, width, **words)
        assert is_covered(x, plan) == [name not in LEFT.get(fmt, ()) for name in TEXTBOOK]
        assert_folds_agree(x, plan)
        weight = np.random.default_rng(width).standard_normal(width) * 1e4
        assert_folds_agree(x, plan_of((fmt,), ("native", "fused"), width, weight=weight, bias=weight[::-1], **words))


@pytest.mark.parametrize("name", INVERSES)
def test_ways_to_divide_by_the_root_agree(name: str) -> None:
    for fmt in FORMATS:
        plan = plan_of((fmt,), (name,), 100, epsilons=EPSILONS, points=EPSILONS)
        assert_folds_agree(hard_rows(fmt, 100), plan)


def test_what_is_not_covered_is_left_to_numpy() -> None:
    x = hard_rows("float32", 20)
    everything = plan_of(("float16", "float32"), tuple(KERNELS), 20, epsilons=(0.0, 1e-6), points=(1e-6, 1e-3))
    covered = is_covered(x, everything)
    assert any(covered)
    assert not all(covered)
    assert_folds_agree(x, everything)
    plan = plan_of(("float16", "float32"), ("native", "fused"), 20, epsilons=(0.0, 1e-6), points=(1e-6, 1e-3))
    flushing = tuple((fmt, replace(kernel, flush_subnormals="all")) for fmt, kernel in plan.results)
    for other in (
        replace(plan, by_elements=True),
        replace(plan, prescale=-3),
        replace(plan, results=flushing),
        replace(plan, points=(1e200,)),
    ):
        assert_folds_agree(x, other)
    assert_folds_agree(x.astype(np.float64) * 1e-170, plan)  # rows that the reference scales


def test_blocks_without_a_finite_row_agree() -> None:
    plan = plan_of(("float16",), ("native",), 16, epsilons=EPSILONS, points=EPSILONS)
    assert_folds_agree(np.full((20, 16), np.nan, np.float32), plan)
    assert_folds_agree(np.full((20, 16), 1e6, np.float32), plan)  # all leave the range in the cast


def test_many_rows_and_epsilons_agree() -> None:
    """More than are worked on at a time; rows beside each other in all that can go wrong."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((3000, 24)) * 10.0 ** rng.uniform(-9, 6, (3000, 1))
    x += rng.choice([0.0, 3.0, 900.0], (3000, 1))
    x[rng.integers(0, 3000, 300)] = 2.5
    epsilons = tuple(float(e) for e in np.geomspace(1e-14, 1e2, 90))
    plan = plan_of(("float16", "bfloat16", "float32"), ("native", "fused"), 24, epsilons=epsilons, points=epsilons)
    assert_folds_agree(x.astype(np.float32), plan)


@settings(max_examples=60, deadline=None)
@given(
    width=st.integers(1, 40),
    exponents=st.lists(st.integers(-60, 38), min_size=1, max_size=40),
    offset=st.sampled_from([0.0, 5.0, -1000.0]),
    fmt=st.sampled_from(sorted(FORMATS)),
    norm=st.sampled_from(["layer", "rms"]),
    epsilons=st.lists(st.floats(0.0, 1e10), min_size=1, max_size=5, unique=True),
    tolerance=st.sampled_from([1e-9, 0.02, 0.5]),
    seed=st.integers(0, 2**32),
)
def test_random_rows_agree(
    width: int,
    exponents: list[int],
    offset: float,
    fmt: str,
    norm: str,
    epsilons: list[float],
    tolerance: float,
    seed: int,
) -> None:
    noise = np.random.default_rng(seed).standard_normal((len(exponents), width))
    with quiet():
        x = (offset + noise * 10.0 ** np.array(exponents)[:, None]).astype(np.float32)
    some = tuple(epsilons)
    plan = plan_of((fmt,), TEXTBOOK, width, norm=norm, epsilons=some, points=some, tolerance=tolerance)
    assert_folds_agree(x, plan)
