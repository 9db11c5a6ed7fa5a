"""Imports go one way through the packages, and no two modules need each other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import networkx as nx
import pytest
from markdown_pages import ROOT

PACKAGE = "causalpima."
TREES = ("models", "guides", "inference", "examples")

# From the floor to the roof: a module imports from its own row and from those above it in this list, also inside
# functions and for types alone.
ORDER = (
    "models",
    "guides",
    "inference.store",
    "inference.data",
    "inference.objectives",
    "inference.graphs",
    "inference.clusters",
    "inference.training",
    "inference.findings",
    "inference.analyses",
    "inference.reporting",
    "inference: the engine",
    "inference.ablation",
    "examples",
    "inference.command_line",
    "inference: the commands",
)
ENGINE = {"fit", "folds", "naming", "restarts", "result", "run", "start_processes", "starts"}

# `from inference.training import fit` is the line that users know; `fit` itself stands above its package.
UPWARDS = {("inference.training", "inference.fit")}
# `FitResult.named` trains no more, and yet needs the run that it came from.
MUTUAL = {("inference.result", "inference.run")}

# A third of the start of every command, and most need none of them: only functions that use them import them.
# (`import scipy` is right: it imports its parts at their first use.)
LATE = ("jinja2", "matplotlib", "networkx", "scipy.ndimage", "scipy.optimize", "scipy.stats", "sklearn")


def module_name(path: Path) -> str:
    """The dotted name of a file, relative to the root."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


SOURCES = {
    module_name(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for tree in TREES
    for path in sorted((ROOT / tree).rglob("*.py"))
}


def place(module: str) -> int:
    """The row of a module in `ORDER`."""
    parts = module.split(".")
    if parts[0] != "inference":
        return ORDER.index(parts[0])
    if ".".join(parts[:2]) in ORDER:
        return ORDER.index(".".join(parts[:2]))
    return ORDER.index("inference: the engine" if parts[-1] in ENGINE else "inference: the commands")


class Import(NamedTuple):
    """What one statement imports.

    Attributes:
        name: Module, without `causalpima.`, with the name that is taken from it where that is one of this project.
        types: Whether only type checkers see it.
        late: Whether it stands in a function.
    """

    name: str
    types: bool
    late: bool


@cache
def imports(source: str) -> tuple[Import, ...]:
    """All imports of a source."""
    found: list[Import] = []

    def walk(node: ast.AST, types: bool, late: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend(Import(alias.name.removeprefix(PACKAGE), types, late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            module = f"{node.module}.".removeprefix(PACKAGE)
            names = [f"{module}{alias.name}" for alias in node.names]
            found.extend(Import(name if name in SOURCES else module.rstrip("."), types, late) for name in names)
        elif not isinstance(node, ast.expr):
            types |= isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
            late |= isinstance(node, ast.FunctionDef)
            for child in ast.iter_child_nodes(node):
                walk(child, types, late)

    walk(ast.parse(source), False, False)
    return tuple(found)


def imported(source: str, *, types: bool = True) -> Iterator[str]:
    """Modules of this project that a source imports anywhere; `types=False`: when it runs."""
    ours = (one for one in imports(source) if one.name.split(".")[0] in (*TREES, "tests"))
    yield from (one.name for one in ours if types or not one.types)


def steps_up(module: str, source: str) -> set[str]:
    """What a module imports from above itself."""
    found = {name for name in imported(source) if name.split(".")[0] == "tests" or place(name) > place(module)}
    return {name for name in found if (module, name) not in UPWARDS}


def test_imports_are_by_full_names() -> None:
    short = re.compile(rf"^\s*(from|import) ({'|'.join(TREES)})\b", re.MULTILINE)
    assert [module for module, source in SOURCES.items() if short.search(source)] == []


def test_imports_go_one_way() -> None:
    assert len(SOURCES) > 100
    found = {module: steps_up(module, source) for module, source in SOURCES.items()}
    assert {module: names for module, names in found.items() if names} == {}


def knots(sources: Mapping[str, str]) -> list[list[str]]:
    """Modules that need each other when they run, directly or by way of others."""
    graph = nx.DiGraph()
    for module, source in sources.items():
        graph.add_edges_from((module, name) for name in imported(source, types=False) if name != module)
    graph.remove_edges_from([*MUTUAL, *UPWARDS])
    return [sorted(knot) for knot in nx.strongly_connected_components(graph) if len(knot) > 1]


def test_no_two_modules_need_each_other() -> None:
    assert knots(SOURCES) == []


def test_a_knot_is_seen() -> None:
    loop = {"models.dag": "def f():\n    from causalpima.models.batch import Batch"}
    assert knots(SOURCES | loop | {"models.batch": "import causalpima.models.dag"}) == [["models.batch", "models.dag"]]


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        ("models.dag", "def f():\n    from causalpima.inference.data import tensors", {"inference.data.tensors"}),
        ("guides.guide", "import causalpima.models.dag", set()),
        ("inference.training.loop", "import causalpima.examples.circles", {"examples.circles"}),
        ("inference.svi", "from causalpima.examples import circles", set()),
        ("models.gaussian", "from causalpima.models import dag", set()),
        ("inference.svi", "from tests import x", {"tests"}),
        ("inference.graphs.dags", "if TYPE_CHECKING:\n    import causalpima.inference.result", {"inference.result"}),
        ("inference.result", "from causalpima.inference.analyses.query import query", set()),
    ],
)
def test_a_step_up_is_seen(module: str, source: str, expected: set[str]) -> None:
    assert steps_up(module, source) == expected


def imported_early(source: str) -> set[str]:
    """Modules of `LATE` that are imported with the source itself."""
    early = {one.name for one in imports(source) if not (one.types or one.late)}
    return {name for name in early if any(name == late or name.startswith(f"{late}.") for late in LATE)}


def test_large_libraries_are_imported_where_they_are_used() -> None:
    found = {module: imported_early(source) for module, source in SOURCES.items()}
    assert {module: names for module, names in found.items() if names} == {}


def test_shapes_are_broadcast_by_numpy() -> None:
    """`torch.broadcast_shapes` imports SymPy at its first call: 2.5 s of CPU."""
    assert [module for module, source in SOURCES.items() if "torch.broadcast_shapes(" in source] == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from sklearn.cluster import KMeans", {"sklearn.cluster"}),
        ("try:\n    import networkx as nx\nexcept ImportError:\n    pass", {"networkx"}),
        ("import scipy\nfrom scipy.special import xlogy", set()),
        ("if TYPE_CHECKING:\n    from matplotlib.axes import Axes\ndef f():\n    import matplotlib", set()),
    ],
)
def test_an_early_import_is_seen(source: str, expected: set[str]) -> None:
    assert imported_early(source) == expected


def names_defined_twice(source: str) -> set[str]:
    """Names at the top of a module that a later definition takes, for all functions, from an earlier one."""
    found = [
        name.id
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for name in ast.walk(target)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    ]
    return {name for name in found if found.count(name) > 1}


def test_names_are_defined_once() -> None:
    assert names_defined_twice("_ROW = 0.2\n_ROW, _GAP = 0.95, 0.14") == {"_ROW"}
    assert {module: names for module, source in SOURCES.items() if (names := names_defined_twice(source))} == {}
