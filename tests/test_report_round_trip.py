"""A report comes back from its JSON document; what is no report is refused in one line."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import MISSING, asdict, fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lnaudit
from lnaudit import LnauditError
from lnaudit.findings import Finding
from lnaudit.pipeline import Settings, sweep
from lnaudit.report import Report, Result, SiteReport, SweepReport
from lnaudit.site import ArrayRows, Site

from .report_samples import SAMPLES

EXTREMES = {
    "good": np.random.default_rng(0).normal(size=(20, 8)),
    "overflow": np.random.default_rng(0).normal(size=(20, 64)) * 500,
    "not finite": np.array([[np.nan, 1, 2], [np.inf, 1, 2], [np.nan] * 3, [1, 2, 4]]),
    "nothing finite": np.full((2, 3), np.nan),
    "zeros": np.zeros((2, 3)),
    "one feature": np.ones((3, 1)),
}


def document_of(report: Report | SweepReport) -> dict[str, Any]:
    """The document as a reader of the file gets it."""
    return dict(json.loads(json.dumps(report.to_dict(), allow_nan=False)))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_report_comes_back(name: str) -> None:
    document = document_of(SAMPLES[name]())
    assert Report.from_dict(document).to_dict() == document


@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("epsilon", [0.0, 1e-5])
def test_an_audit_comes_back(name: str, epsilon: float) -> None:
    document = document_of(lnaudit.audit(EXTREMES[name], epsilon=epsilon, weight=None))
    assert json.dumps(Report.from_dict(document).to_dict()) == json.dumps(document)


def test_a_sweep_comes_back() -> None:
    site = Site(name="a", source="a", rows=ArrayRows(EXTREMES["good"].astype(np.float32)))
    document = document_of(sweep([site], Settings(), (0.0, 1e-5)))
    assert SweepReport.from_dict(document).to_dict() == document
    with pytest.raises(LnauditError, match="kind 'sweep'"):
        Report.from_dict(document)


def test_what_is_not_rounded_comes_back_as_it_was() -> None:
    report = lnaudit.audit(EXTREMES["good"], epsilon=1 / 3)
    again = Report.from_dict(document_of(report))
    assert again.sites[0].epsilon == 1 / 3
    assert [f.code for f in again.findings] == [f.code for f in report.findings]
    assert [asdict(r.cast).keys() for r in again.sites[0].results] == [
        asdict(r.cast).keys() for r in report.sites[0].results
    ]


def test_words_are_numbers_again() -> None:
    again = Report.from_dict(document_of(SAMPLES["bad_input"]()))
    errors = [result.error for result in again.sites[0].results]
    assert errors[0]["max"] is None
    assert errors[2]["p50"] == math.inf
    assert isinstance(errors[2]["max"], float)
    assert math.isnan(errors[2]["max"])
    assert isinstance(errors[1]["max_row"], int)


def test_keys_of_a_later_version_are_passed_over() -> None:
    document = document_of(SAMPLES["several"]())
    more = copy.deepcopy(document)
    more["later"] = more["sites"][0]["later"] = more["findings"][0]["later"] = {"a": [1]}
    assert Report.from_dict(more).to_dict() == document


CHANGES = {
    "another schema version": (("schema_version",), 2),
    "a schema version that equals 1": (("schema_version",), True),
    "another kind": (("kind",), "baseline"),
    "no sites": (("sites",), None),
    "a site that is none": (("sites", 0), 7),
    "a verdict that is none": (("sites", 0, "results", 0, "verdict"), "good"),
    "rows in words": (("sites", 0, "rows"), "many"),
    "half a row": (("sites", 0, "rows"), 1.5),
    "true rows": (("sites", 0, "rows"), True),
    "too many rows": (("sites", 0, "rows"), 1 << 64),
    "an epsilon that is none": (("sites", 0, "epsilon"), "1e-5"),
    "an error that is none": (("sites", 0, "results", 0, "error", "max"), [1.0]),
    "a severity that is none": (("findings", 0, "severity"), "fatal"),
    "a code that is none": (("findings", 0, "code"), 104),
    "a finding that is a list": (("findings", 0), []),
    "results by name": (("sites", 0, "results"), {}),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_damaged_is_refused_in_one_line(what: str) -> None:
    document = document_of(SAMPLES["several"]())
    path, value = CHANGES[what]
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(LnauditError) as caught:
        Report.from_dict(document, "run.json")
    assert str(caught.value).startswith("run.json: is ")
    assert "\n" not in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("kind", "where"),
    [(Report, ()), (SiteReport, ("sites", 0)), (Result, ("sites", 0, "results", 0)), (Finding, ("findings", 0))],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_key_that_is_missing_is_named(kind: Any, where: tuple[Any, ...]) -> None:
    whole = document_of(SAMPLES["several"]())
    needed = [f.name for f in fields(kind) if f.default is f.default_factory is MISSING and f.name != "kind"]
    assert len(needed) > 5
    for key in needed:
        document = copy.deepcopy(whole)
        place: Any = document
        for step in where:
            place = place[step]
        del place[key]
        with pytest.raises(LnauditError, match=f"lacks '{key}'"):
            Report.from_dict(document)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["nan", "pass"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, Any]:
    """A document in which something else stands somewhere."""
    document = document_of(SAMPLES[draw(st.sampled_from(["silent_zero", "several"]))]())
    place: Any = document
    while True:
        key = draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], (dict, list)) or not place[key] or draw(st.integers(0, 5)) == 0:
            break
        place = place[key]
    place[key] = draw(JSON)
    return document


@given(document=damaged())
def test_whatever_stands_anywhere_a_report_or_one_line(document: dict[str, Any]) -> None:
    said = ""
    try:
        again = Report.from_dict(document).to_dict()
    except LnauditError as error:
        said = str(error)
    else:
        assert Report.from_dict(json.loads(json.dumps(again, allow_nan=False))).to_dict() == again
    assert "\n" not in said


def test_what_is_nested_without_end_is_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    document = document_of(SAMPLES["healthy"]())
    document["config"]["limits"] = deep
    with pytest.raises(LnauditError, match="nested too deep"):
        Report.from_dict(document)
