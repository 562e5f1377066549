"""`lnaudit kernels`: by which arithmetic programs compute the norm; one in full, with the rows that it fails."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import LnauditError
from . import completion
from .exit_codes import NOT_AUDITED
from .output import write_out

if TYPE_CHECKING:
    from ..kernels import Kernel

_WIDTH = 100
_TYPICAL = 768  # features of the row that a kernel is shown by
# small ones of the kinds of rows on which kernels differ
_FAMILIES = (
    "normal:rows=16",
    "near-constant:rows=16",
    "near-constant:offset=1000,spread=0.1,rows=16",
    "outlier:size=3000,rows=16",
    "outlier:size=20000,rows=16",
    "normal:std=1e-4,rows=16",
    "normal:std=20,rows=16",
    "ramp:rows=2",
    "checkerboard:rows=2",
    "constant:value=1234,rows=2,features=256",
    "constant:value=1000,rows=2",
    "zeros:rows=2",
)


def kernels(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="Explain one, as in native:reduction=serial.", autocompletion=completion.kernel
        ),
    ] = None,
) -> None:
    """List the kernels: by which arithmetic programs compute the norm. With a NAME, explain one."""
    from ..kernels import get_kernel

    if name is None:
        write_out("\n".join(_listed()) + "\n")
        return
    try:
        kernel = get_kernel(name)
    except LnauditError as error:
        typer.echo(f"lnaudit: kernels: {error.reason}", err=True)
        raise typer.Exit(NOT_AUDITED) from None
    write_out("\n".join([*_explained(kernel), "", *_failures(kernel)]) + "\n")


def _listed() -> list[str]:
    from ..kernels import AXES, KERNELS

    lines: list[str] = []
    for kernel in KERNELS.values():
        text = f"{kernel.stands_for}. {_proven(kernel)}.{_unlike(kernel)}"
        lines += textwrap.wrap(text, _WIDTH, initial_indent=f"{kernel.name:16}", subsequent_indent=" " * 16)
    lines.append("\nEvery axis can be changed: NAME:axis=value,axis=value.  T is the audited format.")
    lines += [f"  {axis:18}{' '.join(values)}" for axis, values in AXES.items()]
    lines.append("\nOne of them in full: lnaudit kernels native     That of a program: --runtime onnxruntime==1.24.1")
    return lines


def _proven(kernel: Kernel) -> str:
    return f"{kernel.proven[0].upper()}{kernel.proven[1:]}" if kernel.proven else "A model, no program"


def _unlike(kernel: Kernel) -> str:
    """Say how a kernel differs from fused in float16."""
    from ..formats import FORMATS
    from ..kernels import KERNELS
    from ..kernels.differences import differences

    found = differences(kernel.at(FORMATS["float16"], False, _TYPICAL), KERNELS["fused"])
    return f" Unlike fused: {', '.join(f'{axis}={value}' for axis, value in found.items())}." if found else ""


def _explained(kernel: Kernel) -> list[str]:
    from ..kernels import AXES
    from ..kernels.differences import condition, differences, value_of

    lines = [f"{kernel.name}: {kernel.stands_for}", f"source: {kernel.source}", f"{_proven(kernel)}.", ""]
    lines += [f"  {axis:18}{value_of(kernel, axis)}" for axis in AXES]
    for variant in kernel.variants:
        found = differences(variant.row, kernel)
        told = ", ".join(f"{axis}={value}" for axis, value in found.items()) or "as above"
        lines += textwrap.wrap(f"{condition(variant)}: {told}", _WIDTH, initial_indent="  ", subsequent_indent="    ")
    return lines


def _failures(kernel: Kernel) -> list[str]:
    """Run the kernel on synthetic families and say on which rows it fails, in each format."""
    from ..families import parse_family, site_of
    from ..pipeline import Settings, sweep

    lines = ["Rows on which it fails or warns, LayerNorm, epsilon 1e-5 (lnaudit sweep --family ...):"]
    epsilon = 1e-5
    settings = Settings(kernels=(kernel,))
    sites = (site_of(parse_family(text), epsilon) for text in _FAMILIES)
    found: dict[str, list[str]] = {fmt.name: [] for fmt in settings.formats}
    report = sweep(sites, settings, (epsilon,))
    for text, site in zip(_FAMILIES, report.sites, strict=True):
        for result in site.results:
            (point,) = result.points
            if point.codes:
                word = "FAIL" if point.verdict == "fail" else point.verdict
                found[result.format].append(f"{word} {text} ({', '.join(point.codes)})")
    for name, told in found.items():
        if not told:
            lines.append(f"  {name:10}none of {len(_FAMILIES)} families")
        for i, text in enumerate(told):
            lines.append(f"  {name if i == 0 else '':10}{text}")
    return lines
