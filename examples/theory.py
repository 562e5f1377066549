"""The mathematics of layer norm with live numbers: what is measured against what the formula says.

Measured is what comes out of lnaudit's emulated kernels, of difference quotients of them and of numpy; the formulas
are those of `lnaudit.theory`. Run it with `python examples/theory.py`; it needs no arguments.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

import lnaudit
from lnaudit import theory

Line = tuple[str, ArrayLike, str, ArrayLike]  # text, measured, relation, formula
DIGITS = 6
WIDTH = 63  # of a text and what is measured


def core(z: ArrayLike, epsilon: float, norm: str = "layer") -> NDArray[np.float64]:
    """Run the plain formula in float64."""
    return lnaudit.layer_norm(z, format="float64", epsilon=epsilon, norm=norm)


def half(z: ArrayLike, epsilon: float) -> NDArray[np.float64]:
    """Run the formula in float16, every step rounded."""
    return lnaudit.layer_norm(z, format="float16", kernel="native", epsilon=epsilon).astype(np.float64)


def mean_square(u: NDArray[np.float64]) -> float:
    """Return the mean square of a row."""
    return float(np.mean(u * u))


def derivative(z: ArrayLike, epsilon: float, norm: str = "layer") -> NDArray[np.float64]:
    """Return the Jacobian of `core` at one row by central differences."""
    row = np.asarray(z, np.float64)
    steps = 2.0**-17 * np.eye(len(row))
    return ((core(row + steps, epsilon, norm) - core(row - steps, epsilon, norm)) / 2.0**-16).T


def constant_row() -> Iterator[Line]:
    """Nothing is left of a constant row."""
    z = [5.0, 5.0, 5.0, 5.0]
    weight, bias = [2.0, 2.0, 2.0, 2.0], [1.0, 2.0, 3.0, 4.0]
    y = lnaudit.layer_norm(z, format="float64", epsilon=1e-5, weight=weight, bias=bias)
    yield "u, eps = 1e-5", core(z, 1e-5), "=", np.zeros(4)
    yield "output, eps = 1e-5: the bias", y, "=", bias
    yield "u, eps = 0: 0/0", core(z, 0.0), "=", theory.normalize(z, 0.0)


def one_two_three() -> Iterator[Line]:
    """Work out z = (1, 2, 3), which has q = 2/3."""
    z, v = [1.0, 2.0, 3.0], np.array([-1.0, 0.0, 1.0])
    yield "u, eps = 1/3: v", core(z, 1 / 3), "=", v
    yield "u, eps = 4/3: v/sqrt(2)", core(z, 4 / 3), "=", v / math.sqrt(2)


def ratio() -> Iterator[Line]:
    """Compare the variance that comes out with q/(q + eps)."""
    for text, q in (("q = 0.1 >> eps = 1e-5", 0.1), ("q = eps", 1e-5), ("q = 1e-9 << eps", 1e-9)):
        u = core([-math.sqrt(q), math.sqrt(q)], 1e-5)
        yield text, mean_square(u), "=", theory.collapse_ratio(q, 1e-5)


def shift() -> Iterator[Line]:
    """Add c: the law holds as far as z + c can be held."""
    z, epsilon = np.linspace(-0.25, 0.25, 8), 1e-5
    u = core(z, epsilon)
    yield "float64, c = 100: difference", np.abs(core(z + 100, epsilon) - u).max(), "<", 1e-12
    yield "float16, c = 1: difference", np.abs(half(z + 1, epsilon) - u).max(), "<", 1e-2
    yield "float16, c = 100: difference", np.abs(half(z + 100, epsilon) - u).max(), "!=", 0.0
    yield "float16, c = 1000: mean(u^2)", mean_square(half(z + 1000, epsilon)), "!=", mean_square(u)


def scale() -> Iterator[Line]:
    """Multiply by a: epsilon has to follow by a^2."""
    z, q, epsilon = np.array([-0.01, 0.01]), 1e-4, 1e-5
    u, shrunk = core(z, epsilon), core(z / 16, theory.prescale(epsilon, -4))
    yield "a = 2^-4: elements that differ", np.count_nonzero(shrunk != u), "=", 0
    yield "a = 10: difference", np.abs(core(10 * z, 100 * epsilon) - u).max(), "<", 1e-12
    yield "a = 2^-4, same eps: u(a z)/u(z)", core(z / 16, epsilon)[1] / u[1], "!=", 1.0
    share = theory.collapse_ratio(q / 256, epsilon) / theory.collapse_ratio(q, epsilon)
    yield "  root of the ratios' quotient", core(z / 16, epsilon)[1] / u[1], "=", np.sqrt(share)
    yield "a = 2^-4, eps = 0: difference", np.abs(core(z / 16, 0.0) - core(z, 0.0)).max(), "<", 1e-12


def jacobian() -> Iterator[Line]:
    """Compare the Jacobian with central differences."""
    z, epsilon = np.array([1.0, 2.0, 4.0, 0.5, 3.0, -1.0]), 0.5
    measured, q, ones = derivative(z, epsilon), float(np.var(z)), np.ones(6)
    found = np.linalg.eigvalsh(measured)
    yield "largest difference of an element", np.abs(measured - theory.jacobian(z, epsilon)).max(), "<", 1e-8
    yield "0, once: elements of J (1, ..., 1)", np.abs(measured @ ones).max(), "<", 1e-8
    yield "radial, once", found[1], "=", theory.radial_gain(q, epsilon)
    yield "tangential, 4 times", found[[2, 5]], "=", [theory.tangential_gain(q, epsilon)] * 2
    found = np.linalg.eigvalsh(derivative(5 * ones, 0.01))
    yield "constant row, eps = 0.01: 5 times", found[[1, 5]], "=", [1 / math.sqrt(0.01)] * 2


def gain() -> Iterator[Line]:
    """Compare the operator norm of the Jacobian by the number of features."""
    for d, name in ((1, "every row is constant"), (2, "radial"), (3, "tangential")):
        z = np.array([1.0, 3.0, 2.5])[:d]
        yield f"d = {d}: {name}", np.linalg.norm(derivative(z, 0.5), 2), "=", theory.gain(np.var(z), 0.5, d)


def lipschitz() -> Iterator[Line]:
    """Measure by how much rows are driven apart."""
    epsilon, weight = 1e-4, np.array([3.0, -1.0, 2.0, 0.5])
    constant, nudge = np.full(4, 5.0), 2.0**-24 * np.array([1.0, 0.0, -2.0, 1.0])
    apart = np.linalg.norm(core(constant + nudge, epsilon)) / np.linalg.norm(nudge)
    yield "constant row, nudged: attained", apart, "=", theory.lipschitz_bound(epsilon)

    random = np.random.default_rng(0)
    rows = random.uniform(-1, 1, (2, 2000, 4)) * 2.0 ** random.integers(-12, 1, (2, 2000, 1))
    u = core(rows, epsilon)
    distance = np.linalg.norm(rows[0] - rows[1], axis=-1)
    largest = (np.linalg.norm(u[0] - u[1], axis=-1) / distance).max()
    yield "the worst of 2000 random pairs", largest, "<=", theory.lipschitz_bound(epsilon)
    largest = (np.linalg.norm(weight * (u[0] - u[1]), axis=-1) / distance).max()
    yield "  with weight (3, -1, 2, 0.5)", largest, "<=", theory.lipschitz_bound(epsilon, weight)


def family() -> Iterator[Line]:
    """Follow the last element h(t) of u and its slope through the rows (-t, 0, t)."""

    def h(t: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
        return core(np.multiply.outer(t, [-1.0, 0.0, 1.0]), epsilon)[:, 2]

    t = np.array([0.01, 0.1, 1.0])
    for epsilon in (1e-2, 1e-4):
        slope = (h(t + t / 2**14, epsilon) - h(t - t / 2**14, epsilon)) / (t / 2**13)
        yield f"h(0.01, 0.1, 1), eps = {show(epsilon)}", h(t, epsilon), "=", theory.response(t, epsilon)
        yield "  h', by difference quotients", slope, "=", theory.sensitivity(t, epsilon)
    ends = np.array([-1e3, 1e3])
    yield "h(-1000, 1000): -+sqrt(3/2)", h(ends, 1e-5), "=", [-theory.ASYMPTOTE, theory.ASYMPTOTE]


def weight_and_bias() -> Iterator[Line]:
    """Compare mean and variance of the output; q = eps = 1.25, so the ratio is 1/2."""
    z, epsilon = [1.0, 2.0, 3.0, 4.0], 1.25
    share = theory.collapse_ratio(1.25, epsilon)

    def moments(weight: ArrayLike, bias: ArrayLike) -> tuple[float, float]:
        y = lnaudit.layer_norm(z, format="float64", epsilon=epsilon, weight=weight, bias=bias)
        return float(y.mean()), float(y.var())

    yield "weight 2, bias 3: 3 and 2^2 ratio", moments([2] * 4, [3] * 4), "=", (3, 4 * share)
    yield "weight (1,2,3,4), bias (0,0,0,10)", moments([1, 2, 3, 4], [0, 0, 0, 10]), "!=", (0, share)
    yield "  the core's ratio stays", mean_square(core(z, epsilon)), "=", share


def rms_norm() -> Iterator[Line]:
    """Leave out the centring."""
    z, epsilon = np.array([1.0, 2.0, 3.0]), 1 / 3
    u, q = core(z, epsilon, "rms"), 14 / 3
    yield "u of (1, 2, 3), eps = 1/3", u, "=", z / math.sqrt(5)
    yield "no shift law: u(z + 10)", core(z + 10, epsilon, "rms"), "!=", u
    fives = core([5.0] * 4, 25.0, "rms")
    yield "ratio of (5, 5, 5, 5), eps = 25", mean_square(fives), "=", theory.collapse_ratio(25.0, 25.0)
    measured = derivative(z, epsilon, "rms")
    expected = [value for value, times in theory.eigenvalues(q, epsilon, 3, "rms") for _ in range(times)]
    yield "eigenvalues of J: none is 0", np.linalg.eigvalsh(measured), "=", expected
    zero = derivative(np.zeros(3), 0.01, "rms")
    yield "zero row, eps = 0.01: I/sqrt(eps)", np.linalg.eigvalsh(zero), "=", [1 / math.sqrt(0.01)] * 3
    yield "gain of z = 2, eps = 1: radial", derivative([2.0], 1.0, "rms").item(), "=", theory.gain(4.0, 1.0, 1, "rms")


def near_constant() -> Iterator[Line]:
    """Normalize 4 rows of 8 fives in float32, one of them 5.001."""
    x = np.full((1, 4, 8), 5.0, np.float32)
    x[0, 0, 0] = 5.001
    height = float(x[0, 0, 0]) - 5
    yield "unbiased variance of its row", x[0, 0].var(ddof=1, dtype=np.float64), "=", height**2 / 8
    for epsilon in (0.0, 1e-12, 1e-8, 1e-5, 1e-3):
        y = lnaudit.layer_norm(x, format="float32", epsilon=epsilon)
        expected = np.sqrt(8 / 31 * theory.collapse_ratio(height**2 * 7 / 64, epsilon)) if epsilon else math.nan
        yield f"std of the whole, eps = {show(epsilon)}", y.std(ddof=1, dtype=np.float64), "=", expected


FACTS = (
    ("Constant row (5, 5, 5, 5): v = 0", constant_row),
    ("z = (1, 2, 3): v = (-1, 0, 1), q = 2/3", one_two_three),
    ("Collapse ratio: mean(u^2) = q/(q + eps)", ratio),
    ("Shift: u(z + c) = u(z), as far as z + c can be held; z from -0.25 to 0.25", shift),
    ("Scale: u(a z; a^2 eps) = u(z; eps)", scale),
    ("Jacobian J = P/sqrt(q + eps) - v v^T/(d (q + eps)^(3/2)), P = I - 11^T/d; d = 6", jacobian),
    ("Gain |J|: radial is eps/(q + eps)^(3/2), tangential 1/sqrt(q + eps)", gain),
    ("Lipschitz constant of the core: 1/sqrt(eps); times max|weight| it bounds the output; eps = 1e-4", lipschitz),
    ("Rows (-t, 0, t): h(t) = t/sqrt(2t^2/3 + eps), h'(t) = eps/(2t^2/3 + eps)^(3/2)", family),
    ("Mean and variance of the output, where q = eps and the ratio is 1/2", weight_and_bias),
    ("RMSNorm: the same with v = z, q = |z|^2/d, P = I", rms_norm),
    ("float32, 4 rows of 8 fives, one is 5.001: std = sqrt(8/31 ratio); eps = 0: three rows 0/0", near_constant),
)


def holds(measured: ArrayLike, relation: str, formula: ArrayLike) -> bool:
    """Say whether a relation is true; = means to 6 digits."""
    equal = np.allclose(measured, formula, rtol=10.0**-DIGITS, atol=0, equal_nan=True)
    if relation in ("=", "!="):
        return equal == (relation == "=")
    return bool(np.less_equal(measured, formula))


def show(value: ArrayLike) -> str:
    """Write a number, or several in parentheses."""
    texts = [f"{number + 0.0:.{DIGITS}g}".replace("e-0", "e-") for number in np.ravel(value)]
    return f"({', '.join(texts)})" if np.ndim(value) else texts[0]


def main() -> int:
    """Print every fact; return 1 if one of them does not hold."""
    print("Layer norm of a row z of d features: v = z - mean(z), q = mean(v^2), core u = v/sqrt(q + eps);")
    print(f"output = weight u + bias{'measured':>{WIDTH - 22}}    formula")
    wrong = 0
    for title, fact in FACTS:
        print(title)
        for text, measured, relation, formula in fact():
            true = holds(measured, relation, formula)
            wrong += not true
            sign = relation if true else f"NOT {relation}"
            shown = "" if sign == "<" else show(measured)
            print(f"  {text}{shown:>{WIDTH - len(text)}} {sign:>2} {show(formula)}")
    print(f"= means to {DIGITS} digits, < bounds a difference, != is where a law ends. ", end="")
    print(f"{wrong} do not hold." if wrong else "All hold.")
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
