"""Speed beside the peers, what the parts cost, start-up: one function a table."""

from __future__ import annotations

import json
import shutil
import statistics
import sys
from collections.abc import Callable
from functools import partial

from context import HERE, THREE, Bench, lnaudit, native
from measure import Run, best, duration, in_turns, median, number, peak, run, table

FEATURES = 1024
# rows of the two files whose difference counts: so far apart that it is longer than what start-up varies by
SMALL, LARGE = 16_384, 262_144
BYTES = 4  # of an element
Program = Callable[[str], list[str]]  # the command line that reads a file


def speed(bench: Bench) -> str:
    """What another element costs: the difference of two files. Peers and the copy are timed by their own clock."""
    amounts = {rows: rows * FEATURES // bench.scale for rows in (SMALL, LARGE)}
    programs = _programs(bench)
    for command in programs.values():  # what it compiles counts neither as time nor as memory
        run(command(bench.dump(256 * bench.scale)))
    commands = {(name, rows): command(bench.dump(rows)) for name, command in programs.items() for rows in amounts}
    runs = in_turns(commands, bench.rounds)
    times = {key: [one.own_seconds(amounts[key[1]]) for one in found] for key, found in runs.items()}

    def rate(name: str, pick: Callable[[list[float]], float]) -> float | None:
        """Return elements a second."""
        more = pick(times[name, LARGE]) - pick(times[name, SMALL])
        return (amounts[LARGE] - amounts[SMALL]) / more if more > 0 else None

    bests = {name: rate(name, min) for name in programs}
    medians = {name: rate(name, statistics.median) for name in programs}
    lines = [
        [
            name,
            _ratio(bests[name], bests.get("torch script")),
            _ratio(medians[name], medians.get("torch script")),
            _ratio(bests[name], bests.get("pychop script")),
            _ratio(bests[name], 1e6),
            _ratio(bests[name], 1e9 / BYTES),
            number(amounts[LARGE] / min(times[name, LARGE]) / 1e6),
            duration(best(runs[name, SMALL])),
            " / ".join(f"{peak(runs[name, rows]):.0f}" for rows in amounts),
        ]
        for name in programs
    ]
    header = ["program", "/ torch", "/ torch, medians", "/ pychop", "Melem/s", "GB/s", "larger file, Melem/s"]
    sizes = " and ".join(f"{rows // bench.scale:,}" for rows in amounts)
    return "\n\n".join(
        [
            f"### Speed: another element, by the difference of {sizes} x {FEATURES:,} float32",
            table([*header, "smaller file, whole process", "peak MiB, smaller / larger"], lines),
        ]
    )


def _programs(bench: Bench) -> dict[str, Program]:
    programs: dict[str, Program] = {f"{name} script": partial(_read_by, words) for name, words in bench.peers.items()}
    for engine in bench.engines:
        for name, words in (
            ("three formats, native", native(THREE)),
            ("default", []),
            ("float16, native", native("float16")),
        ):
            programs[f"lnaudit, {engine}: {name}"] = partial(_scanned, engine, words)
    programs["read and copy"] = partial(_read_by, [sys.executable, str(HERE / "copy_file.py")])
    return programs


def _read_by(words: list[str], path: str) -> list[str]:
    return [*words, path]


def _scanned(engine: str, words: list[str], path: str) -> list[str]:
    return lnaudit("scan", path, engine, *words)


def _ratio(value: float | None, base: float | None) -> str:
    return number(value / base if value and base else None)


def startup(bench: Bench) -> str:
    """Time what does not grow: start, import, compiling."""
    path, program = bench.dump(256 * bench.scale), [sys.executable, "-m", "lnaudit"]
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "lnaudit --help": [*program, "--help"],
        "lnaudit scan": [*program, "scan", path],
        **{f"lnaudit scan --engine {engine}": lnaudit("scan", path, engine) for engine in bench.engines},
    }
    runs = in_turns(commands, bench.rounds)
    if "numba" in bench.engines:
        cold = [_with_empty_cache(bench, lnaudit("scan", path, "numba")) for _ in range(bench.rounds)]
        runs["lnaudit scan --engine numba, nothing compiled yet"] = cold
    bare = best(runs["python -c pass"])
    lines = [
        [name, number(best(found) / bare), duration(best(found)), duration(median(found)), f"{peak(found):.0f}"]
        for name, found in runs.items()
    ]
    title = "### Start-up: whole processes, file of 1 MiB"
    return f"{title}\n\n{table(['command', '/ python', 'best', 'median', 'peak MiB'], lines)}"


def _with_empty_cache(bench: Bench, command: list[str]) -> Run:
    cache = bench.folder / "cold"
    found = run(command, LNAUDIT_CACHE_DIR=str(cache))
    shutil.rmtree(cache, ignore_errors=True)
    return found


def parts(bench: Bench) -> str:
    """Time the parts of a scan, by plans that ask for more and more (time_parts.py)."""
    program = [sys.executable, str(HERE / "time_parts.py"), bench.dump(FEATURES), bench.dump(SMALL)]
    # each pass is timed several times over
    runs = in_turns({engine: [*program, engine] for engine in bench.engines}, min(2, bench.rounds))
    columns = {}
    for engine, found in runs.items():
        rounds = [json.loads(one.output) for one in found]
        seconds = {name: min(times[name] for times in rounds) for name in rounds[0]}
        columns[engine] = _costs(seconds, SMALL * FEATURES // bench.scale)
    names = next(iter(columns.values()))
    lines = [[name, *(column[name] for column in columns.values())] for name in names]
    title = f"### Parts: {SMALL // bench.scale:,} x {FEATURES:,}, all cores"
    return f"{title}\n\n{table(['part', *columns], lines)}"


def _costs(seconds: dict[str, float], elements: int) -> dict[str, str]:
    """Return what each part costs, from what the passes took."""
    # what two formats share is counted twice where each is run by itself
    shared = seconds["float16"] + seconds["bfloat16"] - seconds["float16 and bfloat16"]
    found = {"reading": seconds["reading"], "reference": shared - seconds["reading"]}
    for fmt in (*THREE.split(","), "float64"):
        kernel = seconds[f"{fmt} twice"] - seconds[fmt]
        what = "reference in double-double" if fmt == "float64" else "cast and its counts"
        found[f"{fmt}: {what}"] = seconds[fmt] - shared - kernel
        found[f"{fmt}: native"] = kernel
    found["default: search of epsilon"] = seconds["default"] - seconds["default without search"]
    found["default: everything but advice"] = seconds["default"]
    costs = {name: f"{number(time / elements * 1e9)} ns an element" for name, time in found.items()}
    return {**costs, "default: advice and verification": duration(seconds["audit"] - seconds["default"])}
