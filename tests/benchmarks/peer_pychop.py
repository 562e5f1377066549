"""The other peer: the same script with pychop's roundings, for one format. python peer_pychop.py FILE.npy

Per 256 rows a float64 reference, then layer norm op by op in float16, each result rounded by pychop, and the worst row
error, the rows that are not finite, those of variance zero and those that come out all zero. In pychop's fastest way:
float32 arrays, whose own rounding leaves the second one as it is, and no dask, which makes it two to six times slower
here. pychop 0.6.2 has 65,536 for 65,520 and 0 for 65,536 to 131,071 where float16 has Inf, so that the figures of rows
with such squares differ from those of the PyTorch script; the work is the same.
"""

import sys
import time
import warnings

import numpy as np
import pychop

CHUNK = 256
EPSILON = 1e-5
WITHOUT_DASK = 1 << 62  # elements from which pychop would hand an array to it


def norm(z, rounded):
    """Layer norm op by op, with its variance."""
    centred = rounded(z - rounded(z.mean(-1, keepdims=True)))
    variance = rounded(rounded(centred * centred).mean(-1, keepdims=True))
    return rounded(centred / rounded(np.sqrt(rounded(variance + z.dtype.type(EPSILON))))), variance


def judge(z, rounded):
    """Worst error, non-finite rows, zero variances, collapsed rows."""
    exact, _ = norm(z.astype(np.float64), lambda x: x)
    y, variance = norm(rounded(z), rounded)
    error = np.nan_to_num(np.sqrt(np.square(y.astype(np.float64) - exact).mean(-1)), posinf=0)
    broken = (~np.isfinite(y)).any(-1)
    return error.max(), broken.sum(), (variance == 0).sum(), (y == 0).all(-1).sum()


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of Inf and NaN, which are counted
    pychop.backend("numpy")
    half = pychop.Chop(exp_bits=5, sig_bits=10, chunk_size=WITHOUT_DASK)
    dump = np.load(sys.argv[1], mmap_mode="r")
    begun = time.perf_counter()
    all_found = [judge(np.array(dump[i : i + CHUNK]), half) for i in range(0, len(dump), CHUNK)]
    seconds = time.perf_counter() - begun
    print(np.array(all_found).max(axis=0))
    print(f"{dump.size / seconds / 1e6:.1f} Melem/s")
