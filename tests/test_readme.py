"""The README cannot drift: what it shows is what the program prints."""

import os
import re
import subprocess
import sys
from pathlib import Path

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


def test_the_two_commands_for_a_fresh_machine_are_there():
    venv = "python3 -m venv .venv && . .venv/bin/activate && "
    assert f"{venv}pip install . && lnaudit scan examples/silent_zero.npy" in README
    assert f"{venv}pip install -e '.[test]' && pytest" in README


def test_every_option_of_scan_and_every_command_is_documented():
    from typer.main import get_command

    from lnaudit.cli.app import app

    for name, command in get_command(app).commands.items():
        assert f"lnaudit {name}" in README
        for option in (o for p in command.params for o in p.opts if o.startswith("--")):
            assert f"`{option}" in README, option


def test_the_architecture_names_every_module():
    package = ROOT / "lnaudit"
    for path in [*package.glob("*.py"), *(p for p in package.iterdir() if (p / "__init__.py").exists())]:
        if not path.name.startswith("__"):
            assert path.stem in README, path.name


def test_python_blocks_compile():
    for block in blocks("python"):
        compile(block, "README.md", "exec")
