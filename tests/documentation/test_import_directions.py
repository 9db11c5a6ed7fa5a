"""Imports go one way: models <- guides <- inference <- examples, and only commands know the examples."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from markdown_pages import ROOT

#   models  <--  guides  <--  inference/*/  <--  examples/
#                                  ^                ^
#                                  |                |
#                                  +--- inference/*.py, inference/command_line/
FORBIDDEN = {
    "models": {"guides", "inference", "examples", "tests"},
    "guides": {"inference", "examples", "tests"},
    "inference": {"examples", "tests"},
    "examples": {"tests"},
}


def imported_packages(source: str) -> set[str]:
    """Top-level names that a module imports, anywhere in it."""
    nodes = list(ast.walk(ast.parse(source)))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {name.split(".")[0] for name in names}


def forbidden_imports(path: Path, source: str) -> set[str]:
    """Packages that a file imports against the direction."""
    package, *inner = path.parts
    forbidden = FORBIDDEN[package]
    is_command = package == "inference" and (len(inner) == 1 or inner[0] == "command_line")
    return imported_packages(source) & (forbidden - {"examples"} if is_command else forbidden)


@pytest.mark.parametrize("package", FORBIDDEN)
def test_imports_go_one_way(package: str) -> None:
    paths = [path.relative_to(ROOT) for path in sorted((ROOT / package).rglob("*.py"))]
    assert paths
    found = {str(path): forbidden_imports(path, (ROOT / path).read_text(encoding="utf-8")) for path in paths}
    assert {path: packages for path, packages in found.items() if packages} == {}


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        ("models/dag.py", "def f():\n    from inference.data import x", {"inference"}),
        ("guides/guide.py", "import models.dag", set()),
        ("inference/training/loop.py", "import examples.circles", {"examples"}),
        ("inference/command_line/svi_arguments.py", "import examples.circles", set()),
        ("models/gaussian.py", "from models import dag", set()),
        ("inference/svi.py", "from tests import x", {"tests"}),
    ],
)
def test_a_wrong_direction_is_seen(path: str, source: str, expected: set[str]) -> None:
    assert forbidden_imports(Path(path), source) == expected
