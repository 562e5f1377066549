"""Maps: a family as two of its parameters vary, a verdict for each pair."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lnaudit
from lnaudit.errors import LnauditError
from lnaudit.families import generate, parse_family, parse_grid
from lnaudit.formats import FORMATS
from lnaudit.kernels import KERNELS
from lnaudit.pipeline import Settings
from lnaudit.pipeline.mapping import verdict_maps

from .program import run, run_in

GRID = "near-constant:offset=1..100,spread=1e-3..1,rows=8,features=64"


def test_a_range_holds_both_ends_and_1_2_5_times_the_powers_of_ten_between_them() -> None:
    grid = parse_grid("near-constant:offset=1.5..30,spread=1e-3..0.01")
    assert grid is not None
    assert grid.names == ("offset", "spread")
    assert grid.values == ((1.5, 2.0, 5.0, 10.0, 20.0, 30.0), (1e-3, 2e-3, 5e-3, 0.01))


def test_cells_are_families_row_by_row() -> None:
    grid = parse_grid("normal:std=1..2,rows=3,mean=5..10,features=4,seed=7")
    assert grid is not None
    found = [(spec.rows, spec.features, spec.seed, *dict(spec.parameters).values()) for spec in grid.cells()]
    # mean, std: in the order of the family's own parameters
    assert found == [(3, 4, 7, 5.0, 1.0), (3, 4, 7, 5.0, 2.0), (3, 4, 7, 10.0, 1.0), (3, 4, 7, 10.0, 2.0)]


@pytest.mark.parametrize("text", ["near-constant", "normal:mean=3", "antisymmetric:t=1e-3..1e3", "unknown:a=1..2"])
def test_what_has_no_range_is_no_grid(text: str) -> None:
    assert parse_grid(text) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("near-constant:offset=1..5", "1 of its parameters"),
        ("near-constant:offset=0..5,spread=1..2", "offset=0..5"),
        ("near-constant:offset=5..1,spread=1..2", "offset=5..1"),
        ("near-constant:offset=1..2,spread=1..inf", "spread=1..inf"),
        ("near-constant:offset=a..b,spread=1..2", "offset=a..b"),
        ("near-constant:offset=1e-30..1e30,spread=1e-30..1e30", "more than"),
    ],
)
def test_what_is_no_grid_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(LnauditError, match=said):
        parse_grid(text)
    result = run("sweep", "--family", text)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("lnaudit: ")
    assert result.stderr.count("\n") == 1


def test_each_cell_is_judged_as_a_scan_judges_that_family() -> None:
    grid = parse_grid(GRID)
    assert grid is not None
    formats = [FORMATS["float16"], FORMATS["bfloat16"]]
    maps = verdict_maps(grid, Settings(formats=tuple(formats), kernels=(KERNELS["native"],)), (1e-5, 1e-3))
    assert [(found.format, found.epsilon) for found in maps] == [
        (fmt.name, epsilon) for fmt in formats for epsilon in (1e-5, 1e-3)
    ]
    seen = set()
    for found in maps:
        cells = grid.cells()
        for row, errors in zip(found.verdicts, found.errors, strict=True):
            for verdict, error in zip(row, errors, strict=True):
                report = lnaudit.audit(
                    generate(next(cells)), epsilon=found.epsilon, formats=[found.format], kernels=["native"]
                )
                result = report.sites[0].results[0]
                assert (verdict, error) == (result.verdict, result.error["max"])
                seen.add(verdict)
    assert seen == {"fail", "warn", "pass"}


def test_the_program_draws_it(tmp_path: Path) -> None:
    result = run_in(tmp_path, "sweep", "--family", GRID, "--format", "float16")
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert "near-constant:rows=8,features=64   (float16 native, epsilon 1e-5)" in lines
    cells = {
        words[0]: words[1:] for line in lines if (words := line.split()) and set(words[1:]) <= set(".wF") and words[1:]
    }
    assert list(cells) == ["1", "0.5", "0.2", "0.1", "5e-2", "2e-2", "1e-2", "5e-3", "2e-3", "1e-3"]
    document = json.loads(run_in(tmp_path, "sweep", "--family", GRID, "--output-format", "json").stdout)
    found = document["maps"][0]
    assert (found["format"], found["parameters"], document["sites"]) == ("float16", ["offset", "spread"], [])
    letters = {"fail": "F", "warn": "w", "pass": "."}
    assert [[letters[v] for v in row] for row in found["verdicts"]] == list(reversed(cells.values()))


def test_a_grid_stands_beside_families_and_dumps(tmp_path: Path) -> None:
    lnaudit_words = ("--family", "zeros", "--family", GRID, "--eps", "1e-5", "--output-format", "json")
    document = json.loads(run_in(tmp_path, "sweep", *lnaudit_words).stdout)
    assert len(document["sites"]) == 1
    assert len(document["maps"]) == 4


def test_the_seed_and_the_rest_of_the_text_reach_every_cell() -> None:
    grid = parse_grid(GRID + ",seed=5")
    assert grid is not None
    assert all(spec.label == parse_family(spec.label).label and "seed=5" in spec.label for spec in grid.cells())


def test_a_map_is_one_site_to_the_policy(tmp_path: Path) -> None:
    family = "near-constant:offset=1..10,spread=0.1..1,rows=4,features=16"
    (tmp_path / "lnaudit.toml").write_text(
        '[sites."*offset=1,*"]\nkernel = "fused"\nformats = ["float16"]\n'
        '[sites."near-constant*"]\nkernel = "fused"\nformats = ["bfloat16"]\nepsilon = 1e-3\nnorm = "rms"\n'
        '[ignore-sites."near*"]\nLN2 = "as it is"\n'
    )
    document = json.loads(run_in(tmp_path, "sweep", "--family", family, "--output-format", "json").stdout)
    (found,) = document["maps"]
    assert (found["format"], found["kernel"], found["epsilon"]) == ("bfloat16", "fused", 1e-3)
    rms = verdict_maps(
        parse_grid(family), Settings(formats=(FORMATS["bfloat16"],), kernels=(KERNELS["fused"],)), (1e-3,), "rms"
    )
    assert found["errors"] == [[float(f"{e:.6g}") for e in row] for row in rms[0].errors]


def test_what_a_policy_accepts_in_a_map_is_said(tmp_path: Path) -> None:
    (tmp_path / "lnaudit.toml").write_text('[ignore-sites."near*"]\nLN = "as it is"\n')
    done = run_in(tmp_path, "sweep", "--family", GRID, "--format", "float16")
    assert "accepted by the policy" in done.stdout
    assert "'near-constant:*': as it is" in done.stdout.replace("\n  ", " ")
