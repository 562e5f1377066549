"""How functions are compiled, and where the compiled code is kept for the next run."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from numba.core import config, event
from numba.core.caching import CompileResultCacheImpl, FunctionCache

from ..cache_folder import cache_folder


class _Place(CompileResultCacheImpl):
    """The folder that is asked for and no other: numba would write beside the sources next."""

    # a class whose name began with _ before numba 0.62
    _locator_classes = tuple(
        place
        for place in CompileResultCacheImpl._locator_classes
        if place.__name__.endswith("UserProvidedCacheLocator")
    )


class _Cache(FunctionCache):
    """Compiled code on disk; what cannot be read or written there is compiled anew."""

    _impl_class = _Place

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        with suppress(Exception):  # a damaged file may fail in any way
            found = super().load_overload(sig, target_context)
            # two processes that write at once may have named their files alike
            if found is not None and tuple(found.signature.args) == tuple(sig):
                return found
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception:  # an index that is damaged is begun anew
            with suppress(Exception):
                self.flush()
                super().save_overload(sig, data)


def _cache_of(function: Callable[..., Any]) -> Any:
    """Return the cache of a function, None where there is no folder to write to."""
    before = config.CACHE_DIR
    try:
        config.CACHE_DIR = str(cache_folder())
        return _Cache(function)
    except (OSError, RuntimeError):  # RuntimeError: no home directory, or no place for a cache
        return None
    finally:
        config.CACHE_DIR = before


class _NoCollection(event.Listener):
    """Stops the collection of garbage while one of our functions is compiled: it takes a sixth of the time for nothing.

    numba compiles one function at a time, others that it calls within.
    """

    def __init__(self) -> None:
        self._depth, self._was_on = 0, False

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            if not event.data["dispatcher"].py_func.__module__.startswith(__package__):
                return
            self._was_on = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        if self._depth == 0:
            return
        self._depth -= 1
        if self._depth == 0 and self._was_on:
            gc.enable()


event.register("numba:compile", _NoCollection())


def _compiled(function: Callable[..., Any], *, allocates: bool) -> Any:
    dispatcher = numba.njit(nogil=True, error_model="numpy", _nrt=allocates, no_cfunc_wrapper=True)(function)
    cache = _cache_of(function)
    if cache is not None:
        dispatcher._cache = cache
    return dispatcher


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function when it is called, for the types that it is called with; threads run it side by side.

    It makes no arrays: references to them are not counted, which would take as long as some hundred elements of a row.
    """
    return _compiled(function, allocates=False)


def compiled_with_arrays(function: Callable[..., Any]) -> Any:
    """Compile a function that makes arrays."""
    return _compiled(function, allocates=True)


# for functions that are part of a compiled one
inlined = numba.njit(error_model="numpy", _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)
