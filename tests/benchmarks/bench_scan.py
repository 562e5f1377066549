"""Compare lnaudit with a PyTorch script of the same work, in one run: throughput as ratios, peak memory, start-up.

    python tests/benchmarks/bench_scan.py [--peer SCRIPT] [--peer-python PYTHON] [--rounds 5]

The peer needs torch: name an interpreter that has it. Rounds alternate between the two; the best of each counts.
Memory is the peak resident set of the whole process.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
ROWS, FEATURES = 16_384, 1_024


def measured(command: list[str]) -> tuple[float, float]:
    """Run a command that prints "N Melem/s"; return N and its peak memory in MiB."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    found = re.search(r"([\d.]+) Melem/s", output)
    if process.returncode or not found:
        sys.exit(f"{' '.join(command)} failed:\n{output}")
    return float(found[1]), usage.ru_maxrss / 1024


def seconds(command: list[str], rounds: int) -> float:
    """Return the shortest of several runs of a command."""
    best = float("inf")
    for _ in range(rounds):
        begun = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        best = min(best, time.perf_counter() - begun)
    return best


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default=str(HERE / "peer_torch.py"))
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        dump, long, small = (str(Path(folder, name)) for name in ("dump.npy", "long.npy", "small.npy"))
        for path, rows in ((dump, ROWS), (long, 8 * ROWS), (small, 256)):
            # in a process of its own: children inherit the peak of the process that starts them
            subprocess.run([sys.executable, str(HERE / "make_dump.py"), path, str(rows), str(FEATURES)], check=True)
        three = [sys.executable, str(HERE / "run_lnaudit.py"), dump, "float16,bfloat16,float32", "native"]
        default = [sys.executable, str(HERE / "run_lnaudit.py"), dump, "float16,bfloat16,float32,float64", "default"]
        peer = [options.peer_python, options.peer, dump]
        runs: dict[str, list[tuple[float, float]]] = {"three": [], "default": [], "peer": []}
        for _ in range(options.rounds):
            for name, command in (("three", three), ("default", default), ("peer", peer)):
                runs[name].append(measured(command))
        best = {name: max(speed for speed, _ in found) for name, found in runs.items()}
        middle = {name: statistics.median(speed for speed, _ in found) for name, found in runs.items()}
        peak = {name: max(memory for _, memory in found) for name, found in runs.items()}
        _, long_peak = measured([*three[:2], long, *three[3:]])
        print(f"dump: {ROWS:,} x {FEATURES:,} float32; best of {options.rounds}; {os.cpu_count()} cores")
        print(f"{'':44}{'Melem/s':>9}{'/ peer':>9}{'median':>9}{'/ peer':>9}{'peak MiB':>11}")
        for name, text in (
            ("peer", "PyTorch script, 3 formats, op by op"),
            ("three", "lnaudit, the same 3 formats, native"),
            ("default", "lnaudit, default: 4 formats, 6 emulations"),
        ):
            ratios = best[name] / best["peer"], middle[name] / middle["peer"]
            print(
                f"{text:44}{best[name]:>9.1f}{ratios[0]:>9.2f}{middle[name]:>9.1f}{ratios[1]:>9.2f}{peak[name]:>11.0f}"
            )
        print(f"peak memory on a file 8 times as long: {long_peak:.0f} MiB")
        program = [sys.executable, "-m", "lnaudit"]
        print(f"lnaudit --help: {seconds([*program, '--help'], 5):.2f} s")
        print(f"lnaudit scan of a 1 MiB file: {seconds([*program, 'scan', small], 5):.2f} s")


if __name__ == "__main__":
    main()
