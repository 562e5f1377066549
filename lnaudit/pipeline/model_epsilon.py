"""One epsilon for the model: a config holds one number."""

from __future__ import annotations

from collections import defaultdict

from ..advice import Choice, common_choice
from ..formats import Format
from ..kernels import Kernel
from ..report import ModelEpsilon, SiteReport

Chosen = tuple[SiteReport, list[tuple[Format, Kernel, Choice]]]


def model_epsilons(sites: list[Chosen]) -> list[ModelEpsilon]:
    """Return one epsilon for all sites of the same epsilon, for each emulation."""
    groups: dict[tuple[float, Format, str], dict[str, Choice]] = defaultdict(dict)
    rows: dict[str, Kernel] = {}  # the rows of one kernel hold epsilon alike
    for report, chosen in sites:
        for fmt, kernel, choice in chosen if report.judged else ():
            groups[report.epsilon, fmt, kernel.name][report.name] = choice
            rows.setdefault(kernel.name, kernel)
    entries = []
    for (model_epsilon, fmt, name), choices in groups.items():
        kernel = rows[name]
        # a site that the cast has lost asks nothing of epsilon
        safe = {site: choice.safe for site, choice in choices.items() if choice.reason != "cast"}
        if safe:
            common, binding = common_choice(safe, model_epsilon, fmt, kernel)
        else:
            common, binding = next(iter(choices.values())), list(choices)
        entries.append(
            ModelEpsilon(
                format=fmt.name,
                kernel=kernel.name,
                model_epsilon=model_epsilon,
                epsilon=common.epsilon,
                lower=common.lower,
                upper=common.upper,
                sites=binding,
                site_count=len(safe),
            )
        )
    return entries
