"""GraphML: directed edges, and lines with `directed="false"`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from xml.etree import ElementTree as ET

import numpy as np

from inference.graphs.export.graph import ORIENTATION, ExportedEdge, ExportedGraph

__all__ = ["graphml", "read_graphml"]

_SPACE = "http://graphml.graphdrawing.org/xmlns"
_KEYS = {
    "orientation": ("graph", "string"),
    "note": ("graph", "string"),
    "named": ("graph", "boolean"),
    "label": ("node", "string"),
    "outcomes": ("node", "string"),
    "parents": ("node", "string"),
    "table": ("node", "string"),
    "probability": ("edge", "double"),
    "adjacency_probability": ("edge", "double"),
    "compelled_probability": ("edge", "double"),
    "strength": ("edge", "double"),
}


def graphml(graph: ExportedGraph) -> str:
    """The graph as GraphML; nodes are called `n0`, `n1`, ... with their names in `label`.

    `outcomes`, `parents` and `table` (p(node | parents), nested) are JSON. A line is one edge with `directed="false"`,
    as the format has it; networkx reads files without lines only (`ExportedGraph.as_dag`).
    """
    root = ET.Element("graphml", xmlns=_SPACE)
    for name, (owner, kind) in _KEYS.items():
        ET.SubElement(root, "key", {"id": name, "for": owner, "attr.name": name, "attr.type": kind})
    found = ET.SubElement(root, "graph", id="G", edgedefault="directed")
    _add(found, {"orientation": ORIENTATION, "note": graph.note, "named": str(graph.is_named).lower()})
    for node in range(len(graph.nodes)):
        _add(ET.SubElement(found, "node", id=f"n{node}"), _of_node(graph, node))
    for edge in graph.edges():
        _add(ET.SubElement(found, "edge", _ends(edge)), {key: repr(value) for key, value in edge.numbers().items()})
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _ends(edge: ExportedEdge) -> dict[str, str]:
    undirected = {} if edge.is_directed else {"directed": "false"}
    return {"source": f"n{edge.cause}", "target": f"n{edge.effect}", **undirected}


def _of_node(graph: ExportedGraph, node: int) -> dict[str, str]:
    found = {"label": graph.nodes[node]}
    if graph.outcomes:
        found["outcomes"] = json.dumps(graph.outcomes[node], ensure_ascii=False)
    if graph.joint is not None:
        found["parents"] = json.dumps([graph.nodes[parent] for parent in graph.parents(node)], ensure_ascii=False)
        found["table"] = json.dumps(graph.table(node).tolist())
    return found


def _add(element: ET.Element, data: Mapping[str, str]) -> None:
    for key, value in data.items():
        ET.SubElement(element, "data", key=key).text = value


def read_graphml(text: str) -> ExportedGraph:
    """Nodes, outcomes and edges of a file that `graphml` wrote.

    Raises:
        ValueError: It is no such file.
    """
    try:
        found = ET.fromstring(text).find(f"{{{_SPACE}}}graph")
    except ET.ParseError as error:
        raise ValueError(f"graphml: expected XML, got something else ({error}); export it again") from error
    if found is None:
        raise ValueError("graphml: expected a graph, got none; export it again")
    data, nodes = _data(found), list(map(_data, found.findall(f"{{{_SPACE}}}node")))
    matrix = np.zeros((len(nodes), len(nodes)), dtype=np.int64)
    for edge in found.findall(f"{{{_SPACE}}}edge"):
        cause, effect = (int(edge.attrib[end].removeprefix("n")) for end in ("source", "target"))
        matrix[cause, effect] = 1
        matrix[effect, cause] |= int(edge.get("directed") == "false")
    outcomes = tuple(tuple(json.loads(node["outcomes"])) for node in nodes if "outcomes" in node)
    names, is_named = tuple(node["label"] for node in nodes), data.get("named") != "false"
    return ExportedGraph(names, outcomes, matrix, note=data.get("note", ""), is_named=is_named)


def _data(element: ET.Element) -> dict[str, str]:
    return {entry.attrib["key"]: entry.text or "" for entry in element.findall(f"{{{_SPACE}}}data")}
