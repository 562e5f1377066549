"""The application: commands are registered here."""

from __future__ import annotations

from typing import Annotated

import typer

from ..version import __version__
from .arguments import BareOptions, SweepOptions
from .check import check
from .formats import formats
from .kernels import kernels
from .scan import scan
from .sweep import sweep
from .synth import SynthCommand, synth

app = typer.Typer(
    name="lnaudit",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=BareOptions)(scan)
app.command(cls=BareOptions)(check)
app.command(cls=SweepOptions)(sweep)
app.command(cls=SynthCommand)(synth)
app.command()(formats)
app.command()(kernels)


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
    """Audit the numerical stability of layer normalization on activation dumps.

    Exit codes: 0 clean, 1 findings at or above --fail-on, 2 something could not be audited, 3 internal error,
    130 interrupted.
    """
