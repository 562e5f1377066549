"""The tables of the README that the program has itself: rules, formats, programs, options, families, exit codes.

``python tests/readme_tables.py`` writes them anew, each between ``<!-- its name -->`` and ``<!-- end -->``; a test
compares them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from typer.main import get_command

from lnaudit.cli.app import app
from lnaudit.cli.exit_codes import MEANINGS
from lnaudit.families import FAMILIES, parse_family
from lnaudit.formats import DEFAULT_FORMATS, FORMATS
from lnaudit.kernels.runtimes import RUNTIMES
from lnaudit.render.rules import rules_markdown_table
from lnaudit.rules import RULES
from lnaudit.wording import magnitude

README = Path(__file__).parent.parent / "README.md"
TABLE = re.compile(r"^<!-- (?!end)([a-z ]+) -->\n(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)
DEFAULT = re.compile(r"\.? *\[default: (.*)\]$")
CODE = re.compile(  # what is typed or named in help texts
    r"(?<![\w-])(lnaudit [a-z]+(?: --help| FILE)?|--[a-z-]+|[a-z-]+:[a-z]+=\S*\w|[a-z]+==[\d.]+\d|LN\d+|lnaudit\.toml|"
    r"pyproject\.toml|\[tool\.lnaudit\]|[A-Z]+_COLOR|TERM=dumb)"
)
SHAPE = ("rows=64", "features=768", "seed=0")  # what most families have


def table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    cells = [list(titles), *(list(row) for row in rows)]
    cells.insert(1, ["---"] * len(cells[0]))
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in cells)


def parameters(command: str) -> list[Any]:
    """Return the options of a command as the option parser has them."""
    found = get_command(app).commands[command].params
    return [p for p in found if p.param_type_name == "option" and p.name != "help"]


def options(titles: tuple[str, str], wanted: Iterable[Any]) -> str:
    """Return a table of options in the words of their help."""
    return table(titles, ((", ".join(f"`{o}`" for o in p.opts), meaning(p)) for p in wanted))


def meaning(parameter: Any) -> str:
    """Return the help of an option with its default at the end."""
    said = DEFAULT.search(parameter.help)
    default = said[1] if said else parameter.default if isinstance(parameter.default, str) else ""
    text = DEFAULT.sub("", parameter.help.removesuffix(" [required]")).rstrip(".")
    text = coded(f"{text} ({default})" if default else text)
    return text if text.startswith(("auto", "layer", "table", "witness", "`")) else text[0].lower() + text[1:]


def coded(text: str) -> str:
    """Mark what is typed or named as code."""
    return CODE.sub(r"`\1`", text)


def shared() -> str:
    """Return the options that scan and check have alike."""
    check = {p.name for p in parameters("check")}
    both = [p for p in parameters("scan") if p.name in check]
    return options(("option of `lnaudit scan` and `lnaudit check`", "meaning"), both)


def own(command: str) -> str:
    """Return the options of a command that no scan has, or that mean something else there."""
    scan = {p.name: p.help for p in parameters("scan")}
    return options(
        (f"option of `lnaudit {command}`", "meaning"),
        [p for p in parameters(command) if scan.get(p.name) != p.help],
    )


def as_scan(command: str) -> str:
    """Name the options that a command shares with scan."""
    scan = {p.name: p.help for p in parameters("scan")}
    names = [f"`{p.opts[0]}`" for p in parameters(command) if scan.get(p.name) == p.help]
    return f"`lnaudit {command}` takes {', '.join(names[:-1])} and {names[-1]} as a scan does.\n"


def formats() -> str:
    """Return the formats with their constants."""
    titles = ("format", "bits", "unit roundoff", "smallest", "normal from", "max", "also")
    rows = []
    for fmt in FORMATS.values():
        largest = f"{fmt.max:.0f}" if fmt.max < 1e5 else magnitude(fmt.max)
        numbers = (fmt.smallest_subnormal, fmt.smallest_normal)
        name = f"**{fmt.name}**" if fmt in DEFAULT_FORMATS else fmt.name
        also = ", ".join(fmt.aliases)
        rows.append((name, str(fmt.precision), f"2^-{fmt.precision}", *map(magnitude, numbers), largest, also))
    return table(titles, rows)


def programs() -> str:
    """Return which kernel stands for which versions of a program."""
    rows = []
    for runtime in RUNTIMES:
        first, last = (".".join(map(str, version or ())) for version in (runtime.first, runtime.last))
        versions = first if first == last else f"{first} to {last}" if last else f"from {first}"
        rows.append((f"{runtime.program} {versions}", f"`{runtime.kernel}`", runtime.known))
    return table(("program", "kernel", "how that is known"), rows)


def families() -> str:
    """Return the synthetic families with what is their own."""
    rows = []
    for family in FAMILIES.values():
        defaults = parse_family(family.name).label.partition(":")[2].split(",")
        rows.append((family.name, ", ".join(d for d in defaults if d not in SHAPE), family.description.rstrip(".")))
    return table(("family", "parameters", "elements"), rows)


TABLES: dict[str, Callable[[], str]] = {
    "rules": lambda: rules_markdown_table([RULES[code] for code in sorted(RULES)]),
    "formats": formats,
    "programs": programs,
    "families": families,
    "exit codes": lambda: table(("exit code", "meaning"), ((str(c), coded(m)) for c, m in MEANINGS.items())),
    "options of scan and check": shared,
    **{f"options of {name}": lambda name=name: own(name) for name in ("check", "sweep", "synth", "diff", "rule")},
    **{f"options of {name} as in scan": lambda name=name: as_scan(name) for name in ("sweep", "diff")},
}


def written(text: str) -> str:
    """Return a text with its tables as the program has them."""
    return TABLE.sub(lambda m: f"<!-- {m[1]} -->\n{TABLES[m[1]]()}<!-- end -->", text)


if __name__ == "__main__":
    README.write_text(written(README.read_text(encoding="utf-8")), encoding="utf-8")
