"""The README cannot drift: what it shows is what the program prints, its tables are those of the program."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from . import readme_tables

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    """The fenced code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def output_of(command):
    """What a command of the README prints: lnaudit or a program in Python."""
    program, *args = command.split()
    command = [sys.executable, *(["-m", "lnaudit"] if program == "lnaudit" else []), *args]
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "FORCE_COLOR")}
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env, timeout=60, check=False).stdout


def test_console_blocks_show_real_output():
    shown = 0
    for block in blocks("console"):
        command, _, output = block.partition("\n")
        assert command.startswith(("$ lnaudit ", "$ python "))
        assert output == output_of(command.removeprefix("$ ")), command
        shown += 1
    assert shown >= 2


@pytest.mark.parametrize("name", readme_tables.TABLES)
def test_tables_are_those_of_the_program(name):
    """If not: python tests/readme_tables.py."""
    found = dict(readme_tables.TABLE.findall(README))
    assert found[name] == readme_tables.TABLES[name]()


def test_every_marked_table_is_written_by_the_program():
    names = re.findall(r"^<!-- (.*) -->$", README, re.MULTILINE)
    assert names[1::2] == ["end"] * (len(names) // 2)
    assert sorted(names[::2]) == sorted(readme_tables.TABLES)


def test_tables_are_written_between_their_markers_only():
    text = "a\n<!-- exit codes -->\nold\n<!-- end -->\nb\n"
    written = readme_tables.written(text)
    assert written.startswith("a\n<!-- exit codes -->\n| exit code | meaning |\n| --- | --- |\n| 0 | clean |\n")
    assert written.endswith("<!-- end -->\nb\n")
    assert "old" not in written
    assert readme_tables.written(written) == written


def test_what_a_table_cannot_hold_is_escaped():
    assert readme_tables.table(("a",), [("x|y",)]) == "| a |\n| --- |\n| x\\|y |\n"


def test_the_two_commands_for_a_fresh_machine_are_there():
    venv = "python3 -m venv .venv && . .venv/bin/activate && "
    assert f"{venv}pip install . && lnaudit scan examples/silent_zero.npy" in README
    assert f"{venv}pip install -e '.[test]' && pytest" in README


def test_every_command_option_and_variable_is_documented():
    from typer.main import get_command

    from lnaudit.cli.app import app

    for name, command in get_command(app).commands.items():
        assert f"lnaudit {name}" in README
        for option in (o for p in command.params for o in p.opts if o.startswith("--")):
            assert f"`{option}" in README, option
        for variable in (p.envvar for p in command.params if p.envvar):
            assert f"`{variable}`" in README, variable


def test_the_architecture_names_every_module():
    package = ROOT / "lnaudit"
    for path in [*package.glob("*.py"), *(p for p in package.iterdir() if (p / "__init__.py").exists())]:
        if not path.name.startswith("__"):
            assert path.stem in README, path.name


def test_python_blocks_compile():
    for block in blocks("python"):
        compile(block, "README.md", "exec")
