"""The page of a scan or a check: what fails, where, what to do; then every site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ... import wording
from ...report import Report, Result, SiteReport
from ...wording import counted, verdict_word
from ..terminal_matrix import site_label
from ..terminal_site import apart, header_lines, legend_lines
from ..totals import exit_sentences
from . import scan_tables
from .assumed import assumptions
from .brevity import drawn_sites, left_out
from .figures import figures
from .finding_parts import explained, told, told_accepted
from .marks import NOT_JUDGED, OfSite, badge, by_site
from .parts import UNWRAPPED, Anchors, Cell, Page, Row, Section, Table, headings, label, said, total_parts
from .todos import todos

_NAMED_SITES = 6
Key = tuple[str, str]


def scan_page(report: Report) -> Page:
    """Return what the page of a scan or a check shows."""
    anchors = Anchors()
    ids = [anchors.new(site.name) for site in report.sites]
    found = by_site(report)
    drawn = drawn_sites(report, found)
    return Page(
        kind=report.kind,
        version=report.lnaudit_version,
        total=total_parts(report),
        sentences=(*_known(report), *exit_sentences(report)),
        assumed=assumptions(report),
        todos=todos(report, ids),
        overview=_overview(report, ids, found) if report.sites else None,
        epsilon=_model_epsilon(report),
        not_audited=tuple((entry.source, entry.reason) for entry in report.not_audited),
        notes=tuple(report.notes),
        legend=tuple(legend_lines(report, UNWRAPPED)) if report.sites else (),
        sections=tuple(
            _section(site, found[site.name], where, drawn=site.name in drawn)
            for site, where in zip(report.sites, ids, strict=True)
        ),
        rules=explained(f.code for f in (*report.findings, *(entry.finding for entry in report.accepted))),
    )


def _known(report: Report) -> list[str]:
    known = sum(finding.known for finding in report.findings)
    return [f"{counted(known, 'finding')} known from before: dimmed, and not counted by the gate."] if known else []


def _section(site: SiteReport, found: OfSite, where: str, *, drawn: bool) -> Section:
    from ...pictures import window_picture

    _, *facts = header_lines(site, UNWRAPPED)
    findings, results = found.findings, site.results if site.judged else []
    return Section(
        id=where,
        name=site.name,
        source=site.source if site.source != site.name else "",
        marks=(badge(site), *found.all_marks()),
        facts=(*facts, *([] if site.judged else [NOT_JUDGED]), *([left_out(site)] if results and not drawn else [])),
        words=_words(site, found),
        figures=figures(window_picture(site)) if drawn else (),
        tables=(scan_tables.results(site),) if results else (),
        remarks=tuple(apart(entry) for entry in site.disagreements),
        findings=told((f for f in findings if not f.latent), site.results),
        latent=told((f for f in findings if f.latent), site.results),
        accepted=told_accepted(found.accepted),
        more=scan_tables.more(site, findings) if results else (),
    )


def _words(site: SiteReport, found: OfSite) -> str:
    """Return what a search may name: the site, its verdict and marks, what was found."""
    findings = (*found.findings, *(entry.finding for entry in found.accepted))
    named = dict.fromkeys(f"{f.code} {f.name}" for f in findings)
    marked = [mark.text for mark in (badge(site), *found.all_marks())]
    return " ".join([said(site.name), said(site.source), *marked, site.norm, *named]).lower()


def _columns(report: Report) -> dict[str, list[str]]:
    """Return the formats with the kernels that any site has in them."""
    columns: dict[str, list[str]] = {}
    for site in report.sites:
        for result in site.results:
            kernels = columns.setdefault(result.format, [])
            if result.kernel not in kernels:
                kernels.append(result.kernel)
    return columns


def _overview(report: Report, ids: Sequence[str], by_name: Mapping[str, OfSite]) -> Table:
    """Return all sites in their order, a cell a format and kernel."""
    columns = _columns(report)
    keys = [(fmt, kernel) for fmt, kernels in columns.items() for kernel in kernels]
    rows = []
    for site, where in zip(report.sites, ids, strict=True):
        found = {(r.format, r.kernel): r for r in site.results} if site.judged else {}
        shape = f"{wording.count(site.rows)} x {site.features}"
        marks = (*([] if site.judged else [badge(site)]), *by_name[site.name].marks())
        title = Cell(text=label(site_label(site, UNWRAPPED)), below=(shape,), marks=marks, href=where, scope="row")
        cells = (_glance(found.get(key), where, by_name[site.name]) for key in keys)
        rows.append(Row(cells=(title, *cells), of=where))
    formats = (Cell(text=fmt, scope="colgroup", span=len(kernels)) for fmt, kernels in columns.items())
    return Table(
        caption="Each cell: the verdict; the largest error of a row, or how many rows are lost; the headroom that is "
        "left before the range ends.",
        head=(
            Row(cells=(Cell(text="site", scope="col", down=2), *formats)),
            headings(*(label(kernel) for _, kernel in keys)),
        ),
        rows=(*rows, _tallies(report.sites, keys)) if len(rows) > 1 else tuple(rows),
        wide=True,
    )


def _glance(result: Result | None, where: str, found: OfSite) -> Cell:
    if result is None:
        return Cell(text="-")
    below = (scan_tables.worst(result), f"room {scan_tables.room(result.headroom)}")
    marks = found.marks_at(result.format, result.kernel)
    return Cell(text=verdict_word(result.verdict), below=below, marks=marks, verdict=result.verdict, href=where)


def _tallies(sites: Sequence[SiteReport], keys: Sequence[Key]) -> Row:
    cells = [Cell(text="sites that FAIL / warn", scope="row")]
    for key in keys:
        found = [r.verdict for site in sites if site.judged for r in site.results if (r.format, r.kernel) == key]
        cells.append(Cell(text=f"{found.count('fail')} / {found.count('warn')}"))
    return Row(cells=tuple(cells))


def _model_epsilon(report: Report) -> Table | None:
    """Return one epsilon for the sites that share the model's; a config holds one number."""
    entries = [entry for entry in report.epsilon if entry.site_count > 1]
    if not entries:
        return None
    rows = []
    for entry in entries:
        keeps = entry.epsilon is not None and wording.epsilon(entry.epsilon) == wording.epsilon(entry.model_epsilon)
        use = "none fits them all" if entry.epsilon is None else "keep" if keeps else wording.epsilon(entry.epsilon)
        names = [label(name) for name in entry.sites[:_NAMED_SITES]]
        names += [f"{len(entry.sites) - len(names)} more"] if len(entry.sites) > len(names) else []
        cells = (
            Cell(text=f"{entry.format} {entry.kernel}", scope="row"),
            Cell(text=wording.epsilon(entry.model_epsilon)),
            Cell(text=use, verdict="fail" if entry.epsilon is None else "pass" if keeps else "warn"),
            Cell(text=wording.epsilon_range(entry.lower, entry.upper)),
            Cell(text=str(entry.site_count)),
            Cell(text=", ".join(names) or "-"),
        )
        rows.append(Row(cells=cells))
    titles = ("format and kernel", "the model's", "use", "safe for all", "sites", "set by")
    return Table(
        caption="A config file holds one number: what is safe for all sites that share an epsilon.",
        head=(headings(*titles),),
        rows=tuple(rows),
    )
