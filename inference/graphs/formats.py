"""A graph over named nodes, as it goes to other programs."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np

from causalpima.inference.graphs.scores import conditional_table, joint_of, member_of, parents_of
from causalpima.inference.store.files import FORMAT, FORMAT_KEY, FormatError, check_format

__all__ = [
    "ORIENTATION",
    "ExportedEdge",
    "ExportedGraph",
    "adjacency_csv",
    "bif",
    "bif_names",
    "dot",
    "edge_list_csv",
    "graph_json",
    "graphml",
    "read_adjacency_csv",
    "read_bif",
    "read_dot",
    "read_edge_list_csv",
    "read_graph_json",
    "read_graphml",
]


ORIENTATION = "row -> column: an edge runs from the node of the row (cause) to that of the column (effect)"
"""Stated in every export."""


class ExportedEdge(NamedTuple):
    """An edge of the graph; of a line both directions have the same entry.

    Attributes:
        cause: Index of the node that it comes from; of a line the first node.
        effect: Index of the node that it goes to.
        is_directed: False: a line, whose direction is not identified.
        probability: p(cause -> effect); None where it is not known.
        adjacency_probability: p(joined).
        compelled_probability: p(this direction holds in the whole class).
        strength: Soft strength of the trained model.
    """

    cause: int
    effect: int
    is_directed: bool
    probability: float | None = None
    adjacency_probability: float | None = None
    compelled_probability: float | None = None
    strength: float | None = None

    def numbers(self) -> dict[str, float]:
        """What is known of it, by name."""
        names = ("probability", "adjacency_probability", "compelled_probability", "strength")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


@dataclass(frozen=True)
class ExportedGraph:
    """A graph or an equivalence class.

    Attributes:
        nodes: Names of the L nodes, all different.
        outcomes: Names of the outcomes of each node; empty where they are not known.
        graph: `[L, L]` of 0 and 1, row = cause, column = effect; 1 both ways: a line, direction not identified.
        joint: p(N), `[C_1, ..., C_L]`, or None.
        edge_probability: p(i -> j), `[L, L]`, or None.
        compelled_probability: p(i -> j in the whole class), `[L, L]`, or None.
        strength: Soft strengths of the trained model, `[L, L]`, or None.
        note: What the graph is, and what its arrows assume.
        is_named: False: the nodes are one arbitrary reading of unnamed clusters.
    """

    nodes: tuple[str, ...]
    outcomes: tuple[tuple[str, ...], ...]
    graph: np.ndarray
    joint: np.ndarray | None = None
    edge_probability: np.ndarray | None = None
    compelled_probability: np.ndarray | None = None
    strength: np.ndarray | None = None
    note: str = ""
    is_named: bool = True

    def __post_init__(self) -> None:
        n_nodes = len(self.nodes)
        if len(set(self.nodes)) != n_nodes:
            raise ValueError(f"nodes: expected different names, got {', '.join(self.nodes)}; rename one")
        if self.graph.shape != (n_nodes, n_nodes):
            raise ValueError(f"graph: expected shape {(n_nodes, n_nodes)}, got {self.graph.shape}; one row per node")

    @property
    def dag(self) -> np.ndarray:
        """A directed acyclic graph of the class, `[L, L]`.

        Raises:
            ValueError: The class has none.
        """
        return member_of(self.graph)

    def as_dag(self) -> ExportedGraph:
        """The same with one graph of the class in place of the class."""
        if np.array_equal(self.dag, self.graph):
            return self
        return replace(
            self,
            graph=self.dag,
            note=f"{self.note} One graph of the class, whose lines have arbitrary arrows here.".strip(),
        )

    def parents(self, node: int) -> tuple[int, ...]:
        """Causes of a node in `dag`, in ascending order."""
        return parents_of(self.dag, node)

    def table(self, node: int) -> np.ndarray:
        """p(node | parents) along `dag`, `[*C_pa, C_l]`.

        Raises:
            ValueError: p(N) is not known.
        """
        if self.joint is None:
            raise ValueError(
                "joint: expected p(N) for conditional tables, got a graph without it; export another format"
            )
        return conditional_table(self.joint, node, self.parents(node))

    def edges(self) -> Iterator[ExportedEdge]:
        """Every edge once, lines from the node that comes first."""
        for i, j in np.argwhere(self.graph):
            is_directed = not self.graph[j, i]
            if is_directed or i < j:
                yield self.edge(int(i), int(j))

    def edge(self, cause: int, effect: int) -> ExportedEdge:
        """What is known of a pair of nodes, joined or not."""
        forward = _entry(self.edge_probability, cause, effect)
        backward = _entry(self.edge_probability, effect, cause)
        joined = None if forward is None or backward is None else forward + backward
        return ExportedEdge(
            cause,
            effect,
            not self.graph[effect, cause],
            forward,
            joined,
            _entry(self.compelled_probability, cause, effect),
            _entry(self.strength, cause, effect),
        )


def _entry(table: np.ndarray | None, row: int, column: int) -> float | None:
    return None if table is None else float(table[row, column])


# BIF, the interchange format of Bayesian networks: one graph of the class, with its conditional tables.


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


# Tables with commas: the adjacency with the names of the nodes, and a list of all pairs with what is known of them.


_CORNER = "row -> column"
_UNNAMED = " (unnamed clusters)"
_NUMBERS = ("probability", "adjacency_probability", "compelled_probability", "strength")
_HEAD = ("from", "to", "edge", "directed", "named", *_NUMBERS)


def adjacency_csv(graph: ExportedGraph) -> str:
    """A square table of 0 and 1 with the names of the nodes in its first row and column; a line is 1 both ways.

    `--model.graph fixed:FILE` reads it where it has no lines (`ExportedGraph.as_dag`). The first cell states the
    orientation, and that clusters are unnamed where they are.
    """
    rows = [[name, *map(str, row)] for name, row in zip(graph.nodes, graph.graph.astype(int).tolist(), strict=True)]
    return _text([[_CORNER if graph.is_named else _CORNER + _UNNAMED, *graph.nodes], *rows])


def edge_list_csv(graph: ExportedGraph) -> str:
    """A row for every ordered pair of nodes: whether it is an edge, and what is known of it; lines have both rows."""
    pairs = [(i, j) for i in range(len(graph.nodes)) for j in range(len(graph.nodes)) if i != j]
    return _text([_HEAD, *(_row(graph, i, j) for i, j in pairs)])


def _row(graph: ExportedGraph, cause: int, effect: int) -> list[str]:
    edge, is_edge = graph.edge(cause, effect), bool(graph.graph[cause, effect])
    numbers = edge.numbers()
    return [
        graph.nodes[cause],
        graph.nodes[effect],
        str(int(is_edge)),
        str(int(is_edge and edge.is_directed)),
        str(int(graph.is_named)),
        *(repr(numbers[name]) if name in numbers else "" for name in _NUMBERS),
    ]


def read_adjacency_csv(text: str) -> ExportedGraph:
    """A graph from the table that `adjacency_csv` writes.

    Raises:
        ValueError: It is no square table of 0 and 1 with the same names in row and column.
    """
    rows = list(csv.reader(io.StringIO(text)))
    names = rows[0][1:] if rows else []
    if (
        not names
        or [row[0] for row in rows[1:]] != names
        or {cell for row in rows[1:] for cell in row[1:]} - {"0", "1"}
    ):
        raise ValueError("csv: expected a square table of 0 and 1 with the same names in row and column, got another")
    matrix = np.array([row[1:] for row in rows[1:]], dtype=np.int64)
    return ExportedGraph(tuple(names), (), matrix, is_named=not rows[0][0].endswith(_UNNAMED))


def read_edge_list_csv(text: str) -> ExportedGraph:
    """A graph with what is known of its edges, from the list that `edge_list_csv` writes.

    Raises:
        ValueError: It has no such columns.
    """
    rows = list(csv.DictReader(io.StringIO(text)))
    if not rows or not set(_HEAD) <= set(rows[0]):
        raise ValueError(f"csv: expected the columns {', '.join(_HEAD)}, got others; export it again")
    nodes = tuple(dict.fromkeys(row["from"] for row in rows))
    place = {name: index for index, name in enumerate(nodes)}
    matrix = np.zeros((len(nodes), len(nodes)), dtype=np.int64)
    for row in rows:
        matrix[place[row["from"]], place[row["to"]]] = int(row["edge"])
    known = {name: _table(rows, name, place) for name in ("probability", "compelled_probability", "strength")}
    return ExportedGraph(
        nodes,
        (),
        matrix,
        edge_probability=known["probability"],
        compelled_probability=known["compelled_probability"],
        strength=known["strength"],
        is_named=rows[0]["named"] == "1",
    )


def _table(rows: Iterable[dict[str, str]], column: str, place: dict[str, int]) -> np.ndarray | None:
    """The numbers of a column, `[L, L]`; None where it is empty."""
    table = np.zeros((len(place), len(place)))
    for row in rows:
        if not row[column]:
            return None
        table[place[row["from"]], place[row["to"]]] = float(row[column])
    return table


def _text(rows: Iterable[Sequence[str]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


# DOT, the language of Graphviz: arrows, and lines with `dir=none`.


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


# GraphML: directed edges, and lines with `directed="false"`.


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


# JSON with everything that is known of the graph.


_ARRAYS = ("graph", "joint", "edge_probability", "compelled_probability", "strength")


def graph_json(graph: ExportedGraph) -> str:
    """Keys: `orientation`, `note`, `named`, `nodes`, `outcomes`, `graph` (1 both ways: a line), `joint`, p(N).

    Also `causalpima_format`, `edge_probability`, `compelled_probability` and `strength`; null where they are not known.
    """
    found: dict[str, Any] = {
        FORMAT_KEY: FORMAT,
        "orientation": ORIENTATION,
        "note": graph.note,
        "named": graph.is_named,
        "nodes": list(graph.nodes),
        "outcomes": [list(names) for names in graph.outcomes],
    }
    for name in _ARRAYS:
        array = getattr(graph, name)
        found[name] = None if array is None else array.tolist()
    return json.dumps(found, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def read_graph_json(text: str) -> ExportedGraph:
    """The graph that `graph_json` wrote.

    Raises:
        ValueError: It is none.
    """
    try:
        found = dict(json.loads(text))
        check_format("json", found.get(FORMAT_KEY))
        arrays = {name: None if found[name] is None else np.array(found[name]) for name in _ARRAYS[1:]}
        nodes, outcomes = tuple(found["nodes"]), tuple(map(tuple, found["outcomes"]))
        matrix = np.array(found["graph"], dtype=np.int64)
    except FormatError:
        raise
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"json: expected a graph that was exported, got something else ({error})") from error
    return ExportedGraph(nodes, outcomes, matrix, note=found["note"], is_named=found["named"], **arrays)
