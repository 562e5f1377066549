"""A Summary as plain objects and back, to the last bit: what a run keeps so that it can be judged again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from ..engine.rows import Plan
from .model import EpsilonTable, ResultSummary, Summary
from .parts import Extremes, Histogram

SEPARATOR = " / "  # of the two names of an entry of `operations`


def to_plain(summary: Summary) -> dict[str, Any]:
    """Return a summary without points as plain objects; of results under other tolerances what differs."""
    results = [_fields(result) for result in summary.results]
    variants = [
        {
            "tolerance": variant.plan.tolerance,
            "mismatch_rows": variant.input.counts["mismatch_rows"],
            "results": [
                {name: value for name, value in _fields(other).items() if value != own[name]}
                for other, own in zip(variant.results, results, strict=True)
            ],
        }
        for variant in summary.variants
    ]
    return {"input": _fields(summary.input), "results": results, "variants": variants}


def from_plain(plain: dict[str, Any], plan: Plan) -> Summary:
    """Return the summary again; plan: that under which it was made."""
    summary = Summary.empty(plan)
    _restore(summary.input, plain["input"])
    summary.results = [_result(result) for result in plain["results"]]
    for variant, saved in zip(summary.variants, plain["variants"], strict=True):
        variant.input.counts["mismatch_rows"] = saved["mismatch_rows"]
        pairs = zip(plain["results"], saved["results"], strict=True)
        variant.results = [_result({**own, **other}) for own, other in pairs]
    return summary


def _result(plain: dict[str, Any]) -> ResultSummary:
    result = ResultSummary(EpsilonTable.empty(0))
    _restore(result, plain)
    return result


def _fields(holder: Any) -> dict[str, Any]:
    return {f.name: _plain(getattr(holder, f.name)) for f in fields(holder)}


def _plain(value: Any) -> Any:
    if isinstance(value, (Extremes, Histogram)):
        return _plain(value.state())
    if isinstance(value, EpsilonTable):
        return _fields(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        named = {SEPARATOR.join(key) if isinstance(key, tuple) else key: item for key, item in value.items()}
        # a count of 0 is that of what was not counted
        return {key: _plain(named[key]) for key in sorted(named) if not isinstance(value, Counter) or named[key]}
    return value


def _restore(holder: Any, plain: dict[str, Any]) -> None:
    """Fill a holder with what `_fields` made of one like it."""
    for f in fields(holder):
        old, new = getattr(holder, f.name), plain[f.name]
        restore: Callable[[Any], Any] = _RESTORED[type(old)]
        setattr(holder, f.name, restore(new))


def _table(plain: dict[str, Any]) -> EpsilonTable:
    columns = vars(EpsilonTable.empty(0)).items()
    return EpsilonTable(**{name: np.array(plain[name], column.dtype) for name, column in columns})


def _numbers(plain: list[float]) -> Any:
    return np.array(plain, np.float64)


def _counter(plain: dict[str, int]) -> Counter[Any]:
    return Counter({tuple(key.split(SEPARATOR)) if SEPARATOR in key else key: n for key, n in plain.items()})


_RESTORED: dict[type, Callable[[Any], Any]] = {
    Counter: _counter,
    Extremes: Extremes.of_state,
    Histogram: Histogram.of_state,
    EpsilonTable: _table,
    np.ndarray: _numbers,
}
