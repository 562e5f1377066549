"""The section of one site: what was assumed, the input, the table, the findings; and the legend of all sections."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import wording
from ..findings import SEVERITIES, Finding
from ..report import Disagreement, Report, SiteFigures, SiteReport
from ..wording import counted, joined
from .limits import accepted_errors
from .style import Style
from .terminal_findings import finding_lines
from .terminal_table import choose_layout, table_lines

NORMS = {"layer": "LayerNorm", "rms": "RMSNorm", "group": "GroupNorm", "instance": "InstanceNorm"}
_FORMULAS = {
    "layer": "LayerNorm: (x-mean)/sqrt(q+eps) * weight + bias, q = mean((x-mean)^2).",
    "rms": "RMSNorm: x/sqrt(q+eps) * weight + bias, q = mean(x^2).",
}
_EPSILON_SOURCES = {"default": "default; yours: --eps", "option": "--eps"}
_OPTIONS = {"epsilon": "--eps"}
_INDENT = "  "
_HANGING = "    "
# the textbook kernels in half a line each; `lnaudit kernels` tells the rest
_KERNELS = {
    "native-serial": "every step rounded to the format, sums from left to right",
    "native": "every step rounded to the format",
    "decomposed": "sums in float32, each tensor between the steps rounded to the format",
    "stored-stats": "float32 inside, mean and variance rounded to the format",
    "fused": "float32 inside, rounded once",
}


def site_lines(site: SiteReport, findings: Sequence[Finding], style: Style) -> list[str]:
    """Return the section of a site; `findings` are those of the whole report."""
    mine = sorted((f for f in findings if f.site == site.name), key=lambda f: (f.latent, SEVERITIES.index(f.severity)))
    paragraphs = finding_lines(site, mine, style)
    differing = [line for entry in site.disagreements for line in style.wrap(apart(entry), _INDENT, _HANGING)]
    parts = [header_lines(site, style), table_lines(site.results, style), differing, paragraphs]
    return [line for part in filter(None, parts) for line in ("", *part)][1:]


def apart(entry: Disagreement) -> str:
    """Say which two programs differ most in a format, where, and by how much."""
    names = joined(entry.kernels)
    if math.isinf(entry.rms):
        return f"{entry.format}: {names} differ most in row {entry.row}, which is NaN or Inf in one of them only."
    return f"{entry.format}: {names} differ most in row {entry.row}, by {wording.short(entry.rms)} (RMS)."


def legend_lines(report: Report, style: Style) -> list[str]:
    """Return what the columns and the kernels mean, for those that were printed."""
    results = [result for site in report.sites for result in site.results]
    layouts = [choose_layout(site.results, style) for site in report.sites]
    facts = ["Counts are rows.", "Error: RMS of a row against the exact result, 1 = normalized scale."]
    if any(layout is None or layout.has_ratio for layout in layouts):
        facts.append("Ratio: variance that comes out, 1 = all; smallest/median row.")
    formulas = (_FORMULAS[norm] for norm in dict.fromkeys(site.norm for site in report.sites) if norm in _FORMULAS)
    facts += [*formulas, *_limit(report, style), f"Epsilons tried: {_tried()}.", *flushing(report.config)]
    if any(r.recommendation.epsilon is not None and not r.recommendation.verified for r in results):
        facts.append("?: not verified by a second run.")
    used = [name for name in _KERNELS if any(r.kernel == name for r in results)]
    lines = _packed(facts, style)
    lines += _packed([f"{name}: {_KERNELS[name]}." for name in used], style)
    return [*lines, *style.wrap("Which of them is yours?  lnaudit kernels", _INDENT, _HANGING)]


def _packed(sentences: Sequence[str], style: Style) -> list[str]:
    """Put as many whole sentences on a line as fit."""
    lines: list[str] = []
    for sentence in sentences:
        if lines and len(lines[-1]) + len(sentence) + 2 <= style.text_columns:
            lines[-1] += f"  {sentence}"
        else:
            lines += style.wrap(sentence, _INDENT, _HANGING)
    return lines


def flushing(config: dict[str, Any]) -> list[str]:
    """Say which subnormal numbers count as zero."""
    dtypes = config.get("flush_subnormals", "none")
    which = {"all": "all dtypes", "T": "the audited format"}.get(dtypes, dtypes)
    return [] if dtypes == "none" else [f"Subnormal numbers of {which} are flushed to zero (--ftz)."]


def _tried() -> str:
    return f"{wording.epsilon(wording.LOWEST_TRIED)} to {wording.epsilon(wording.HIGHEST_TRIED)}"


def _limit(report: Report, style: Style) -> list[str]:
    """Say up to which error a row is fine, by format and by site where that differs."""
    text = accepted_errors(report.config, report.sites, style.safe)
    return [f"Limit: {text}, or twice what the cast alone costs."] if text else []


def header_lines(site: SiteFigures, style: Style, epsilon: str = "") -> list[str]:
    """Return what a site is and what was assumed; `epsilon`: what its epsilon is here, if not the audited one."""
    name, source = style.safe(site.name), style.safe(site.source)
    titles = [f"{name}   {source}"] if name != source else [name]
    if len(titles[0]) > style.columns:
        titles = [name, f"{_INDENT}{source}"]
    notes = [style.safe(note) for note in site.notes]
    facts = [
        f"source: {style.safe(site.anchor)}" if site.anchor else "",
        _assumed(site, epsilon),
        *notes,
        _input(site.input, site.norm),
        *_parameters(site.parameters),
        _variance(site),
    ]
    return [*titles, *(line for fact in facts for line in style.wrap(fact, _INDENT, _HANGING))]


def _assumed(site: SiteFigures, called: str) -> str:
    axes = [site.axis] if isinstance(site.axis, int) else site.axis
    where = f"{'axis' if len(axes) == 1 else 'axes'} {', '.join(map(str, axes))}"
    source = _EPSILON_SOURCES.get(site.epsilon_source, site.epsilon_source)
    options = [_OPTIONS.get(name, f"--{name}") for name in site.overridden]
    override = f"; {joined(options)} override{'s' * (len(options) == 1)} the manifest" if options else ""
    size = f"{counted(site.rows, 'row')} x {counted(site.features, 'feature')}, {site.dtype}"
    epsilon = f"{called or 'epsilon'} {wording.epsilon(site.epsilon)} ({site.epsilon_source if called else source})"
    given = joined(name for name in ("weight", "bias") if site.parameters.get(name))
    extra = f"; with {given}" if given else ""
    return f"{NORMS.get(site.norm, site.norm)} over {where}: {size}; {epsilon}{override}{extra}"


def _input(figures: dict[str, Any], norm: str) -> str:
    def number(key: str) -> int:
        return int(figures.get(key) or 0)

    zero, constant = number("zero_rows"), number("constant_rows")
    parts = [
        (number("nan_rows"), counted(number("nan_rows"), "row") + " all NaN (padding?)"),
        (number("partly_nan_rows"), counted(number("partly_nan_rows"), "row") + " partly NaN"),
        (number("inf_rows"), counted(number("inf_rows"), "row") + " with Inf"),
        (number("nan"), counted(number("nan"), "NaN element")),
        (number("inf"), counted(number("inf"), "Inf element")),
        (zero, counted(zero, "zero row")),
        (
            constant if norm != "rms" else 0,
            counted(constant, "constant row") + (f" ({wording.count(zero)} of them zero)" if zero else ""),
        ),
    ]
    said = [text for amount, text in parts if amount]
    if not any(amount for amount, _ in parts[:5]):
        said.insert(0, "all finite")
        if not zero and not constant:
            said.append("no zero rows" if norm == "rms" else "no zero or constant rows")
    if figures.get("max_abs") is not None:
        said.append(f"max |x| {wording.magnitude(figures['max_abs'])}")
    return f"input: {', '.join(said)}"


def _parameters(figures: dict[str, Any]) -> list[str]:
    amounts = ((name, int(figures.get(f"{name}_nonfinite") or 0)) for name in ("weight", "bias"))
    bad = [f"{counted(amount, 'NaN or Inf element')} in {name}" for name, amount in amounts if amount]
    return [f"parameters: {joined(bad)}"] if bad else []


def _variance(site: SiteFigures) -> str:
    what = "mean square" if site.norm == "rms" else "variance"
    if site.variance.get("min") is None:
        if not site.input.get("finite_rows"):
            return f"{what}: no row is finite"
        return f"{what}: every {'finite ' * (site.input['finite_rows'] < site.rows)}row is {_degenerate(site.norm)}"
    figures = ", ".join(f"{key} {wording.magnitude(site.variance.get(key))}" for key in ("min", "p01", "p50", "max"))
    least = wording.exact_ratio(site.collapse_ratio.get("min"))
    rows = site.epsilon_dominated_rows
    dominated = f"; q < eps in {counted(rows, 'row')}" if rows else ""
    return f"{what}: {figures}; collapse ratio q/(q+eps): min {least}{dominated}"


def _degenerate(norm: str) -> str:
    return "zero" if norm == "rms" else "constant"
