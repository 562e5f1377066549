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
    groups: dict[tuple[float, Format, Kernel], dict[str, Choice]] = defaultdict(dict)
    for report, chosen in sites:
        for fmt, kernel, choice in chosen if report.input["finite_rows"] else ():
            groups[report.epsilon, fmt, kernel][report.name] = choice
    entries = []
    for (model_epsilon, fmt, kernel), choices in groups.items():
        # a site that the cast has lost asks nothing of epsilon
        safe = {name: choice.safe for name, choice in choices.items() if choice.reason != "cast"}
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
