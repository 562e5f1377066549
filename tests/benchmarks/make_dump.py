"""Write a benchmark dump: python make_dump.py FILE.npy ROWS FEATURES [DTYPE [C|F]].

Rows around 5, each with a spread of its own between 1e-3 and 1e2, so that healthy, noisy and collapsing rows
all occur. Seeded; written in strips, so that the file may be larger than memory.
"""

import sys

import numpy as np
from numpy.lib.format import open_memmap

STRIP = 4096


def make_dump(path: str, rows: int, features: int, dtype: str = "<f4", order: str = "C") -> None:
    """Write the dump; in Fortran order its first columns are written again and again."""
    generator = np.random.default_rng(7)
    dump = open_memmap(path, mode="w+", dtype=dtype, shape=(rows, features), fortran_order=order == "F")
    if order == "F":
        column = (5 + generator.standard_normal((rows, 1))).astype(dtype)
        for i in range(features):
            dump[:, i : i + 1] = np.roll(column, i)
        rows = 0
    for first in range(0, rows, STRIP):
        n = min(STRIP, rows - first)
        spread = np.float32(10) ** generator.uniform(-3, 2, (n, 1)).astype(np.float32)
        dump[first : first + n] = 5 + spread * generator.standard_normal((n, features), dtype=np.float32)
    dump.flush()


if __name__ == "__main__":
    make_dump(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
