"""Reports built by hand, for the tests of the renderers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lnaudit.findings import Finding
from lnaudit.report import (
    Cast,
    ConstantCost,
    ModelEpsilon,
    Recommendation,
    Remedy,
    Report,
    Result,
    SiteReport,
)
from lnaudit.site import NotAudited

LONG_KERNEL = "native:reduction=serial,variance=one_pass"
FLOAT32_LITERAL = 9.999999747378752e-06  # 1e-5 as float32 holds it


def recommendation(epsilon: float | None = 1e-5, **changes: Any) -> Recommendation:
    found = Recommendation(
        epsilon=epsilon,
        lower=None if epsilon is None else 1e-14,
        upper=None if epsilon is None else 5e-3,
        robust=1e-4,
        reason="overflow" if epsilon is None else "keeps",
        verified=False if epsilon is None else "all-rows",
        verified_rows=600,
        total_error=None if epsilon is None else 1.4e-3,
        distortion={"p50": 0.0, "p99": 0.0, "max": 0.0},
    )
    return replace(found, **changes)


def result(
    fmt: str, kernel: str = "native", errors: tuple[float | None, float | None] = (5.1e-4, 1.42e-3), **changes: Any
) -> Result:
    found = Result(
        format=fmt,
        kernel=kernel,
        verdict="pass",
        epsilon_stored=1e-5,
        epsilon_class="normal",
        epsilon_change=0.0,
        cast=Cast(overflow_rows=0, overflow=0, underflow=0, subnormal=0, destroyed_rows=0, error_max=3e-4),
        peak=0.01,
        headroom=0.99,
        variance_zero_rows=0,
        variance_nonfinite_rows=0,
        variance_negative_rows=0,
        variance_error={"p50": 1e-3, "max": 2e-3},
        collapse_ratio={"min": 0.99764, "p50": 1.0001},
        nan=0,
        inf=0,
        nonfinite_rows=0,
        collapsed_rows=0,
        error={"p50": errors[0], "p99": errors[1], "max": errors[1], "max_row": 3},
        scale_error_max=1e-4,
        residual_error_max=1e-4,
        affine={"nan": 0, "inf": 0, "nonfinite_rows": 0},
        gradient_overflow_rows=0,
        failing_rows=0,
        noise={"p50": 1.1e-7, "p99": 3.4e-7, "max": 4.2e-7},
        range={"smallest": 6e-8, "normal": 6.1e-5, "max": 65504.0},
        first_bad_operation={},
        recommendation=recommendation(),
        constants=[],
        remedies=[],
    )
    return replace(found, **changes)


def healthy_results() -> list[Result]:
    return [
        result("float16", recommendation=recommendation(lower=1e-6)),
        result("float16", "fused", (3.2e-4, 4.5e-4), collapse_ratio={"min": 0.99999, "p50": 1.0}),
        result("bfloat16", errors=(4.1e-3, 8.6e-3), collapse_ratio={"min": 0.987, "p50": 1.001}),
        result("bfloat16", "fused", (2.6e-3, 3.6e-3)),
        result("float32", errors=(5.5e-8, 1.4e-7), collapse_ratio={"min": 1.0, "p50": 1.0}),
        result("float64", errors=(9.1e-17, 2.2e-16), recommendation=recommendation(upper=0.1)),
    ]


def site(name: str = "svtr_ln0", results: list[Result] | None = None, **changes: Any) -> SiteReport:
    found = SiteReport(
        name=name,
        source=f"{name}.npy",
        dtype="float32",
        shape=[765, 120],
        axis=-1,
        features=120,
        rows=765,
        norm="layer",
        epsilon=FLOAT32_LITERAL,
        epsilon_source="default",
        input={
            "nan": 0,
            "inf": 0,
            "finite_rows": 765,
            "nan_rows": 0,
            "partly_nan_rows": 0,
            "inf_rows": 0,
            "zero_rows": 0,
            "constant_rows": 0,
            "max_abs": 7.3912,
        },
        parameters={"weight_nonfinite": 0, "bias_nonfinite": 0, "max_abs_weight": 1.0},
        variance={"min": 0.1324, "p01": 0.1431, "p50": 0.8092, "p99": 2.1, "max": 2.5},
        variance_bins={"lower": [0.125, 0.75, 2.0], "upper": [0.15625, 0.875, 2.5], "rows": [10, 745, 10]},
        collapse_ratio={"min": 0.99992447, "p01": 0.99993, "p50": 0.99999},
        epsilon_dominated_rows=0,
        gain={"p50": 1.1, "max": 2.7, "radial_max": 1e-4},
        lipschitz=316.0,
        weakest_clean_kernel={"float16": "native-serial"},
        weakest_clean_kernel_verified={},
        results=healthy_results() if results is None else results,
    )
    found = replace(found, **changes)
    found.verdict = min((r.verdict for r in found.results), key=("fail", "warn", "pass").index, default="pass")
    return found


def finding(code: str, name: str, severity: str, of: str, **changes: Any) -> Finding:
    facts: dict[str, Any] = {"title": "", "message": "", "format": "float16", "kernel": "native", **changes}
    return Finding(code=code, name=name, severity=severity, site=of, source=f"{of}.npy", **facts)


def report(sites: list[SiteReport], findings: list[Finding] | None = None, **changes: Any) -> Report:
    verdicts = [s.verdict for s in sites]
    found = Report(
        kind="scan",
        lnaudit_version="0.0.0",
        config={"limits": {"float16": 0.02, "bfloat16": 0.02}, "fail_on": "never"},
        summary={"sites": len(sites), **{v: verdicts.count(v) for v in ("fail", "warn", "pass")}},
        not_audited=[],
        epsilon=[],
        sites=sites,
        findings=findings or [],
    )
    return replace(found, **changes)


def healthy() -> Report:
    note = finding(
        "LN302",
        "epsilon-subnormal",
        "note",
        "svtr_ln0",
        latent=True,
        message="1e-5 is a subnormal number in float16; hardware that flushes those makes it 0 (--ftz). 1e-4 is "
        "immune, and no row would shrink by more than 0.04 %.",
    )
    return report([site()], [note])


def _collapsed(name: str) -> tuple[SiteReport, list[Finding]]:
    """A site that float16 native turns into zeros."""
    prescale = "scale the input by 2^-4, with epsilon 1e-4 on the scaled rows"
    remedies = [
        Remedy(kind="prescale", detail=prescale, verified="all-rows", error_max=8.3e-4, rows=600, cures=["LN104"]),
        Remedy(
            kind="kernel",
            detail="kernel stored-stats: square and sum in float32",
            verified="all-rows",
            error_max=9.34e-4,
            rows=600,
            cures=["LN104"],
            values={"kernel": "stored-stats"},
        ),
        Remedy(
            kind="format",
            detail="bfloat16 instead of float16 (kernel native)",
            verified="all-rows",
            error_max=6.9e-3,
            rows=600,
            cures=["LN104"],
        ),
    ]
    bad = result(
        "float16",
        errors=(1.0, 1.0),
        verdict="fail",
        collapsed_rows=600,
        failing_rows=600,
        collapse_ratio={"min": 0.0, "p50": 0.0},
        recommendation=recommendation(None),
        remedies=remedies,
    )
    whole = recommendation(upper=0.1)
    others = [replace(r, recommendation=whole) for r in healthy_results()[1:]]
    where = site(
        name,
        [bad, *others],
        rows=600,
        features=64,
        variance={"min": 1.12e4, "p01": 1.2e4, "p50": 2.8e4, "p99": 6e4, "max": 6.4e4},
        collapse_ratio={"min": 1 - 1e-9, "p01": 1.0, "p50": 1.0},
    )
    what = finding(
        "LN104",
        "collapsed-rows",
        "error",
        name,
        title="600 of 600 rows come out all zero; no NaN, no Inf",
        message="(x-mean)^2 reaches 4.9e5, float16 ends at 65504: the variance is Inf, and x/Inf = 0. The layer "
        "returns its bias and no NaN check sees it. First bad operation: square.",
        remedy="must not be printed: the result has verified remedies",
        rows=600,
    )
    return where, [what]


def silent_zero() -> Report:
    where, found = _collapsed("twoBody_bond_bn1")
    return report([where], found)


def _lost(name: str) -> tuple[SiteReport, list[Finding]]:
    """A site whose epsilon is 0 in float16."""
    remedies = [
        Remedy(
            kind="epsilon",
            detail="epsilon 1e-4: rows shrink by 1.1 % (p50), 2.0 % (worst)",
            verified="witness-rows",
            error_max=9.7e-4,
            rows=64,
            cures=["LN301"],
            values={"epsilon": 1e-4},
        ),
        Remedy(
            kind="kernel",
            detail="kernel fused: hold epsilon in float32",
            verified="witness-rows",
            error_max=5e-4,
            rows=64,
            cures=["LN301"],
            values={"kernel": "fused"},
        ),
    ]
    constants = [
        ConstantCost(epsilon=6e-8, held=0.0, failing_rows=3, distortion_max=0.0),
        ConstantCost(epsilon=1e-7, held=1.2e-7, failing_rows=0, distortion_max=1e-5),
        ConstantCost(epsilon=1e-4, held=1e-4, failing_rows=0, distortion_max=0.0201),
        ConstantCost(epsilon=1e-3, held=1e-3, failing_rows=12345, distortion_max=0.19),
    ]
    warned = result(
        "float16",
        verdict="warn",
        recommendation=recommendation(1e-4, lower=1e-6, upper=1.5e-4, reason="epsilon-lost"),
        remedies=remedies,
        constants=constants,
    )
    where = site(
        name,
        [warned, *healthy_results()[1:]],
        rows=12500,
        features=384,
        epsilon=1e-12,
        epsilon_source="option",
        overridden=["epsilon"],
        notes=["one-dimensional: read as one row"],
    )
    what = finding(
        "LN301",
        "epsilon-rounds-to-zero",
        "warning",
        name,
        latent=True,
        title="no row of this file needs it",
        message="1e-12 becomes 0 in float16, whose smallest number is 6e-8. A zero or constant row gives 0/0 = NaN.",
    )
    return where, [what]


def latent() -> Report:
    where, found = _lost("embeddings.LayerNorm")
    return report([where], found)


def several() -> Report:
    first, collapsed = _collapsed("angle_layers.0.twoBody_bond.bn1")
    second, lost = _lost("embeddings.LayerNorm")
    third, lost_too = _lost("encoder.layer.0.output.LayerNorm")
    fourth = site("final_norm", norm="rms")
    beside = finding(
        "LN303",
        "epsilon-dominates-variance",
        "warning",
        "final_norm",
        format=None,
        kernel=None,
        title="variance below epsilon in 12 of 765 non-constant rows",
        message="There epsilon, not the data, sets the scale of the output.",
        remedy="lower epsilon",
    )
    shared = {"model_epsilon": 1e-12, "sites": [], "site_count": 2}
    return report(
        [first, second, third, fourth],
        [*collapsed, *lost, *lost_too, beside],
        not_audited=[
            NotAudited(
                source="dumps/broken.npy",
                reason="has 500 of the 153,728 bytes its header promises; write the dump again",
            )
        ],
        epsilon=[
            ModelEpsilon(
                format="float16",
                kernel="native",
                epsilon=1e-4,
                lower=1e-6,
                upper=1.5e-4,
                **{**shared, "sites": ["embeddings.LayerNorm"]},
            ),
            ModelEpsilon(format="float16", kernel="fused", epsilon=1e-12, lower=1e-14, upper=1.5e-4, **shared),
            ModelEpsilon(format="bfloat16", kernel="native", epsilon=1e-12, lower=1e-14, upper=1.5e-4, **shared),
        ],
        notes=["2 files of dumps/ are not in its manifest: a.npy, b.npy"],
    )


def bad_input() -> Report:
    """Everything that can be wrong before the norm, and every figure that can be missing."""
    none = {"min": None, "p01": None, "p50": None, "p99": None, "max": None}
    figures = {
        "nan": 20000,
        "inf": 1,
        "finite_rows": 5,
        "nan_rows": 2,
        "partly_nan_rows": 1,
        "inf_rows": 1,
        "zero_rows": 3,
        "constant_rows": 5,
        "max_abs": None,
    }
    empty = result(
        "float16",
        errors=(None, None),
        nonfinite_rows=12345,
        variance_zero_rows=None,
        collapsed_rows=None,
        collapse_ratio={"min": None, "p50": None},
        recommendation=recommendation(1e-4, verified=False, reason="rounding-noise", lower=1e-4, upper=1e-4),
    )
    where = site(
        "padded",
        [empty, replace(empty, kernel=LONG_KERNEL), result("float32", errors=(float("inf"), float("nan")))],
        axis=[1, 2],
        rows=9,
        input=figures,
        variance=none,
        collapse_ratio={"min": None, "p01": None, "p50": None},
        epsilon_dominated_rows=None,
        epsilon=0.0,
        parameters={"weight_nonfinite": 2, "bias_nonfinite": 1, "max_abs_weight": None},
    )
    same = {"title": "the cast alone costs more than the limit", "message": "No kernel and no epsilon undoes that."}
    return report(
        [where],
        [
            finding("LN203", "cast-destroys-variance", "note", "padded", **same),
            finding("LN203", "cast-destroys-variance", "note", "padded", **{**same, "kernel": LONG_KERNEL}),
            finding(
                "LN001",
                "non-finite-input",
                "error",
                "padded",
                format=None,
                kernel=None,
                title="rows that are not finite before the norm: 2 NaN, 1 partly NaN, 1 with Inf",
                message="They are left out of all counts.",
                remedy="look at what comes before the norm",
            ),
        ],
    )


HOSTILE = "a\nb\x1b[31m[bold red]x[/]\x9b\u202e\udcff/\u00e9t\u00e9"


def hostile() -> Report:
    first = site(HOSTILE, healthy_results()[:1], notes=[HOSTILE])
    second = site("n" * 130, healthy_results()[:1])
    found = [
        finding("LN302", "epsilon-subnormal", "note", HOSTILE, title=HOSTILE, message=f"see {HOSTILE}", remedy=HOSTILE)
    ]
    missing = [NotAudited(source=HOSTILE, reason=f"weight {HOSTILE}: no")]
    shared = ModelEpsilon(
        format="float16",
        kernel="native",
        model_epsilon=1e-5,
        epsilon=None,
        lower=None,
        upper=None,
        sites=[HOSTILE],
        site_count=2,
    )
    return report([first, second], found, not_audited=missing, epsilon=[shared], notes=[HOSTILE])


def empty() -> Report:
    missing = [NotAudited(source="a.npy", reason="does not exist"), NotAudited(source="b.npy", reason="is empty")]
    return report([], not_audited=missing)


def many_kernels() -> Report:
    kernels = ("native-serial", "native", "decomposed", "stored-stats", "fused", LONG_KERNEL)
    results = [result("float16", kernel) for kernel in kernels]
    results[-1].verdict = "fail"
    return report([site("one", results), site("two", results[:5])])


SAMPLES = {
    "healthy": healthy,
    "silent_zero": silent_zero,
    "latent": latent,
    "several": several,
    "bad_input": bad_input,
    "hostile": hostile,
    "empty": empty,
    "many_kernels": many_kernels,
}
