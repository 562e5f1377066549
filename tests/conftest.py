"""Compiled code of the tests is kept with pytest's own cache, not in the user's."""

from __future__ import annotations

import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "cache") and config.cache is not None:
        os.environ.setdefault("LNAUDIT_CACHE_DIR", str(config.cache.mkdir("compiled")))
