"""A map: a family swept as two of its parameters vary, a verdict for each pair."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..families import FamilyGrid, site_of
from ..report import SweepReport, SweptResult, VerdictMap
from ..rules import RULES
from .settings import Settings
from .sweeping import sweep


def add_maps(
    report: SweepReport, grids: Iterable[FamilyGrid], settings: Settings, epsilons: tuple[float, ...], norm: str
) -> None:
    """Add the maps of grids to a report."""
    for grid in grids:
        maps = verdict_maps(grid, settings, epsilons, norm)
        codes = {code for found in maps for row in found.codes for cell in row for code in cell}
        report.maps += maps
        report.rules = dict(sorted({**report.rules, **{code: RULES[code].name for code in codes}}.items()))


def verdict_maps(
    grid: FamilyGrid, settings: Settings, epsilons: tuple[float, ...], norm: str = "layer"
) -> list[VerdictMap]:
    """Return a map for each emulation and epsilon; every cell is judged as a scan of that family judges it."""
    # cells are small: one thread is done before a second would have started
    alone = replace(settings, jobs=1)
    swept = sweep((site_of(spec, epsilons[0], norm=norm) for spec in grid.cells()), alone, epsilons)
    columns = zip(*(site.results for site in swept.sites), strict=True)
    return [_map(grid, column, number) for column in columns for number in range(len(epsilons))]


def _map(grid: FamilyGrid, column: tuple[SweptResult, ...], number: int) -> VerdictMap:
    points = [result.points[number] for result in column]
    width = len(grid.values[0])
    rows = [points[start : start + width] for start in range(0, len(points), width)]
    return VerdictMap(
        family=grid.text,
        format=column[0].format,
        kernel=column[0].kernel,
        epsilon=points[0].epsilon,
        parameters=list(grid.names),
        values=[list(values) for values in grid.values],
        verdicts=[[point.verdict for point in row] for row in rows],
        errors=[[point.error["max"] for point in row] for row in rows],
        codes=[[point.codes for point in row] for row in rows],
    )
