"""The tables of one site of a scan."""

from __future__ import annotations

from collections.abc import Iterable

from ... import wording
from ...findings import Finding
from ...report import Emulation, Result, SiteReport
from ...wording import verdict_word
from .parts import Cell, Row, Table, headings

# epsilon itself is what is wrong: the constants that others use are the next question
_ABOUT_EPSILON = ("LN301", "LN302")
_RESULT_TITLES = (
    "verdict",
    "format",
    "kernel",
    "use epsilon",
    "safe epsilons",
    "NaN/Inf rows",
    "all-zero rows",
    "var=0 rows",
    "ratio min / p50",
    "error p50 / max",
    "headroom",
    "first bad operation",
)
_MORE_TITLES = (
    "format and kernel",
    "epsilon as held",
    "failing rows",
    "cast error max",
    "variance error max",
    "scale error max",
    "residual error max",
    "error p99",
    "noise max",
    "rows lost in weight and bias",
    "rows with gradient overflow",
)


def results(site: SiteReport) -> Table:
    """Return what each emulation makes of the rows, the verdict first."""
    return Table(
        caption="Counts are rows. Error: RMS of a row against the exact result, 1 = normalized scale.",
        head=(headings(*_RESULT_TITLES),),
        rows=tuple(_result(result) for result in site.results),
    )


def _result(result: Result) -> Row:
    texts = (
        result.format,
        result.kernel,
        result.recommendation.use,
        wording.epsilon_range(result.recommendation.lower, result.recommendation.upper),
        wording.count(result.nonfinite_rows),
        wording.count(result.collapsed_rows),
        wording.count(result.variance_zero_rows),
        _pair(wording.ratio(result.collapse_ratio["min"]), wording.ratio(result.collapse_ratio["p50"])),
        _pair(wording.short(result.error["p50"]), wording.short(result.error["max"])),
        room(result.headroom),
        _first_bad(result),
    )
    verdict = Cell(text=verdict_word(result.verdict), verdict=result.verdict)
    cells = (Cell(text=text, scope="row" if i == 0 else "") for i, text in enumerate(texts))
    return Row(cells=(verdict, *cells))


def _pair(first: str, second: str) -> str:
    return first if first == second == "-" else f"{first} / {second}"


def worst(result: Emulation) -> str:
    """Return what is worst about an emulation: rows that are lost, or the largest error of one."""
    if result.nonfinite_rows:
        return f"{wording.count(result.nonfinite_rows)} NaN/Inf"
    if result.collapsed_rows:
        return f"{wording.count(result.collapsed_rows)} all zero"
    return f"error {wording.short(result.error['max'])}"


def room(headroom: float | None) -> str:
    """Write what is left of the range, "none" where it was left behind."""
    if headroom is None:
        return "-"
    return wording.percent(headroom) if headroom > 0 else "none"


def _first_bad(result: Emulation) -> str:
    said = [f"{operation} ({wording.count(rows)})" for operation, rows in result.first_bad_operation.items() if rows]
    return ", ".join(said) or "-"


def more(site: SiteReport, findings: Iterable[Finding]) -> tuple[Table, ...]:
    """Return the figures that are rarely asked for."""
    if not site.results:
        return ()
    about = {(f.format, f.kernel) for f in findings if f.code in _ABOUT_EPSILON}
    asked = [r for r in site.results if (r.format, r.kernel) in about and r.constants]
    figures = Table(
        caption="More figures of each emulation",
        head=(headings(*_MORE_TITLES),),
        rows=tuple(_figures(result) for result in site.results),
    )
    return (figures, *([_constants(asked)] if asked else []))


def _figures(result: Result) -> Row:
    texts = (
        f"{result.format} {result.kernel}",
        f"{wording.epsilon(result.epsilon_stored)} ({result.epsilon_class})",
        wording.count(result.failing_rows),
        wording.short(result.cast.error_max),
        wording.short(result.variance_error["max"]),
        wording.short(result.scale_error_max),
        wording.short(result.residual_error_max),
        wording.short(result.error["p99"]),
        wording.short(result.noise["max"]),
        wording.count(result.affine["nonfinite_rows"]),
        wording.count(result.gradient_overflow_rows),
    )
    return Row(cells=tuple(Cell(text=text, scope="" if i else "row") for i, text in enumerate(texts)))


def _constants(results: Iterable[Result]) -> Table:
    """Return what the epsilons in circulation would do to these rows."""
    rows = []
    for result in results:
        for constant in result.constants:
            texts = (
                wording.epsilon(constant.epsilon),
                wording.epsilon(constant.held),
                wording.count(constant.failing_rows),
                "-" if constant.distortion_max is None else wording.percent(constant.distortion_max),
            )
            cells = (Cell(text=text) for text in texts)
            rows.append(Row(cells=(Cell(text=f"{result.format} {result.kernel}", scope="row"), *cells)))
    titles = ("format and kernel", "epsilon", "held as", "rows that fail", "moves a row by up to")
    return Table(
        caption="Constants in use, on these rows; how far each moves a row: in the normalized scale",
        head=(headings(*titles),),
        rows=tuple(rows),
    )
