"""`lnaudit rule`: the table, the explanations, and what is no rule."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from lnaudit.findings import SEVERITIES
from lnaudit.render.rules import rules_json, rules_markdown, rules_markdown_table, rules_table, rules_text
from lnaudit.render.style import Style
from lnaudit.rules import HEADINGS, RULES

from .program import run

ALL = [RULES[code] for code in sorted(RULES)]


def words(text: str) -> str:
    return " ".join(text.split())


def test_without_a_code_it_is_a_table() -> None:
    done = run("rule")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    for number, rule in enumerate(ALL, 1):
        assert lines[number].split(maxsplit=3) == [rule.code, rule.name, rule.severity, rule.explanation.summary]
    assert "lnaudit rule LN104" in lines[-1]


@pytest.mark.parametrize("asked", [("ln102", "Rounding-Error"), ("LN102,LN202",), ("cast-underflow", "LN202", "ln102")])
def test_rules_are_explained_by_code_or_name_in_any_case(asked: tuple[str, ...]) -> None:
    done = run("rule", *asked)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == rules_text([RULES["LN102"], RULES["LN202"]], Style())
    assert re.findall(r"^LN\d+ .*", done.stdout, re.MULTILINE) == [
        "LN102 cast-underflow: warning",
        "LN202 rounding-error: error or warning",
    ]


@pytest.mark.parametrize("rule", ALL, ids=lambda rule: rule.code)
def test_an_explanation_holds_everything(rule) -> None:
    text = rules_text([rule], Style(width=72))
    said, told = words(text), rule.explanation
    for heading in HEADINGS:
        assert f"\n\n{heading}\n" in text
    for part in (told.summary, told.what_it_does, told.why_is_this_bad, told.what_to_do, *told.references):
        assert words(part) in said
    for command in told.example:  # to be copied
        assert f"\n  {command}\n" in text
    for name, threshold in rule.thresholds.items():
        assert f"{name} = {threshold.default:g}" in text
        assert words(threshold.meaning) in said
    if not rule.thresholds:
        assert "Thresholds, as they can be set in [tool.lnaudit.rules]\n  none\n" in text
    assert all(len(line) <= 72 for line in text.splitlines() if line.strip() not in told.example)


def test_all_of_them_are_explained_in_order() -> None:
    done = run("rule", "--all")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"^(LN\d+) ", done.stdout, re.MULTILINE).count("LN104") == 1
    assert done.stdout == rules_text(ALL, Style())


def test_the_lines_of_thresholds_are_those_of_a_policy() -> None:
    for rule in (rule for rule in ALL if rule.thresholds):
        (line,) = re.findall(rf"^  ({rule.code} = .*)$", rules_text([rule]), re.MULTILINE)
        assert tomllib.loads(line) == {rule.code: {name: t.default for name, t in rule.thresholds.items()}}


@pytest.mark.parametrize("asked", [(), ("LN202",), ("--all",)])
def test_json_has_stable_keys(asked: tuple[str, ...]) -> None:
    done = run("rule", *asked, "--output-format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert list(document) == ["schema_version", "kind", "lnaudit_version", "not_audited", "rules"]
    assert (document["schema_version"], document["kind"], document["not_audited"]) == (1, "rules", [])
    assert [entry["code"] for entry in document["rules"]] == (["LN202"] if "LN202" in asked else sorted(RULES))
    for entry in document["rules"]:
        rule = RULES[entry["code"]]
        assert list(entry) == ["code", "name", "severity", "severities", "summary", "sections", "thresholds"]
        assert (entry["name"], entry["summary"]) == (rule.name, rule.explanation.summary)
        assert entry["severities"] == sorted(entry["severities"], key=SEVERITIES.index)
        assert entry["severity"] == entry["severities"][0]
        assert list(entry["sections"]) == [
            "what_it_does", "why_is_this_bad", "example", "what_to_do", "references"
        ]  # fmt: skip
        assert entry["sections"]["example"] == list(rule.explanation.example)
        for name, threshold in entry["thresholds"].items():
            assert list(threshold) == ["default", "meaning", "least", "most"]
            assert threshold["default"] == rule.thresholds[name].default


def test_a_threshold_without_an_upper_end_has_none_in_json() -> None:
    (entry,) = json.loads(rules_json([RULES["LN202"]]))["rules"]
    assert (entry["thresholds"]["share"]["most"], entry["thresholds"]["factor"]["most"]) == (1.0, None)


def text_of(markdown: str) -> str:
    """Return what a reader of the page sees, tags taken away."""
    html = MarkdownIt().enable("table").render(markdown)
    plain = re.sub(r"<[^>]+>", " ", html)
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        plain = plain.replace(entity, character)
    return words(plain)


def test_a_page_of_documentation_says_the_same() -> None:
    done = run("rule", "--all", "--output-format", "markdown")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == rules_markdown(ALL)
    seen = text_of(done.stdout)
    for rule in ALL:
        told = rule.explanation
        for part in (told.summary, told.what_it_does, told.why_is_this_bad, told.what_to_do, *told.example):
            assert words(part) in seen
        assert f"{rule.code} {rule.name}" in seen
    assert "(https://github.com/pytorch/pytorch/issues/41527)" in done.stdout
    assert "huggingface/transformers#5651 : feed-forward outputs beyond 65504" in seen


def test_the_table_in_markdown_has_a_row_a_rule() -> None:
    done = run("rule", "--output-format", "markdown")
    assert done.stdout == rules_markdown_table(ALL)
    html = MarkdownIt().enable("table").render(done.stdout)
    assert html.count("<tr>") == 1 + len(ALL)
    assert html.count("<td>") == 4 * len(ALL)


@pytest.mark.parametrize("asked", ["LN1", "ln30", "LN", "LN104"])
def test_the_beginning_of_codes_explains_all_that_begin_so(asked: str) -> None:
    found = json.loads(run("rule", asked, "--output-format", "json").stdout)["rules"]
    expected = sorted(code for code in RULES if code.startswith(asked.upper()))
    assert [rule["code"] for rule in found] == expected
    assert len(expected) > 1 or asked == "LN104"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("LN109",), "unknown rule 'LN109'; did you mean LN108?"),
        (("collapsed-row",), "unknown rule 'collapsed-row'; did you mean collapsed-rows?"),
        (("LN104", "LN999"), "unknown rule 'LN999'; lnaudit rule lists them"),
        (("",), "unknown rule ''; lnaudit rule lists them"),
        (("a\nb",), "unknown rule 'a\\nb'; lnaudit rule lists them"),
        (("--all", "LN104"), "--all: cannot stand beside a rule; leave one of them out"),
        (("--output-format", "yaml"), "--output-format: unknown value 'yaml'; choose from text, markdown, json"),
    ],
)
def test_what_is_no_rule_is_one_line(asked: tuple[str, ...], said: str) -> None:
    done = run("rule", *asked)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"lnaudit: {said}\n")


def test_what_is_no_rule_is_a_document_where_one_was_asked_for() -> None:
    done = run("rule", "LN109", "--output-format", "json")
    assert (done.returncode, done.stderr) == (2, "lnaudit: unknown rule 'LN109'; did you mean LN108?\n")
    document = json.loads(done.stdout)
    assert document["rules"] == []
    assert document["not_audited"] == [{"source": "", "reason": "unknown rule 'LN109'; did you mean LN108?"}]


def test_narrow_screens_and_colours() -> None:
    assert max(map(len, rules_table(ALL, Style(width=80)).splitlines())) <= 80
    coloured = rules_table(ALL, Style(color=True))
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == rules_table(ALL)
    assert "\x1b[" in coloured


def test_help_ends_with_examples(tmp_path: Path) -> None:
    done = run("rule", "--help", cwd=tmp_path)
    assert done.returncode == 0
    examples = done.stdout.partition("Examples:\n")[2].splitlines()
    assert len(examples) > 1
    for line in examples:
        program, *asked = line.partition("#")[0].split()
        assert program == "lnaudit"
        assert run(*asked, cwd=tmp_path).returncode == 0
