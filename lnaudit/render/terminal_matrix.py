"""All sites at a glance: a row a site, a column a format and kernel."""

from __future__ import annotations

from itertools import groupby

from ..report import Report, SiteReport
from .numbers import count
from .style import Style, verdict_word

_GAP = "  "
Key = tuple[str, str]
VERDICTS = ("fail", "warn", "pass")


def matrix_lines(report: Report, style: Style) -> list[str]:
    """Return the matrix of verdicts; where it does not fit the width, a list of the sites."""
    columns = _columns(report)
    lines = _matrix(report.sites, columns, style)
    widest = max(len(line) for line in _matrix(report.sites, columns, Style(ascii=style.ascii)))
    return lines if widest <= style.columns else _list(report.sites, columns, style)


def site_label(site: SiteReport, style: Style) -> str:
    """Name a site, with its norm unless that is layer norm."""
    return style.safe(site.name) + (f" ({site.norm})" if site.norm != "layer" else "")


def _columns(report: Report) -> list[Key]:
    """Return the formats and kernels of all sites; a format's kernels stand together."""
    keys = dict.fromkeys((r.format, r.kernel) for site in report.sites for r in site.results)
    formats = list(dict.fromkeys(fmt for fmt, _ in keys))
    return sorted(keys, key=lambda key: formats.index(key[0]))


def _verdicts(site: SiteReport) -> dict[Key, str]:
    return {(r.format, r.kernel): r.verdict for r in site.results}


def _tally(sites: list[SiteReport], key: Key) -> tuple[int, int]:
    found = [_verdicts(site).get(key) for site in sites]
    return found.count("fail"), found.count("warn")


def _matrix(sites: list[SiteReport], columns: list[Key], style: Style) -> list[str]:
    names = ["site", *(site_label(site, style) for site in sites), "sites that FAIL / warn"]
    shapes = ["rows x d", *(f"{count(site.rows)} x {site.features}" for site in sites), ""]
    name_width, shape_width = max(map(len, names)), max(map(len, shapes))
    tallies = [f"{fail}/{warn}" for fail, warn in (_tally(sites, key) for key in columns)]
    widths = _widths(columns, tallies)

    def start(i: int) -> str:
        return f"{_GAP}{names[i]:<{name_width}}{_GAP}{shapes[i]:>{shape_width}}{_GAP}"

    formats, kernels = _titles(columns, widths)
    lines = [" " * len(start(0)) + formats, start(0) + kernels]
    for i, site in enumerate(sites, 1):
        found = _verdicts(site)
        cells = (_cell(found.get(key), width, style) for key, width in zip(columns, widths, strict=True))
        lines.append(start(i) + _GAP.join(cells))
    totals = _GAP.join(f"{tally:>{width}}" for tally, width in zip(tallies, widths, strict=True))
    return [*lines, start(len(sites) + 1) + totals]


def _widths(columns: list[Key], tallies: list[str]) -> list[int]:
    """Return the widths of the columns; a format with one kernel needs room for its own name."""
    formats = [fmt for fmt, _ in columns]
    return [
        max(4, len(kernel), len(tally), len(fmt) if formats.count(fmt) == 1 else 0)
        for (fmt, kernel), tally in zip(columns, tallies, strict=True)
    ]


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
        word = verdict_word(site.verdict)
        lines.append(f"{_GAP}{style.paint(word, site.verdict)}  {site_label(site, style)}")
        lines += style.wrap(f"{count(site.rows)} x {site.features}: {_by_verdict(site)}", " " * 8, " " * 10)
    tallies = ((f"{fmt} {kernel}", *_tally(sites, (fmt, kernel))) for fmt, kernel in columns)
    bad = ", ".join(f"{name} {fail}/{warn}" for name, fail, warn in tallies if fail or warn)
    return lines + style.wrap(f"sites that FAIL / warn: {bad or 'none'}", _GAP, " " * 4)


def _by_verdict(site: SiteReport) -> str:
    parts = []
    for verdict in VERDICTS:
        names = [f"{r.format} {r.kernel}" for r in site.results if r.verdict == verdict]
        if names:
            parts.append(f"{verdict_word(verdict)} {', '.join(names)}")
    return "; ".join(parts)
