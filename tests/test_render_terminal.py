"""The report on the screen: golden pages, and what holds for every page."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from lnaudit import wording
from lnaudit.render import RENDERERS, Style, render_table, terminal_width

from .report_samples import HOSTILE, LONG_KERNEL, SAMPLES, finding, healthy_results, recommendation, report, site

GOLDEN = Path(__file__).parent / "golden"
WIDTHS = (40, 60, 72, 80, 90, 100, 120, 200)
ANSI = re.compile(r"\x1b\[[0-9;]*m")


# Nothing rewrites tests/golden: after a wanted change, edit the pages and read their diff as a user would.
@pytest.mark.parametrize("file", sorted(path.name for path in GOLDEN.glob("*.txt")))
def test_the_page_is_the_golden_one(file: str) -> None:
    name, width = file.removesuffix(".txt").rsplit("_", 1)
    page = render_table(SAMPLES[name](), Style(width=int(width)))
    assert page == (GOLDEN / file).read_text(encoding="utf-8")


def test_every_sample_has_a_golden_page() -> None:
    assert {path.stem.rsplit("_", 1)[0] for path in GOLDEN.glob("*.txt")} == set(SAMPLES)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SAMPLES)
def test_no_line_is_wider_than_the_screen_but_for_one_long_word(name: str, width: int) -> None:
    for line in render_table(SAMPLES[name](), Style(width=width, ascii=True)).splitlines():
        words = line.split()
        overlong = max(map(len, words), default=0) + 14 > width  # 14: the deepest indent and a number
        assert len(line) <= width or overlong, line
        assert line == line.rstrip()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SAMPLES)
def test_nothing_is_cut_off_and_every_character_is_plain(name: str, width: int) -> None:
    audit = SAMPLES[name]()
    style = Style(width=width, ascii=True)
    page = render_table(audit, style)
    assert page.replace("\n", "").isprintable()
    assert page.isascii()
    assert "..." not in page
    for found in audit.sites:
        assert style.safe(found.name) in page
        assert style.safe(found.source) in page


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_log_can_be_searched_for_the_verdict(width: int) -> None:
    page = render_table(SAMPLES["silent_zero"](), Style(width=width))
    lines = [line for line in page.splitlines() if line.startswith("  FAIL")]
    assert len(lines) == 1
    assert lines[0].split()[:3] == ["FAIL", "float16", "native"]


@pytest.mark.parametrize("name", SAMPLES)
def test_colour_changes_nothing_but_colour(name: str) -> None:
    plain = render_table(SAMPLES[name](), Style())
    colored = render_table(SAMPLES[name](), Style(color=True))
    assert ANSI.sub("", colored) == plain
    assert "\x1b" not in plain
    words = set(re.findall(r"\x1b\[[0-9;]+m([^\x1b]*)\x1b\[0m", colored))
    assert words <= {"FAIL", "warn", "pass", "error", "warning", "note"}
    assert bool(words) == bool(SAMPLES[name]().sites)


@pytest.mark.parametrize("variable", ["NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS", "GITHUB_ACTIONS"])
def test_the_environment_changes_nothing(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = render_table(SAMPLES["several"](), Style(color=True))
    monkeypatch.setenv(variable, "dumb")
    assert render_table(SAMPLES["several"](), Style(color=True)) == before


def test_hostile_names_are_inert() -> None:
    page = render_table(SAMPLES["hostile"](), Style(width=200))
    assert r"a\nb\x1b[31m[bold red]x[/]\x9b\u202e\udcff/été" in page
    assert "\x1b" not in page
    page.encode()  # no lone surrogate is left
    assert "été" not in render_table(SAMPLES["hostile"](), Style(ascii=True))
    assert HOSTILE not in page


def test_the_matrix_has_no_verdict_of_a_site_without_a_finite_row() -> None:
    lost = site("lost", input={**site().input, "finite_rows": 0})
    lost.results[0].verdict = lost.verdict = "fail"
    both = report([lost, site("fine")])
    matrix = render_table(both, Style(width=100)).partition("rows x d")[2].partition("\n\n")[0]
    (line,) = (line for line in matrix.splitlines() if line.strip().startswith("lost"))
    assert line.split() == ["lost", "765", "x", "120", *["-"] * 6]
    assert matrix.splitlines()[-1].split()[-6:] == ["0/0"] * 6
    narrow = render_table(both, Style(width=60))
    assert "  -     lost\n        765 x 120: not judged, for no row is finite\n" in narrow
    assert "sites that FAIL / warn: none" in narrow


def test_the_legend_says_the_accepted_errors_of_single_sites() -> None:
    sites = [site("one\x1b", limits={"float16": 0.5}), site("two", limits={"float16": 0.02})]
    page = " ".join(render_table(report(sites), Style()).split())
    assert "Limit: 0.02; 0.5 at one\\x1b, or twice what the cast alone costs." in page


def test_columns_leave_the_table_in_order() -> None:
    def header(width: int) -> str:
        page = render_table(SAMPLES["healthy"](), Style(width=width))
        return next((line for line in page.splitlines() if line.lstrip().startswith("format ")), "")

    widths = range(120, 71, -1)
    seen = list(dict.fromkeys(("ratio" in header(w), "var=0" in header(w)) for w in widths))
    assert seen == [(True, True), (False, True), (False, False)]
    assert header(71) == ""


def test_a_long_kernel_name_keeps_the_table_aligned() -> None:
    page = render_table(SAMPLES["many_kernels"](), Style(width=100)).splitlines()
    start = next(i for i, line in enumerate(page) if line.lstrip().startswith("format "))
    table = page[start : page.index("", start)]
    whole = [row for row in table if row.endswith(("use", "keep"))]
    assert len(whole) == 7
    assert len({len(row) for row in whole}) == 1
    assert "".join(row[16:].split()[0] for row in table[6:]) == LONG_KERNEL


def test_remedies_stand_under_the_finding_that_they_cure() -> None:
    audit = SAMPLES["silent_zero"]()
    name = audit.sites[0].name
    audit.findings.insert(0, finding("LN105", "variance-underflow", "note", name, title="later", remedy="unwanted"))
    page = render_table(audit, Style())
    assert page.count("1. scale the input") == 1
    assert page.index("LN104") < page.index("1. scale the input") < page.index("LN105")
    assert "unwanted" not in page
    assert "must not be printed" not in page


def test_sites_that_need_the_same_epsilon_share_a_line() -> None:
    page = render_table(SAMPLES["several"](), Style())
    assert "2 sites with epsilon 1e-12" in page
    assert "epsilon-rounds-to-zero (latent): 1e-4 serves both" in page
    assert page.count("serves") == 1


def test_an_unverified_remedy_is_no_advice() -> None:
    audit = SAMPLES["several"]()
    for remedy in audit.sites[0].results[0].remedies:
        remedy.verified = False
    page = render_table(audit, Style())
    assert page.count("not verified") == 3
    assert "come out all zero; no NaN, no Inf: nothing that was tried helps" in " ".join(page.split())


def test_an_unverified_epsilon_is_marked_and_explained() -> None:
    results = [replace(r, recommendation=recommendation(verified=False)) for r in healthy_results()]
    page = render_table(report([site(results=results)]), Style())
    assert "keep?" in page
    assert "?: not verified by a second run." in page
    assert "?:" not in render_table(report([site()]), Style())


@pytest.mark.parametrize("width", WIDTHS)
def test_sites_without_results_render(width: int) -> None:
    page = render_table(report([site("one", []), site("two", [])]), Style(width=width))
    assert page.endswith("2 sites: 2 pass.\n")


def test_the_hint_on_the_exit_code_follows_the_option() -> None:
    audit = SAMPLES["several"]()
    assert "--fail-on error" in render_table(audit, Style())
    audit.config["fail_on"] = "error"
    assert "--fail-on" not in render_table(audit, Style())


@pytest.mark.parametrize("name", SAMPLES)
def test_only_existing_commands_are_named(name: str) -> None:
    commands = re.findall(r"lnaudit (\w+)", render_table(SAMPLES[name](), Style()))
    assert set(commands) <= {"kernels", "formats"}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("renderer", [key for key in RENDERERS if key[0] == "scan"])
def test_renderers_are_pure(name: str, renderer: str) -> None:
    audit = SAMPLES[name]()
    once = RENDERERS[renderer](audit, Style())
    assert RENDERERS[renderer](audit, Style()) == once == RENDERERS[renderer](SAMPLES[name](), Style())
    assert once.endswith("\n")
    assert not once.endswith("\n\n")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e-5, "1e-5"),
        (9.999999747378752e-06, "1e-5"),
        (1.5e-4, "1.5e-4"),
        (1e-14, "1e-14"),
        (2e-2, "2e-2"),
        (0.1, "0.1"),
        (1.0, "1"),
        (1.00001e-5, "1.00001e-5"),
        (0.0, "0"),
        (None, "-"),
    ],
)
def test_epsilon(value: float | None, text: str) -> None:
    assert wording.epsilon(value) == text


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        (1e-6, 5e-3, "1e-6..5e-3"),
        (1e-14, 5e-3, "<=1e-14..5e-3"),
        (1e-6, 0.1, "1e-6..>=0.1"),
        (1e-14, 0.1, "all tried"),
        (1e-15, 1.0, "all tried"),
        (1e-4, 1e-4, "1e-4"),
        (0.1, 0.1, ">=0.1"),
        (None, None, "none"),
    ],
)
def test_epsilon_range(lower: float | None, upper: float | None, text: str) -> None:
    assert wording.epsilon_range(lower, upper) == text


def test_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "77")
    assert terminal_width() == 77
    for useless in ("", "0", "-3", "wide"):
        monkeypatch.setenv("COLUMNS", useless)
        monkeypatch.setattr(os, "get_terminal_size", _no_terminal)
        assert terminal_width() == 100
    monkeypatch.setattr("sys.stdout", None)
    assert terminal_width() == 100


def _no_terminal(fd: int) -> os.terminal_size:
    raise OSError("not a terminal")


def test_a_latent_note_of_several_sites_is_told_once_after_them() -> None:
    notes = [
        finding(
            "LN302", "epsilon-subnormal", "note", name, latent=True, title="held as a subnormal", remedy="epsilon 1e-4"
        )
        for name in ("a", "b", "c", "d")
    ]
    page = render_table(report([site(name) for name in ("a", "b", "c", "d")], notes), Style())
    assert page.count("LN302") == 1
    line = " ".join(page[page.index("LN302") :].split())
    assert line.startswith("LN302 epsilon-subnormal [float16 native] latent in 4 sites (a, b, c and 1 more): held as a")
    assert "epsilon 1e-4 is immune in all of them" in line
    assert render_table(report([site("a")], notes[:1]), Style()).count("LN302") == 1
