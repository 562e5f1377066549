"""Audit one file as the command line does and print its throughput: python run_lnaudit.py FILE.npy FORMATS KERNELS."""

import sys
import time

from lnaudit.formats import get_format
from lnaudit.kernels import get_kernel
from lnaudit.pipeline import Settings, run
from lnaudit.readers.discover import find_sites
from lnaudit.readers.sites import SiteOptions

path, formats, kernels = sys.argv[1:4]
settings = Settings(
    formats=tuple(map(get_format, formats.split(","))),
    kernels=tuple(map(get_kernel, kernels.split(","))) if kernels != "default" else None,
)
begun = time.perf_counter()
report = run(find_sites([path], SiteOptions()).open(), settings)
seconds = time.perf_counter() - begun
elements = sum(site.rows * site.features for site in report.sites)
print([(r.format, r.kernel, r.verdict, r.failing_rows) for r in report.sites[0].results])
print(f"{elements / seconds / 1e6:.1f} Melem/s")
