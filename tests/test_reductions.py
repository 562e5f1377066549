"""The orders in which programs add, and torch's mean and variance in lanes, bit by bit against naive scalar loops."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from lnaudit.arithmetic import FUSED_REDUCTIONS, REDUCTIONS, Workspace, quiet
from lnaudit.engine import interpreter
from lnaudit.formats import FORMATS
from lnaudit.kernels import AXES, get_kernel
from lnaudit.pipeline import Settings, run
from lnaudit.site import ArrayRows, Site

from .exact_kernel import SUMS, ExactKernel, add, multiply, nearest
from .exhaustive import sampled_cases
from .oracles import ALL_NAMES, EMAX, EMIN, equal

# around the lanes, four vectors, sixteen of them, the blocks of numpy; the last ones fill all levels but one
WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 31, 33, 63, 65, 100, 127, 128, 129, 136, 257, 272, 300)
LONG = (1023, 4420, 8760)


def values_of(x: np.ndarray, name: str) -> np.ndarray:
    """Round an array to a format, in integers."""
    return np.array([[nearest(*value.as_integer_ratio(), name) for value in row] for row in x.tolist()])


def rows_to_sum(name: str, d: int, count: int = 3) -> np.ndarray:
    """Return rows of one format, shape (d, count): noise that cancels, of all sizes, and one that overflows."""
    rng = np.random.default_rng([71, d])
    rows = np.tanh(rng.standard_normal((d, 3))) * [1.0, 1.0, 2.0 ** EMAX[name]]
    rows[:, 1] *= 2.0 ** rng.integers(max(EMIN[name], -12), 6, d)
    return values_of(rows[:, :count], name)


class TestSums:
    @pytest.mark.parametrize("name", ALL_NAMES)
    @pytest.mark.parametrize("order", AXES["reduction"])
    def test_every_order(self, order, name):
        """At every width; a NaN and the Inf of overflow included."""
        fmt, exact = FORMATS[name], ExactKernel(f"native:reduction={order}", name)
        for d in WIDTHS:
            rows = rows_to_sum(name, d)
            expected = [exact.total([(x, name) for x in row], "sum", order)[0] for row in rows.T.tolist()]
            kept = rows.astype(fmt.carrier)
            with quiet():
                assert equal(REDUCTIONS[order](kept, fmt, Workspace()), expected), d
            assert equal(kept, rows)

    @pytest.mark.parametrize("name", ["float32", "float64", "bfloat16"])
    @pytest.mark.parametrize("order", ["lanes4", "lanes8", "cascade4", "cascade8", "pairwise"])
    def test_long_rows(self, order, name):
        fmt, exact = FORMATS[name], ExactKernel(f"native:reduction={order}", name)
        for d in LONG:
            rows = rows_to_sum(name, d, 1)
            expected, _ = exact.total([(x, name) for x in rows[:, 0].tolist()], "sum", order)
            with quiet():
                assert equal(REDUCTIONS[order](rows.astype(fmt.carrier), fmt, Workspace()), [expected]), d

    @pytest.mark.parametrize("name", ALL_NAMES)
    @pytest.mark.parametrize("order", FUSED_REDUCTIONS)
    def test_fused_products(self, order, name):
        """Products of rows with other rows, and partial sums that are stored in another format."""
        for stage, stored in (("T", name), ("float32", "float64" if name == "float64" else "float32")):
            exact = ExactKernel(f"native:square_sum={stage},square_reduction={order},fma=stats", name)
            wide = max(FORMATS[name], FORMATS[stored], key=lambda fmt: fmt.precision)
            for d in WIDTHS[:-8]:
                rows = rows_to_sum(name, d)
                pairs = [list(zip(row, row[::-1], strict=True)) for row in rows.T.tolist()]
                expected = [exact.fused_total([((a, name), (b, name)) for a, b in row], order)[0] for row in pairs]
                a, b = rows.astype(wide.carrier), rows[::-1].astype(wide.carrier)
                with quiet():
                    assert equal(FUSED_REDUCTIONS[order](a, b, wide, Workspace(), FORMATS[stored]), expected), d

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
    def test_pairwise_is_what_numpy_does(self, dtype):
        for d in (*WIDTHS, *LONG):
            x = np.random.default_rng([72, d]).standard_normal((4, d)).astype(dtype)
            fmt = FORMATS[x.dtype.name]
            got = REDUCTIONS["pairwise"](x.T.astype(fmt.carrier), fmt, Workspace())
            assert equal(got, x.sum(axis=1, dtype=dtype)), d

    def test_every_order_is_another(self):
        """But for those eight lanes that only differ where products are fused."""
        rows = rows_to_sum("float32", 8760, 2).astype(np.float32)
        found = {
            order: tuple(reduce(rows, FORMATS["float32"], Workspace()).tolist()) for order, reduce in REDUCTIONS.items()
        }
        assert found.pop("lanes8_fours") == found["lanes8"]
        assert len(set(found.values())) == len(found)
        x = np.random.default_rng(75).standard_normal((13, 60)).astype(np.float32)
        squares = {
            order: tuple(reduce(x, x, FORMATS["float32"], Workspace(), None).tolist())
            for order, reduce in FUSED_REDUCTIONS.items()
        }
        assert len(set(squares.values())) == len(squares)

    def test_both_tables_are_complete(self):
        assert set(REDUCTIONS) == set(SUMS) == set(AXES["reduction"]) == set(AXES["square_reduction"])
        assert set(FUSED_REDUCTIONS) == {"serial", "lanes4", "lanes8", "lanes8_fours"}


CASCADES = {
    "native:variance=cascade,reduction=lanes4": ALL_NAMES,
    "native:variance=cascade,reduction=lanes8,fma=stats": ALL_NAMES,
    "fused:variance=cascade,reduction=lanes8": ("float16", "float32"),
    "fused:variance=cascade,reduction=lanes8,fma=all": ("bfloat16", "float8_e5m2"),
    "native:variance=cascade,reduction=lanes4,sum=float64": ("float32", "float64", "tfloat32"),
    "fused:variance=cascade,reduction=lanes4,flush_subnormals=float32": ("bfloat16", "float32"),
}


def moments(text: str, name: str, rows: np.ndarray) -> interpreter.Centered:
    fmt = FORMATS[name]
    h = np.ascontiguousarray(rows.astype(fmt.carrier))
    with quiet():
        return interpreter.center(h, h.max(axis=0), h.min(axis=0), fmt, get_kernel(text), False, Workspace())


class TestCascade:
    @pytest.mark.parametrize(("text", "name"), [(text, name) for text, names in CASCADES.items() for name in names])
    def test_mean_and_sum_of_squares(self, text, name):
        """Widths around vectors, chunks of 16 of them, and 2 to 5 chunks, the last of which is full or not."""
        exact = ExactKernel(text, name)
        for d in (1, 3, 4, 7, 8, 9, 15, 17, 33, 63, 64, 65, 72, 100, 129, 144, 200, 257, 272, 321):
            rng = np.random.default_rng([73, d])
            rows = np.tanh(rng.standard_normal((d, 4))) * [1.0, 1e-2, 2.0 ** (EMAX[name] - 4), 2.0 ** EMIN[name]] + [
                0,
                5,
                0,
                0,
            ]
            rows = values_of(rows, name)
            found = moments(text, name, rows)
            for i, row in enumerate(rows.T.tolist()):
                mean, squares = exact.cascade([(exact.write(x, name), name) for x in row])
                assert equal([found.total[i], found.square_sum[i]], [mean[0], squares[0]]), (d, i)

    @pytest.mark.parametrize("name", ["float16", "float32", "float64"])
    def test_which_products_are_fused(self, name):
        """One rounding more in the products, or none less, gives other sums."""
        rows = values_of(np.random.default_rng(74).standard_normal((11, 60)), name)
        h = [[(x, name) for x in row] for row in rows.T.tolist()]
        texts = [f"native:variance=cascade,reduction=lanes4,fma={fma}" for fma in ("off", "stats")]
        found = [moments(text, name, rows).square_sum.tolist() for text in texts]
        assert found == [[ExactKernel(text, name).cascade(row)[1][0] for row in h] for text in texts]

        def twice(a: float, b: float, c: float, wide: str) -> float:
            return add(multiply(a, b, wide), c, wide)

        rounded = [ExactKernel(texts[0], name, fused=twice).cascade(row)[1][0] for row in h]
        assert found[0] != found[1]
        assert found[0] != rounded

    def test_row_of_torch(self):
        """1, 2, ..., 8 by hand: one vector of single elements, so the means are the elements and nothing is squared.

        Merged: mean of 1..k is (k+1)/2, the sum of squares k(k^2-1)/12, all of them exact.
        """
        rows = np.arange(1.0, 9.0)[:, None]
        found = moments("torch-cpu", "float32", rows)
        assert (found.mean[0], found.square_sum[0], found.variance[0]) == (4.5, 42.0, 5.25)


@pytest.mark.parametrize(
    ("norm", "kernel", "engine"),
    sampled_cases(
        [*product(("layer", "rms"), ("torch-cpu", "ort-cpu", "native", "fused"), ("numpy", "numba"))],
        *product(("layer", "rms"), ("torch-cpu", "ort-cpu", "native", "fused"), ("numpy",)),
        ("layer", "native", "numba"),
        ("rms", "fused", "numba"),
        ("layer", "torch-cpu", "numba"),
    ),
)
def test_blocks_without_a_finite_row_are_no_obstacle(engine: str, kernel: str, norm: str) -> None:
    if engine == "numba":
        pytest.importorskip("numba", reason="the compiled engine needs numba")
    x = np.random.default_rng(0).normal(size=(9000, 1024)).astype(np.float32)
    x[:3000] = np.nan  # more than the first block
    settings = Settings(engine=engine, formats=(FORMATS["float16"],), kernels=(get_kernel(kernel),))
    (site,) = run([Site(name="x", source="x", rows=ArrayRows(x), norm=norm, epsilon=1e-5)], settings).sites
    assert (site.input["nan_rows"], site.input["finite_rows"]) == (3000, 6000)
