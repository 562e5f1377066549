"""A line a finding: to be searched, never broken, never cut; quiet runs and colours."""

from __future__ import annotations

import io
import itertools
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lnaudit.cli import progress
from lnaudit.cli.arguments import OUTPUT_FORMATS
from lnaudit.cli.output import wants_color
from lnaudit.render import RENDERERS, Style, render_concise, render_table

from .program import run, run_in
from .report_samples import HOSTILE, SAMPLES, finding, report, site

EXAMPLES = Path(__file__).parent.parent / "examples"
LINE = re.compile(
    r"(?P<source>.+?)(?: \((?P<site>.+?)\))?: (?P<severity>error|warning|note): (?P<code>LN\d{3}) (?P<name>[a-z-]+)"
    r"(?: \[(?P<format>\S+) (?P<kernel>\S+)\])?(?: (?P<title>.*?))?"
    r"(?: \(row (?P<row>\d+)\))?(?:; remedy: (?P<remedy>.*))?"
)
ANSI = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("name", SAMPLES)
def test_each_finding_is_one_line_that_holds_its_facts(name: str) -> None:
    audit, style = SAMPLES[name](), Style(width=40)
    lines = render_concise(audit, style).splitlines()
    told = lines[len(audit.notes) : len(audit.notes) + len(audit.findings)]
    for found, line in zip(audit.findings, told, strict=True):
        match = LINE.fullmatch(line)
        assert match, line
        facts = match.groupdict()
        assert (facts["code"], facts["name"], facts["severity"]) == (found.code, found.name, found.severity)
        assert (facts["format"], facts["kernel"]) == (found.format, found.kernel)
        assert line.startswith(style.safe(found.source))
        assert facts["row"] == (None if found.row is None else str(found.row))
        assert style.safe(found.title) in (facts["title"] or "")
        assert facts["remedy"] == (style.safe(found.remedy) or None)
        assert found.latent == ("latent" in line)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_last_line_is_the_total_in_the_words_of_the_table(name: str) -> None:
    audit = SAMPLES[name]()
    *before, last = render_concise(audit, Style(width=40)).splitlines()
    page = " ".join(render_table(audit, Style(width=200)).split())
    assert re.match(r"\d+ sites?: ", last)
    assert " ".join(last.split(".  ")[0].split()).rstrip(".") in page
    for entry in audit.not_audited:
        assert f"{Style().safe(entry.source)}: not audited: {Style().safe(entry.reason)}" in before
    assert ("could not be audited.  exit 2 (not audited)." in last) == bool(audit.not_audited)


def test_names_are_escaped_and_stand_beside_the_source_where_they_say_more() -> None:
    text = render_concise(SAMPLES["hostile"](), Style())
    assert HOSTILE not in text
    assert text.replace("\n", "").isprintable()
    named = finding("LN104", "collapsed-rows", "error", "enc.0", title="gone", row=7)

    def start(source: str, name: str) -> str:
        found = replace(named, source=source, site=name)
        return render_concise(report([site(name)], [found]), Style()).partition(": error")[0]

    assert start("a/enc.0.npy", "enc.0") == "a/enc.0.npy"
    assert start("a/enc.0.npy", "a/enc.0") == "a/enc.0.npy"
    assert start("bump:rows=4", "bump:rows=4") == "bump:rows=4"
    assert start("a/x.npy", "enc.0") == "a/x.npy (enc.0)"


def test_what_a_baseline_knows_is_not_repeated() -> None:
    audit = SAMPLES["silent_zero"]()
    assert "LN104" in render_concise(audit, Style())
    audit.findings[:] = [replace(found, known=True) for found in audit.findings]
    assert len(render_concise(audit, Style()).splitlines()) == 1


def test_colour_changes_nothing_but_colour() -> None:
    for name, sample in SAMPLES.items():
        plain, colored = (render_concise(sample(), Style(color=color)) for color in (False, True))
        assert ANSI.sub("", colored) == plain
        assert (colored != plain) == bool(sample().findings or sample().sites), name


def test_every_output_format_has_a_renderer_for_both_kinds_of_report() -> None:
    assert set(RENDERERS) == {(kind, name) for kind in ("scan", "sweep") for name in OUTPUT_FORMATS}


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    x = np.random.default_rng(0).standard_normal((30, 64), dtype=np.float32)
    np.save(tmp_path / "fine.npy", x)
    np.save(tmp_path / "large.npy", x * 500)
    return tmp_path


def test_a_log_can_be_searched(dumps: Path) -> None:
    text = run_in(dumps, "scan", ".", "no.npy", "--output-format", "concise", COLUMNS="40").stdout
    findings = json.loads(run_in(dumps, "scan", ".", "no.npy", "--output-format", "json").stdout)["findings"]
    lines = text.splitlines()
    assert [LINE.fullmatch(line)["code"] for line in lines[:-2]] == [f["code"] for f in findings]  # type: ignore[index]
    (error,) = [line for line in lines if ": error: LN104 " in line]
    assert error.startswith("large.npy: error: LN104 collapsed-rows [float16 native] 30 of 30 rows come out all zero")
    assert lines[-2] == "no.npy: not audited: does not exist"
    assert lines[-1].startswith("2 sites: 1 FAIL, 1 pass (")
    assert "1 file could not be audited.  exit 2 (not audited).  Findings alone" in lines[-1]


def test_a_check_says_what_ends_it(dumps: Path) -> None:
    done = run_in(dumps, "check", ".", "--format", "float16", "--kernel", "native", "--output-format", "concise")
    assert done.returncode == 1
    assert done.stdout.endswith("exit 1 (1 finding at or above --fail-on error).\n")


def test_a_sweep_is_a_line_a_site_format_and_kernel(dumps: Path) -> None:
    words = ("sweep", "fine.npy", "large.npy", "--format", "float16,float32", "--eps", "0,1e-5", "--output-format")
    *lines, last = run_in(dumps, *words, "concise").stdout.splitlines()
    document = json.loads(run_in(dumps, *words, "json").stdout)
    results = [(s["source"], r) for s in document["sites"] for r in s["results"]]
    assert len(lines) == len(results) == 4
    for line, (source, result) in zip(lines, results, strict=True):
        assert line.startswith(f"{source}: [{result['format']} {result['kernel']}] ")
        verdicts = {point["verdict"] for point in result["points"]}
        for verdict, word in (("fail", "FAIL at"), ("warn", "warn at"), ("pass", "pass at")):
            assert (word in line) == (verdict in verdicts), line
        assert line.endswith(f"; the site's own 1e-5: {result['points'][1]['verdict'].replace('fail', 'FAIL')}")
    assert last == "2 sites at 2 epsilons."
    family = run_in(dumps, "sweep", "--family", "zeros", "--format", "float32", "--output-format", "concise").stdout
    assert family.startswith("zeros:rows=64,features=768: note: LN002 zero-rows 64 of 64 rows are all zero")
    assert "own" not in family


def test_a_quiet_run_shows_what_fails_or_warns_and_the_total(dumps: Path) -> None:
    loud, quiet = (run_in(dumps, "scan", ".", *more) for more in ((), ("-q",)))
    assert (loud.returncode, loud.stderr) == (quiet.returncode, quiet.stderr) == (0, "")
    assert "\nfine   fine.npy" in f"\n{loud.stdout}"
    assert "fine" not in quiet.stdout
    assert "large   large.npy" in quiet.stdout
    assert "LN104" in quiet.stdout
    assert "LN302" not in quiet.stdout  # a note
    assert quiet.stdout.splitlines()[-2:] == loud.stdout.splitlines()[-2:]
    clean = run_in(dumps, "scan", "fine.npy", "--quiet").stdout
    assert clean == "1 site: 1 pass (1 latent note).\n"


def test_a_quiet_run_shows_notes_that_make_it_fail(dumps: Path) -> None:
    for words in ((), ("--output-format", "concise")):
        done = run_in(dumps, "check", "fine.npy", "-q", "--fail-on", "note", *words)
        assert done.returncode == 1
        assert "LN302" in done.stdout
        assert "exit 1 (1 finding at or above --fail-on note" in done.stdout.splitlines()[-1]
        assert "LN302" not in run_in(dumps, "check", "fine.npy", "-q", *words).stdout


def test_a_quiet_run_says_what_it_could_not_audit_and_no_more_than_that_on_stderr(dumps: Path) -> None:
    done = run_in(dumps, "check", "fine.npy", "no.npy", "-q")
    assert (done.returncode, done.stderr) == (2, "lnaudit: no.npy: does not exist\n")
    assert done.stdout.startswith(
        "1 site: 1 pass (1 latent note).  1 file could not be audited:\n  no.npy: does not exist\n"
    )
    assert "Name those that you ship" in run_in(dumps, "check", "fine.npy").stdout
    assert "Name those that you ship" not in run_in(dumps, "check", "fine.npy", "-q").stdout


@pytest.mark.parametrize("command", ["scan", "check", "sweep"])
def test_quiet_changes_no_json(dumps: Path, command: str) -> None:
    words = (command, "fine.npy", "large.npy", "--output-format", "json")
    assert run_in(dumps, *words, "-q").stdout == run_in(dumps, *words).stdout


def test_a_quiet_sweep_leaves_out_what_passes_and_what_is_talk(dumps: Path) -> None:
    words = ("sweep", "fine.npy", "--family", "constant:value=1", "--eps", "1e-5", "-q")
    assert run_in(dumps, *words, "--format", "float32").stdout == "2 sites at 1 epsilon.\n"
    done = run_in(dumps, "sweep", "-q", "--format", "bfloat16,float32", "--output-format", "concise").stdout
    assert "[bfloat16 native] FAIL" in done
    assert "float32" not in done
    assert "Yours" not in run_in(dumps, "sweep", "-q").stdout


@pytest.mark.parametrize(("quiet", "shown"), [(False, True), (True, False)])
def test_a_quiet_run_has_no_progress_bar(quiet: bool, shown: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count(0.0, 60.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(seconds))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress.progress_bar([4_000_000], quiet=quiet) as (_, advance):
        advance(1_000_000)
    assert bool(sys.stderr.getvalue()) == shown  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", ["scan", "check", "sweep"])
def test_quiet_and_verbose_do_not_go_together(dumps: Path, command: str) -> None:
    done = run_in(dumps, command, "fine.npy", "-q", "-v")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "lnaudit: --quiet: cannot stand beside --verbose; leave one of them out\n"


@pytest.mark.parametrize(
    ("when", "variables", "in_a_log", "on_a_terminal"),
    [
        ("auto", {}, False, True),
        ("auto", {"FORCE_COLOR": "1"}, True, True),
        ("auto", {"NO_COLOR": "1"}, False, False),
        ("auto", {"TERM": "dumb"}, False, False),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ("auto", {"FORCE_COLOR": "1", "TERM": "dumb"}, False, False),
        ("always", {}, True, True),
        ("always", {"NO_COLOR": "1", "TERM": "dumb"}, True, True),
        ("never", {"FORCE_COLOR": "1"}, False, False),
    ],
)
def test_when_there_are_colours(
    when: str, variables: dict[str, str], in_a_log: bool, on_a_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # empty says nothing, as no-color.org and force-color.org have it
    for name, value in {"TERM": "xterm", "NO_COLOR": "", "FORCE_COLOR": "", **variables}.items():
        monkeypatch.setenv(name, value)
    for stdout, colored in ((io.StringIO(), in_a_log), (Terminal(), on_a_terminal)):
        monkeypatch.setattr(sys, "stdout", stdout)
        assert wants_color(when) == colored


@pytest.mark.parametrize(
    ("command", "words", "variables", "colored"),
    [
        ("scan", (), {"FORCE_COLOR": "1"}, True),
        ("check", ("--color", "always"), {"NO_COLOR": "1"}, True),
        ("sweep", ("--color", "never"), {"FORCE_COLOR": "1"}, False),
        ("sweep", (), {"FORCE_COLOR": "1"}, True),
    ],
)
def test_results_have_colours_and_errors_have_none(
    dumps: Path, command: str, words: tuple[str, ...], variables: dict[str, str], colored: bool
) -> None:
    plain = {"TERM": "xterm", "NO_COLOR": ""}
    done = run_in(dumps, command, "large.npy", "no.npy", "--format", "float16", *words, **{**plain, **variables})
    assert ("\x1b[" in done.stdout) == colored
    assert "\x1b" not in done.stderr
    assert done.returncode == 2


def test_a_colour_that_is_none_is_refused(dumps: Path) -> None:
    done = run("scan", "fine.npy", "--color", "sometimes", cwd=dumps)
    assert done.returncode == 2
    assert done.stderr == "lnaudit: --color: unknown value 'sometimes'; choose from auto, always, never\n"
