"""`lnaudit rule`: what the rules look for, why it matters, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import LnauditError
from . import completion
from .exit_codes import NOT_AUDITED
from .options import choice, split_list
from .output import wants_color, write_out

if TYPE_CHECKING:
    from ..rules import Rule

OUTPUT_FORMATS = ("text", "markdown", "json")


def rule(
    codes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CODE",
            help="Explain these, as in LN104, collapsed-rows or LN1 for all that begin so.",
            autocompletion=completion.rules,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Explain all of them.")] = False,
    output_format: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="text, markdown or json, on stdout.",
            autocompletion=completion.words(*OUTPUT_FORMATS),
        ),
    ] = "text",
) -> None:
    """List the rules by code, name and the worst severity of their findings. With a CODE, explain it."""
    from ..render.rules import rules_json
    from ..site import NotAudited
    from ..wording import printable

    try:
        choice(output_format, OUTPUT_FORMATS, "--output-format")
        if everything and codes:
            raise LnauditError("cannot stand beside a rule", "leave one of them out", "--all")
        write_out(_rendered(_asked(codes) if codes else [], everything, output_format))
    except LnauditError as error:
        typer.echo(f"lnaudit: {printable(str(error))}", err=True)
        if output_format == "json":
            write_out(rules_json((), [NotAudited(source=error.source, reason=error.reason)]))
        raise typer.Exit(NOT_AUDITED) from None


def _rendered(asked: Sequence[Rule], everything: bool, output_format: str) -> str:
    """Return the rules that are asked for in full, else the table of all."""
    from ..render import Style, terminal_width
    from ..render import rules as render
    from ..rules import RULES

    known = [RULES[code] for code in sorted(RULES)]
    if output_format == "json":
        return render.rules_json(asked or known)
    in_full = bool(asked) or everything
    if output_format == "markdown":
        return render.rules_markdown(asked or known) if in_full else render.rules_markdown_table(known)
    style = Style(width=terminal_width(), color=wants_color("auto"))
    return render.rules_text(asked or known, style) if in_full else render.rules_table(known, style)


def _asked(codes: Sequence[str]) -> list[Rule]:
    """Return rules by code, beginning of a code or name, in any case."""
    from ..readers.files import shortened
    from ..rules import RULES, code_of
    from ..wording import nearest

    found = {}
    for text in split_list(codes) or [""]:
        word = code_of(text.lower()).upper()
        known = {code: RULES[code] for code in sorted(RULES) if text and code.startswith(word)}
        if not known:
            names = [*RULES, *(rule.name for rule in RULES.values())]
            suggested = nearest(text.lower() if "-" in text else text.upper(), names)
            remedy = suggested if suggested.endswith("?") else "lnaudit rule lists them"
            raise LnauditError(f"unknown rule {shortened(repr(text))}", remedy)
        found.update(known)
    return list(found.values())
