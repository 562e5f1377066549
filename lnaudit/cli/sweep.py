"""`lnaudit sweep`: epsilon x format x kernel, on dumps or on synthetic families."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import LnauditError
from . import output
from .arguments import (
    Axis,
    Bias,
    Dtype,
    Engine,
    Field,
    Formats,
    Ftz,
    Jobs,
    LossScale,
    Norm,
    OutputFormat,
    Runtimes,
    StdinName,
    Tolerance,
    Verbose,
    Weight,
)
from .options import choice, epsilons, number
from .request import SiteWords, flushed, listed, named_formats, named_kernels, runtime_notes, workforce

if TYPE_CHECKING:
    from ..pipeline import Settings
    from ..site import NotAudited, Site

DEFAULT_FAMILY = "near-constant"
SITE_EPSILON = 1e-5  # of a synthetic family, beside which the points stand


def sweep(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="Files, quoted globs, folders, - for stdin. [default: a family]"),
    ] = None,
    family: Annotated[
        list[str] | None,
        typer.Option(metavar="FAMILY", help="A synthetic family, as lnaudit synth --help lists them; may be repeated."),
    ] = None,
    eps: Annotated[
        list[str] | None,
        typer.Option(metavar="[LIST]", help="Numbers and ranges by comma. [default: 0,1e-12..1e-2 and the site's own]"),
    ] = None,
    points: Annotated[
        str | None, typer.Option(metavar="N", help="Points of each range. [default: one a decade]")
    ] = None,
    axis: Axis = None,
    norm: Norm = None,
    weight: Weight = None,
    bias: Bias = None,
    dtype: Dtype = None,
    field: Field = None,
    stdin_name: StdinName = "stdin",
    format: Formats = None,
    kernel: Annotated[
        list[str] | None, typer.Option(metavar="NAMES", help="Kernels, by comma; ladder: all. [default: native]")
    ] = None,
    runtime: Runtimes = None,
    ftz: Ftz = "none",
    tolerance: Tolerance = None,
    loss_scale: LossScale = "1",
    engine: Engine = "auto",
    jobs: Jobs = "auto",
    output_format: OutputFormat = "table",
    ascii: Annotated[bool, typer.Option("--ascii", help="Curves and names in ASCII only.")] = False,
    verbose: Verbose = False,
) -> None:
    """Show what every epsilon does: on dumps, or on a synthetic family if no PATH is given.

    Examples:

      lnaudit sweep

      lnaudit sweep acts.npy --eps 0,1e-12..1e-2

      lnaudit sweep --family bump --format float32 --eps 0,1e-12,1e-8,1e-5,1e-3

      lnaudit sweep --family antisymmetric:t=1e-4..1 --format float32,float64
    """
    try:
        choice(output_format, output.OUTPUT_FORMATS, "--output-format")
        words = SiteWords(
            axis=axis, norm=norm, weight=weight, bias=bias, dtype=dtype, field=field, stdin_name=stdin_name
        )
        swept, own = epsilons(",".join(eps) if eps else None, points)
        settings = _settings(format, kernel, runtime, ftz, tolerance, loss_scale)
        settings = replace(settings, **workforce(engine, jobs, verbose))
        families = listed(family or ([] if paths else [DEFAULT_FAMILY]), "--family")
        settings.config.update(
            epsilons=list(swept),
            families=families,
            no_data=not paths,
            no_family=not (paths or family),
            **words.config(),
        )
        sites, notes, sizes = _sites(paths or [], families, words)
    except LnauditError as error:
        output.refuse(error, "sweep", output_format)
    from ..pipeline import sweep as run
    from .progress import progress_bar

    with progress_bar(sizes) as (bar, advance):
        report = run(bar.follow(sites), settings, swept, own=own, progress=advance)
    report.notes.extend((*runtime_notes(runtime), *notes))
    output.write(report, output_format, ascii)
    raise typer.Exit(output.NOT_AUDITED if report.not_audited or not report.sites else output.CLEAN)


def _settings(
    formats: list[str] | None,
    kernels: list[str] | None,
    runtimes: list[str] | None,
    ftz: str,
    tolerance: str | None,
    loss_scale: str,
) -> Settings:
    from ..kernels import KERNELS
    from ..pipeline import Settings

    settings = Settings(
        formats=named_formats(formats),
        kernels=named_kernels(kernels, runtimes),
        default_kernels=(KERNELS["native"],),
        flush_subnormals=flushed(ftz),
        tolerance=None if tolerance is None else number(tolerance, "--tolerance", above=True),
        loss_scale=number(loss_scale, "--loss-scale", above=True),
    )
    settings.config.update(**settings.named(), loss_scale=settings.loss_scale)
    return settings


def _sites(
    paths: list[str], families: list[str], words: SiteWords
) -> tuple[Iterator[Site | NotAudited], tuple[str, ...], list[int]]:
    """Return the families and the dumps that are to be swept, what there is to say about the dumps, their bytes."""
    from ..families import parse_family, site_of
    from ..readers.discover import find_sites
    from ..site import check_norm

    specs = [parse_family(text) for text in families]
    norm = check_norm(words.norm or "layer", "--norm")
    found = find_sites(paths, words.options()) if paths else None
    if found is None:
        for option, value in words.config().items():
            if value is not None and option != "norm":
                raise LnauditError("concerns dumps, and there is no PATH", "name a PATH", f"--{option}")

    def sites() -> Iterator[Site | NotAudited]:
        for spec in specs:
            yield site_of(spec, SITE_EPSILON, norm=norm, epsilon_source="default")
        if found is not None:
            yield from found.open()

    sizes = [0] * len(specs)
    return (sites(), (), sizes) if found is None else (sites(), found.notes, sizes + found.sizes())
