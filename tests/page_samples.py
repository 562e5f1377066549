"""Reports for the tests of pages: of real rows, of hostile names, of a whole model."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from lnaudit.families import parse_family, parse_grid, site_of
from lnaudit.formats import FORMATS
from lnaudit.kernels import KERNELS
from lnaudit.pipeline import Settings, sweep
from lnaudit.pipeline.mapping import verdict_maps
from lnaudit.report import AcceptedFinding, ModelEpsilon, Report, SweepReport
from lnaudit.site import NotAudited

from . import report_samples as samples
from .program import run

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
HOSTILE_NAMES = (
    "<script>alert(1)</script>",
    "javascript:alert(1)",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></style></svg><script>alert(2)</script>",
    "{{ 7 * 7 }}{% raw %}",
    "]]>&amp;&lt;",
    "nul\0 bell\a escape\x1b[31m newline\n",
    "right \u202eto left\u202c, \u05e9\u05dc\u05d5\u05dd, \u0645\u0631\u062d\u0628\u0627",
    "lone surrogate \udcff",
    "$x^2$ $\\frac{1}{0}$",
    "long " + "n" * 10_000,
)
EMULATIONS = (
    ("float16", "native"),
    ("float16", "fused"),
    ("bfloat16", "native"),
    ("bfloat16", "fused"),
    ("float32", "native"),
    ("float64", "native"),
)


@cache
def real_scan() -> Report:
    """The examples, as the program audits them."""
    return Report.from_dict(json.loads(run("scan", EXAMPLES, "--output-format", "json").stdout))


@cache
def real_sweep() -> SweepReport:
    """Two families at several epsilons, one with its response, and a map."""
    settings = Settings(
        formats=(FORMATS["float16"], FORMATS["float64"]), kernels=(KERNELS["native"],), kernels_asked=True
    )
    families = ("near-constant:rows=8,features=64", "antisymmetric:t=1e-3..1e3")
    sites = (site_of(parse_family(text), 1e-5) for text in families)
    report = sweep(sites, settings, (0.0, 1e-12, 1e-8, 1e-5, 1e-2))
    grid = parse_grid("near-constant:offset=1..1e3,spread=1e-3..1,rows=4,features=32")
    assert grid is not None
    return replace(report, maps=verdict_maps(grid, settings, (1e-5,)))


def hostile_scan() -> Report:
    """Names that are code, controls, or endless, wherever a report holds text."""
    found, sites, missing, accepted = [], [], [], []
    for i, name in enumerate(HOSTILE_NAMES):
        emulations = [samples.result(fmt, kernel) for fmt, kernel in EMULATIONS[:2]]
        emulations[0].verdict = ("fail", "warn", "pass")[i % 3]
        limits = {"float16": 0.02 + i % 2}
        sites.append(samples.site(name, emulations, source=f"{name}.npy", dtype=name, notes=[name], limits=limits))
        accepted.append(
            AcceptedFinding(
                finding=samples.finding("LN101", name, "error", name, title=name), pattern=name, reason=name
            )
        )
        said = {"title": name, "message": name, "remedy": name}
        found.append(samples.finding("LN104", "collapsed-rows", "error", name, **said))
        found.append(samples.finding(name, name, "warning", name, latent=True, **said))
        found.append(samples.finding("LN303", name, "warning", name, known=True, format=None, kernel=None, **said))
        missing.append(NotAudited(source=name, reason=name))
    shared = ModelEpsilon(
        format="float16",
        kernel="native",
        model_epsilon=1e-5,
        epsilon=1e-4,
        lower=1e-6,
        upper=1e-3,
        sites=list(HOSTILE_NAMES),
        site_count=len(HOSTILE_NAMES),
    )
    config = {"policy": HOSTILE_NAMES[0], "dtype": HOSTILE_NAMES[2], "limits": {}, "fail_on": "never"}
    return samples.report(
        sites, found, not_audited=missing, epsilon=[shared], notes=list(HOSTILE_NAMES), config=config, accepted=accepted
    )


def whole_model(sites: int) -> Report:
    """A model of so many sites, each with six results and a histogram of its own, a few of which fail or warn."""
    made, found = [], []
    for i in range(sites):
        name = f"encoder.layer.{i}.output.LayerNorm"
        results = [samples.result(fmt, kernel, ((1 + i) * 1e-5, (1 + i) * 2e-5)) for fmt, kernel in EMULATIONS]
        if i % 5 < 2:
            verdict, severity = (("fail", "error"), ("warn", "warning"))[i % 5]
            results[0].verdict = verdict
            said: dict[str, Any] = {"title": f"{i} rows come out all zero", "message": "The variance is Inf.", "row": i}
            found.append(
                samples.finding("LN104", "collapsed-rows", severity, name, measured=9e4, limit=65504.0, **said)
            )
        least = 2.0 ** (i % 40 - 20)
        ends = [least * (1 + k / 4) for k in range(41)]
        bins = {"lower": ends[:-1], "upper": ends[1:], "rows": [k * (40 - k) + i + 1 for k in range(40)]}
        variance = {"min": ends[0], "p01": ends[1], "p50": ends[20], "p99": ends[39], "max": ends[40]}
        made.append(samples.site(name, results, variance_bins=bins, variance=variance))
    return samples.report(made, found)
