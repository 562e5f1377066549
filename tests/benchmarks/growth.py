"""How time grows with rows, epsilons, formats and kernels: one function a table, whole processes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from context import THREE, Bench, lnaudit, native
from measure import best, duration, in_turns, number, table

FEATURES = 1024
ROWS = 16_384  # where it is not rows that grow
TIMES = (1, 4, 16, 64)
EPSILONS = (1, 4, 16, 64, 256)
WIDTHS = (1024, 128, 64)
FORMATS = ("float16", "bfloat16", "float32", "float64")
KERNELS = ("native-serial", "native", "decomposed", "stored-stats", "fused")  # the ladder

# the commands of a curve, and by how many units the last has more to do than the first
Curve = tuple[list[list[str]], float]


def rows(bench: Bench) -> str:
    """Let the rows of a default scan grow."""
    paths = [bench.dump(FEATURES * times) for times in TIMES]
    more = (TIMES[-1] - TIMES[0]) * FEATURES * FEATURES / bench.scale
    curves = {engine: ([lnaudit("scan", path, engine) for path in paths], more) for engine in bench.engines}
    title = f"Rows: default scan, times {FEATURES // bench.scale:,} x {FEATURES:,}"
    return _curves(bench, title, [f"x{times}" for times in TIMES], curves, "element")


def epsilons(bench: Bench) -> str:
    """Let the epsilons of a sweep grow, for rows of several widths and always as many elements, and in one thread."""
    curves = {}
    kinds = [(engine, width, "") for engine in bench.engines for width in WIDTHS]
    for engine, width, thread in [*kinds, *((engine, WIDTHS[-1], ", one thread") for engine in bench.engines)]:
        path, n = bench.dump(ROWS * FEATURES // width, width), ROWS * FEATURES // width // bench.scale
        commands = [_sweep(path, engine, amount, *(("--jobs", "1") if thread else ())) for amount in EPSILONS]
        curves[f"{engine}{thread}, {n:,} x {width:,}"] = commands, 3.0 * n * (EPSILONS[-1] - EPSILONS[0])
    return _curves(bench, "Epsilons: sweep, three formats, native", EPSILONS, curves, "row, format and epsilon")


def epsilons_of_a_row(bench: Bench) -> str:
    """Let rows and epsilons of a sweep in one thread grow together, which leaves out what a point costs by itself."""
    width, most = WIDTHS[-1], EPSILONS[-1]
    sizes = [ROWS * FEATURES // width // part for part in (4, 1)]
    commands = {
        (engine, n, amount): _sweep(bench.dump(n, width), engine, amount, "--jobs", "1")
        for engine in bench.engines
        for n in sizes
        for amount in (1, most)
    }
    fewest, largest = (n // bench.scale for n in sizes)
    more = 3 * (largest - fewest) * (most - 1)
    runs = in_turns(commands, bench.rounds)
    lines = []
    for engine in bench.engines:
        few, many = ({amount: best(runs[engine, n, amount]) for amount in (1, most)} for n in sizes)
        lines.append([engine, number(((many[most] - many[1]) - (few[most] - few[1])) / more * 1e9)])
    title = f"### Epsilons: one thread, 1 and {most} of them on {fewest:,} and {largest:,} x {width}"
    return f"{title}\n\n{table(['', 'ns a further row, format and epsilon'], lines)}"


def _sweep(path: str, engine: str, amount: int, *words: str) -> list[str]:
    points = ["--eps", "1e-5"] if amount == 1 else ["--eps", "1e-12..1e-2", "--points", str(amount)]
    return lnaudit("sweep", path, engine, *points, *native(THREE), "--output-format", "json", *words)


def formats(bench: Bench) -> str:
    """Let the formats of a scan grow."""
    return _emulations(bench, "Formats: scan, native", "format", FORMATS, ["--kernel", "native", "--format"])


def kernels(bench: Bench) -> str:
    """Let the kernels of a scan grow."""
    return _emulations(bench, "Kernels: scan, float16", "kernel", KERNELS, ["--format", "float16", "--kernel"])


def _emulations(bench: Bench, title: str, what: str, names: tuple[str, ...], words: list[str]) -> str:
    path, more = bench.dump(ROWS), ROWS * FEATURES / bench.scale * (len(names) - 1)
    asked = list(accumulate(names, lambda before, name: f"{before},{name}"))
    curves = {
        engine: ([lnaudit("scan", path, engine, *words, listed) for listed in asked], more) for engine in bench.engines
    }
    columns = [names[0], *(f"+ {name}" for name in names[1:])]
    title = f"{title}, {ROWS // bench.scale:,} x {FEATURES:,}"
    return _curves(bench, title, columns, curves, f"element and {what}")


def _curves(bench: Bench, title: str, columns: Iterable[object], curves: dict[str, Curve], unit: str) -> str:
    """Run the commands of all curves in turns; write ratios to the first, times, and the ns that a unit more takes."""
    commands = {(label, i): command for label, (listed, _) in curves.items() for i, command in enumerate(listed)}
    runs = in_turns(commands, bench.rounds)
    lines = []
    for label, (listed, more) in curves.items():
        times = [best(runs[label, i]) for i in range(len(listed))]
        cells = [f"{number(time / times[0])} ({duration(time)})" for time in times]
        lines.append([label, *cells, number((times[-1] - times[0]) / more * 1e9)])
    return f"### {title}\n\n{table(['', *map(str, columns), f'ns a further {unit}'], lines)}"


TABLES = (rows, epsilons, epsilons_of_a_row, formats, kernels)
