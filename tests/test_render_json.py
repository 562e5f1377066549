"""The JSON document: strict, deterministic, the schema of the report."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lnaudit.render import render_json

from .report_samples import HOSTILE, SAMPLES


def strict(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_document_is_strict_ascii_json(name: str) -> None:
    text = render_json(SAMPLES[name]())
    assert text.isascii()
    assert text.endswith("}\n")
    assert strict(text) == SAMPLES[name]().to_dict()


@pytest.mark.parametrize("name", SAMPLES)
def test_the_same_report_gives_the_same_bytes(name: str) -> None:
    assert render_json(SAMPLES[name]()) == render_json(SAMPLES[name]())


def test_top_level_keys_stand_in_order() -> None:
    document = strict(render_json(SAMPLES["several"]()))
    assert list(document)[:9] == [
        "schema_version",
        "kind",
        "lnaudit_version",
        "config",
        "summary",
        "not_audited",
        "epsilon",
        "sites",
        "findings",
    ]
    assert document["schema_version"] == 1


def test_numbers_that_json_lacks_are_strings() -> None:
    errors = [r["error"] for r in strict(render_json(SAMPLES["bad_input"]()))["sites"][0]["results"]]
    assert errors[0]["max"] is None
    assert (errors[2]["p50"], errors[2]["max"]) == ("inf", "nan")


def test_names_come_back_as_they_are() -> None:
    assert strict(render_json(SAMPLES["hostile"]()))["sites"][0]["name"] == HOSTILE
