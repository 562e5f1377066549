"""What rules know of a site beside its Summary."""

from __future__ import annotations

import numpy as np

from ..policy import Policy
from ..rules import SiteFacts
from ..site import Rows, Site, count_nonfinite
from ..summary import Summary

SAMPLE_ELEMENTS = 1 << 20  # of another axis, to see whether it would make more sense


def facts_of(site: Site, summary: Summary, policy: Policy) -> SiteFacts:
    """Return the facts about a site."""
    return SiteFacts(
        name=site.name,
        source=site.source,
        summary=summary,
        axes=site.rows.axes,
        unread_bytes=site.rows.unread_bytes,
        weight_nonfinite=count_nonfinite(site.weight),
        bias_nonfinite=count_nonfinite(site.bias),
        better_axis=_better_axis(site.rows, summary),
        **policy.facts(site.name),
    )


def _better_axis(rows: Rows, summary: Summary) -> int | None:
    """Return another axis whose first rows vary, where rows along the given one are constant."""
    counts = summary.input.counts
    if counts["constant_rows"] == counts["zero_rows"] and rows.features > 1:
        return None
    for axis in reversed(range(len(rows.shape))):
        if (axis,) == rows.axes or rows.shape[axis] == 1:
            continue
        other = rows.along(axis)
        few = min(other.rows, 64, SAMPLE_ELEMENTS // other.features)
        sample = other.take(np.arange(few))
        if few and not (sample == sample[:, :1]).all(axis=1).any():
            return axis
    return None
