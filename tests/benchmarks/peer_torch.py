"""The peer: the script that one writes without lnaudit. python peer_torch.py FILE.npy

Per 256 rows a float64 reference, then layer norm op by op in float16, bfloat16 and float32, and of each format the
worst row error, the rows that are not finite, those of variance zero and those that come out all zero.
"""

import sys
import time

import numpy as np
import torch

CHUNK = 256
EPSILON = 1e-5


def norm(z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Layer norm op by op in the type of z, with its variance."""
    centred = z - z.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred / (variance + EPSILON).sqrt(), variance


def judge(z: torch.Tensor) -> list[tuple[float, int, int, int]]:
    """Worst error, non-finite rows, zero variances, collapsed rows of each format."""
    exact, _ = norm(z.double())
    found = []
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        y, variance = norm(z.to(dtype))
        error = (y.double() - exact).square().mean(-1).sqrt().nan_to_num(0)
        broken = (~y.isfinite()).any(-1)
        found.append((error.max().item(), int(broken.sum()), int((variance == 0).sum()), int((y == 0).all(-1).sum())))
    return found


if __name__ == "__main__":
    torch.set_num_threads(2)
    dump = np.load(sys.argv[1], mmap_mode="r")
    begun = time.perf_counter()
    all_found = [judge(torch.from_numpy(np.array(dump[i : i + CHUNK]))) for i in range(0, len(dump), CHUNK)]
    seconds = time.perf_counter() - begun
    print(np.array(all_found).max(axis=0))
    print(f"{dump.size / seconds / 1e6:.1f} Melem/s")
