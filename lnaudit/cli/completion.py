"""What a shell offers for the value of an option: the names of the program's own tables, imported when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable

Offer = tuple[str, str]  # a value and what it is
Complete = Callable[[str], list[Offer]]


def words(*known: str) -> Complete:
    """Offer some words."""
    return lambda incomplete: [(word, "") for word in known if word.startswith(incomplete)]


def norms(incomplete: str) -> list[Offer]:
    """Offer norms."""
    from ..site import NORMS

    return words(*NORMS)(incomplete)


def engines(incomplete: str) -> list[Offer]:
    """Offer engines."""
    from ..engine.choice import ENGINES

    return words(*ENGINES)(incomplete)


def _last_of_list(incomplete: str, offers: Iterable[Offer]) -> list[Offer]:
    """Offer values for the last item of a comma list, without those that it has already."""
    before, comma, last = incomplete.rpartition(",")
    taken = before.split(",")
    return [(f"{before}{comma}{v}", told) for v, told in offers if v.startswith(last) and v not in taken]


def formats(incomplete: str) -> list[Offer]:
    """Offer formats."""
    from ..formats import FORMATS

    return _last_of_list(incomplete, ((f.name, ", ".join(f.aliases)) for f in FORMATS.values()))


def dtypes(incomplete: str) -> list[Offer]:
    """Offer one format."""
    return [] if "," in incomplete else formats(incomplete)


def kernels(incomplete: str) -> list[Offer]:
    """Offer kernels, and the word for all of the textbook's."""
    from ..kernels import KERNELS, LADDER

    offers = [(kernel.name, kernel.stands_for) for kernel in KERNELS.values()]
    return _last_of_list(incomplete, [*offers, ("ladder", ", ".join(LADDER))])


def kernel(incomplete: str) -> list[Offer]:
    """Offer one kernel."""
    return [offer for offer in kernels(incomplete) if "," not in incomplete and offer[0] != "ladder"]


def runtimes(incomplete: str) -> list[Offer]:
    """Offer programs with the first version that is known."""
    from ..kernels.runtimes import RUNTIMES

    offers = ((f"{r.program}=={'.'.join(map(str, r.first))}", f"kernel {r.kernel}, {r.known}") for r in RUNTIMES)
    return _last_of_list(incomplete, offers)


def rules(incomplete: str) -> list[Offer]:
    """Offer codes of rules."""
    from ..rules import RULES

    return _last_of_list(incomplete, ((rule.code, rule.name) for _, rule in sorted(RULES.items())))


def families(incomplete: str) -> list[Offer]:
    """Offer synthetic families."""
    from ..families import FAMILIES

    return [(f.name, f.description) for f in FAMILIES.values() if f.name.startswith(incomplete)]
