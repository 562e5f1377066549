"""The Kernel dataclass: the axes along which implementations of the norm differ."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache

from ..errors import LnauditError
from ..formats import FORMATS, Format, wider

DTYPES = ("T", "float32", "float64")
ORDERS = ("tree", "serial", "lanes4", "lanes8", "lanes8_fours", "cascade4", "cascade8", "pairwise")
RUNNING = ("welford", "cascade")  # algorithms that keep a running mean instead of a sum
# what a user may write in NAME:axis=value, and the values of each axis
AXES: dict[str, tuple[str, ...]] = {
    "sum": DTYPES,
    "square_sum": DTYPES,
    "mean": DTYPES,
    "diff": DTYPES,
    "square": DTYPES,
    "variance": ("two_pass", "one_pass", "welford", "cascade", *DTYPES),
    "plus_epsilon": DTYPES,
    "rstd": DTYPES,
    "normalized": DTYPES,
    "affine": DTYPES,
    "output": DTYPES,
    "reduction": ORDERS,
    "square_reduction": ORDERS,
    "mean_scale": ("divide", "reciprocal", "terms"),
    "clamp_negative": ("none", "zero", "zero-nan"),
    "epsilon": ("T", "wide", "float32", "float64"),
    "epsilon_place": ("inside", "outside", "none"),
    "inverse": ("div", "recip_sqrt", "rsqrt"),
    "apply": ("div", "sub_mul", "scale_shift", "folded", "gamma_rstd_first", "gamma_center_first"),
    "fma": ("off", "stats", "apply", "all"),
    "flush_subnormals": ("none", "float32", "T", "all"),
}


@dataclass(frozen=True, kw_only=True)
class Stages:
    """The formats that the stages of a kernel round to, for one audited format; T is that of the cast."""

    T: Format
    sum: Format
    square_sum: Format
    mean: Format
    diff: Format
    square: Format
    variance: Format
    plus_epsilon: Format
    epsilon: Format
    rstd: Format
    normalized: Format
    affine: Format
    output: Format


@dataclass(frozen=True, kw_only=True)
class Variant:
    """The row of a program for some formats, one norm, or rows of fewer than `below` features; empty: for all."""

    row: Kernel
    formats: tuple[str, ...] = ()
    norm: str = ""
    below: int = 0

    def fits(self, fmt: Format, rms: bool, features: int) -> bool:
        """Whether this is the row for a format, norm and width."""
        return (
            (not self.formats or fmt.name in self.formats)
            and (not self.norm or self.norm == ("rms" if rms else "layer"))
            and (not self.below or features < self.below)
        )


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """How a program computes the norm in a format T.

    Each stage names the dtype that it rounds to: "T" (the audited format), "float32" (at least float32: T if T is
    wider) or "float64". An operation is rounded once in the widest dtype of its operands and its stage, then stored
    in the dtype of its stage.

    Parameters
    ----------
    name, stands_for, source : str
        The preset, what runs like that, and where that is written.
    sum, square_sum, mean, diff, square, variance, rstd, normalized, affine, output : str
        Stage dtypes; `rstd` is also that of the square root.
    plus_epsilon : str
        The dtype of variance + epsilon; empty: that of the variance.
    algorithm : str
        "two_pass"; "one_pass": E[x^2] - E[x]^2; "welford": one running mean and sum of squares from left to right,
        whatever `reduction` says; "cascade": Welford's in the lanes of `reduction`, merged as torch does. RMSNorm has
        the mean of the squares only, summed as `reduction` says.
    reduction, square_reduction : str
        "tree" (halves), "serial" (left to right), "lanes4" or "lanes8" (vector lanes, added by halves, then what does
        not fill them; "lanes8_fours": of that, four products at a time are not fused), "cascade4" or "cascade8"
        (torch's sum, in vector lanes and levels), "pairwise" (numpy's); of the squares as of the values where
        `square_reduction` is empty.
    mean_scale : str
        How a sum becomes a mean: "divide" by d; "reciprocal": times c = 1/d in the dtype of the sum; "terms": each term
        times c = 1/d in T (of squares one factor), then summed.
    clamp_negative : str
        Applied to the rounded variance: "none", "zero", or "zero-nan" (a NaN becomes 0 too).
    epsilon : str
        The dtype that holds epsilon, rounded once from the value given. Here "float32" is float32 for every T (a
        float attribute of a double model), "wide" is float32 or T if T is wider.
    epsilon_place : str
        "inside" the root, "outside" (added to the root), or "none".
    inverse : str
        "div": v / sqrt(w). "recip_sqrt": times 1/sqrt(w), root and reciprocal both rounded. "rsqrt": rounded once.
    apply : str
        "div": v / den. "sub_mul": v * rstd. "scale_shift": x * rstd + (-(mean * rstd)). "folded": x * (rstd * weight)
        + (bias - mean * (rstd * weight)). "gamma_rstd_first": (weight * rstd) * v. "gamma_center_first":
        (weight * v) * rstd. Empty: what goes with `inverse`. Without a weight nothing is multiplied, without a bias
        nothing added; the core is what is rounded to `normalized`, then to `output`.
    fma : str
        Where a product is added without being rounded: "stats" (running sums of squares, and Welford's running mean
        where it takes 1/k times the difference), "apply" (scale, shift, weight and bias), "all", or "off".
    flush_subnormals : str
        The dtypes in which subnormal numbers are read and written as zero: "none", "float32", "T", "all".
    proven : str
        On which versions of the program all outputs came out the same, or that it was not run.
    variants : tuple of Variant
        Of a program that computes differently by format, norm or width: its rows, the first that fits counts.

    Raises
    ------
    LnauditError
        If two axes contradict each other.
    """

    name: str
    stands_for: str
    source: str
    sum: str = "T"
    square_sum: str = "T"
    mean: str = "T"
    diff: str = "T"
    square: str = "T"
    variance: str = "T"
    plus_epsilon: str = ""
    algorithm: str = "two_pass"
    reduction: str = "tree"
    square_reduction: str = ""
    mean_scale: str = "divide"
    clamp_negative: str = "none"
    epsilon: str = "T"
    epsilon_place: str = "inside"
    rstd: str = "T"
    inverse: str = "div"
    apply: str = ""
    normalized: str = "T"
    affine: str = "T"
    output: str = "T"
    fma: str = "off"
    flush_subnormals: str = "none"
    proven: str = ""
    variants: tuple[Variant, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        of_squares = "square_reduction" if self.square_reduction else "reduction"
        for clash, what, remedy in (
            (
                self.apply == "div" and self.inverse != "div",
                f"apply=div divides by the root, inverse={self.inverse} gives 1/std",
                "use inverse=div",
            ),
            (
                self.inverse == "div" and self.apply not in ("", "div"),
                f"apply={self.apply} multiplies by 1/std, inverse=div divides by the root",
                "use inverse=recip_sqrt or inverse=rsqrt",
            ),
            (
                self.inverse == "rsqrt" and self.epsilon_place == "outside",
                "epsilon_place=outside adds epsilon to the root, which inverse=rsqrt never has",
                "use inverse=recip_sqrt or inverse=div",
            ),
            (
                self.fuses_statistics
                and self.order_of_squares not in ("serial", "lanes4", "lanes8", "lanes8_fours")
                and self.algorithm not in RUNNING,
                f"fma={self.fma} adds products to a running sum, {of_squares}={self.order_of_squares} has none",
                f"use {of_squares}=serial, or fma=apply",
            ),
            (
                self.mean_scale == "terms" and self.algorithm in RUNNING,
                f"mean_scale=terms scales what is summed, variance={self.algorithm} sums no terms",
                "use mean_scale=divide or reciprocal" if self.algorithm == "welford" else "use mean_scale=divide",
            ),
            (
                self.algorithm == "cascade" and self.mean_scale == "reciprocal",
                "mean_scale=reciprocal with variance=cascade, which divides",
                "use mean_scale=divide",
            ),
            (
                self.algorithm == "cascade" and not self.reduction.startswith("lanes"),
                f"variance=cascade runs in vector lanes, reduction={self.reduction} has none",
                "use reduction=lanes8 or reduction=lanes4",
            ),
        ):
            if clash:
                raise LnauditError(f"{self.name}: {what}", remedy, "--kernel")

    def at(self, fmt: Format, rms: bool, features: int) -> Kernel:
        """Return the row that runs rows of so many features in a format."""
        for variant in self.variants:
            if variant.fits(fmt, rms, features):
                flushed = variant.row.flush_subnormals if self.flush_subnormals == "none" else self.flush_subnormals
                return replace(
                    variant.row,
                    name=self.name,
                    stands_for=self.stands_for,
                    source=self.source,
                    proven=self.proven,
                    flush_subnormals=flushed,
                    variants=self.variants,
                )
        return self

    @property
    def order_of_squares(self) -> str:
        """The value of `square_reduction`, its default filled in."""
        return self.square_reduction or self.reduction

    @property
    def association(self) -> str:
        """The value of `apply`, its default filled in."""
        return self.apply or ("div" if self.inverse == "div" else "sub_mul")

    @property
    def fuses_statistics(self) -> bool:
        """Whether products are added to running sums without being rounded."""
        return self.fma in ("stats", "all")

    @property
    def fuses_apply(self) -> bool:
        """Whether shift and bias are added to products that were not rounded."""
        return self.fma in ("apply", "all")

    def shifts(self, rms: bool) -> bool:
        """Whether the mean is taken off after the scaling: x * rstd + shift (never in RMSNorm, which has no mean)."""
        return not rms and self.association in ("scale_shift", "folded")

    def has_closed_form(self, rms: bool) -> bool:
        """Whether the row error follows from row statistics: not where each product is rounded before the shift."""
        return self.fuses_apply or not self.shifts(rms)

    def stages(self, fmt: Format) -> Stages:
        """Return the formats that the stages round to when the audited format is `fmt`."""
        return _stages(self, fmt)


@cache
def _stages(kernel: Kernel, fmt: Format) -> Stages:
    def on_hardware(stage: Format) -> Format:
        flushed = {"all": True, "float32": stage.precision == 24, "T": stage is fmt}
        return stage.flushing if flushed.get(kernel.flush_subnormals) else stage

    at_least = {"T": fmt, "float32": wider(FORMATS["float32"], fmt), "float64": FORMATS["float64"]}
    names = [field for field in Stages.__dataclass_fields__ if field not in ("T", "epsilon")]
    epsilon = {"T": fmt, "wide": at_least["float32"]}.get(kernel.epsilon) or FORMATS[kernel.epsilon]
    stages = {name: at_least[getattr(kernel, name) or kernel.variance] for name in names}
    return Stages(**{name: on_hardware(stage) for name, stage in {"T": fmt, "epsilon": epsilon, **stages}.items()})
