"""Peak memory by size and layout of the file."""

from __future__ import annotations

from pathlib import Path

from context import Bench, lnaudit
from measure import number, run, table

GIB = 1 << 18  # rows of 1,024 float32
LAYOUTS = {
    "C order": (),
    "C order, --axis 0": ("--axis", "0"),
    "Fortran order": ("<f4", "F"),
    "big-endian": (">f4",),
    "float64": ("<f8",),
    "float16": ("<f2",),
}


def peaks(bench: Bench, large: bool) -> str:
    """Scan files of 64 MiB and 1 GiB, with `large` of 8 GiB, in C order, of 1 GiB in other layouts, and narrow rows."""
    lines = []
    for engine in bench.engines:
        first = _peak(bench, engine, GIB // 16)
        measured = {"64 MiB, C order": first}
        for name, kind in LAYOUTS.items():
            measured[f"1 GiB, {name}"] = _peak(bench, engine, GIB, kind)
        measured["1 GiB, rows of 64"] = _peak(bench, engine, 16 * GIB, features=64)
        if large:
            measured["8 GiB, C order"] = _peak(bench, engine, 8 * GIB)
        lines += [[engine, name, number(peak / first), f"{peak:.0f}"] for name, peak in measured.items()]
    title = f"### Memory: default scan, files of the sizes named{f' / {bench.scale}' if bench.scale > 1 else ''}"
    return f"{title}\n\n{table(['engine', 'file', '/ first', 'peak MiB'], lines)}"


def _peak(bench: Bench, engine: str, rows: int, kind: tuple[str, ...] = (), features: int = 1024) -> float:
    """Return the peak in MiB of a scan; of dumps of other types the rows make up for the size of their elements."""
    words = kind if kind[:1] == ("--axis",) else ()
    dtype = kind if not words else ()
    itemsize = int(dtype[0][2]) if dtype else 4
    # what is compiled for a type of file counts once, not here
    run(lnaudit("scan", bench.dump(256 * bench.scale, features, *dtype), engine, *words))
    path = bench.dump(rows * 4 // itemsize, features, *dtype)
    found = run(lnaudit("scan", path, engine, *words)).peak
    if rows >= GIB and (dtype or features != 1024 or rows > GIB):
        Path(path).unlink()
    return found
