"""What a run audits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ..engine.rows import Plan, accepted_error
from ..formats import DEFAULT_FORMATS, FORMATS, Format, get_format
from ..kernels import KERNELS, Kernel, get_kernel
from ..policy import POLICY, Policy
from ..site import Site
from ..summarize import Summarizer

TOLERANCE = 0.02  # accepted row error where nothing else is said
# tolerances under which statistics that are saved can be judged again
JUDGED_TOO = (1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a run audits.

    policy : of the project; what else is said here goes before it. formats : the formats; formats_asked : they go
    before those of single sites in the policy; kernels : the kernels for
    every format, or None for that of the site, else default_kernels, else native everywhere and fused where the format
    is narrower than float32; kernels_asked : they go before those of single sites in the policy; tolerance : accepted
    row error, that of the policy or 0.02 if None; loss_scale : norm of the upstream gradient of a row; compare_epsilon
    : another program's; verify_all : run remedies of large sites on all their rows too; flush_subnormals : the dtypes
    that the hardware flushes, for every kernel that does not say otherwise; jobs : threads, 0 = one a core; engine :
    auto, numpy or numba; tell : told which of them analyses a site; config : what the report repeats.
    """

    policy: Policy = POLICY
    formats: tuple[Format, ...] = DEFAULT_FORMATS
    formats_asked: bool = False
    kernels: tuple[Kernel, ...] | None = None
    kernels_asked: bool = True
    default_kernels: tuple[Kernel, ...] | None = None
    tolerance: float | None = None
    loss_scale: float = 1.0
    compare_epsilon: float | None = None
    verify_all: bool = False
    flush_subnormals: str = "none"
    jobs: int = 0
    engine: str = "auto"
    tell: Callable[[str], None] | None = None
    config: dict[str, Any] = field(default_factory=dict)

    def results(self, site: Site) -> tuple[tuple[Format, Kernel], ...]:
        """Return the emulations of a site, format by format."""
        own = None if site.kernel is None else (get_kernel(site.kernel),)
        kernels = self.said_kernels(site.name) or own or self.default_kernels
        return tuple(
            (fmt, self.on_hardware(kernel).at(fmt, site.norm == "rms", site.rows.features))
            for fmt in self.said_formats(site.name)
            for kernel in kernels or _usual_kernels(fmt)
        )

    def said_formats(self, site: str) -> tuple[Format, ...]:
        """Return the formats that the command line, else the policy of the site, else that of all sites names."""
        own = self.policy.of_site(site).formats
        return self.formats if own is None or self.formats_asked else tuple(map(get_format, own))

    def said_kernels(self, site: str) -> tuple[Kernel, ...] | None:
        """Return the kernels that the command line, else the policy of the site, else that of all sites names."""
        own = self.policy.of_site(site).kernel
        if own is None or (self.kernels_asked and self.kernels):
            return self.kernels
        return (get_kernel(own),)

    def named(self) -> dict[str, Any]:
        """Return what the report repeats of the emulations and their limit."""
        return {
            "formats": [fmt.name for fmt in self.formats],
            "kernels": None if self.kernels is None else [kernel.name for kernel in self.kernels],
            "flush_subnormals": self.flush_subnormals,
            "tolerance": self._tolerance,
        }

    @property
    def reported(self) -> dict[str, Any]:
        """The configuration as the report repeats it, with the accepted error of each format."""
        single = {} if self.tolerance is not None else self.policy.tolerances
        of_sites = () if self.formats_asked else (fmt for words in self.policy.sites for fmt in words.formats or ())
        formats = dict.fromkeys((*self.formats, *map(get_format, of_sites)))
        limits = {fmt.name: accepted_error(single.get(fmt.name, self._tolerance), fmt) for fmt in formats}
        return {**self.config, "limits": limits}

    @property
    def _tolerance(self) -> float:
        return next((t for t in (self.tolerance, self.policy.tolerance) if t is not None), TOLERANCE)

    def variants(self, plan: Plan) -> tuple[float, ...]:
        """Return the tolerances under which a site is judged beside its own, so that it can be judged again."""
        return tuple(t for t in JUDGED_TOO if t != plan.tolerance or plan.tolerances)

    def summarizer(self) -> Summarizer:
        """Return what makes the summaries of a run."""
        return Summarizer(self.jobs, self.engine, self.tell)

    def on_hardware(self, kernel: Kernel) -> Kernel:
        """Return the kernel as the hardware runs it."""
        if self.flush_subnormals == "none" or kernel.flush_subnormals != "none":
            return kernel
        return replace(kernel, flush_subnormals=self.flush_subnormals)

    def plan(self, site: Site) -> Plan:
        """Return the plan of a site: everything at the model's epsilon, no others."""
        tolerance, tolerances = self.policy.accepted_errors(site.name, self.tolerance, (TOLERANCE, ()))
        return Plan(
            results=self.results(site),
            norm=site.norm,
            features=site.rows.features,
            model_epsilon=site.epsilon,
            epsilon=site.epsilon,
            tolerance=tolerance,
            tolerances=tolerances,
            weight=site.weight,
            bias=site.bias,
            loss_scale=self.loss_scale,
            compare_epsilon=self.compare_epsilon,
            already=self.policy.already,
        )


def _usual_kernels(fmt: Format) -> tuple[Kernel, ...]:
    """Return native, and fused where it differs much from it."""
    names = ("native", "fused") if fmt.precision < FORMATS["float32"].precision else ("native",)
    return tuple(KERNELS[name] for name in names)
