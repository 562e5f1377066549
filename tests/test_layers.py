"""Imports point one way: each module of the package imports only layers below its own."""

import ast
from pathlib import Path

import pytest

import lnaudit

PACKAGE = Path(lnaudit.__file__).parent
# from the bottom up; a name stands for a module or a package
LAYERS = [
    {"version", "errors", "wording", "double_double", "memory", "plain"},
    {"writing"},
    {"formats", "findings", "theory"},
    {"kernels"},
    {"site"},
    {"arithmetic"},
    {"readers", "families"},
    {"engine"},
    {"summary"},
    {"compiling_ahead"},
    {"summarize"},
    {"advice"},
    {"rules"},
    {"report"},
    {"policy", "baseline"},
    {"comparison"},
    {"pictures"},
    {"render"},
    {"tabulate"},
    {"pipeline"},
    {"api", "gathering"},
    {"testing"},
    {"pytest_plugin"},
    {"cli"},
    {"__main__", "__init__"},
]
HEIGHT = {name: height for height, names in enumerate(LAYERS) for name in names}
MODULES = sorted(PACKAGE.rglob("*.py"))


def layer_of(parts: tuple[str, ...]) -> str:
    """The layer of a dotted path inside the package."""
    return parts[0] if parts else "__init__"


def imports(path: Path) -> set[str]:
    """The layers that a module imports, wherever in it the import stands, but for type checkers."""
    inside = path.relative_to(PACKAGE).with_suffix("").parts
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level and id(node) not in typing_only:
            base = inside[: len(inside) - node.level]
            target = (*base, *(node.module or "").split(".")) if node.module else base
            names = [(*target, alias.name) for alias in node.names] if not target else [target]
            found |= {layer_of(name) for name in names}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_imports_point_down(path):
    own = layer_of(path.relative_to(PACKAGE).with_suffix("").parts)
    assert own in HEIGHT, f"{own} has no place in LAYERS"
    for other in imports(path) - {own}:
        assert HEIGHT[other] < HEIGHT[own], f"{path.name} imports {other}, which lies above it"


def test_only_the_command_line_prints_or_exits():
    for path in MODULES:
        if layer_of(path.relative_to(PACKAGE).with_suffix("").parts) in ("cli", "__main__"):
            continue
        calls = {
            getattr(node.func, "id", getattr(node.func, "attr", ""))
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call)
        }
        assert not calls & {"print", "exit"}, path
