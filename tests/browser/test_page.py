"""The page in Chromium: nothing is loaded, nothing overflows, all of it can be reached and read.

These need playwright and /usr/bin/chromium, and are skipped, with a reason, where one is missing. Where LNAUDIT_BROWSER
is set, as in .ci/run, a reason to skip them is an error.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lnaudit.render.html import render_html

from .. import page_samples

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = Path("/usr/bin/chromium")
CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")
SITES = 200
DOCUMENTS = {
    "scan": page_samples.real_scan,
    "sweep": page_samples.real_sweep,
    "hostile": page_samples.hostile_scan,
}
WIDTHS = (1280, 390)
SCHEMES = ("light", "dark")


def _reason() -> str:
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed"
    missing = [name for name in ("jinja2", "matplotlib") if importlib.util.find_spec(name) is None]
    if missing:
        return f"{missing[0]} is not installed"
    return "" if CHROMIUM.exists() else f"there is no {CHROMIUM}"


if _reason():
    if os.environ.get("LNAUDIT_BROWSER"):
        pytest.fail(f"LNAUDIT_BROWSER: {_reason()}", pytrace=False)
    pytest.skip(_reason(), allow_module_level=True)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    quiet = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=[*quiet, "--disable-sync", "--no-first-run"]
        )
        yield started
        started.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Give the address of the page of a document, which is made once."""
    folder, made = tmp_path_factory.mktemp("pages"), {}

    def address(name: str) -> str:
        if name not in made:
            path = folder / f"{name}.html"
            path.write_text(render_html(DOCUMENTS[name]()), encoding="utf-8", newline="")
            made[name] = path.as_uri()
        return made[name]

    return address


class Opened:
    """A page in a window of its own, and all that it said and asked for."""

    def __init__(self, browser: Browser, address: str, **options: Any) -> None:
        self.context = browser.new_context(viewport={"width": options.pop("width", 1280), "height": 900}, **options)
        self.page: Page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.address = address
        self.page.goto(address)

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def all_open(self) -> Page:
        """Open what is folded and draw what is out of sight."""
        self.page.add_style_tag(content=".site { content-visibility: visible !important }")
        self.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
        return self.page


@pytest.mark.parametrize("name", DOCUMENTS)
def test_it_opens_from_the_file_system_and_asks_for_nothing(browser, pages, name):
    with Opened(browser, pages(name)) as opened:
        opened.page.wait_for_load_state("networkidle")
        opened.page.locator("footer").scroll_into_view_if_needed()
        assert opened.said == []
        assert opened.asked == [opened.address]
        assert opened.page.locator("h1").is_visible()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_leads_to_its_place_by_a_click(browser, pages, name):
    with Opened(browser, pages(name)) as opened:
        page = opened.all_open()
        links = page.locator("a[href]:not(.skip)")
        targets = links.evaluate_all("links => links.map((link) => link.getAttribute('href'))")
        assert targets
        assert all(target.startswith("#") for target in targets)
        for target in dict.fromkeys(targets):
            links.nth(targets.index(target)).click()
            assert page.evaluate("decodeURIComponent(location.hash)") == target
            place = page.evaluate("(id) => document.getElementById(id).getBoundingClientRect().toJSON()", target[1:])
            assert place["top"] < 900
            assert place["bottom"] > 0
        assert opened.asked == [opened.address]


def test_the_first_tab_leads_past_the_header(browser, pages):
    with Opened(browser, pages("scan")) as opened:
        opened.page.keyboard.press("Tab")
        assert opened.page.evaluate("document.activeElement.className") == "skip"
        opened.page.keyboard.press("Enter")
        assert opened.page.evaluate("document.activeElement.id") == "main"


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_all_text_can_be_read(browser, pages, name, scheme):
    with Opened(browser, pages(name), color_scheme=scheme) as opened:
        found = opened.all_open().evaluate(CONTRAST)
    assert found["bad"] == []
    assert found["checked"] > 100


def test_the_check_of_contrast_sees_what_is_hard_to_read(browser, pages):
    with Opened(browser, pages("scan")) as opened:
        page = opened.all_open()
        page.add_style_tag(content="h1 { color: #aaa } svg text { fill-opacity: .3 } .facts { opacity: .4 }")
        bad = "\n".join(page.evaluate(CONTRAST)["bad"])
    assert "sites:" in bad
    assert "epsilon 1e-12" in bad
    assert "LayerNorm over axis" in bad


def test_light_and_dark_differ(browser, pages):
    colors = []
    for scheme in SCHEMES:
        with Opened(browser, pages("scan"), color_scheme=scheme) as opened:
            colors.append(opened.page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert colors[0] != colors[1]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_nothing_overflows(browser, pages, name, width):
    with Opened(browser, pages(name), width=width) as opened:
        page = opened.all_open()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        over = page.evaluate(
            """() => [...document.querySelectorAll("body *")].filter((e) => !e.closest(".scroll, bdi, .skip"))
            .filter((e) => e.getBoundingClientRect().right > innerWidth + 0.5).map((e) => e.outerHTML.slice(0, 80))"""
        )
        assert over == []


def test_a_search_leaves_what_it_names_and_clearing_brings_all_back(browser, pages):
    with Opened(browser, pages("scan")) as opened:
        page = opened.page
        sites, rows = page.locator("section.site"), page.locator("tr[data-of]")
        assert sites.count() == rows.count() == 3
        for words, left in (("SILENT", 1), ("fail", 1), ("ln104 silent", 1), ("ln104 quiet", 0), ("LayerNorm", 1)):
            page.get_by_role("searchbox").fill(words)
            assert sites.filter(visible=True).count() == left, words
            assert rows.filter(visible=True).count() == left, words
            assert page.locator("output").text_content() == f"{left} of 3 sites"
        page.get_by_role("button", name="Clear").click()
        assert sites.filter(visible=True).count() == 3
        assert rows.filter(visible=True).count() == 3
        assert page.locator("output").text_content() == ""


def test_a_link_to_a_site_that_the_search_hides_brings_it_back(browser, pages):
    with Opened(browser, pages("scan")) as opened:
        page = opened.page
        page.get_by_role("searchbox").fill("quiet")
        page.locator("#what-to-do a", has_text="silent_zero").first.click()
        page.locator("section.site", has_text="silent_zero").first.wait_for(state="visible")
        assert page.locator("section.site").filter(visible=True).count() == 3


def test_a_link_to_where_we_are_brings_back_what_the_search_hides(browser, pages):
    with Opened(browser, pages("scan")) as opened:
        page = opened.page
        link = page.locator("#what-to-do a", has_text="silent_zero").first
        for _ in range(2):
            link.click()
            page.locator("section.site:target").wait_for(state="visible")
            page.get_by_role("searchbox").fill("quiet")
            assert page.locator("section.site:target").is_hidden()
        link.click()
        page.locator("section.site:target").wait_for(state="visible")
        assert page.get_by_role("searchbox").input_value() == ""


def test_a_wide_figure_says_that_it_scrolls_on_a_narrow_screen_only(browser, pages):
    for width, said in ((390, True), (1280, False)):
        with Opened(browser, pages("scan"), width=width) as opened:
            figure = opened.all_open().locator("figure").first
            hint = figure.evaluate("(f) => getComputedStyle(f, '::before').content")
            scrolls = figure.locator(".picture").evaluate("(e) => e.scrollWidth > e.clientWidth")
            assert ("scroll" in hint, scrolls) == (said, said)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_it_is_whole_without_scripts(browser, pages, name):
    with Opened(browser, pages(name), java_script_enabled=False) as opened:
        page = opened.page
        sites = page.locator("section.site")
        assert sites.count() == sites.filter(visible=True).count() > 0
        assert page.locator("#search").filter(visible=True).count() == 0
        data = page.locator("figure details").first
        assert not data.locator("table").is_visible()
        data.locator("summary").click()
        assert data.locator("table").is_visible()


def test_hostile_names_run_nothing(browser, pages):
    with Opened(browser, pages("hostile")) as opened:
        page = opened.all_open()
        assert opened.said == []
        assert page.locator("script").count() == 1
        assert page.locator("img").count() == 0
        assert page.evaluate("document.title").startswith("lnaudit scan: ")
        heading = page.locator("section.site h3").first
        assert "<script>alert(1)</script>" in heading.inner_text()


def test_a_script_that_got_in_would_not_run(browser, pages, tmp_path):
    address = pages("scan")
    text = Path(address.removeprefix("file://")).read_text(encoding="utf-8")
    assert "<footer>" in text
    path = tmp_path / "injected.html"
    path.write_text(text.replace("<footer>", "<script>document.title = 'ran'</script><footer>"), encoding="utf-8")
    with Opened(browser, path.as_uri()) as opened:
        assert opened.page.title().startswith("lnaudit scan: ")
        assert any("Content Security Policy" in said for said in opened.said)


def test_a_model_of_200_sites_is_small_and_can_be_searched(browser, tmp_path):
    path = tmp_path / "model.html"
    path.write_text(render_html(page_samples.whole_model(SITES)), encoding="utf-8", newline="")
    assert path.stat().st_size < 10_000_000
    with Opened(browser, path.as_uri()) as opened:
        page = opened.page
        assert page.locator("section.site").count() == SITES
        page.get_by_role("searchbox").fill("layer.137.")
        assert page.locator("section.site").filter(visible=True).count() == 1
        page.locator("tr[data-of] a").filter(visible=True).first.click()
        assert page.locator("section.site:target h3").is_visible()
        assert 0 <= page.locator(":target").bounding_box()["y"] < 900
        # a site that the search hides, far below others that were never laid out
        page.get_by_role("searchbox").fill("layer.3.")
        page.evaluate("location.hash = document.querySelectorAll('section.site')[150].id")
        page.wait_for_timeout(500)
        assert -1 <= page.locator(":target").bounding_box()["y"] < 100
        assert opened.said == []
        assert opened.asked == [path.as_uri()]


def test_a_printed_page_has_no_controls_and_all_that_is_folded(browser, pages):
    with Opened(browser, pages("scan")) as opened:
        opened.page.emulate_media(media="print")
        assert opened.page.locator("nav").filter(visible=True).count() == 0
        assert opened.page.locator("#search").filter(visible=True).count() == 0
        assert opened.page.locator("section.site").filter(visible=True).count() == 3
        assert opened.page.locator("figure details table").first.is_visible()
        # the data of a figure may go on on the next page
        assert opened.page.locator("figure").first.evaluate("(f) => getComputedStyle(f).breakInside") == "auto"
        assert opened.page.locator(".picture").first.evaluate("(f) => getComputedStyle(f).breakInside") == "avoid"
