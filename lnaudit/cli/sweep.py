"""`lnaudit sweep`: epsilon x format x kernel, on dumps or on synthetic families."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import LnauditError
from . import completion, output
from .auditing import Words, audits, check_words, find, opened, policy_from, progress, settings_from, site_words
from .exit_codes import CLEAN, NOT_AUDITED
from .options import epsilons
from .reports import check_plot, delivered
from .request import listed, runtime_notes
from .shown import shown

if TYPE_CHECKING:
    from ..pipeline import Settings
    from ..policy import Policy
    from ..site import NotAudited, Site

DEFAULT_FAMILY = "near-constant"
SITE_EPSILON = 1e-5  # of a synthetic family, beside which the points stand


# without the options that concern one epsilon, advice, or findings that count
@audits("eps", "compare_eps", "verify", "save_stats", "fail_on")
def sweep(
    words: Words,
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="Files, quoted globs, folders, - for stdin. [default: a family]"),
    ] = None,
    family: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FAMILY",
            help="A synthetic family, as lnaudit synth --help lists them, instead of or beside PATHs; may be "
            "repeated. Two ranges, as in near-constant:offset=1..1e4,spread=1e-3..10, make a map at one epsilon. "
            "[default: near-constant if there is no PATH]",
            autocompletion=completion.families,
        ),
    ] = None,
    eps: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[LIST]",
            help="Numbers and ranges by comma; a range holds both ends and one point a decade. [default: "
            "0,1e-12..1e-2 and the site's own]",
        ),
    ] = None,
    points: Annotated[
        str | None,
        typer.Option(metavar="N", help="So many points of each range, in equal ratios. [default: one a decade]"),
    ] = None,
    plot: Annotated[
        bool, typer.Option("--plot", help="Draw error against epsilon, below the table. Needs the extra report.")
    ] = False,
) -> None:
    """Show what every epsilon does: on dumps, or on a synthetic family if no PATH is given.

    Each point is judged as a scan with that epsilon judges it, under the policy in [tool.lnaudit].
    """
    from ..families import parse_grid
    from ..pipeline import sweep as run
    from ..pipeline.mapping import add_map
    from ..render.plot import plot_lines

    try:
        check_words(words, paths or ())
        if plot:
            check_plot(words.output_format)
        swept, own = epsilons(",".join(eps) if eps else None, points)
        policy = policy_from(words)
        families = listed(family or ([] if paths else [DEFAULT_FAMILY]), "--family")
        settings = _settings(words, policy)
        settings.config.update(
            epsilons=list(swept), families=families, no_data=not paths, no_family=not (paths or family)
        )
        if words.show_settings:
            output.write_out(shown(words, policy, settings, gates=False))
            return
        parsed = [(text, parse_grid(text)) for text in families]
        grids = [grid for _, grid in parsed if grid is not None]
        single = [text for text, grid in parsed if grid is None]
        sites, notes, sizes = _sites(paths or [], single, words, policy)
        with progress(sizes, words) as (bar, advance):
            report = run(bar.follow(sites), settings, swept, own=own, progress=advance)
        for grid in grids:
            said = policy.of_site(grid.text)
            at = (SITE_EPSILON if said.epsilon is None else said.epsilon,) if own else swept
            add_map(report, grid, settings, at, words.norm or said.norm or "layer")
    except LnauditError as error:
        output.refuse(error, "sweep", words)
    report.notes.extend((*runtime_notes(words.runtime), *notes))
    with delivered(report, words):
        output.write(report, words.output_format, words)
        if plot:
            output.write_out(f"\n{plot_lines(report, output.style_of(words))}")
    raise typer.Exit(NOT_AUDITED if report.not_audited or not (report.sites or report.maps) else CLEAN)


def _settings(words: Words, policy: Policy) -> Settings:
    from ..kernels import KERNELS

    return replace(settings_from(words, policy), default_kernels=(KERNELS["native"],))


def _sites(
    paths: list[str], families: list[str], words: Words, policy: Policy
) -> tuple[Iterator[Site | NotAudited], tuple[str, ...], list[int]]:
    """Return the families and the dumps that are to be swept, what there is to say about the dumps, their bytes."""
    from ..families import parse_family, site_of
    from ..site import check_norm

    specs = [parse_family(text) for text in families]
    check_norm(words.norm or "layer", "--norm")
    found = find(paths, words) if paths else None
    if found is None:
        for option, value in site_words(words).config().items():
            if value is not None and option != "norm":
                raise LnauditError("concerns dumps, and there is no PATH", "name a PATH", f"--{option}")

    def sites() -> Iterator[Site | NotAudited]:
        for spec in specs:
            said = policy.of_site(spec.label)
            epsilon = SITE_EPSILON if said.epsilon is None else said.epsilon
            source = "default" if said.epsilon is None else "policy"
            yield site_of(spec, epsilon, norm=words.norm or said.norm or "layer", epsilon_source=source)
        if found is not None:
            yield from opened(found, policy)

    sizes = [0] * len(specs)
    return (sites(), (), sizes) if found is None else (sites(), found.notes, sizes + found.sizes())
