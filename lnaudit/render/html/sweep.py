"""The page of a sweep: from where to where each emulation passes, its curves, its points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ... import wording
from ...report import Point, SweepReport, SweptResult, SweptSite
from ...wording import verdict_word
from ..sweep import run_text
from ..terminal_site import flushing, header_lines
from ..totals import exit_sentences
from .assumed import assumptions
from .brevity import drawn_sites, left_out
from .figures import figure, figures
from .finding_parts import explained, told
from .marks import NOT_JUDGED, OfSite, badge, by_site
from .parts import UNWRAPPED, Anchors, Cell, Page, Row, Section, Table, headings, label, said, total_parts

_LEGEND = (
    "Error: RMS of a row against the exact result, 1 = normalized scale. Every point is judged as a scan with that "
    "epsilon judges it.",
    "Ratio: q/(q+eps) of the median row: 1 where the data set the scale of the output, near 0 where epsilon does.",
)
_POINT_TITLES = (
    "verdict",
    "epsilon",
    "held as",
    "ratio",
    "output std",
    "error p50",
    "error max",
    "failing rows",
    "NaN/Inf rows",
    "all-zero rows",
    "why",
)


def sweep_page(report: SweepReport) -> Page:
    """Return what the page of a sweep shows."""
    from ...pictures import map_picture

    anchors = Anchors()
    ids = [anchors.new(site.name) for site in report.sites]
    by_name = by_site(report)
    drawn = drawn_sites(report, by_name)
    codes = [finding.code for finding in report.findings]
    codes += [code for site in report.sites for r in site.results for point in r.points for code in point.codes]
    codes += [code for found in report.maps for row in found.codes for cell in row for code in cell]
    return Page(
        kind=report.kind,
        version=report.lnaudit_version,
        total=total_parts(report),
        sentences=tuple(exit_sentences(report)),
        assumed=assumptions(report),
        todos=(),
        overview=_overview(report, ids, by_name) if report.sites else None,
        epsilon=None,
        not_audited=tuple((entry.source, entry.reason) for entry in report.not_audited),
        notes=tuple(report.notes),
        legend=(*_LEGEND, *flushing(report.config)),
        sections=tuple(
            _section(site, report, where, by_name[site.name], drawn=site.name in drawn)
            for site, where in zip(report.sites, ids, strict=True)
        ),
        maps=tuple(figure(map_picture(found)) for found in report.maps),
        rules=explained(codes),
    )


def _section(site: SweptSite, report: SweepReport, where: str, found: OfSite, *, drawn: bool) -> Section:
    from ...pictures import curves_picture, response_picture

    _, *facts = header_lines(site, UNWRAPPED, epsilon="the site's epsilon")
    results = site.results if site.judged else []
    nothing = [] if site.judged else [NOT_JUDGED]
    left = [left_out(site)] if results and not drawn else []
    return Section(
        id=where,
        name=site.name,
        source=site.source if site.source != site.name else "",
        marks=(badge(site), *found.all_marks()),
        facts=(*facts, *_before_rounding(site), *nothing, *left),
        words=_words(site, found),
        figures=figures(response_picture(site), curves_picture(site, report.config.get("limits")) if drawn else None),
        tables=(_runs(site, report), _grid(site)) if results else (),
        findings=told(f for f in found.findings if not f.latent),
        latent=told(f for f in found.findings if f.latent),
        more=tuple(_points(result, report) for result in results),
    )


def _words(site: SweptSite, found: OfSite) -> str:
    named = dict.fromkeys(f"{f.code} {f.name}" for f in found.findings)
    marked = [mark.text for mark in (badge(site), *found.all_marks())]
    codes = dict.fromkeys(code for r in site.results for point in r.points for code in point.codes)
    return " ".join([said(site.name), said(site.source), *marked, *named, *codes]).lower()


def _before_rounding(site: SweptSite) -> list[str]:
    closed = any(result.error_by == "closed-form" for result in site.results)
    return ["Errors are those before the output is rounded."] if closed else []


def _named(result: SweptResult) -> str:
    return f"{result.format} {result.kernel}"


def _passing(result: SweptResult) -> Cell:
    """Say at how many epsilons an emulation passes, and between which."""
    passing = [point for point in result.points if point.verdict == "pass"]
    if not passing:
        return Cell(text="none pass", verdict="fail")
    ends = dict.fromkeys(wording.epsilon(point.epsilon) for point in (passing[0], passing[-1]))
    everywhere = len(passing) == len(result.points)
    text = "all pass" if everywhere else f"{len(passing)} of {len(result.points)} pass"
    return Cell(text=text, below=(" to ".join(ends),), verdict="pass" if everywhere else "warn")


def _overview(report: SweepReport, ids: Sequence[str], by_name: Mapping[str, OfSite]) -> Table:
    keys = list(dict.fromkeys(_named(result) for site in report.sites for result in site.results))
    rows = []
    for site, where in zip(report.sites, ids, strict=True):
        found = {_named(result): _passing(result) for result in site.results if site.judged}
        cells = (found.get(key, Cell(text="-")) for key in keys)
        marks = (*([] if site.judged else [badge(site)]), *by_name[site.name].marks())
        title = Cell(text=label(site.name), marks=marks, href=where, scope="row")
        rows.append(Row(cells=(title, *cells), of=where))
    return Table(
        caption="At how many of the epsilons each emulation passes, and the smallest and largest of them",
        head=(headings("site", *keys),),
        rows=tuple(rows),
        wide=True,
    )


def _runs(site: SweptSite, report: SweepReport) -> Table:
    rows = [
        Row(cells=(Cell(text=_named(result), scope="row"), Cell(text=run_text(result, report.rules))))
        for result in site.results
    ]
    return Table(
        caption="From where to where, and why", head=(headings("format and kernel", "verdicts"),), rows=tuple(rows)
    )


def _grid(site: SweptSite) -> Table:
    rows = []
    for number, first in enumerate(site.results[0].points):
        points = [result.points[number] for result in site.results]
        own = ("the site's own",) if site.name != site.source and first.epsilon == site.epsilon else ()
        title = Cell(text=wording.epsilon(first.epsilon), below=own, scope="row")
        cells = (_judged(point) for point in points)
        rows.append(Row(cells=(title, Cell(text=wording.ratio(first.collapse_ratio)), *cells)))
    return Table(
        caption="Verdict and worst row: its error, or how many rows are lost",
        head=(headings("epsilon", "ratio", *map(_named, site.results)),),
        rows=tuple(rows),
        wide=True,
    )


def _judged(point: Point) -> Cell:
    if point.nonfinite_rows:
        worst = f"{wording.count(point.nonfinite_rows)} NaN/Inf"
    elif point.collapsed_rows:
        worst = f"{wording.count(point.collapsed_rows)} all zero"
    else:
        worst = f"error {wording.short(point.error['max'])}"
    return Cell(text=verdict_word(point.verdict), below=(worst,), verdict=point.verdict)


def _points(result: SweptResult, report: SweepReport) -> Table:
    return Table(
        caption=f"All figures of {_named(result)}",
        head=(headings(*_POINT_TITLES),),
        rows=tuple(_point(point, report) for point in result.points),
    )


def _point(point: Point, report: SweepReport) -> Row:
    texts = (
        wording.epsilon(point.epsilon_stored),
        wording.ratio(point.collapse_ratio),
        wording.magnitude(point.output_std),
        wording.short(point.error["p50"]),
        wording.short(point.error["max"]),
        wording.count(point.failing_rows),
        wording.count(point.nonfinite_rows),
        wording.count(point.collapsed_rows),
        ", ".join(f"{code} {report.rules.get(code, '')}".strip() for code in point.codes) or "-",
    )
    verdict = Cell(text=verdict_word(point.verdict), verdict=point.verdict)
    named = Cell(text=wording.epsilon(point.epsilon), scope="row")
    return Row(cells=(verdict, named, *(Cell(text=text) for text in texts)))
