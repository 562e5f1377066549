"""Pages of many sites: which have figures, how large they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lnaudit.cli.options import epsilons
from lnaudit.families import parse_family, site_of
from lnaudit.kernels import LADDER, get_kernel
from lnaudit.pipeline import Settings, run, sweep
from lnaudit.render.html import brevity, render_html

from . import page_samples
from .page_reader import Reader, section

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")


def test_of_very_many_sites_only_the_worst_have_figures(monkeypatch):
    monkeypatch.setattr(brevity, "MOST_DRAWN", 4)
    report = page_samples.whole_model(20)  # of five sites one fails and one warns
    text = render_html(report)
    drawn = [site.name for site in report.sites if "<svg" in section(text, f"{site.name}<")]
    assert drawn == [site.name for site in report.sites if site.verdict == "fail"]
    left = section(text, "encoder.layer.2.output.LayerNorm")
    assert "lnaudit scan encoder.layer.2.output.LayerNorm.npy --eps 1e-5 --report figure.svg" in left
    assert "<table" in left
    monkeypatch.setattr(brevity, "MOST_DRAWN", 10)
    text = render_html(report)
    drawn = [site.verdict for site in report.sites if "<svg" in section(text, f"{site.name}<")]
    assert drawn == ["fail", "warn"] * 4
    monkeypatch.setattr(brevity, "MOST_DRAWN", 20)
    assert render_html(report).count("<svg") == 20


def test_a_sweep_of_very_many_sites_draws_the_worst(monkeypatch):
    monkeypatch.setattr(brevity, "MOST_DRAWN", 1)
    report = page_samples.real_sweep()
    text = render_html(report)
    bad = {s.name: sum(p.verdict != "pass" for r in s.results for p in r.points) for s in report.sites}
    worst, other = sorted(
        report.sites, key=lambda site: (["fail", "warn", "pass"].index(site.verdict), -bad[site.name])
    )
    assert (worst.verdict, bad[worst.name]) != (other.verdict, bad[other.name])
    told = f"lnaudit sweep --family {other.name} --report figure.svg"
    assert told in Reader(text).text
    assert Reader(text).text.count("figure.svg") == 1


def test_a_model_of_200_sites_stays_small():
    # the browser tests make all 200; what a site adds is the same everywhere
    few, more = (len(render_html(page_samples.whole_model(sites)).encode()) for sites in (10, 30))
    assert few + (200 - 10) * (more - few) / 20 < 10_000_000


def size_of_200(monkeypatch, report_of, few=2, more=4):
    """Bytes of a page of 200 sites, of which as many are drawn as may be."""
    drawn, most = [len(render_html(report_of(sites)).encode()) for sites in (few, more)], brevity.MOST_DRAWN
    monkeypatch.setattr(brevity, "MOST_DRAWN", 0)
    plain = [len(render_html(report_of(sites)).encode()) for sites in (few, more)]
    each = (drawn[0] - plain[0]) / few, (drawn[1] - plain[1]) / more
    # with 0 allowed none is drawn
    assert min(each) > 10_000
    return plain[0] + (200 - few) * (plain[1] - plain[0]) / (more - few) + most * max(each)


def families(seeds):
    texts = (f"near-constant:rows=64,features=64,seed={seed}" for seed in range(seeds))
    return [site_of(parse_family(text), 1e-5) for text in texts]


def test_a_sweep_of_200_sites_stays_small(monkeypatch):
    swept = sweep(families(4), replace(Settings(), default_kernels=(get_kernel("native"),)), epsilons(None)[0])
    assert (len(swept.sites[0].results), len(swept.sites[0].results[0].points)) == (4, 12)
    size = size_of_200(monkeypatch, lambda sites: replace(swept, sites=swept.sites[:sites]))
    assert size < 10_000_000


def test_a_scan_of_200_sites_with_all_kernels_of_the_ladder_stays_small(monkeypatch):
    settings = Settings(kernels=tuple(map(get_kernel, LADDER)), kernels_asked=True)
    report = run(families(4), settings, "scan")
    assert all(site.verdict == "fail" for site in report.sites)
    assert len(report.sites[0].results) >= 3 * len(LADDER)

    def of(sites):
        names = {site.name for site in report.sites[:sites]}
        return replace(report, sites=report.sites[:sites], findings=[f for f in report.findings if f.site in names])

    assert size_of_200(monkeypatch, of) < 10_000_000
