"""A map: a family swept as two of its parameters vary, a verdict for each pair."""

from __future__ import annotations

from dataclasses import replace

from ..families import FamilyGrid, site_of
from ..report import SweepReport, SweptResult, VerdictMap
from .settings import Settings
from .sweeping import sweep


def add_map(report: SweepReport, grid: FamilyGrid, settings: Settings, epsilons: tuple[float, ...], norm: str) -> None:
    """Add the maps of a grid to a report."""
    swept = _swept(grid, settings, epsilons, norm)
    report.maps += _maps(grid, swept, epsilons)
    report.notes += [note for note in swept.notes if note not in report.notes]
    report.rules = dict(sorted({**report.rules, **swept.rules}.items()))


def verdict_maps(
    grid: FamilyGrid, settings: Settings, epsilons: tuple[float, ...], norm: str = "layer"
) -> list[VerdictMap]:
    """Return a map for each emulation and epsilon; every cell is judged as a scan of that family judges it.

    What a policy says of single sites holds for all cells where a pattern matches the text of the grid.
    """
    return _maps(grid, _swept(grid, settings, epsilons, norm), epsilons)


def _swept(grid: FamilyGrid, settings: Settings, epsilons: tuple[float, ...], norm: str) -> SweepReport:
    # cells are small: one thread is done before a second would have started
    cells = f"{grid.text.partition(':')[0]}:*"
    alone = replace(settings, jobs=1, policy=settings.policy.as_one_site(grid.text, cells))
    return sweep((site_of(spec, epsilons[0], norm=norm) for spec in grid.cells()), alone, epsilons)


def _maps(grid: FamilyGrid, swept: SweepReport, epsilons: tuple[float, ...]) -> list[VerdictMap]:
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
        nonfinite_rows=[[point.nonfinite_rows for point in row] for row in rows],
        codes=[[point.codes for point in row] for row in rows],
    )
