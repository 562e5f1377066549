"""`lnaudit synth`: write a synthetic family."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import LnauditError
from ..writing import replacing, unwritable
from . import completion
from .examples import Command
from .exit_codes import NOT_AUDITED

if TYPE_CHECKING:
    from ..families import FamilySpec


class SynthCommand(Command):
    """The command whose help lists the families, which are imported when they are asked for."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the families with their parameters, then the examples."""
        formatter.write(f"\n{_listed()}\n")
        super().format_epilog(ctx, formatter)


def synth(
    family: Annotated[
        str,
        typer.Argument(
            metavar="FAMILY",
            help="NAME or NAME:parameter=value,parameter=value.",
            autocompletion=completion.families,
        ),
    ],
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="The .npy file to write. [required]")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the traceback of an internal error.")] = False,
) -> None:
    """Write a synthetic family of activations to a .npy file, which is never overwritten without --force."""
    from ..families import parse_family
    from ..wording import printable
    from .output import write_out

    try:
        spec = parse_family(family)
        if output is None:
            remedy = f"say where: lnaudit synth {spec.family.name} -o {spec.family.name}.npy"
            raise LnauditError("no file to write", remedy, "-o")
        write_npy(spec, Path(output), printable(output), force=force)
    except LnauditError as error:
        typer.echo(f"lnaudit: {error}", err=True)
        raise typer.Exit(NOT_AUDITED) from None
    write_out(f"wrote {printable(output)}: {spec.label}, shape {spec.shape}, {spec.format.name}\n")


def write_npy(spec: FamilySpec, path: Path, source: str, *, force: bool) -> None:
    """Write a family block by block under a temporary name in the same folder, then rename.

    Parameters
    ----------
    source : str
        The path as errors call it.
    force : bool
        Whether a file of that name may be replaced.

    Raises
    ------
    LnauditError
        If there is such a file, or this one cannot be written; then nothing is left behind.
    """
    import numpy as np

    from ..families import blocks

    if path.suffix.lower() != ".npy":
        raise LnauditError("does not end in .npy, by which lnaudit scan knows its files", "-o NAME.npy", source or "''")
    try:
        # a link stays a link: what it points to is written
        path = Path(os.path.realpath(path))
        _check_free(path, source, force)
        with replacing(path, "xb") as file:
            # the descr of bfloat16 is <V2, as numpy.save with ml_dtypes has it
            header = {"descr": spec.dtype.str, "fortran_order": False, "shape": spec.shape}
            np.lib.format.write_array_header_1_0(file, header)
            for block in blocks(spec):
                file.write(block.tobytes())
            _check_free(path, source, force)  # what another program has written meanwhile
    except FileNotFoundError:
        raise LnauditError("its folder does not exist", "make the folder first", source) from None
    except OSError as error:
        raise unwritable(error, source) from None


def _check_free(path: Path, source: str, force: bool) -> None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise LnauditError("is a directory", "name a file", source)
    if not stat.S_ISREG(mode):
        raise LnauditError("is not a regular file", "name another", source)
    if not force:
        raise LnauditError("exists", "--force overwrites it", source)


def _listed() -> str:
    """The families with their defaults, as they could be given, and what they are."""
    from ..families import DTYPES, FAMILIES, parse_family

    lines = ["Families, with the defaults of their parameters:"]
    for family in FAMILIES.values():
        lines += [f"  {parse_family(family.name).label}", f"      {family.description}"]
    lines.append(f"\nEvery family takes rows, features, seed and dtype ({', '.join(DTYPES)}).")
    return "\n".join(lines)
