"""lnaudit: numerical stability auditor for layer normalization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from . import theory
    from .api import audit, layer_norm, recommend_epsilon
    from .arithmetic import round_to
    from .errors import LnauditError

# numpy and the engine are imported when they are first used, so that `lnaudit --help` stays quick
_HOME = {
    "audit": "api",
    "layer_norm": "api",
    "recommend_epsilon": "api",
    "round_to": "arithmetic",
    "LnauditError": "errors",
    "theory": None,
}
__all__ = ["LnauditError", "__version__", "audit", "layer_norm", "recommend_epsilon", "round_to", "theory"]


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOME[name]
    return import_module(f".{name}", __name__) if home is None else getattr(import_module(f".{home}", __name__), name)
