"""Whole reports by the compiled engine and by numpy: the same text, by any number of threads."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lnaudit.formats import DEFAULT_FORMATS, FORMATS, Format
from lnaudit.kernels import KERNELS
from lnaudit.pipeline import Settings, run, sweep
from lnaudit.site import ArrayRows, Site

from .exhaustive import sampled
from .rows import KERNELS as TEXTBOOK
from .rows import REAL, real_rows

pytest.importorskip("numba", reason="numba is not installed: pip install 'lnaudit[fast]'")

NARROW_AND_WIDE = (FORMATS["float16"], FORMATS["float64"])


@pytest.mark.parametrize("kernels", sampled([None, TEXTBOOK], None))
@pytest.mark.parametrize("name", sampled(REAL, *REAL[:2]))
def test_reports_of_real_activations_are_the_same_text(name: str, kernels: tuple[str, ...] | None) -> None:
    site = Site(name=name, source=name, rows=ArrayRows(real_rows(name)))
    asked = Settings(kernels=kernels and tuple(KERNELS[n] for n in kernels))
    texts = {
        json.dumps(run([site], replace(asked, engine=engine, jobs=jobs)).to_dict())
        for engine, jobs in (("numpy", 1), ("numba", 1), ("numba", 2))
    }
    assert len(texts) == 1


@pytest.mark.parametrize("formats", sampled([DEFAULT_FORMATS, NARROW_AND_WIDE], NARROW_AND_WIDE), ids=len)
@pytest.mark.parametrize("name", sampled(REAL, *REAL[:2]))
def test_sweeps_of_real_activations_are_the_same_text(name: str, formats: tuple[Format, ...]) -> None:
    site = Site(name=name, source=name, rows=ArrayRows(real_rows(name)))
    swept = {
        json.dumps(sweep([site], Settings(engine=engine, formats=formats), (0.0, 1e-9, 1e-3)).to_dict())
        for engine in ("numpy", "numba")
    }
    assert len(swept) == 1
