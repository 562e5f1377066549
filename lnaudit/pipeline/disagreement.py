"""Where the programs that are audited side by side disagree most."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ..arithmetic import Workspace, quiet
from ..engine.output import output_of
from ..engine.rows import Plan
from ..formats import Format
from ..kernels import Kernel
from ..report import Disagreement
from ..site import Array, Rows

BLOCK = 1 << 19  # elements


def disagreements(rows: Rows, plan: Plan) -> list[Disagreement]:
    """Return, for each format in which two programs or more are emulated, the pair and the row that differ most.

    In the core; a row that is not finite in one of them only differs by Inf. None where all are alike.
    """
    found = []
    for fmt in dict.fromkeys(fmt for fmt, _ in plan.results):
        kernels = [kernel for other, kernel in plan.results if other is fmt and kernel.proven]
        worst: Disagreement | None = None
        for first_row, block in rows.blocks(BLOCK) if len(kernels) > 1 else ():
            here = _in_block(first_row, block, fmt, kernels, plan)
            if here is not None and (worst is None or here.rms > worst.rms):
                worst = here
        found += [worst] if worst is not None else []
    return found


def _in_block(first_row: int, block: Array, fmt: Format, kernels: list[Kernel], plan: Plan) -> Disagreement | None:
    ws, worst = Workspace(), None
    with quiet():
        cores = [
            output_of(block, fmt, kernel, epsilon=plan.model_epsilon, rms=plan.rms, ws=ws).astype(np.float64)
            for kernel in kernels
        ]
        for (a, x), (b, y) in combinations(zip(kernels, cores, strict=True), 2):
            lost = np.isfinite(x).all(axis=0), np.isfinite(y).all(axis=0)
            rms = np.sqrt(np.mean((x - y) ** 2, axis=0))
            rms = np.where(lost[0] & lost[1], rms, np.where(lost[0] == lost[1], 0.0, np.inf))
            row = int(rms.argmax())
            if rms[row] > 0 and (worst is None or rms[row] > worst.rms):
                worst = Disagreement(
                    format=fmt.name, kernels=[a.name, b.name], row=first_row + row, rms=float(rms[row])
                )
    return worst
