"""What no program that reads can beat: a file read into a buffer and copied once. python copy_file.py FILE.npy

In pieces of 16 MiB, as lnaudit reads, on one thread; the memory is used again, so that no page is new.
"""

import sys
import time

import numpy as np

PIECE = 1 << 24

if __name__ == "__main__":
    elements = np.load(sys.argv[1], mmap_mode="r").size
    buffer, copy = np.ones(PIECE, np.uint8), np.ones(PIECE, np.uint8)
    with open(sys.argv[1], "rb", buffering=0) as file:
        begun = time.perf_counter()
        while n := file.readinto(buffer.data):
            np.copyto(copy[:n], buffer[:n])
        seconds = time.perf_counter() - begun
    print(f"{elements / seconds / 1e6:.1f} Melem/s")
