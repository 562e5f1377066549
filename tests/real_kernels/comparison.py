"""What the comparisons with real programs share: rows, parameters, the count of outputs that differ.

Each needs a package that the other tests do without, so they are skipped, with a reason, where it is missing. Where
LNAUDIT_REAL_KERNEL names the package, as in .ci/run, a reason to skip its tests is an error.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import numpy as np
import pytest

import lnaudit

from ..oracles import EMAX, EMIN, PRECISION

WIDTHS = (1, 3, 8, 13, 17, 100, 127, 384, 768, 777, 1000, 1024, 4096, 5120, 16384)
# where programs change their ways: below one vector, two, four
NARROW = tuple(range(1, 41))
ENOUGH = 300_000  # outputs compared


def skip(package: str, reason: str) -> NoReturn:
    """Skip a module, or fail if its tests have been asked for."""
    if os.environ.get("LNAUDIT_REAL_KERNEL") == package:
        pytest.fail(f"LNAUDIT_REAL_KERNEL={package}: {reason}", pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def needed(package: str, *others: str) -> ModuleType:
    """Import a package on a CPU that its vector code is for, or skip the module."""
    for name in (package, *others):
        if importlib.util.find_spec(name) is None:
            skip(package, f"{name} is not installed")
    cpu = Path("/proc/cpuinfo")
    flags = set(cpu.read_text().split()) if cpu.exists() else set()
    if not {"avx2", "fma"} <= flags:
        skip(package, "this machine is not known to have AVX2 and FMA")
    return importlib.import_module(package)


def rows(name: str, d: int) -> tuple[list[str], np.ndarray]:
    """Return names and elements, float64, of rows on which norms have failed; B01 and the like are field cases."""
    rng = np.random.default_rng([81, d])
    i, n = np.arange(d), rng.standard_normal((17, d))
    odd = np.where(i % 2, 1.0, -1.0)
    smallest = 2.0 ** (EMIN[name] - PRECISION[name] + 1)
    table = {
        # squares and sums overflow in narrow formats, or everywhere
        "B01 spike": np.where(i == 0, 795.0, n[0]),
        "B04 N(0, 496)": 496.4 * n[1],
        "B05 +-255.875": 255.875 * odd,
        "B05 +-257": 257.0 * odd,
        "B09 N(0, 5)": 5 * n[2],
        "B11 U(-1000, 1000)": rng.uniform(-1000, 1000, d),
        "B14 +-9.5": 9.5 * odd,
        "B15 1e25": np.resize([1e25, -2e25, 3e25, 0.5e25], d),
        "+-3e19": 3e19 * odd,
        "outlier 3000": np.where(i == d // 2, 3000.0, n[3]),
        "as large as can be": 2.0 ** (EMAX[name] - 1) * np.tanh(n[4]),
        # cancellation
        "B43 100 + i/1000": 100 + i * 1e-3,
        "B43 10000 + i/1000": 10000 + i * 1e-3,
        "B44 40000..40003": 40000.0 + i % 4,
        "B45 1234": np.full(d, 1234.0),
        "B47 3 + 1e-3 N": 3 + 1e-3 * n[5],
        "B49 1e6 + U(0, 512)": 1e6 + rng.uniform(0, 512, d),
        "B50 100 + .01 N": 100 + 0.01 * n[6],
        "B52 14": np.full(d, 14.0),
        "1000 + U(-.1, .1)": 1000 + rng.uniform(-0.1, 0.1, d),
        "1000 + .1 N": 1000 + 0.1 * n[7],
        "5 + 1e-3 N": 5 + 1e-3 * n[8],
        "5 + 1e-3 N again": 5 + 1e-3 * n[9],
        "B21 53760 + U(-7, 7)": 53760 + rng.uniform(-7, 7, d),
        # degenerate
        "B51 N + 5, padded": np.where(i < d // 2 + 1, 5 + n[10], 0.0),
        "B54 zeros": np.zeros(d),
        "B56 ramp": i * 1.0,
        "5.1": np.full(d, 5.1),
        "1000": np.full(d, 1000.0),
        "subnormal numbers": 30 * smallest * n[11],
        "around the smallest normal number": 2.0 ** EMIN[name] * n[12],
        "squares around it": 2.0 ** (EMIN[name] // 2) * n[13],
        "a NaN": np.where(i == d // 3, np.nan, n[14]),
        "an Inf": np.where(i == d - 1, -np.inf, n[15]),
        "N(0, 1)": n[16],
    }
    return list(table), np.array(list(table.values()))


def parameters(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a weight and a bias, float64."""
    rng = np.random.default_rng([82, d])
    return 1 + 0.1 * rng.standard_normal(d), rng.standard_normal(d)


@dataclass
class Comparison:
    """How many outputs of a preset differ from those of the program."""

    compared: int = 0
    not_a_number: int = 0
    differing: dict[str, int] = field(default_factory=dict)

    def add(self, where: str, labels: list[str], emulated: np.ndarray, real: np.ndarray) -> None:
        """Compare rows; NaN equals NaN."""
        nan = np.isnan(real)
        differs = (emulated != real) & ~(nan & np.isnan(emulated))
        self.compared += real.size
        self.not_a_number += int(nan.sum())
        for label, count in zip(labels, differs.sum(axis=1).tolist(), strict=True):
            if count:
                self.differing[f"{where} d={real.shape[1]}: {label}"] = count

    def check(self) -> None:
        assert self.differing == {}
        assert self.compared >= ENOUGH
        assert self.not_a_number


def emulated(x: np.ndarray, name: str, kernel: str, norm: str, epsilon: float, **parameters: np.ndarray) -> np.ndarray:
    """Return what lnaudit says that the program gives."""
    return lnaudit.layer_norm(x, format=name, kernel=kernel, norm=norm, epsilon=epsilon, **parameters)
