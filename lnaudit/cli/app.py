"""The application: commands are registered here."""

from __future__ import annotations

from typing import Annotated

import typer

from ..version import __version__
from .arguments import BareOptions, SweepOptions
from .check import check
from .diff import diff
from .examples import Command, Program
from .formats import formats
from .kernels import kernels
from .rule import rule
from .scan import scan
from .sweep import sweep
from .synth import SynthCommand, synth

app = typer.Typer(
    name="lnaudit",
    cls=Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=BareOptions, short_help="Audit dumps of what enters norm layers.")(scan)
app.command(cls=BareOptions, short_help="Gate: audit under the project's policy, or judge again.")(check)
app.command(cls=Command, short_help="Compare two saved runs, site by site.")(diff)
app.command(cls=SweepOptions, short_help="Show what every epsilon does, on dumps or without.")(sweep)
app.command(cls=SynthCommand, short_help="Write a synthetic family of activations.")(synth)
app.command(cls=Command)(formats)
app.command(cls=Command, short_help="List the kernels, or explain one.")(kernels)
app.command(cls=Command, short_help="List the rules, or explain some.")(rule)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lnaudit {__version__}")
        raise typer.Exit


@app.callback()
def lnaudit(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Audit the numerical stability of layer normalization on activation dumps."""
