"""All sites at a glance: a row a site, a column a format and kernel."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from ..report import Report, SiteReport
from ..wording import count, verdict_word
from .style import Style, bound

Key = tuple[str, str]
_GAP = "  "
NOT_JUDGED = "not judged, for no row is finite"
_LABEL, _SHAPE, _TOTALS = "site", "rows x d", "sites that FAIL / warn"


def matrix_lines(report: Report, style: Style) -> list[str]:
    """Return the matrix of verdicts; where it does not fit the width, a list of the sites."""
    columns = _columns(report)
    tallies = [f"{fail}/{warn}" for fail, warn in (_tally(report.sites, key) for key in columns)]
    widths = _widths(columns, tallies)
    labels = [site_label(site, style) for site in report.sites]
    shapes = [f"{count(site.rows)} x {site.features}" for site in report.sites]
    longest, shape_width = max(len(_TOTALS), *map(len, labels)), max(len(_SHAPE), *map(len, shapes))
    room = style.columns - 2 * len(_GAP) - sum(widths) - len(_GAP) * (len(widths) - 1)
    if room < len(_TOTALS):
        return _list(report.sites, columns, style)
    if longest + len(_GAP) + shape_width <= room:
        titles = [f"{text:<{longest}}{_GAP}{shape:>{shape_width}}" for text, shape in zip(labels, shapes, strict=True)]
        first = f"{_LABEL:<{longest}}{_GAP}{_SHAPE:>{shape_width}}"
    else:
        titles, first = labels, _LABEL
    return _matrix(first, titles, report.sites, _Cells(columns, widths, tallies), style)


def site_label(site: SiteReport, style: Style) -> str:
    """Name a site, with its norm unless that is layer norm."""
    return style.safe(site.name) + (f" ({site.norm})" if site.norm != "layer" else "")


def _columns(report: Report) -> list[Key]:
    """Return the formats and kernels of all sites; a format's kernels stand together."""
    keys = dict.fromkeys((r.format, r.kernel) for site in report.sites for r in site.results)
    formats = list(dict.fromkeys(fmt for fmt, _ in keys))
    return sorted(keys, key=lambda key: formats.index(key[0]))


def _verdicts(site: SiteReport) -> dict[Key, str]:
    return {(r.format, r.kernel): r.verdict for r in site.results} if site.judged else {}


def _tally(sites: list[SiteReport], key: Key) -> tuple[int, int]:
    found = [_verdicts(site).get(key) for site in sites]
    return found.count("fail"), found.count("warn")


@dataclass(frozen=True, slots=True)
class _Cells:
    """The columns of verdicts, their widths and their last line."""

    columns: list[Key]
    widths: list[int]
    tallies: list[str]


def _matrix(first: str, titles: list[str], sites: list[SiteReport], cells: _Cells, style: Style) -> list[str]:
    """Set the verdicts beside the sites; a title that leaves no room for them stands above them."""
    room = style.columns - 2 * len(_GAP) - sum(cells.widths) - len(_GAP) * (len(cells.widths) - 1)
    width = max(len(title) for title in (first, _TOTALS, *titles) if len(title) <= room)
    formats, kernels = _titles(cells.columns, cells.widths)
    lines = [f"{_GAP}{'':<{width}}{_GAP}{formats}", f"{_GAP}{first:<{width}}{_GAP}{kernels}"]
    for title, site in zip(titles, sites, strict=True):
        if len(title) > width:
            lines.append(f"{_GAP}{title}")
        found = _verdicts(site)
        row = (_cell(found.get(key), w, style) for key, w in zip(cells.columns, cells.widths, strict=True))
        lines.append(f"{_GAP}{title if len(title) <= width else '':<{width}}{_GAP}{_GAP.join(row)}")
    totals = (f"{tally:>{w}}" for tally, w in zip(cells.tallies, cells.widths, strict=True))
    lines.append(f"{_GAP}{_TOTALS:<{width}}{_GAP}{_GAP.join(totals)}")
    return [line.rstrip() for line in lines]


def _widths(columns: list[Key], tallies: list[str]) -> list[int]:
    """Return the widths of the columns; a format needs room for its name above its kernels."""
    widths = [max(4, len(kernel), len(tally)) for (_, kernel), tally in zip(columns, tallies, strict=True)]
    for fmt in dict.fromkeys(fmt for fmt, _ in columns):
        mine = [i for i, key in enumerate(columns) if key[0] == fmt]
        span = sum(widths[i] for i in mine) + len(_GAP) * (len(mine) - 1)
        needed = len(fmt) if len(mine) == 1 else len(f"-- {fmt} --")
        widths[mine[0]] += max(0, needed - span)
    return widths


def _titles(columns: list[Key], widths: list[int]) -> tuple[str, str]:
    """Return the line of formats, each spanning its kernels, and the line of kernels."""
    spans = []
    for fmt, group in groupby(zip(columns, widths, strict=True), key=lambda pair: pair[0][0]):
        mine = [width for _, width in group]
        span = sum(mine) + len(_GAP) * (len(mine) - 1)
        spans.append(f" {fmt} ".center(span, "-") if len(mine) > 1 else fmt.rjust(span))
    kernels = (f"{kernel:>{width}}" for (_, kernel), width in zip(columns, widths, strict=True))
    return _GAP.join(spans), _GAP.join(kernels)


def _cell(verdict: str | None, width: int, style: Style) -> str:
    word = "-" if verdict is None else verdict_word(verdict)
    return " " * (width - len(word)) + (word if verdict is None else style.paint(word, verdict))


def _list(sites: list[SiteReport], columns: list[Key], style: Style) -> list[str]:
    """Return the sites with the verdict first, then which formats and kernels have which verdict."""
    lines: list[str] = []
    for site in sites:
        word = style.paint(verdict_word(site.verdict), site.verdict) if site.judged else "-   "
        lines.append(f"{_GAP}{word}  {site_label(site, style)}")
        lines += style.wrap(f"{count(site.rows)} x {site.features}: {_by_verdict(site)}", " " * 8, " " * 10)
    tallies = ((bound(f"{fmt} {kernel}"), *_tally(sites, (fmt, kernel))) for fmt, kernel in columns)
    bad = ", ".join(f"{name}{bound(' ')}{fail}/{warn}" for name, fail, warn in tallies if fail or warn)
    return lines + style.wrap(f"sites that FAIL / warn: {bad or 'none'}", _GAP, " " * 4)


def _by_verdict(site: SiteReport) -> str:
    """Name the results that do not pass; count the others."""
    if not site.judged:
        return NOT_JUDGED
    parts = []
    for verdict in ("fail", "warn"):
        names = [bound(f"{r.format} {r.kernel}") for r in site.results if r.verdict == verdict]
        if names:
            parts.append(f"{verdict_word(verdict)} {', '.join(names)}")
    passed = sum(r.verdict == "pass" for r in site.results)
    if passed:
        parts.append(f"{passed} of {len(site.results)} pass")
    return "; ".join(parts)
