"""A naive kernel on exact rationals, one scalar operation at a time, written from what each axis means.

An operation reads its operands, is rounded once in the widest dtype of its operands and its stage and stored in the
dtype of its stage. Nothing here imports lnaudit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import copysign, inf, isfinite, isinf, isnan, ldexp, nan

from .oracles import EMAX, EMIN, PRECISION, infinite, root_exact

STAGES = (
    "sum", "square_sum", "mean", "diff", "square", "variance", "plus_epsilon", "epsilon", "rstd", "normalized",
    "affine", "output",
)  # fmt: skip
NATIVE = {
    **dict.fromkeys(STAGES, "T"),
    "plus_epsilon": "",
    "algorithm": "two_pass",
    "reduction": "tree",
    "square_reduction": "",
    "mean_scale": "divide",
    "clamp_negative": "none",
    "epsilon_place": "inside",
    "inverse": "div",
    "apply": "",
    "fma": "off",
    "flush_subnormals": "none",
}
# the columns of the table of textbook kernels
PRESETS = {
    "native": NATIVE,
    "native-serial": {**NATIVE, "reduction": "serial"},
    "decomposed": {**NATIVE, "sum": "float32", "square_sum": "float32"},
    "stored-stats": {
        **NATIVE,
        **dict.fromkeys(("sum", "square_sum", "diff", "square", "normalized", "affine"), "float32"),
        "epsilon": "wide",
        "inverse": "rsqrt",
    },
    "fused": {
        **NATIVE,
        **dict.fromkeys(STAGES, "float32"),
        "plus_epsilon": "",
        "epsilon": "wide",
        "output": "T",
        "inverse": "rsqrt",
    },
}
Number = tuple[float, str]  # a value and the format that holds it
Moments = tuple[int, Number, Number]  # of some elements: how many, their mean, the sum of squared deviations


def nearest(numerator: int, denominator: int, name: str) -> float:
    """Round numerator / denominator to a format once, to nearest even, in integers; denominator > 0."""
    size = abs(numerator)
    e = size.bit_length() - denominator.bit_length()
    if size and (size << max(-e, 0)) < (denominator << max(e, 0)):
        e -= 1
    unit = max(e, EMIN[name]) - PRECISION[name] + 1
    quotient, rest = divmod(size << max(-unit, 0), denominator << max(unit, 0))
    twice, whole = 2 * rest, denominator << max(unit, 0)
    quotient += twice > whole or (twice == whole and quotient % 2 == 1)
    if unit + quotient.bit_length() - 1 > EMAX[name] or (name == "float8_e4m3fn" and ldexp(quotient, unit) > 448):
        return infinite(name) if numerator > 0 else -infinite(name)
    return ldexp(quotient if numerator > 0 else -quotient, unit)


def axes_of(text: str) -> dict[str, str]:
    """Return what NAME:axis=value,axis=value says of every axis."""
    preset, _, overrides = text.partition(":")
    items = [item.split("=") for item in overrides.split(",") if item]
    axes = dict(PRESETS[preset])
    for axis, value in items:
        algorithm = axis == "variance" and value in ("two_pass", "one_pass", "welford", "cascade")
        axes["algorithm" if algorithm else axis] = value
        if axis == "sum" and not any(other == "square_sum" for other, _ in items):
            axes["square_sum"] = value
    axes["plus_epsilon"] = axes["plus_epsilon"] or axes["variance"]
    axes["square_reduction"] = axes["square_reduction"] or axes["reduction"]
    if not axes["apply"]:
        axes["apply"] = "div" if axes["inverse"] == "div" else "sub_mul"
    return axes


@dataclass(kw_only=True)
class Centred:
    """What does not depend on epsilon."""

    h: list[Number]
    v: list[Number]
    mean: Number
    raw_variance: Number
    variance: Number


@dataclass(kw_only=True)
class Finished:
    """The rest, at an epsilon."""

    inverse: float
    core: list[float] = field(default_factory=list)
    output: list[float] = field(default_factory=list)


class ExactKernel:
    """A kernel in a format; `fused` is what it has for a fused multiply-add."""

    def __init__(self, text: str, name: str, *, rms: bool = False, fused: Callable[..., float] | None = None) -> None:
        self.axes, self.name, self.rms = axes_of(text), name, rms
        self.multiply_add = fused or multiply_add
        self.at = {stage: self.resolve(stage) for stage in STAGES}
        self.fused_sums = self.axes["fma"] in ("stats", "all")
        self.fused_apply = self.axes["fma"] in ("apply", "all")

    def resolve(self, stage: str) -> str:
        value, at_least = self.axes[stage], "float64" if self.name == "float64" else "float32"
        if value == "float32":
            return "float32" if stage == "epsilon" else at_least
        return {"T": self.name, "wide": at_least, "float64": "float64"}[value]

    def flush(self, x: float, name: str) -> float:
        which = self.axes["flush_subnormals"]
        flushes = which == "all" or which == name or (which == "T" and name == self.name)
        return 0.0 if flushes and abs(x) < 2.0 ** EMIN[name] else x

    def write(self, x: float, name: str) -> float:
        """Store a number in a format."""
        if isfinite(x):
            return self.flush(nearest(*x.as_integer_ratio(), name), name)
        return copysign(infinite(name), x) if isinf(x) else x

    def operate(self, operation: Callable[..., float], operands: Sequence[Number], stage: str) -> Number:
        """Read, compute in the widest format, store in that of the stage; a format may stand for a stage."""
        stored = self.at.get(stage, stage)
        wide = max([*(name for _, name in operands), stored], key=PRECISION.__getitem__)
        result = operation(*(self.flush(x, wide) for x, _ in operands), wide)
        if isinf(result):
            result = copysign(infinite(wide), result)
        return self.write(self.flush(result, wide), stored), stored

    def store(self, x: Number, stage: str) -> Number:
        return self.write(x[0], self.at[stage]), self.at[stage]

    def total(self, terms: list[Number], stage: str, order: str) -> Number:
        b = [self.store(term, stage) for term in terms]
        # numpy adds float16 in float32 and rounds at the end
        held = "float32" if order == "pairwise" and self.at[stage] == "float16" else self.at[stage]
        acc = SUMS[order](b, lambda x, y: self.operate(add, [x, y], held), (0.0, held))
        return self.store(acc, stage)

    def reciprocal(self, k: int, name: str) -> Number:
        return self.flush(nearest(1, k, name), name), name

    def averaged(self, total: Number, d: int, stage: str) -> Number:
        """Make a sum of d terms a mean; d is the exact integer."""
        scale = self.axes["mean_scale"]
        if scale == "divide":
            return self.operate(lambda x, wide: divide(x, d, wide), [total], stage)
        if scale == "reciprocal":
            return self.operate(multiply, [total, self.reciprocal(d, total[1])], stage)
        return self.store(total, stage)

    def sum_of_squares(self, v: list[Number]) -> Number:
        terms = self.axes["mean_scale"] == "terms"
        c = self.reciprocal(len(v), self.name)
        factors = [self.operate(multiply, [c, x], "square") for x in v] if terms else v
        pairs = list(zip(factors, v, strict=True))
        order = self.axes["square_reduction"]
        if not self.fused_sums:
            return self.total([self.operate(multiply, pair, "square") for pair in pairs], "square_sum", order)
        return self.fused_total(pairs, order)

    def fused_total(self, pairs: list[tuple[Number, Number]], order: str) -> Number:
        """Add products that are not rounded, but for those that compilers take four at a time off a vector's rest."""
        acc = (0.0, self.at["square_sum"])
        lanes = {"lanes4": 4, "lanes8": 8, "lanes8_fours": 8}.get(order, 0)
        whole = len(pairs) // lanes * lanes if lanes else 0
        fours = (len(pairs) - whole) // 4 * 4 if order == "lanes8_fours" else 0
        if lanes:
            acc = by_halves([self.pushed(pairs[lane:whole:lanes]) for lane in range(lanes)], self.plus)
        for pair in pairs[whole : whole + fours]:
            acc = self.plus(acc, self.operate(multiply, pair, "square_sum"))
        return self.pushed(pairs[whole + fours :], acc)

    def plus(self, x: Number, y: Number) -> Number:
        return self.operate(add, [x, y], "square_sum")

    def pushed(self, pairs: Iterable[tuple[Number, Number]], acc: Number | None = None) -> Number:
        acc = acc or (0.0, self.at["square_sum"])
        for pair in pairs:
            acc = self.operate(self.multiply_add, [*pair, acc], "square_sum")
        return acc

    def welford(self, h: list[Number]) -> tuple[Number, Number]:
        mean = squares = (0.0, self.at["sum"])
        for k, x in enumerate(h, 1):
            delta = self.operate(subtract, [x, mean], "sum")
            c = self.reciprocal(k, self.at["sum"])
            if self.axes["mean_scale"] == "divide":
                part = self.operate(lambda x, wide, k=k: divide(x, k, wide), [delta], "sum")
                mean = self.operate(add, [mean, part], "sum")
            elif self.fused_sums:
                mean = self.operate(self.multiply_add, [delta, c, mean], "sum")
            else:
                mean = self.operate(add, [mean, self.operate(multiply, [delta, c], "sum")], "sum")
            rest = self.operate(subtract, [x, mean], "sum")
            if self.fused_sums:
                squares = self.operate(self.multiply_add, [delta, rest, squares], "sum")
            else:
                squares = self.operate(add, [squares, self.operate(multiply, [delta, rest], "sum")], "sum")
        return mean, squares

    def cascade(self, h: list[Number]) -> tuple[Number, Number]:
        """Return mean and sum of squares as torch's RowwiseMoments (moments_utils.h), lane by lane.

        Vectors hold as many elements as are pushed at once: twice the lanes where T is not what is summed in.
        """
        lanes, halves = int(self.axes["reduction"][5]), 1 + (PRECISION[self.name] != PRECISION[self.at["sum"]])
        vectors = len(h) // (lanes * halves)
        whole = vectors * lanes * halves
        total = self.rest_of_a_vector(h[whole:])
        for lane in range(lanes):
            parts = [h[lane + half * lanes : whole : lanes * halves] for half in range(halves)]
            total = self.merged_lanes(self.lane_moments(parts, vectors), total)
        return total[1:]

    def lane_moments(self, parts: list[list[Number]], vectors: int) -> Moments:
        """Merge chunks of 16 vectors as a binary counter carries: level j takes over what is full below it."""
        nothing = (0, (0.0, self.at["sum"]), (0.0, self.at["sum"]))
        chunks = -(-vectors // 16)
        depth = (chunks - 1).bit_length() if chunks > 1 else 0
        levels = [nothing] * max(depth, 1)
        for i in range(chunks):
            for part in parts:
                levels[0] = self.merged_vectors(self.chunk(part[16 * i : 16 * (i + 1)]), levels[0])
            for j in range(1, depth):
                if (i + 1) % 2**j:
                    break
                levels[j], levels[j - 1] = self.merged_vectors(levels[j - 1], levels[j]), nothing
        for j in range(1, depth):
            levels[0] = self.merged_vectors(levels[j], levels[0])
        return levels[0]

    def chunk(self, elements: list[Number]) -> Moments:
        mean = squares = (0.0, self.at["sum"])
        for k, x in enumerate(elements, 1):
            delta = self.operate(subtract, [x, mean], "sum")
            mean = self.operate(self.multiply_add, [delta, self.reciprocal(k, self.at["sum"]), mean], "sum")
            rest = self.operate(subtract, [x, mean], "sum")
            squares = self.operate(self.multiply_add, [delta, rest, squares], "sum")
        return len(elements), mean, squares

    def rest_of_a_vector(self, elements: list[Number]) -> Moments:
        mean = squares = (0.0, self.at["sum"])
        for k, x in enumerate(elements, 1):
            delta = self.operate(subtract, [x, mean], "sum")
            part = self.operate(lambda x, wide, k=k: divide(x, k, wide), [delta], "sum")
            mean = self.operate(add, [mean, part], "sum")
            rest = self.operate(subtract, [x, mean], "sum")
            if self.fused_sums:
                squares = self.operate(self.multiply_add, [delta, rest, squares], "sum")
            else:
                squares = self.operate(add, [squares, self.operate(multiply, [delta, rest], "sum")], "sum")
        return len(elements), mean, squares

    def merged_vectors(self, new: Moments, old: Moments) -> Moments:
        """Fuse (delta c)(delta n) only; c = new count / count, n = old count, a whole number."""
        c = self.share(new[0], new[0] + old[0])
        delta = self.operate(subtract, [new[1], old[1]], "sum")
        mean = self.operate(add, [old[1], self.operate(multiply, [c, delta], "sum")], "sum")
        factors = [self.operate(multiply, [delta, c], "sum"), self.times(delta, old[0])]
        both = self.operate(add, [old[2], new[2]], "sum")
        return new[0] + old[0], mean, self.operate(self.multiply_add, [*factors, both], "sum")

    def merged_lanes(self, new: Moments, old: Moments) -> Moments:
        """Fuse c delta, and (delta^2 c) n with what is new."""
        c = self.share(new[0], new[0] + old[0])
        delta = self.operate(subtract, [new[1], old[1]], "sum")
        mean = self.operate(self.multiply_add, [c, delta, old[1]], "sum")
        product = self.operate(multiply, [self.operate(multiply, [delta, delta], "sum"), c], "sum")
        part = self.operate(lambda x, y, wide: self.multiply_add(x, old[0], y, wide), [product, new[2]], "sum")
        return new[0] + old[0], mean, self.operate(add, [old[2], part], "sum")

    def share(self, new: int, count: int) -> Number:
        return (nearest(new, count, self.at["sum"]) if count else 0.0), self.at["sum"]

    def times(self, x: Number, count: int) -> Number:
        return self.operate(lambda x, wide: multiply(x, count, wide), [x], "sum")

    def centre(self, row: Sequence[float]) -> Centred:
        """Run the stages up to the variance."""
        d, algorithm = len(row), self.axes["algorithm"]
        h = [(self.write(x, self.name), self.name) for x in row]
        mean = (0.0, self.at["mean"])
        if self.rms:
            v = h
            raw = self.averaged(self.sum_of_squares(v), d, "variance")
        else:
            if algorithm in ("welford", "cascade"):
                running, squares = self.welford(h) if algorithm == "welford" else self.cascade(h)
                mean = self.store(running, "mean")
            elif self.axes["mean_scale"] == "terms":
                c = self.reciprocal(d, self.name)
                terms = [self.operate(multiply, [c, x], "sum") for x in h]
                mean = self.store(self.total(terms, "sum", self.axes["reduction"]), "mean")
            else:
                mean = self.averaged(self.total(h, "sum", self.axes["reduction"]), d, "mean")
            v = [self.operate(subtract, [x, mean], "diff") for x in h]
            if algorithm not in ("welford", "cascade"):
                squares = self.sum_of_squares(h if algorithm == "one_pass" else v)
            raw = self.averaged(squares, d, "variance")
            if algorithm == "one_pass":
                raw = self.operate(subtract, [raw, self.operate(multiply, [mean, mean], "variance")], "variance")
        q = raw[0]
        if self.axes["clamp_negative"] != "none" and (q < 0 or (isnan(q) and self.axes["clamp_negative"] != "zero")):
            q = 0.0
        return Centred(h=h, v=v, mean=mean, raw_variance=raw, variance=(q, raw[1]))

    def invert(self, variance: Number, epsilon: float) -> Number:
        """Return the denominator or 1/std."""
        e = self.write(epsilon, self.at["epsilon"]), self.at["epsilon"]
        place, w = self.axes["epsilon_place"], variance
        if place == "inside":
            w = self.operate(add, [w, e], "plus_epsilon")
        if self.axes["inverse"] == "rsqrt":
            return self.operate(reciprocal_root, [w], "rstd")
        den = self.operate(root, [w], "rstd")
        if place == "outside":
            den = self.operate(add, [den, e], "rstd")
        return den if self.axes["inverse"] == "div" else self.operate(divide, [(1.0, den[1]), den], "rstd")

    def scaled(self, a: Number, b: Number, c: Number | None, stage: str) -> Number:
        """Return a * b + c."""
        if c is None:
            return self.operate(multiply, [a, b], stage)
        if self.fused_apply:
            return self.operate(self.multiply_add, [a, b, c], stage)
        return self.operate(add, [self.operate(multiply, [a, b], stage), c], stage)

    def normalize(self, row: Centred, inverse: Number) -> list[Number]:
        if self.axes["inverse"] == "div":
            return [self.operate(divide, [x, inverse], "normalized") for x in row.v]
        if self.rms or self.axes["apply"] not in ("scale_shift", "folded"):
            return [self.operate(multiply, [x, inverse], "normalized") for x in row.v]
        product = self.operate(multiply, [row.mean, inverse], "normalized")
        return [self.scaled(x, inverse, (-product[0], product[1]), "normalized") for x in row.h]

    def finish(
        self,
        row: Centred,
        epsilon: float,
        weight: Sequence[float] | None = None,
        bias: Sequence[float] | None = None,
    ) -> Finished:
        """Run the stages after the variance; the output without weight and bias is the core."""
        inverse = self.invert(row.variance, epsilon)
        n = self.normalize(row, inverse)
        core = [self.store(x, "output")[0] for x in n]
        if weight is None and bias is None:
            return Finished(inverse=inverse[0], core=core, output=core)
        y = []
        for i, x in enumerate(n):
            w = None if weight is None else self.store((weight[i], ""), "affine")
            b = None if bias is None else self.store((bias[i], ""), "affine")
            y.append(self.store(self.weigh(row, i, x, inverse, w, b), "output")[0])
        return Finished(inverse=inverse[0], core=core, output=y)

    def weigh(self, row: Centred, i: int, n: Number, inverse: Number, w: Number | None, b: Number | None) -> Number:
        """Apply weight and bias in the order that `apply` says; without a weight nothing is multiplied."""
        order = self.axes["apply"]
        if order == "folded":
            scale = inverse if w is None else self.scaled(inverse, w, None, "affine")
            if self.rms:
                return self.scaled(row.v[i], scale, b, "affine")
            b = (0.0, self.at["affine"]) if b is None else b
            shift = self.scaled((-row.mean[0], row.mean[1]), scale, b, "affine")
            return self.scaled(row.h[i], scale, shift, "affine")
        if w is not None and order == "gamma_rstd_first":
            return self.scaled(self.scaled(w, inverse, None, "affine"), row.v[i], b, "affine")
        if w is not None and order == "gamma_center_first":
            return self.scaled(self.scaled(w, row.v[i], None, "affine"), inverse, b, "affine")
        if w is None:
            assert b is not None
            return self.operate(add, [n, b], "affine")
        return self.scaled(n, w, b, "affine")


def serial(b: list[Number], plus: Callable[..., Number], zero: Number) -> Number:
    """Add from left to right."""
    acc = b[0]
    for term in b[1:]:
        acc = plus(acc, term)
    return acc


def tree(b: list[Number], plus: Callable[..., Number], zero: Number) -> Number:
    """Pad with zeros to a power of two, then add by halves."""
    return by_halves(b + [zero] * ((1 << (len(b) - 1).bit_length()) - len(b)), plus)


def by_halves(b: list[Number], plus: Callable[..., Number]) -> Number:
    while len(b) > 1:
        half = len(b) // 2
        b = [plus(b[i], b[i + half]) for i in range(half)]
    return b[0]


def in_lanes(lanes: int) -> Callable[..., Number]:
    """Lane l adds elements l, l + lanes, ...; the lanes by halves, then what does not fill them."""

    def total(b: list[Number], plus: Callable[..., Number], zero: Number) -> Number:
        whole = len(b) // lanes * lanes
        acc = by_halves([serial([zero, *b[lane:whole:lanes]], plus, zero) for lane in range(lanes)], plus)
        return serial([acc, *b[whole:]], plus, zero)

    return total


def as_torch_does(lanes: int) -> Callable[..., Number]:
    """torch's sum of a contiguous row (SumKernel.cpp, vectorized_inner_sum), elements alone where no vector is full."""

    def total(b: list[Number], plus: Callable[..., Number], zero: Number) -> Number:
        whole = len(b) // lanes * lanes
        if not whole:
            return row_sum(b, plus, zero)
        parts = [row_sum(b[lane:whole:lanes], plus, zero) for lane in range(lanes)]
        return serial([zero, *b[whole:], *parts], plus, zero)

    return total


def row_sum(b: list[Number], plus: Callable[..., Number], zero: Number) -> Number:
    """Four sums of every fourth element; what is left over goes to the first (row_sum)."""
    fours = len(b) // 4 * 4
    first, *others = (multi_row_sum(b[k:fours:4], plus, zero) for k in range(4))
    return serial([first, *b[fours:], *others], plus, zero)


def multi_row_sum(b: list[Number], plus: Callable[..., Number], zero: Number) -> Number:
    """Four levels: every 2^p terms, p >= 4, level 0 is carried to level 1, every 2^2p that to level 2, and so on."""
    power = max(4, (len(b) - 1).bit_length() // 4) if b else 4
    level = [zero] * 4
    for i, term in enumerate(b, 1):
        level[0] = plus(level[0], term)
        for j in range(1, 4):
            if i % 2 ** (j * power):
                break
            level[j], level[j - 1] = plus(level[j], level[j - 1]), zero
    return serial(level, plus, zero)


def pairwise(b: list[Number], plus: Callable[..., Number], zero: Number) -> Number:
    """numpy's sum of a contiguous row (loops_utils.h.src, pairwise_sum): by halves, blocks of up to 128 in lanes."""
    if len(b) < 8:
        return serial([zero, *b], plus, zero)
    if len(b) > 128:
        half = len(b) // 2
        half -= half % 8
        return plus(pairwise(b[:half], plus, zero), pairwise(b[half:], plus, zero))
    whole = len(b) - len(b) % 8
    r = [serial(b[lane:whole:8], plus, zero) for lane in range(8)]
    acc = plus(plus(plus(r[0], r[1]), plus(r[2], r[3])), plus(plus(r[4], r[5]), plus(r[6], r[7])))
    return serial([acc, *b[whole:]], plus, zero)


SUMS: dict[str, Callable[..., Number]] = {
    "tree": tree,
    "serial": serial,
    "lanes4": in_lanes(4),
    "lanes8": in_lanes(8),
    "lanes8_fours": in_lanes(8),
    "cascade4": as_torch_does(4),
    "cascade8": as_torch_does(8),
    "pairwise": pairwise,
}


def _sign(x: float) -> float:
    """Return what counts of a number beside one that is not finite."""
    return copysign(1.0, x) if isfinite(x) and x != 0 else x


def add(a: float, b: float, name: str) -> float:
    if not (isfinite(a) and isfinite(b)):
        return _sign(a) + _sign(b)
    (n, d), (m, e) = a.as_integer_ratio(), b.as_integer_ratio()
    return nearest(n * e + m * d, d * e, name)


def subtract(a: float, b: float, name: str) -> float:
    return add(a, -b, name)


def multiply(a: float, b: float, name: str) -> float:
    if not (isfinite(a) and isfinite(b)):
        return _sign(a) * _sign(b)
    (n, d), (m, e) = a.as_integer_ratio(), b.as_integer_ratio()
    return nearest(n * m, d * e, name)


def multiply_add(a: float, b: float, c: float, name: str) -> float:
    if not (isfinite(a) and isfinite(b) and isfinite(c)):
        return _sign(a) * _sign(b) + _sign(c)
    (n, d), (m, e), (k, f) = (x.as_integer_ratio() for x in (a, b, c))
    return nearest(n * m * f + k * d * e, d * e * f, name)


def divide(a: float, b: float, name: str) -> float:
    """Return a / b; a zero is positive."""
    if isnan(a) or isnan(b) or (isinf(a) and isinf(b)) or (a == 0 and b == 0):
        return nan
    if b == 0:
        return copysign(inf, a)
    if isinf(a) or isinf(b):
        return copysign(inf, a) * copysign(1.0, b) if isinf(a) else 0.0
    (n, d), (m, e) = a.as_integer_ratio(), b.as_integer_ratio()
    return nearest(n * e * (1 if m > 0 else -1), d * abs(m), name)


def root(w: float, name: str) -> float:
    if isnan(w) or w < 0:
        return nan
    return w if isinf(w) else root_exact(Fraction(w), name)


def reciprocal_root(w: float, name: str) -> float:
    if isnan(w) or w < 0:
        return nan
    if w == 0:
        return inf
    return 0.0 if isinf(w) else root_exact(1 / Fraction(w), name)
