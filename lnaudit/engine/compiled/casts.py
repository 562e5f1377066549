"""What a cast makes of rows, from their extremes and sums: their fate, and what the cast alone costs."""

from __future__ import annotations

import numpy as np

from . import references
from .compiling import compiled
from .exact import cast_error
from .lanes import LANES, load, splat, store
from .masks import chosen, is_finite, packed, unpacked

# columns of the table of what the cast does to each row
FOUND = ("h_max", "h_min", "shift", "D", "S", "error")
H_MAX, H_MIN, SHIFT, D, S, ERROR = range(len(FOUND))


@compiled
def judge(given, epsilon, rms, found, finite, constant):
    """Write which rows are finite and constant after the cast (RMSNorm: zero), and the error of exact LN of them.

    given: by `references`, found: by `FOUND`, both with 16 columns to spare.
    """
    zero = splat(0.0)
    for start in range(0, len(finite), LANES):
        h_max, h_min = load(found[H_MAX], start), load(found[H_MIN], start)
        whole = packed(is_finite(h_max) & is_finite(h_min))
        alike = packed((h_max == zero) & (h_min == zero) if rms else h_max == h_min) & whole
        q, more, product = load(given[references.Q], start), load(found[D], start), load(found[S], start)
        w = q + splat(2.0) * product + more
        w = chosen(w < zero, zero, w) + splat(epsilon)
        cost = cast_error(q, product, more, w, load(given[references.ROOT], start), packed(more == zero), alike)
        store(found[ERROR], start, chosen(unpacked(whole), cost, splat(np.nan)))
        for lane in range(min(LANES, len(finite) - start)):
            finite[start + lane], constant[start + lane] = whole >> lane & 1, alike >> lane & 1
