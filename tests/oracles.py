"""Outside authorities for the tests: exact rationals rounded by hand, numpy and ml_dtypes scalars, naive kernels.

Nothing here imports lnaudit. The naive kernels transcribe the design's table of textbook kernels, one scalar operation
at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import copysign, isfinite, isnan, isqrt
from typing import Any

import ml_dtypes
import numpy as np

NAMES = ("float16", "bfloat16", "float32", "float64")
FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
ALL_NAMES = (*NAMES, "tfloat32", *FLOAT8)
# tfloat32 has no dtype of its own
SCALARS: dict[str, Any] = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float64": np.float64,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}
# IEEE 754-2019 table 3.5; bfloat16, tfloat32: the first 16 and 19 bits of float32; OCP 8-bit floating point, table 1
PRECISION = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53, "tfloat32": 11}
PRECISION |= {"float8_e4m3fn": 4, "float8_e5m2": 3}
EMIN = {"float16": -14, "bfloat16": -126, "float32": -126, "float64": -1022, "tfloat32": -126}
EMIN |= {"float8_e4m3fn": -6, "float8_e5m2": -14}
EMAX = {"float16": 15, "bfloat16": 127, "float32": 127, "float64": 1023, "tfloat32": 127}
EMAX |= {"float8_e4m3fn": 8, "float8_e5m2": 15}
# the first number beyond the largest finite one, were there more exponents: what is rounded to it overflows
BEYOND = {name: 480.0 if name == "float8_e4m3fn" else 2.0 * 2.0**emax for name, emax in EMAX.items() if emax < 1023}
BEYOND["float64"] = float("inf")
UNSIGNED = {"float16": np.uint16, "bfloat16": np.uint16, "float32": np.uint32, "float64": np.uint64}
UNSIGNED |= {"tfloat32": np.uint32, "float8_e4m3fn": np.uint8, "float8_e5m2": np.uint8}
BITS = {"float16": 16, "bfloat16": 16, "float32": 32, "float64": 64, "tfloat32": 19}
BITS |= {"float8_e4m3fn": 8, "float8_e5m2": 8}


def decode(codes: Any, name: str) -> np.ndarray:
    """Return the values of bit patterns, in float64."""
    codes = np.asarray(codes).astype(UNSIGNED[name])
    if name == "tfloat32":
        codes, name = codes << 13, "float32"
    with np.errstate(invalid="ignore"):  # signalling NaN
        return codes.view(SCALARS[name]).astype(np.float64)


def infinity_code(name: str) -> int:
    """Return the bit pattern of +Inf, in float8_e4m3fn that of NaN; that of max is one less."""
    if name == "tfloat32":
        return infinity_code("float32") >> 13
    return int(np.array(np.inf, SCALARS[name]).view(UNSIGNED[name]))


def random_values(name: str, count: int, seed: int) -> np.ndarray:
    """Return random bit patterns as values of the dtype (float32 for tfloat32): every exponent, NaN and Inf too."""
    width = np.dtype(UNSIGNED[name]).itemsize
    data = np.random.default_rng(seed).bytes(count * width)
    if name == "tfloat32":
        return (np.frombuffer(data, np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.frombuffer(data, SCALARS[name])


def between(name: str, codes: np.ndarray, source: str) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of the source dtype between neighbouring codes, and the neighbour that each must round to.

    The code after that of max stands for the number beyond it here: IEEE rounds as if it were one.
    """
    low, high = (np.where(c == infinity_code(name), BEYOND[name], decode(c, name)) for c in (codes, codes + 1))
    middle = low + (high - low) / 2
    numbers, expected = [low], [codes]
    for part in (0.3, 0.49):
        numbers.append(low + part * (high - low))
        expected.append(codes)
    for part in (0.51, 0.99):
        numbers.append(low + part * (high - low))
        expected.append(codes + 1)
    exact = middle.astype(source)
    assert (exact == middle).all()
    numbers.append(middle)
    expected.append(codes + (codes & 1))
    numbers.append(np.nextafter(exact, exact.dtype.type(0)))
    expected.append(codes)
    numbers.append(np.nextafter(exact, exact.dtype.type(np.inf)))
    expected.append(codes + 1)
    return np.concatenate([x.astype(source) for x in numbers]), decode(np.concatenate(expected), name)


def special_values(name: str) -> np.ndarray:
    """Return the values at which arithmetic turns, both signs: ends of the ranges, 1, ties, Inf and NaN; in float64."""
    tiny, normal, eps = 2.0 ** (EMIN[name] - PRECISION[name] + 1), 2.0 ** EMIN[name], 2.0 ** (1 - PRECISION[name])
    top = float(decode(infinity_code(name) - 1, name))
    values = [0.0, tiny, 2 * tiny, 3 * tiny, normal - tiny, normal, normal + tiny, 2 * normal]
    values += [1 - eps / 2, 1.0, 1 + eps, 1 + 2 * eps, 1.5, 2.0, 3.0, 2 / eps, 2 / eps - 1, 2 / eps + 2]
    values += [top * eps / 4, top * eps / 2, top / 2, top * (1 - eps / 2), top]
    values += [root_exact(Fraction(top), name), root_exact(Fraction(normal), name)]
    values = [round_exact(Fraction(x), name) for x in values]
    values += [infinite(name), float("nan")]
    return np.array([*values, *(-x for x in values)])


def infinite(name: str) -> float:
    """Return what a format holds in the place of an infinite result."""
    return float("nan") if name == "float8_e4m3fn" else float("inf")


def round_exact(value: Fraction, name: str) -> float:
    """Round an exact rational to a format once, to nearest even, with gradual underflow and overflow to Inf or NaN."""
    if value == 0:
        return 0.0
    size = abs(value)
    e = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** e > size:
        e -= 1
    unit = Fraction(2) ** (max(e, EMIN[name]) - PRECISION[name] + 1)
    nearest = round(size / unit) * unit
    overflows = nearest >= (480 if name == "float8_e4m3fn" else Fraction(2) ** (EMAX[name] + 1))
    result = infinite(name) if overflows else float(nearest)
    return result if value > 0 else -result


def flush(value: float, name: str) -> float:
    """Return zero of its sign for a number that is subnormal in the format."""
    return copysign(0.0, value) if abs(value) < 2.0 ** EMIN[name] else value


def fma_exact(a: float, b: float, c: float, name: str, *, flushes: bool = False) -> float:
    """Round a * b + c to a format once, with IEEE's answers for what is not finite."""
    if flushes:
        a, b, c = (flush(x, name) for x in (a, b, c))
    if not all(map(isfinite, (a, b, c))):
        # where one is infinite or NaN, the sizes of the others do not count
        a, b, c = (copysign(1.0, x) if isfinite(x) and x != 0 else x for x in (a, b, c))
        result = a * b + c
        return result if isfinite(result) or isnan(result) else copysign(infinite(name), result)
    result = round_exact(Fraction(a) * Fraction(b) + Fraction(c), name)
    return flush(result, name) if flushes else result


def root_exact(value: Fraction, name: str) -> float:
    """Round sqrt(value) to a format once: 120 bits by integer square root, and a sticky bit for what was cut off."""
    if value == 0:
        return 0.0
    numerator, denominator = value.numerator, value.denominator
    k = 121 + max(0, denominator.bit_length() - numerator.bit_length()) // 2
    root = isqrt((numerator << 2 * k) // denominator)
    cut_off = root * root * denominator != numerator << 2 * k
    return round_exact(Fraction(2 * root + cut_off, 2 << k), name)


def reciprocal_root_exact(w: float, name: str) -> float:
    """Round 1/sqrt(w) to a format once, with IEEE's answers at 0, Inf, NaN and below 0."""
    if not w >= 0:
        return float("nan")
    if w == 0:
        return infinite(name)
    return 0.0 if w == float("inf") else root_exact(1 / Fraction(w), name)


def cast(value: Any, name: str) -> Any:
    """Convert one scalar to a dtype with one rounding (ml_dtypes rounds float64 twice on the way to narrower ones)."""
    if name in ("bfloat16", *FLOAT8) and np.isfinite(value) and np.asarray(value).dtype == np.float64:
        return SCALARS[name](round_exact(Fraction(float(value)), name))
    return SCALARS[name](value)


def tree(terms: list[Any], name: str) -> Any:
    """Zero-pad to a power of two P; while P > 1: P /= 2 and b[i] = b[i] + b[i+P]."""
    b = [cast(term, name) for term in terms]
    size = 1
    while size < len(b):
        size *= 2
    b += [SCALARS[name](0)] * (size - len(b))
    while size > 1:
        size //= 2
        b = [b[i] + b[i + size] for i in range(size)]
    return b[0]


def serial(terms: list[Any], name: str) -> Any:
    """Add from left to right."""
    b = [cast(term, name) for term in terms]
    total = b[0]
    for term in b[1:]:
        total = total + term
    return total


def lanes(terms: np.ndarray) -> float:
    """Sum float64 in 16 lanes, lane l adding l, l+16, ... in order; then 16 -> 8 -> 4 -> 2 -> 1 by halves."""
    lane = [0.0] * 16
    for i, term in enumerate(terms.tolist()):
        lane[i % 16] += term
    while len(lane) > 1:
        half = len(lane) // 2
        lane = [lane[i] + lane[i + half] for i in range(half)]
    return lane[0]


# the roundings of each stage in order, T the audited format and A float32, or T if that is wider
COLUMNS: dict[str, dict[str, str]] = {
    "native": {
        "sum": "T", "mean": "T", "diff": "T", "square": "T", "variance": "T", "epsilon": "T", "w": "T",
        "inverse": "T", "core": "T", "affine": "T",
    },
    "decomposed": {
        "sum": "A", "mean": "AT", "diff": "T", "square": "T", "variance": "AT", "epsilon": "T", "w": "T",
        "inverse": "T", "core": "T", "affine": "T",
    },
    "stored-stats": {
        "sum": "A", "mean": "AT", "diff": "A", "square": "A", "variance": "AT", "epsilon": "A", "w": "AT",
        "inverse": "T", "core": "AT", "affine": "A",
    },
    "fused": {
        "sum": "A", "mean": "A", "diff": "A", "square": "A", "variance": "A", "epsilon": "A", "w": "A",
        "inverse": "A", "core": "AT", "affine": "A",
    },
}  # fmt: skip


@dataclass(kw_only=True)
class NaiveRow:
    """What a naive kernel computes of one row; core, inverse and output have one entry an epsilon."""

    v: list[float]
    mean: float
    raw_variance: float
    variance: float
    inverse: list[float] = field(default_factory=list)
    core: list[list[float]] = field(default_factory=list)
    output: list[list[float]] = field(default_factory=list)


class NaiveKernel:
    """A column of the table, in scalars of numpy and ml_dtypes."""

    def __init__(self, column: str, name: str, *, rms: bool, reduction: str, one_pass: bool, clamp: str) -> None:
        wide = "float64" if name == "float64" else "float32"
        self.stages = {
            stage: [name if letter == "T" else wide for letter in letters] for stage, letters in COLUMNS[column].items()
        }
        self.by_root = column in ("native", "decomposed")
        self.name, self.rms, self.clamp = name, rms, clamp
        self.one_pass = one_pass and not rms
        self.reduce = tree if reduction == "tree" else serial

    def binary(self, symbol: str, a: Any, b: Any, roundings: list[str]) -> Any:
        """One scalar operation in the first dtype, stored in the others."""
        a, b = SCALARS[roundings[0]](a), SCALARS[roundings[0]](b)
        result = {"+": a.__add__, "-": a.__sub__, "*": a.__mul__, "/": a.__truediv__}[symbol](b)
        for name in roundings[1:]:
            result = cast(result, name)
        return result

    def by_count(self, total: Any, d: int, roundings: list[str]) -> Any:
        """Divide by the exact integer d, which is never rounded to T."""
        result = total
        for i, name in enumerate(roundings):
            if i == 0 and np.isfinite(total):
                result = SCALARS[name](round_exact(Fraction(float(total)) / d, name))
            else:
                result = cast(result, name)
        return result

    def run(self, h: list[Any], epsilons: tuple[float, ...], weight: np.ndarray, bias: np.ndarray) -> NaiveRow:
        """Run the table's column from top to bottom."""
        at, d = self.stages, len(h)
        stored = at["variance"][-1:]
        if self.rms:
            mean, v = SCALARS[self.name](0), h
        else:
            mean = self.by_count(self.reduce(h, at["sum"][0]), d, at["mean"])
            v = [self.binary("-", x, mean, at["diff"]) for x in h]
        squares = [self.binary("*", x, x, at["square"]) for x in (h if self.one_pass else v)]
        raw = self.by_count(self.reduce(squares, at["sum"][0]), d, at["variance"])
        if self.one_pass:
            raw = self.binary("-", raw, self.binary("*", mean, mean, stored), stored)
        q = raw
        if self.clamp != "none" and q < 0:
            q = type(q)(0)
        if self.clamp == "zero-nan" and np.isnan(q):
            q = type(q)(0)
        row = NaiveRow(v=[float(x) for x in v], mean=float(mean), raw_variance=float(raw), variance=float(q))
        for epsilon in epsilons:
            self.finish(row, v, q, epsilon, weight, bias)
        return row

    def finish(self, row: NaiveRow, v: list[Any], q: Any, epsilon: float, weight: np.ndarray, bias: np.ndarray) -> None:
        """Add epsilon, take the root, normalize, multiply and add."""
        at, affine = self.stages, self.stages["affine"]
        e = SCALARS[at["epsilon"][0]](round_exact(Fraction(epsilon), at["epsilon"][0]))
        w = float(self.binary("+", q, e, at["w"]))
        if not self.by_root:
            inverse = reciprocal_root_exact(w, at["inverse"][0])
        elif w >= 0 and np.isfinite(w):
            inverse = root_exact(Fraction(w), at["inverse"][0])
        else:
            inverse = w if w == np.inf else np.nan
        inverse = SCALARS[at["inverse"][0]](inverse)
        n = [self.binary("/" if self.by_root else "*", x, inverse, at["core"][:1]) for x in v]
        core = [cast(x, self.name) for x in n]
        scale = [SCALARS[affine[0]](round_exact(Fraction(float(x)), affine[0])) for x in weight]
        shift = [SCALARS[affine[0]](round_exact(Fraction(float(x)), affine[0])) for x in bias]
        y = [
            self.binary("+", self.binary("*", a, b, affine), c, affine) for a, b, c in zip(n, scale, shift, strict=True)
        ]
        row.inverse.append(float(inverse))
        row.core.append([float(x) for x in core])
        row.output.append([float(cast(x, self.name)) for x in y])


def exact_rows(name: str, d: int, seed: int) -> dict[str, np.ndarray]:
    """Return the named rows that norms fail on, in float64, before they are rounded to the format."""
    rng = np.random.default_rng([seed, d])
    top = float(2.0 ** EMAX[name])
    noise = rng.standard_normal((12, d))
    unit = 2.0 ** (1 - PRECISION[name])
    outlier = noise[7].copy()
    outlier[d // 2] = 3000.0
    return {
        "normal": noise[0],
        "offset": 300.0 + noise[1],
        "large offset": 1000.0 + 0.01 * noise[2],
        "tiny": 1e-4 * noise[3],
        "huge": 0.9 * top * np.clip(noise[4], -1, 1),
        "constant": np.full(d, 5.1),
        # less than half of the elements are one unit lower: the mean is rounded up and the one-pass variance negative
        "near constant": 1.9 - unit * (np.arange(d) < (d - 1) // 2),
        "two neighbours": 1.7 + unit * (np.arange(d) == 0),
        "other neighbours": 1.3 + unit * (np.arange(d) == d - 1),
        "zero": np.zeros(d),
        "overflow on squaring": 4.0 * np.sqrt(top) * noise[6],
        "one outlier": outlier,
        "alternating": 7.0 * (-1.0) ** np.arange(d) + 1e-2 * noise[8],
        "underflow on squaring": 4.0 * 2.0 ** (EMIN[name] // 2) * noise[9],
        "subnormal": 30.0 * 2.0 ** (EMIN[name] - PRECISION[name]) * noise[10],
        "cast overflow": 2.0 * top * np.clip(noise[11], -0.9, 1) if name != "float64" else noise[11],
    }


def rows_of(name: str, d: int, seed: int) -> dict[str, list[Any]]:
    """Return the same rows as scalars of the format."""
    with np.errstate(over="ignore"):
        return {key: [cast(np.float64(x), name) for x in row] for key, row in exact_rows(name, d, seed).items()}


def equal(got: Any, expected: Any) -> bool:
    """Whether arrays agree to the last bit; the signs of zeros and the payloads of NaN do not count."""
    return np.array_equal(np.asarray(got, np.float64), np.asarray(expected, np.float64), equal_nan=True)
