"""Named inputs that several tests share: rows on which norms fail, and the real activations in tests/data."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from .oracles import PRECISION

DATA = Path(__file__).parent / "data"
FORMATS = ("float16", "bfloat16", "float32", "float64")
KERNELS = ("native-serial", "native", "decomposed", "stored-stats", "fused")
WIDTHS = (1, 2, 3, 17, 100)
REAL = tuple(sorted(path.stem for path in DATA.glob("*.npy")))
# largest finite number (IEEE 754-2019, table 3.5; bfloat16 and tfloat32: 8 and 11 bits, float32's exponents; OCP 8-bit
# floating point, table 1), and standard deviations at which a format overflows and has subnormal numbers
LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38, "float64": 1.79e308}
LARGEST |= {"tfloat32": 3.4011621342146535e38, "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}
TOO_LARGE = {"float16": 1e6, "float64": 1.0, "float8_e4m3fn": 1e4, "float8_e5m2": 1e6}
SUBNORMAL = {"float16": 3e-7, "float8_e4m3fn": 6e-3, "float8_e5m2": 4e-5}


@cache
def real_rows(name: str) -> np.ndarray:
    """Return up to 40 rows of real activations, float32."""
    x = np.load(DATA / f"{name}.npy")
    x.flags.writeable = False
    return x


@cache
def named_rows(fmt: str, width: int) -> dict[str, np.ndarray]:
    """Return rows of one width, float64, that are hard for a format."""
    noise = np.random.default_rng([41, width]).standard_normal((10, width))
    outlier = noise[4].copy()
    outlier[width // 2] = 3000.0
    # a spacing of the format at this offset is 16 or 32
    offset = 2.0 ** min(PRECISION[fmt] + 4, 60)
    return {
        "normal": noise[0],
        "offset 5 spread 1e-3": 5 + 1e-3 * noise[1],
        "offset 1000 spread 0.1": 1000 + 0.1 * noise[2],
        "outlier 3000": outlier,
        "scale 1e-4": 1e-4 * noise[5],
        "emptied by the cast": offset + 4 * np.tanh(noise[6]),
        "constant": np.full(width, 5.1),
        "zero": np.zeros(width),
        "overflow on squaring": 4 * np.sqrt(LARGEST[fmt]) * noise[7],
        "overflow on summing": 0.75 * LARGEST[fmt] * np.tanh(0.1 * noise[8] + 1),
        "overflow in the cast": noise[9] * TOO_LARGE.get(fmt, 1e39),
        "subnormal": SUBNORMAL.get(fmt, 3e-41) * noise[3],
        "alternating": np.where(np.arange(width) % 2, 1.0, -1.0),
    }
