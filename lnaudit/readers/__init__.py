"""Readers of activation dumps: suffix -> function that opens a file as Rows."""

from __future__ import annotations

from collections.abc import Callable

from ..site import Rows
from .npy import open_npy

READERS: dict[str, Callable[..., Rows]] = {".npy": open_npy}
