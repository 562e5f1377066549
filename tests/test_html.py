"""The page of a report: well-formed, complete, inert whatever the names are, the same bytes every time."""

from __future__ import annotations

import base64
import hashlib
import sys
from functools import cache
from itertools import pairwise

import pytest

from lnaudit.errors import LnauditError
from lnaudit.render.html import page as page_module
from lnaudit.render.html import render_html
from lnaudit.report import Document
from lnaudit.rules import RULES

from . import page_samples, report_samples
from .page_reader import Reader

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

# what a page may hold; no name can add to it
ELEMENTS = {
    *("html", "head", "meta", "title", "link", "style", "script", "body", "header", "nav", "main", "section", "footer"),
    *("article", "form", "label", "input", "button", "output", "h1", "h2", "h3", "h4", "p", "ul", "ol", "li", "dl"),
    *("dt", "dd", "div", "a", "span", "strong", "small", "bdi", "pre", "figure", "figcaption", "details", "summary"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td"),
    *("svg", "g", "defs", "path", "use", "text", "tspan", "rect", "clippath", "pattern", "marker"),
}


DOCUMENTS = {
    **report_samples.SAMPLES,
    "real_scan": page_samples.real_scan,
    "real_sweep": page_samples.real_sweep,
    "hostile_names": page_samples.hostile_scan,
}


@cache
def written(name: str) -> str:
    return render_html(DOCUMENTS[name]())


@pytest.fixture(params=DOCUMENTS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def text(name: str) -> str:
    return written(name)


@pytest.fixture
def read(text: str) -> Reader:
    return Reader(text)


def test_every_link_leads_to_one_place_on_the_page(read):
    assert len(read.ids) == len(set(read.ids))
    assert {"#main", "#assumed"} <= set(read.links)
    for link in read.links:
        assert link.startswith("#"), link
        assert link[1:] in read.ids, link


def test_headings_stand_in_order(read):
    levels = [int(tag[1]) for tag, _ in read.elements if tag in ("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))


def test_every_table_has_a_caption_and_headings_with_a_scope(read):
    tags = [tag for tag, _ in read.elements]
    assert tags.count("caption") == tags.count("table")
    headings = [attributes for tag, attributes in read.elements if tag == "th"]
    assert all(attributes.get("scope") in ("col", "row", "colgroup") for attributes in headings)


def test_lines_of_a_table_are_as_wide_as_its_headings(text):
    for table in text.split("<table")[1:]:
        head, _, body = table.partition("</table>")[0].partition("<tbody>")
        reader = Reader(head.partition("<thead>")[2].partition("</thead>")[0])
        width = sum(int(a.get("colspan") or 1) for t, a in reader.elements if t == "th" and a["scope"] != "colgroup")
        for line in body.split("</tr>")[:-1]:
            assert line.count("<th") + line.count("<td") == width


def test_nothing_but_known_elements_and_no_handlers(read):
    for tag, attributes in read.elements:
        assert tag in ELEMENTS
        assert not [name for name in attributes if name.startswith("on")]


def test_nothing_is_loaded(read, text):
    addresses = [
        value
        for _, attributes in read.elements
        for name, value in attributes.items()
        if name in ("src", "href", "xlink:href", "srcset", "action", "data", "poster")
    ]
    assert all(value.startswith("#") or value == "data:," for value in addresses)
    assert "url(" not in text.replace("url(#", "")
    assert "@import" not in text
    assert "default-src 'none'" in text


def test_there_is_one_script_and_the_policy_names_its_hash(read, text):
    assert [tag for tag, _ in read.elements].count("script") == 1
    script = text.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text


def test_the_same_report_gives_the_same_bytes(name, text):
    assert render_html(DOCUMENTS[name]()) == text


def test_text_holds_no_character_that_cannot_be_seen(text):
    text.encode()  # no lone surrogates
    assert all(character.isprintable() or character == "\n" for character in text)


@pytest.mark.parametrize("name", ["real_scan", "silent_zero", "several", "bad_input", "hostile_names"])
def test_every_site_and_finding_is_there(name):
    report = DOCUMENTS[name]()
    shown = Reader(written(name)).text
    for site in report.sites:
        if site.name.isprintable():
            assert " ".join(site.name.split()) in shown
    for finding in report.findings:
        for said in (finding.code, finding.name, finding.title, finding.message):
            if said.isprintable():
                assert " ".join(said.split()) in shown


@pytest.mark.parametrize("hostile", page_samples.HOSTILE_NAMES)
def test_hostile_names_are_shown_as_text(hostile):
    read = Reader(written("hostile_names"))
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in hostile)
    assert " ".join(shown.split()) in read.text


def test_a_search_finds_a_site_by_its_name_verdict_and_codes():
    report = page_samples.real_scan()
    read = Reader(written("real_scan"))
    words = [attributes["data-words"] or "" for _, attributes in read.elements if "data-words" in attributes]
    assert [site.name.lower() in text for site, text in zip(report.sites, words, strict=True)] == [True] * 3
    silent = next(text for text in words if "silent_zero" in text)
    assert {"fail", "ln104", "collapsed-rows"} <= set(silent.split())


def test_remedies_and_explanations_are_on_the_page():
    report = page_samples.real_scan()
    shown = Reader(written("real_scan")).text
    for site in report.sites:
        for result in site.results:
            cured = {f.code for f in report.findings if (f.site, f.format, f.kernel) == _key(site, result)}
            for remedy in result.remedies:
                if cured & set(remedy.cures):
                    assert remedy.detail in shown
    for code in {finding.code for finding in report.findings}:
        explanation = RULES[code].explanation
        for said in (explanation.summary, explanation.what_it_does, *explanation.example, *explanation.references):
            assert " ".join(said.split()) in shown


def _key(site, result):
    return site.name, result.format, result.kernel


def test_every_picture_has_its_data_beside_it():
    for name in ("real_scan", "real_sweep"):
        tags = [tag for tag, _ in Reader(written(name)).elements]
        pictures = [i for i, tag in enumerate(tags) if tag == "figure"]
        assert pictures
        for i in pictures:
            end = tags.index("table", i)
            assert {"svg", "figcaption", "details"} <= set(tags[i:end])


def test_a_sweep_shows_every_point_curves_response_and_map():
    report = page_samples.real_sweep()
    read = Reader(written("real_sweep"))
    assert [tag for tag, _ in read.elements].count("figure") == 2 + 1 + len(report.maps)
    assert "maps" in read.ids
    for site in report.sites:
        for result in site.results:
            assert f"All figures of {result.format} {result.kernel}" in read.text


def test_a_missing_library_is_one_line_that_says_what_to_install(monkeypatch):
    page_module._environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(LnauditError, match=r"needs? the extra report; pip install 'lnaudit\[report\]'$"):
        render_html(report_samples.healthy())


def test_other_documents_are_refused():
    other = Document(kind="diff", lnaudit_version="0", config={}, summary={}, not_audited=[], findings=[])
    with pytest.raises(LnauditError, match="is no scan, check or sweep"):
        render_html(other)
