"""BIF, the interchange format of Bayesian networks: one graph of the class, with its conditional tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from inference.graphs.export.graph import ORIENTATION, ExportedGraph
from inference.graphs.tables import joint_of

__all__ = ["bif", "bif_names", "read_bif"]

_VARIABLE = re.compile(
    r'variable (\w+) \{\s*type discrete \[ \d+ \] \{ ([^}]*) \};\s*(?:property "name = (.*)" ;\s*)?\}'
)
_TABLE = re.compile(r"probability \( (\w+)(?: \| ([^)]*))? \) \{([^}]*)\}")
_DIGITS = 12


def bif(graph: ExportedGraph) -> str:
    """The network as BIF, whose words are plain: other names become `_`, with the name itself as a property.

    Raises:
        ValueError: p(N) is not known, or the outcomes have no names.
    """
    if graph.joint is None or not graph.outcomes:
        raise ValueError("bif: expected a graph with p(N) and outcomes, got one without; export another format")
    names = bif_names(graph.nodes)
    outcomes = [bif_names(found, "outcome") for found in graph.outcomes]
    blocks = [f"// {ORIENTATION}", *(f"// {line}" for line in graph.note.splitlines()), "network unknown {", "}"]
    for node, name in enumerate(names):
        blocks += _variable(name, outcomes[node], graph.nodes[node])
    for node in range(len(names)):
        blocks += _probability(graph, node, names, outcomes)
    return "\n".join([*blocks, ""])


def _variable(name: str, outcomes: Sequence[str], full: str) -> Iterator[str]:
    yield f"variable {name} {{"
    yield f"  type discrete [ {len(outcomes)} ] {{ {', '.join(outcomes)} }};"
    if name != full:
        yield f'  property "name = {full.replace(chr(34), chr(39))}" ;'
    yield "}"


def _probability(
    graph: ExportedGraph, node: int, names: Sequence[str], outcomes: Sequence[Sequence[str]]
) -> Iterator[str]:
    parents, table = graph.parents(node), graph.table(node)
    given = f" | {', '.join(names[parent] for parent in parents)}" if parents else ""
    yield f"probability ( {names[node]}{given} ) {{"
    for index in product(*(range(len(outcomes[parent])) for parent in parents)):
        condition = ", ".join(outcomes[parent][value] for parent, value in zip(parents, index, strict=True))
        numbers = ", ".join(f"{value:.{_DIGITS}g}" for value in table[index])
        yield f"  ({condition}) {numbers};" if parents else f"  table {numbers};"
    yield "}"


def bif_names(names: Sequence[str], kind: str = "node") -> list[str]:
    """Words of letters, digits and `_` that begin with a letter, all different.

    >>> bif_names(["hue", "yield strength", "Härte", "0"])
    ['hue', 'yield_strength', 'H_rte', 'node_0']
    """
    plain = [re.sub(r"[^A-Za-z0-9_]", "_", name) for name in names]
    plain = [name if re.match("[A-Za-z]", name) else f"{kind}_{name}" for name in plain]
    count = Counter(plain)
    return [name if count[name] == 1 else f"{name}_{index}" for index, name in enumerate(plain)]


def read_bif(text: str) -> ExportedGraph:
    """Graph and p(N) of a file that `bif` wrote.

    Raises:
        ValueError: It has no variables.
    """
    variables = [(name, tuple(values.split(", ")), full or name) for name, values, full in _VARIABLE.findall(text)]
    if not variables:
        raise ValueError("bif: expected variables, got none; export it again")
    place = {name: index for index, (name, _, _) in enumerate(variables)}
    shape = tuple(len(values) for _, values, _ in variables)
    dag, joint = np.zeros((len(shape), len(shape)), dtype=np.int64), np.ones(shape)
    for name, given, body in _TABLE.findall(text):
        parents = [place[parent] for parent in given.split(", ") if parent]
        node = place[name]
        dag[parents, node] = 1
        axes = (*parents, node)
        numbers = np.array(re.findall(r"[-+.\deE]+(?=[,;])", re.sub(r"\(.*?\)|table", "", body)), dtype=float)
        table = np.transpose(numbers.reshape([shape[axis] for axis in axes]), np.argsort(axes))
        joint = joint * table.reshape([shape[axis] if axis in axes else 1 for axis in range(len(shape))])
    names = tuple(full for _, _, full in variables)
    return ExportedGraph(names, tuple(values for _, values, _ in variables), dag, joint_of(dag, joint))
