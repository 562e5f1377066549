"""What scan, check and sweep share: from their options to settings, from settings to a report."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, get_type_hints

import typer

from ..errors import LnauditError
from . import arguments as a
from .environment import unset, variables_of
from .options import choice, number
from .policies import policy_of, with_options
from .reports import check_reports
from .request import SiteWords, flushed, named_formats, named_kernels, workforce
from .targets import Inputs, check_targets

if TYPE_CHECKING:
    from ..pipeline import Settings
    from ..policy import Policy
    from ..readers.discover import Found
    from ..report import Report
    from ..site import NotAudited, Site
    from ..summarize import Progress
    from .progress import Bar


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
    report: a.Report = None,
    engine: a.Engine = "auto",
    jobs: a.Jobs = "auto",
    output_format: a.OutputFormat = "table",
    color: a.Color = "auto",
    ascii: a.Ascii = False,
    quiet: a.Quiet = False,
    verbose: a.Verbose = False,
) -> None:
    """Hold the options; only the signature is used."""


Words = SimpleNamespace  # the options as they were given; variables: by option, of the environment where they are from
_CONTEXT = "context_of_run"  # the name of what the option parser knows of a run


def audits(*without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of an audit after its own, but for some; it gets them as `words`."""
    shared = inspect.signature(_options).parameters

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = {name: p for name, p in inspect.signature(command).parameters.items() if name != "words"}

        @wraps(command)
        def run(**values: Any) -> None:
            variables = variables_of(values.pop(_CONTEXT))
            given = {name: p.default if name in without else values.pop(name) for name, p in shared.items()}
            for name in [name for name in variables if unset(given[name])]:
                given[name] = shared[name].default
                del variables[name]
            command(**values, words=Words(**given, variables=variables))

        hints = {**get_type_hints(_options, include_extras=True), **get_type_hints(command, include_extras=True)}
        taken = {name: p for name, p in shared.items() if name not in without}
        parameters = [p.replace(annotation=hints[name]) for name, p in {**own, **taken}.items()]
        parameters.append(inspect.Parameter(_CONTEXT, inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context))
        # the option parser reads these
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        del run.__wrapped__
        return run

    return decorate


def check_words(
    words: Words, paths: Sequence[str] = (), baseline: Path | None = None, write_baseline: Path | None = None
) -> None:
    """Refuse words that no run can honour, before anything else is looked at."""
    choice(words.output_format, a.OUTPUT_FORMATS, "--output-format")
    choice(words.color, a.COLORS, "--color")
    if words.quiet and words.verbose:
        raise LnauditError("cannot stand beside --verbose", "leave one of them out", "--quiet")
    check_reports(words.report)
    named = (("--weight", words.weight), ("--bias", words.bias), ("--config", words.config))
    inputs = Inputs(paths=paths, baseline=baseline, others=named)
    check_targets(words.save_stats, write_baseline, words.report, inputs)


def site_words(words: Words) -> SiteWords:
    """Return what is said of all sites."""
    if len(words.eps or []) > 1:
        raise LnauditError("is given more than once", "one epsilon; lnaudit sweep takes several", "--eps")
    names = ("axis", "norm", "weight", "bias", "dtype", "field", "stdin_name")
    return SiteWords(eps=words.eps[0] if words.eps else None, **{name: getattr(words, name) for name in names})


def policy_from(words: Words) -> Policy:
    """Return the policy that counts."""
    # an option goes before the environment
    config = None if words.isolated and "config" in words.variables else words.config
    policy = policy_of(config, words.isolated)
    return with_options(policy, words.select, words.ignore, words.share)


def settings_from(words: Words, policy: Policy) -> Settings:
    """Turn the words of the command line into what they mean, under a policy."""
    from ..pipeline import Settings

    formats = words.format or list(policy.formats)
    asked = bool(words.kernel or words.runtime)
    settings = Settings(
        policy=policy,
        formats=named_formats(formats),
        formats_asked=bool(words.format),
        kernels=named_kernels(words.kernel, words.runtime) if asked else named_kernels(*_of(policy)),
        kernels_asked=asked,
        flush_subnormals=flushed(words.ftz),
        tolerance=None if words.tolerance is None else number(words.tolerance, "--tolerance", above=True),
        loss_scale=number(words.loss_scale, "--loss-scale", above=True),
        **workforce(words.engine, words.jobs, words.verbose),
    )
    settings.config.update(
        **settings.named(), loss_scale=settings.loss_scale, **site_words(words).config(), **policy.config()
    )
    return settings


def scan_settings(words: Words, policy: Policy, *, gates: bool) -> Settings:
    """Return the settings of an audit at the epsilon of each site; gates: it fails where the policy says so."""
    from ..policy import values

    said = None if words.fail_on is None else values.fail_on(words.fail_on, "--fail-on")
    settings = replace(
        settings_from(words, policy),
        compare_epsilon=None if words.compare_eps is None else number(words.compare_eps, "--compare-eps"),
        verify_all=choice(words.verify, a.VERIFY, "--verify") == "all",
    )
    settings.config.update(
        compare_epsilon=settings.compare_epsilon,
        verify=words.verify,
        fail_on=said or ((policy.fail_on or "error") if gates else "never"),
        epsilon=site_words(words).options().epsilon,
    )
    return settings


def _of(policy: Policy) -> tuple[list[str] | None, list[str] | None]:
    return list(policy.kernels) or None, list(policy.runtimes) or None


def find(paths: list[str], words: Words) -> Found:
    """Find the sites that the paths lead to."""
    from ..readers.discover import find_sites

    return find_sites(paths, site_words(words).options())


def opened(found: Found, policy: Policy) -> Iterator[Site | NotAudited]:
    """Open what was found, each site with what the policy says of it."""
    return found.open(lambda name: vars(policy.of_site(name)))


@contextmanager
def progress(sizes: list[int], words: Words) -> Iterator[tuple[Bar, Progress]]:
    """Show how far a run is, if that is wanted."""
    from .progress import progress_bar

    with progress_bar(sizes, quiet=words.quiet, color=words.color != "never") as shown:
        yield shown


def audit(found: Found, settings: Settings, kind: str, words: Words) -> Report:
    """Audit what was found; save statistics where that is asked for."""
    from ..pipeline import run

    saved: list[Any] = []
    with progress(found.sizes(), words) as (bar, advance):
        sites = bar.follow(opened(found, settings.policy))
        save = None if words.save_stats is None else saved.append
        report = run(sites, settings, kind, progress=advance, save=save)
    report.notes.extend(found.notes)
    if words.save_stats is not None:
        _save(words.save_stats, report, settings, saved, found)
    return report


def _save(path: Path, report: Report, settings: Settings, sites: list[Any], found: Found) -> None:
    from ..pipeline.saving import Saved, judged_by, lines_of
    from .output import write_file

    kept = Saved(
        config=report.config,
        judged_by=judged_by(settings.policy),
        not_audited=report.not_audited,
        notes=list(found.notes),
        sites=sites,
    )
    write_file(path, lines_of(kept))
