"""How help ends: examples, every one of which a test runs; first steps and exit codes."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

from typer.core import TyperCommand, TyperGroup

from .exit_codes import MEANINGS, ORDER

# of each command, and "" of the program: the words, and what they are for where they do not say it themselves
EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "": (
        ("scan acts.npy", "audit a dump of what enters a norm"),
        ("sweep", "no dump at hand: what every epsilon does"),
        ("check dumps/", "gate a CI run"),
        ("scan --help", "every command's help ends with examples"),
    ),
    "scan": (
        ("scan acts.npy", ""),
        ("scan acts.npy --eps 1e-12 --format float16", "your model's epsilon"),
        ("scan acts.npy --norm rms --runtime onnxruntime==1.32.0", ""),
        ("scan dumps/ --output-format concise", "a line a finding"),
        ("scan 'dumps/*.npy' -q --fail-on error", "exit code 1 on errors"),
        ("scan dumps/ --save-stats run.json", "for lnaudit check"),
        ("scan dumps/ --report report.html", "a page to look at"),
    ),
    "check": (
        ("check dumps/", "under the project's policy"),
        ("check run.json --tolerance 0.05", "what a scan has saved"),
        ("check dumps/ --write-baseline known.json", "what is there today ..."),
        ("check dumps/ --baseline known.json", "... passes; new ones fail"),
        ("check dumps/ -q --output-format concise", "for the log of a CI run"),
        ("check dumps/ --show-settings", "what counts, from where"),
    ),
    "diff": (
        ("diff old.json new.json", "what has changed"),
        ("diff old.json new.json --fail-on error", "exit code 1 on new errors"),
        ("scan dumps/ --save-stats new.json", "how a run is saved"),
    ),
    "sweep": (
        ("sweep", "no dump at hand"),
        ("sweep acts.npy --eps 0,1e-12..1e-2", "every decade"),
        ("sweep acts.npy --format float16 --points 64", "more of them"),
        ("sweep --family bump --format float32 --eps 0,1e-12,1e-5", ""),
        ("sweep --family antisymmetric:t=1e-4..1 --format float64", ""),
        ("sweep dumps/ --kernel ladder --output-format concise", ""),
        ("sweep acts.npy --plot --report sweep.html", "curves to look at"),
        ("sweep --family near-constant:offset=1..100,spread=1e-2..1", ""),
    ),
    "synth": (
        ("synth near-constant -o rows.npy", ""),
        ("synth near-constant:offset=100,dtype=float16 -o rows.npy --force", ""),
    ),
    "formats": (
        ("formats", ""),
        ("scan acts.npy --format fp16,bf16", "audit two of them"),
    ),
    "kernels": (
        ("kernels", ""),
        ("kernels fused", "in full, with the rows that it fails"),
        ("kernels native:reduction=serial,variance=one_pass", ""),
    ),
    "rule": (
        ("rule", "all of them, a line each"),
        ("rule LN104", "in full, with an example"),
        ("rule collapsed-rows LN301", "by name; several"),
        ("rule --all --output-format markdown", "a page of documentation"),
    ),
}
_WIDTH = 79


def example_lines(command: str) -> list[str]:
    """Return the examples of a command, to be copied with what they are for."""
    column = max((len(words) for words, meaning in EXAMPLES[command] if meaning), default=0)
    return [
        f"  lnaudit {words:{column if told else 0}}{f'  # {told}' if told else ''}" for words, told in EXAMPLES[command]
    ]


class Command(TyperCommand):
    """A command whose help ends with its examples."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        formatter.write("\n".join(["\nExamples:", *example_lines(str(self.name)), ""]))


class Program(TyperGroup):
    """All commands; the help ends with the first ones to try, and how a run ends."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the first steps and the exit codes."""
        steps = "\n".join(["\nFirst steps:", *example_lines("")])
        formatter.write(f"{steps}\n\nExit codes:\n")
        for code, meaning in MEANINGS.items():
            formatter.write(
                "\n".join(wrap(meaning, _WIDTH, initial_indent=f"  {code:<3}  ", subsequent_indent="       "))
            )
            formatter.write("\n")
        formatter.write(f"  {ORDER}\n")
