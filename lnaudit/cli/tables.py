"""`lnaudit formats` and `lnaudit kernels`: the tables, explained."""

from __future__ import annotations

from typing import Annotated

import typer

from ..errors import LnauditError


def _constant(value: float) -> str:
    """Write a constant in full if it is short: 65504, 6.1035e-5."""
    mantissa, _, exponent = f"{value:.5g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def formats() -> None:
    """List the formats with their constants."""
    from ..formats import DEFAULT_FORMATS, FORMATS
    from .output import write_out

    lines = [f"{'format':15}{'bits':>5}{'unit roundoff':>15}{'smallest':>13}{'normal from':>13}{'max':>11}  also"]
    for fmt in FORMATS.values():
        cells = (fmt.unit_roundoff, fmt.smallest_subnormal, fmt.smallest_normal, fmt.max)
        u, least, normal, largest = (_constant(value) for value in cells)
        aliases = ", ".join(fmt.aliases)
        lines.append(f"{fmt.name:15}{fmt.precision:>5}{u:>15}{least:>13}{normal:>13}{largest:>11}  {aliases}")
    lines.append("\nbits: of the significand, the implicit one included. unit roundoff: 2^-bits.")
    without = ", ".join(fmt.name for fmt in FORMATS.values() if not fmt.infinity)
    lines.append(f"Overflow gives Inf; {without} has none, there it gives NaN.")
    lines.append(f"Audited unless others are named: {', '.join(fmt.name for fmt in DEFAULT_FORMATS)}.")
    write_out("\n".join(lines) + "\n")


def kernels(
    name: Annotated[str | None, typer.Argument(help="Explain one, as in native:reduction=serial.")] = None,
) -> None:
    """List the kernels: by which arithmetic programs compute the norm. With a NAME, explain one."""
    from ..kernels import AXES, KERNELS, get_kernel
    from .output import write_out

    if name is None:
        lines = [f"{kernel.name:14}{kernel.stands_for}" for kernel in KERNELS.values()]
        lines.append("\nEvery axis can be changed: NAME:axis=value,axis=value.  T is the audited format.")
        lines += [f"  {axis:18}{' '.join(values)}" for axis, values in AXES.items()]
        lines.append("\nOne of them in full: lnaudit kernels native")
        write_out("\n".join(lines) + "\n")
        return
    try:
        kernel = get_kernel(name)
    except LnauditError as error:
        typer.echo(f"lnaudit: kernels: {error.reason}", err=True)
        raise typer.Exit(2) from None
    lines = [f"{kernel.name}: {kernel.stands_for}", f"source: {kernel.source}", ""]
    told = {"variance": f"{kernel.algorithm}, stored in {kernel.variance}", "apply": kernel.association}
    lines += [f"  {axis:18}{told.get(axis) or getattr(kernel, axis)}" for axis in AXES]
    write_out("\n".join(lines) + "\n")
