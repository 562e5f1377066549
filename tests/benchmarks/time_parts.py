"""Time the parts of a scan: python time_parts.py WARM.npy FILE.npy ENGINE; prints seconds as JSON.

Each entry is one pass over the file with a plan that asks for more than another, so that differences are what the parts
cost: reading alone, a format once and twice, two formats together, the default with and without the search of epsilon,
the whole audit. Passes over WARM come first and do not count.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from lnaudit.advice import CONSTANTS, candidates
from lnaudit.formats import DEFAULT_FORMATS
from lnaudit.kernels import KERNELS
from lnaudit.pipeline import Settings, run
from lnaudit.readers.discover import find_sites
from lnaudit.readers.sites import SiteOptions
from lnaudit.summarize import BLOCK_BYTES, BLOCK_ROWS


def seconds(path: str, engine: str) -> dict[str, float]:
    """Return how long each pass takes."""
    (site,) = find_sites([path], SiteOptions()).open()
    rows, settings = site.rows, Settings(engine=engine)
    plan, summarizer = settings.plan(site), settings.summarizer()

    def summarized(*results):
        return lambda: summarizer.summarize(rows, replace(plan, results=results))

    def read():
        for _ in rows.blocks(min(BLOCK_BYTES // 4, BLOCK_ROWS * rows.features)):
            pass

    passes = {"reading": read}
    native = {fmt.name: (fmt, KERNELS["native"].at(fmt, False, rows.features)) for fmt in DEFAULT_FORMATS}
    for name, result in native.items():
        passes[name] = summarized(result)
        passes[f"{name} twice"] = summarized(result, result)
    passes["float16 and bfloat16"] = summarized(native["float16"], native["bfloat16"])
    passes["default without search"] = summarized(*plan.results)
    searched = replace(plan, epsilons=tuple(dict.fromkeys((*candidates(site.epsilon), *CONSTANTS))))
    passes["default"] = lambda: summarizer.summarize(rows, searched)
    passes["audit"] = lambda: run([site], settings)
    return {name: _shortest(work) for name, work in passes.items()}


def _shortest(work: Callable[[], object]) -> float:
    """Return the shortest of several times: of a second of them, or two if each takes longer."""
    times: list[float] = []
    while len(times) < 2 or sum(times) < 1:
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)


if __name__ == "__main__":
    warm, path, engine = sys.argv[1:]
    seconds(warm, engine)
    print(json.dumps(seconds(path, engine)))
