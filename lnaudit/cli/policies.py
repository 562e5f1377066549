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


def with_options(policy: Policy, select: list[str] | None, ignore: list[str] | None, share: str | None) -> Policy:
    """Return a policy in which the options count before what it says."""
    from ..policy import values

    words: dict[str, Any] = {}
    for name, listed in (("select", select), ("ignore", ignore)):
        if listed is not None and listed != []:
            named = split_list(listed)
            if not named:
                raise LnauditError("names no rule", "as in LN1", f"--{name}")
            words[name] = values.selected(named, f"--{name}")
    if share is not None:
        words["share"] = values.share(number(share, "--share"), "--share")
        words["sites"] = tuple(replace(said, share=None) for said in policy.sites)
    return replace(policy, **words)
