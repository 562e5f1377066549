"""Environment variables: which options they have said, and who is to blame for a value of theirs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from ..errors import LnauditError


def variables_of(context: typer.Context) -> dict[str, str]:
    """Return the variables that speak for options of this run, by the name of the option's parameter."""
    found = {}
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if parameter.envvar and source is not None and source.name == "ENVIRONMENT":
            found[str(parameter.name)] = str(parameter.envvar)
    return found


def unset(value: Any) -> bool:
    """Whether a variable says nothing: it is blank."""
    texts = value if isinstance(value, list) else [value]
    return all(isinstance(text, str | Path | None) and not str(text or "").strip() for text in texts)


def blamed(error: LnauditError, variables: Mapping[str, str]) -> LnauditError:
    """Return an error about an option; where a variable speaks for it, that is named too."""
    name = error.source.removeprefix("--").replace("-", "_")
    if not error.source.startswith("--") or name not in variables:
        return error
    return LnauditError(error.what, error.remedy, f"{error.source} (or {variables[name]})")
