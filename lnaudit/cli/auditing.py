"""What scan and check share: from their options to settings, from settings to a report."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, get_type_hints

from ..errors import LnauditError
from . import arguments as a
from .options import choice, number
from .policies import policy_of, with_options
from .request import SiteWords, flushed, named_formats, named_kernels, workforce

if TYPE_CHECKING:
    from ..pipeline import Settings
    from ..policy import Policy
    from ..readers.discover import Found
    from ..report import Report

VERIFY = ("witness", "all")


def _options(
    fail_on: a.FailOn = None,
    eps: a.Eps = None,
    compare_eps: a.CompareEps = None,
    axis: a.Axis = None,
    norm: a.Norm = None,
    weight: a.Weight = None,
    bias: a.Bias = None,
    dtype: a.Dtype = None,
    field: a.Field = None,
    stdin_name: a.StdinName = "stdin",
    format: a.Formats = None,
    kernel: a.Kernels = None,
    runtime: a.Runtimes = None,
    ftz: a.Ftz = "none",
    tolerance: a.Tolerance = None,
    share: a.Share = None,
    loss_scale: a.LossScale = "1",
    verify: a.Verify = "witness",
    select: a.Select = None,
    ignore: a.Ignore = None,
    config: a.Config = None,
    isolated: a.Isolated = False,
    show_settings: a.ShowSettings = False,
    save_stats: a.SaveStats = None,
    engine: a.Engine = "auto",
    jobs: a.Jobs = "auto",
    output_format: a.OutputFormat = "table",
    ascii: a.Ascii = False,
    verbose: a.Verbose = False,
) -> None:
    """Hold the options; only the signature is used."""


Words = SimpleNamespace  # the options as they were given


def audits(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of an audit after its own; it gets them as `words`."""
    shared = inspect.signature(_options).parameters
    own = {name: p for name, p in inspect.signature(command).parameters.items() if name != "words"}

    @wraps(command)
    def run(**values: Any) -> None:
        words = Words(**{name: values.pop(name) for name in shared})
        command(**values, words=words)

    hints = {**get_type_hints(command, include_extras=True), **get_type_hints(_options, include_extras=True)}
    parameters = [p.replace(annotation=hints[name]) for name, p in {**own, **shared}.items()]
    # the option parser reads these
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    del run.__wrapped__
    return run


def site_words(words: Words) -> SiteWords:
    """Return what is said of all sites."""
    if len(words.eps or []) > 1:
        raise LnauditError("is given more than once", "one epsilon; lnaudit sweep takes several", "--eps")
    names = ("axis", "norm", "weight", "bias", "dtype", "field", "stdin_name")
    return SiteWords(eps=words.eps[0] if words.eps else None, **{name: getattr(words, name) for name in names})


def policy_from(words: Words) -> Policy:
    """Return the policy that counts."""
    policy = policy_of(words.config, words.isolated)
    return with_options(policy, words.select, words.ignore, words.share, words.fail_on)


def settings_from(words: Words, policy: Policy, default_fail_on: str) -> Settings:
    """Turn the words of the command line into what they mean, under a policy."""
    from ..pipeline import Settings

    formats = words.format or list(policy.formats)
    asked = bool(words.kernel or words.runtime)
    kernels = named_kernels(words.kernel, words.runtime) if asked else named_kernels(*_of(policy))
    settings = Settings(
        policy=policy,
        formats=named_formats(formats),
        kernels=kernels,
        kernels_asked=asked,
        flush_subnormals=flushed(words.ftz),
        tolerance=None if words.tolerance is None else number(words.tolerance, "--tolerance", above=True),
        loss_scale=number(words.loss_scale, "--loss-scale", above=True),
        compare_epsilon=None if words.compare_eps is None else number(words.compare_eps, "--compare-eps"),
        verify_all=choice(words.verify, VERIFY, "--verify") == "all",
        **workforce(words.engine, words.jobs, words.verbose),
    )
    sites = site_words(words)
    settings.config.update(
        **settings.named(),
        loss_scale=settings.loss_scale,
        compare_epsilon=settings.compare_epsilon,
        verify=words.verify,
        fail_on=policy.fail_on or default_fail_on,
        epsilon=sites.options().epsilon,
        **sites.config(),
        **policy.config(),
    )
    return settings


def _of(policy: Policy) -> tuple[list[str] | None, list[str] | None]:
    return list(policy.kernels) or None, list(policy.runtimes) or None


def find(paths: list[str], words: Words) -> Found:
    """Find the sites that the paths lead to."""
    from ..readers.discover import find_sites

    return find_sites(paths, site_words(words).options())


def audit(found: Found, settings: Settings, kind: str, save_to: Path | None) -> Report:
    """Audit what was found; save statistics where that is asked for."""
    from ..pipeline import run
    from .progress import progress_bar

    saved: list[Any] = []
    with progress_bar(found.sizes()) as (bar, advance):
        sites = found.open(lambda name: vars(settings.policy.of_site(name)))
        save = saved.append if save_to is not None else None
        report = run(bar.follow(sites), settings, kind, progress=advance, save=save)
    report.notes.extend(found.notes)
    if save_to is not None:
        _save(save_to, report, settings, saved)
    return report


def _save(path: Path, report: Report, settings: Settings, sites: list[Any]) -> None:
    from ..pipeline.saving import Saved, judged_by, lines_of
    from .output import write_file

    kept = Saved(
        config=report.config,
        judged_by=judged_by(settings.policy),
        not_audited=report.not_audited,
        notes=report.notes,
        sites=sites,
    )
    write_file(path, lines_of(kept))
