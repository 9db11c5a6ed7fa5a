"""DOT, the language of Graphviz: arrows, and lines with `dir=none`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import numpy as np

from inference.graphs.export.graph import ORIENTATION, ExportedEdge, ExportedGraph

__all__ = ["dot", "read_dot"]

_WIDEST = 4.0
_TEXT = r'"((?:[^"\\]|\\.)*)"'
_NODE = re.compile(r"^  n(\d+) \[(.*)\];$")
_EDGE = re.compile(r"^  n(\d+) -> n(\d+) \[(.*)\];$")
_ATTRIBUTE = re.compile(rf"(\w+)={_TEXT}")


def dot(graph: ExportedGraph) -> str:
    """The graph in DOT: the width of an edge is its probability, which stands beside it where it is known.

    Nodes are called `n0`, `n1`, ... with their names in `label`, as only there a backslash can be written. They have
    `outcomes`, and where p(N) is known `parents` and `table`, as JSON.
    """
    head = {"orientation": ORIENTATION, "note": graph.note, "named": str(graph.is_named).lower()}
    lines = [f"  graph [{_attributes(head)}];"]
    lines += [f"  n{node} [{_attributes(_of_node(graph, node))}];" for node in range(len(graph.nodes))]
    lines += [f"  n{edge.cause} -> n{edge.effect} [{_attributes(_of_edge(edge))}];" for edge in graph.edges()]
    return "\n".join(["digraph {", *lines, "}", ""])


def _of_node(graph: ExportedGraph, node: int) -> dict[str, str]:
    found = {"label": graph.nodes[node]}
    if graph.outcomes:
        found["outcomes"] = json.dumps(graph.outcomes[node], ensure_ascii=False)
    if graph.joint is not None:
        found["parents"] = json.dumps([graph.nodes[parent] for parent in graph.parents(node)], ensure_ascii=False)
        found["table"] = json.dumps(graph.table(node).tolist())
    return found


def _of_edge(edge: ExportedEdge) -> dict[str, str]:
    found = {} if edge.is_directed else {"dir": "none"}
    joined = edge.adjacency_probability
    if joined is not None:
        found |= {"label": f"{joined:.2f}", "penwidth": f"{max(_WIDEST * joined, 0.2):.2f}"}
    return found | {name: repr(value) for name, value in edge.numbers().items()}


def _attributes(found: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={_quoted(value)}" for name, value in found.items())


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def read_dot(text: str) -> ExportedGraph:
    """Nodes, outcomes and edges of a file that `dot` wrote; not of any other DOT.

    Raises:
        ValueError: It is no such file.
    """
    lines = text.splitlines()
    if len(lines) < 2 or lines[0] != "digraph {":
        raise ValueError("dot: expected a file that this program exported, got another; export it again")
    nodes = [_read(found.group(2)) for line in lines if (found := _NODE.match(line))]
    matrix = np.zeros((len(nodes), len(nodes)), dtype=np.int64)
    for cause, effect, attributes in (found.groups() for line in lines if (found := _EDGE.match(line))):
        matrix[int(cause), int(effect)] = 1
        matrix[int(effect), int(cause)] |= int(_read(attributes).get("dir") == "none")
    outcomes = tuple(tuple(json.loads(node["outcomes"])) for node in nodes if "outcomes" in node)
    names, head = tuple(node["label"] for node in nodes), _read(lines[1])
    return ExportedGraph(names, outcomes, matrix, note=head["note"], is_named=head["named"] == "true")


def _read(text: str) -> dict[str, str]:
    return {name: _unquoted(value) for name, value in _ATTRIBUTE.findall(text)}
