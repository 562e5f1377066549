"""What the docstring of a rule says, section by section; it is read here and nowhere else."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

# in this order, each a line that begins with the heading and a colon
HEADINGS = ("What it does", "Why is this bad", "Example", "What to do", "References")


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What a rule is about.

    Attributes
    ----------
    summary : str
        One line.
    what_it_does, why_is_this_bad, what_to_do : str
        A few sentences each.
    example : tuple of str
        Commands, run one after the other in a folder of their own; the last one reports the rule.
    references : tuple of str
        Where it has happened (owner/repository#number), or where it is explained.
    """

    summary: str
    what_it_does: str
    why_is_this_bad: str
    example: tuple[str, ...]
    what_to_do: str
    references: tuple[str, ...]


def explain(docstring: str) -> Explanation:
    """Read the docstring of a rule; what it does not have is empty."""
    sections: dict[str, list[str]] = {}
    section = sections.setdefault("", [])
    for line in inspect.cleandoc(docstring).splitlines():
        heading, colon, rest = line.partition(":")
        if colon and heading in HEADINGS:
            section, line = sections.setdefault(heading, []), rest
        if line.strip():
            section.append(line.strip())
    prose = {heading: " ".join(lines) for heading, lines in sections.items()}
    return Explanation(
        summary=prose[""],
        what_it_does=prose.get("What it does", ""),
        why_is_this_bad=prose.get("Why is this bad", ""),
        example=tuple(sections.get("Example", ())),
        what_to_do=prose.get("What to do", ""),
        references=tuple(sections.get("References", ())),
    )
