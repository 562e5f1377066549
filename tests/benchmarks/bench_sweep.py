"""What another epsilon costs: sweeps over 1, 64 and 256 epsilons, as ratios, and nanoseconds a row, format and epsilon.

    python tests/benchmarks/bench_sweep.py [--rounds 5] [--features 64,128,1024,8192]

Whole processes, start-up and reading included; rounds alternate, the best of each counts. Three formats, `native`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
ELEMENTS = 16_384 * 1_024
FORMATS = ("float16", "bfloat16", "float32")
AMOUNTS = (1, 64, 256)


def seconds(dump: Path, amount: int) -> float:
    """Sweep a dump over so many epsilons in a process of its own; return how long that took."""
    epsilons = ["--eps", "1e-5"] if amount == 1 else ["--eps", "1e-12..1e-2", "--points", str(amount)]
    command = [sys.executable, "-m", "lnaudit", "sweep", str(dump), *epsilons, "--format", ",".join(FORMATS)]
    begun = time.perf_counter()
    subprocess.run([*command, "--output-format", "json"], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begun


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--features", default="64,128,1024,8192")
    options = parser.parse_args()
    print(f"{ELEMENTS:,} elements of float32, {', '.join(FORMATS)}, native; best of {options.rounds}")
    print(f"{'features':>9}{'rows':>9}" + "".join(f"{f'{n} eps, s':>13}" for n in AMOUNTS) + "   ratios to one epsilon")
    for features in map(int, options.features.split(",")):
        rows = ELEMENTS // features
        with tempfile.TemporaryDirectory() as folder:
            dump = Path(folder, "dump.npy")
            subprocess.run([sys.executable, str(HERE / "make_dump.py"), dump, str(rows), str(features)], check=True)
            best = dict.fromkeys(AMOUNTS, float("inf"))
            for _ in range(options.rounds):
                for amount in AMOUNTS:
                    best[amount] = min(best[amount], seconds(dump, amount))
        more = (best[64] - best[1]) / (63 * rows * len(FORMATS)) * 1e9
        ratios = "  ".join(f"{amount}: {best[amount] / best[1]:.2f}" for amount in AMOUNTS[1:])
        times = "".join(f"{best[amount]:>13.2f}" for amount in AMOUNTS)
        print(f"{features:>9}{rows:>9,}{times}   {ratios};  {more:.0f} ns a row, format and epsilon")


if __name__ == "__main__":
    main()
