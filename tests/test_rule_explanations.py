"""What the rules say of themselves: every section is there, and every example is true."""

from __future__ import annotations

import inspect
import json
import re
import shlex
from pathlib import Path

import pytest

from lnaudit.cli.app import app
from lnaudit.rules import HEADINGS, RULES, Explanation
from lnaudit.rules.explanation import explain

THREADS = re.compile(r"[\w-]+/[\w.-]+#\d+(, [\w-]+/[\w.-]+#\d+)*: .+")
# what is no thread on GitHub
PUBLISHED = (
    "NumPy documentation, numpy.save: ",
    "PyTorch documentation, torch.nn.Module.register_forward_pre_hook",
    "Micikevicius et al., Mixed Precision Training (arXiv:1710.03740), section 3.",
    "Chan, Golub, LeVeque, Algorithms for Computing the Sample Variance, The American Statistician 37 (1983) 242-247",
)
ONE_LINE = 60  # columns that the table of rules leaves, about


@pytest.mark.parametrize("code", sorted(RULES))
def test_every_rule_has_all_sections_in_order(code: str) -> None:
    lines = inspect.cleandoc(RULES[code].check.__doc__ or "").splitlines()
    found = [line.partition(":")[0] for line in lines if line.partition(":")[0] in HEADINGS]
    assert found == list(HEADINGS) == ["What it does", "Why is this bad", "Example", "What to do", "References"]
    explanation = RULES[code].explanation
    assert lines[0] == explanation.summary
    assert explanation.summary.endswith(".")
    assert len(explanation.summary) <= ONE_LINE
    for text in (explanation.what_it_does, explanation.why_is_this_bad, explanation.what_to_do):
        assert text.endswith(".")
        assert text[0].isupper()
    for reference in explanation.references:
        assert THREADS.fullmatch(reference) or reference.startswith(PUBLISHED)
    assert explanation.references


@pytest.mark.parametrize("code", sorted(RULES))
def test_the_example_of_a_rule_is_reported(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [shlex.split(line) for line in RULES[code].explanation.example]
    assert commands[-1][:2] == ["lnaudit", "scan"]
    for program, *words in commands[:-1]:
        if program == "python":
            assert words[0] == "-c"
            exec(compile(words[1], code, "exec"), {})
        else:
            assert (program, words[0]) == ("lnaudit", "synth")
            assert not app(words, standalone_mode=False)
    capsys.readouterr()
    app([*commands[-1][1:], "--isolated", "--output-format", "json"], standalone_mode=False)
    report = json.loads(capsys.readouterr().out)
    assert report["not_audited"] == []
    assert code in {finding["code"] for finding in report["findings"]}


def test_a_docstring_is_read_section_by_section() -> None:
    explained = explain(
        """Some rows.

        What it does: Counts them: all
        of them.
        Why is this bad: It is.
        Example:
            lnaudit synth zeros -o x.npy

            lnaudit scan x.npy
        What to do: Nothing.
        References:
            a/b#1: said there
        """
    )
    assert explained == Explanation(
        summary="Some rows.",
        what_it_does="Counts them: all of them.",
        why_is_this_bad="It is.",
        example=("lnaudit synth zeros -o x.npy", "lnaudit scan x.npy"),
        what_to_do="Nothing.",
        references=("a/b#1: said there",),
    )


def test_without_docstrings_nothing_is_explained() -> None:  # python -OO
    nothing = explain("")
    assert (nothing.summary, nothing.what_to_do, nothing.example, nothing.references) == ("", "", (), ())
