"""From the options of a command to the policy that counts: option, then environment, then file, then default."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import LnauditError
from .options import number, split_list

if TYPE_CHECKING:
    from ..policy import Policy


def policy_of(config: Path | None, isolated: bool) -> Policy:
    """Return the policy of the file that is named or nearest, that of no file if `isolated`.

    Raises
    ------
    LnauditError
        If it cannot be read or says what cannot be honoured.
    """
    from ..policy import POLICY, find_policy, read_policy

    if config is not None and isolated:
        raise LnauditError("cannot stand beside --isolated", "leave one of them out", "--config")
    path = config if config is not None else None if isolated else find_policy(_here())
    if path is None:
        return POLICY
    return read_policy(path, Path(os.path.relpath(path)).as_posix() if config is None else config.as_posix())


def _here() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        what = f"the current folder cannot be read ({error.strerror or error})"
        raise LnauditError(what, "change to one that exists, or --isolated") from None


def with_options(
    policy: Policy, select: list[str] | None, ignore: list[str] | None, share: str | None, fail_on: str | None
) -> Policy:
    """Return a policy in which the options count before what it says."""
    from ..policy import values

    words: dict[str, Any] = {}
    for name, listed in (("select", select), ("ignore", ignore)):
        if listed is not None and listed != []:
            words[name] = values.selected(split_list(listed), f"--{name}")
    if share is not None:
        words["share"] = values.share(number(share, "--share"), "--share")
    if fail_on is not None:
        words["fail_on"] = values.fail_on(fail_on, "--fail-on")
    return replace(policy, **words)


def shown(policy: Policy, settings: dict[str, Any]) -> str:
    """Return the settings of a run as TOML, each with where it comes from."""
    lines = [f"# {policy.source or 'no policy file'}"]
    lines += [f"{key} = {_toml(value)}" for key, value in settings.items() if value is not None]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_toml(str(key))} = {_toml(item)}' for key, item in value.items())}}}"
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
