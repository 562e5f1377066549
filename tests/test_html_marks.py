"""What a page says of a site beside its verdicts: own errors, what is accepted or known, what was not judged."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from lnaudit.render import Style, render_table
from lnaudit.render.html import render_html
from lnaudit.report import AcceptedFinding, Disagreement

from . import report_samples
from .page_reader import Reader, cells, section, words_of

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")


def test_what_a_baseline_knows_is_marked_and_counted():
    report = report_samples.silent_zero()
    known = replace(report, findings=[replace(finding, known=True) for finding in report.findings])
    assert 'class="finding known"' not in render_html(report)
    text = render_html(known)
    assert 'class="finding known"' in text
    assert "1 finding known from before" in text
    assert "What to do, worst first" not in text


def test_an_error_of_the_site_itself_is_seen_beside_its_verdict():
    text = render_html(report_samples.bad_input())
    assert cells(text, "padded")[0] == "padded 9 x 120 error LN001"
    assert "error LN001" in section(text, "padded").partition("</h3>")[0]
    assert {"error", "ln001"} <= set(words_of(text, "padded").split())
    assert "error LN" not in cells(render_html(report_samples.healthy()), "svtr_ln0")[0]
    known = replace(report_samples.bad_input().findings[-1], known=True)
    text = render_html(replace(report_samples.bad_input(), findings=[known]))
    assert cells(text, "padded")[0] == "padded 9 x 120 known LN001"


def without_finite_rows():
    lost = report_samples.site("lost", input={**report_samples.site().input, "finite_rows": 0})
    lost.results[0].verdict = lost.verdict = "fail"
    return report_samples.report([lost, report_samples.site("fine")])


def test_a_site_without_a_finite_row_is_not_judged():
    text = render_html(without_finite_rows())
    assert cells(text, "lost") == ["lost 765 x 120 not judged", *["-"] * 6]
    assert cells(text, "sites that FAIL")[1] == "0 / 0"
    assert "pass" in cells(text, "fine")[1]
    lost = section(text, "lost")
    assert "not judged" in lost.partition("</h3>")[0]
    assert "nothing was judged" in lost
    assert not {"<svg", "<table"} & set(re.findall("<svg|<table", lost))
    assert "pass" not in words_of(text, "lost").split()


def accepting():
    finding = report_samples.finding(
        "LN104", "collapsed-rows", "error", "svtr_ln0", title="zeros", message="Of rows.", remedy="mend it"
    )
    entry = AcceptedFinding(finding=finding, pattern="svtr*", reason="<b>known since</b> JIRA-1")
    return report_samples.report([report_samples.site()], accepted=[entry], notes=["accepted by the policy: 1"])


def test_what_the_policy_accepts_is_marked_and_told_with_the_reason():
    text = render_html(accepting())
    assert cells(text, "svtr_ln0")[1].endswith("accepted LN104")
    assert not any("accepted" in cell for cell in cells(text, "svtr_ln0")[2:])
    mine = section(text, "svtr_ln0")
    assert "accepted LN104" in mine.partition("</h3>")[0]
    shown = Reader(f"<section{mine}</section>").text
    assert "Accepted: <b>known since</b> JIRA-1 (policy, at svtr*)" in shown
    assert "zeros" in shown
    assert "mend it" not in shown
    assert 'class="finding known"' in mine
    assert {"accepted", "ln104"} <= set(words_of(text, "svtr_ln0").split())
    assert {"#notes", "#rule-LN104"} <= set(Reader(text).links)


def test_cells_say_what_a_baseline_knows():
    report = report_samples.silent_zero()
    (site,) = report.sites
    loud = [f for f in report.findings if f.severity != "note" and f.format]
    assert loud
    text = render_html(replace(report, findings=[replace(f, known=True) for f in loud]))
    where = [(r.format, r.kernel) for r in site.results].index((loud[0].format, loud[0].kernel))
    assert cells(text, site.name)[1 + where].endswith(" known")
    twice = [replace(loud[0], known=True), replace(loud[0], code="LN101")]
    text = render_html(replace(report, findings=twice))
    assert cells(text, site.name)[1 + where].endswith("1 of 2 known")


def test_disagreements_of_runtimes_are_told():
    apart = [
        Disagreement(format="float16", kernels=["native", "fused"], row=7, rms=0.25),
        Disagreement(format="bfloat16", kernels=["native", "fused"], row=9, rms=math.inf),
    ]
    shown = Reader(render_html(report_samples.report([report_samples.site(disagreements=apart)]))).text
    assert "float16: native and fused differ most in row 7, by 0.25 (RMS)." in shown
    assert "bfloat16: native and fused differ most in row 9, which is NaN or Inf in one of them only." in shown


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ([{}, {}], "0.02"),
        ([{"float16": 0.02}, {"float16": 0.02, "bfloat16": 0.02}], "0.02"),
        ([{"float16": 0.5}, {"float16": 0.02}], "0.02; 0.5 at a"),
        ([{"float16": 0.5}, {"float16": 0.5}], "0.5"),
        ([{"float16": 0.5}, {"float16": 0.1, "bfloat16": 0.2}], "0.5 at a; 0.1 (float16), 0.2 (bfloat16) at b"),
        ([{"float16": 0.5}] * 5 + [{"bfloat16": 0.02}], "0.02; 0.5 at a, b, c and 2 more"),
    ],
)
def test_accepted_errors_of_single_sites_are_said(limits, said):
    sites = [report_samples.site(name, limits=own) for name, own in zip("abcdef", limits, strict=False)]
    report = report_samples.report(sites)
    assert f"accepted row error {said} of the normalized scale" in Reader(render_html(report)).text.replace(
        "error0", "error 0"
    )
    assert f"Limit: {said}, or twice" in " ".join(render_table(report, Style(width=400)).split())
