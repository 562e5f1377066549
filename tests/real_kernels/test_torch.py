"""The preset torch-cpu against torch, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import lnaudit
from lnaudit.arithmetic import REDUCTIONS, Workspace, quiet
from lnaudit.engine import interpreter
from lnaudit.formats import FORMATS
from lnaudit.kernels import KERNELS

from .comparison import NARROW, WIDTHS, Comparison, emulated, needed, parameters, rows, skip

torch = needed("torch")
if not torch.__version__.startswith("2.13."):
    skip("torch", f"torch is {torch.__version__}, torch-cpu is 2.13")
if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
    skip("torch", "torch does not use AVX2 here")

NAMES = ("float16", "bfloat16", "float32", "float64")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def tensor(x: np.ndarray, name: str) -> torch.Tensor:
    return torch.from_numpy(x).to(getattr(torch, name))


def numbers(x: torch.Tensor | None) -> np.ndarray | None:
    return None if x is None else x.double().numpy()


def normalized(x, norm, epsilon, weight=None, bias=None) -> np.ndarray:
    """Run torch."""
    shape = x.shape[-1:]
    if norm == "rms":
        return numbers(torch.nn.functional.rms_norm(x, shape, weight, epsilon))
    return numbers(torch.nn.functional.layer_norm(x, shape, weight, bias, epsilon))


# what is given besides the rows, and epsilon. A bias without a weight is left out: in float32 and float64 torch adds it
# to products that are not rounded, fma(x - mean, 1/std, bias), which no value of an axis says
CALLS = {
    "layer": [(("weight", "bias"), 1e-5), (("weight",), 1e-3), ((), 1e-12), ((), 0.0)],
    "rms": [(("weight",), 1e-5), ((), 1e-6), (("weight",), 0.0)],
}


@pytest.mark.parametrize("norm", CALLS)
@pytest.mark.parametrize("name", NAMES)
def test_every_output(name, norm):
    found = Comparison()
    for d in sorted({*WIDTHS, *NARROW}):
        labels, x = rows(name, d)
        x = tensor(x, name)
        weight, bias = (tensor(values, name) for values in parameters(d))
        for given, epsilon in CALLS[norm]:
            kept = {key: value for key, value in {"weight": weight, "bias": bias}.items() if key in given}
            real = normalized(x, norm, epsilon, **kept)
            ours = {key: numbers(value) for key, value in kept.items()}
            got = emulated(numbers(x), name, "torch-cpu", norm, epsilon, **ours)
            found.add(f"{given} {epsilon:g}", labels, got, real)
    found.check()


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_parameters_in_float32(name):
    """As under autocast: torch takes them as they are."""
    found = Comparison()
    for d in WIDTHS:
        labels, x = rows(name, d)
        x = tensor(x, name)
        weight, bias = (tensor(values, "float32") for values in parameters(d))
        real = normalized(x, "layer", 1e-5, weight, bias)
        ours = {"weight": numbers(weight), "bias": numbers(bias)}
        found.add("", labels, emulated(numbers(x), name, "torch-cpu", "layer", 1e-5, **ours), real)
    found.check()


@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("name", NAMES)
def test_rows_alone(name, norm):
    """One row a call, which torch might reduce in another way than many."""
    for d in (5, 17, 100, 777, 4096):
        labels, x = rows(name, d)
        for label, row in zip(labels, tensor(x, name), strict=True):
            real, got = normalized(row, norm, 1e-5), emulated(numbers(row), name, "torch-cpu", norm, 1e-5)
            assert np.array_equal(got, real, equal_nan=True), (d, label)


@pytest.mark.parametrize("name", NAMES)
def test_mean_and_rstd(name):
    """What torch keeps for the gradient: many rows, for which a product fused otherwise shows now and then."""
    fmt, held = FORMATS[name], "float64" if name == "float64" else "float32"
    rng = np.random.default_rng(83)
    for d in (*range(1, 100), *range(112, 1100, 16), 777, 1001, 4096, 5000):
        count = 60 if d < 1100 else 10
        x = rng.choice([0, 5, 1000], (count, 1)) + rng.standard_normal((count, d)) * rng.choice([0.01, 1], (count, 1))
        x = tensor(x, name)
        ones, zeros = (fill(d, dtype=getattr(torch, held)) for fill in (torch.ones, torch.zeros))
        _, mean, rstd = torch.native_layer_norm(x, (d,), ones, zeros, 1e-5)
        assert mean.dtype == rstd.dtype == getattr(torch, held)
        h = np.ascontiguousarray(numbers(x).T).astype(fmt.carrier)
        kernel = KERNELS["torch-cpu"].at(fmt, False, d)
        with quiet():
            found = interpreter.center(h, h.max(axis=0), h.min(axis=0), fmt, kernel, False, Workspace())
            _, (inverse,) = interpreter.inverse(found.variance, (1e-5,), fmt, kernel)
        np.testing.assert_array_equal(found.mean, numbers(mean)[:, 0], f"d={d}")
        np.testing.assert_array_equal(inverse, numbers(rstd)[:, 0], f"d={d}")


@pytest.mark.parametrize(("name", "order"), [("float32", "cascade8"), ("float64", "cascade4")])
def test_sums(name, order):
    for d in (*range(1, 200), *WIDTHS[9:], 33_001):
        x = np.random.default_rng([84, d]).standard_normal((4, d)).astype(name)
        got = REDUCTIONS[order](np.ascontiguousarray(x.T), FORMATS[name], Workspace())
        np.testing.assert_array_equal(got, torch.from_numpy(x).sum(dim=1).numpy(), f"d={d}")


class TestOddities:
    """Rows that are known from reports, with the numbers that were printed there."""

    def both(self, row: list[float] | np.ndarray, name: str, norm: str = "layer", epsilon: float = 1e-5) -> np.ndarray:
        """Return what torch gives, which must be what lnaudit says."""
        x = tensor(np.array([row]), name)
        real = normalized(x, norm, epsilon)
        assert np.array_equal(emulated(numbers(x), name, "torch-cpu", norm, epsilon), real, equal_nan=True)
        return real[0]

    @pytest.mark.parametrize("d", [8, 256, 768])
    @pytest.mark.parametrize(
        ("name", "value", "residue"),
        [("bfloat16", 1000.0, 2.0e-3), ("float16", 5.1, 5.9e-5), ("float32", 1000.0, 0.0), ("float32", 5.1, 0.0)],
    )
    def test_constant_rows(self, name, value, residue, d):
        """A row of 1000 in bfloat16 leaves 2.0e-3, one of 5.1 in float16 5.9e-5: the shift by mean/std is rounded."""
        y = self.both(np.full(d, value), name)
        assert len(set(y.tolist())) == 1
        assert float(f"{abs(y[0]):.1e}") == residue

    def test_a_constant_row_in_the_report(self):
        x = np.full((3, 768), 1000.0)
        result = lnaudit.audit(x, formats="bfloat16", kernels="torch-cpu").sites[0].results[0]
        assert result.error["max"] == pytest.approx(abs(self.both(x[0], "bfloat16")[0]), rel=2.0**-8)

    def test_a_variance_that_overflows(self):
        """Rows of +-3e19: LayerNorm NaN, RMSNorm 0."""
        row = np.where(np.arange(768) % 2, 3e19, -3e19)
        assert np.isnan(self.both(row, "float32")).all()
        assert (self.both(row, "float32", "rms") == 0).all()

    def test_what_is_not_finite(self):
        """One Inf makes the whole row NaN, and so does epsilon 0 in a constant row."""
        row = np.ones(768)
        assert np.isnan(self.both(row, "float32", epsilon=0.0)).all()
        row[5] = np.inf
        assert np.isnan(self.both(row, "float32")).all()

    def test_constant_rows_at_a_small_epsilon(self):
        """pytorch#108072 (fixed since): rows of 2 and 14 gave 1e-4 for epsilon 1e-6."""
        for value in (2.0, 14.0):
            assert (self.both([value, value], "float32", epsilon=1e-6) == 0).all()
