"""Graphs for other programs: files and objects, every edge read row -> column, from cause to effect.

`ExportedGraph` holds a graph or an equivalence class over named nodes, with what is known of its edges and with p(N).
`write_graph` and `read_graph` choose the format by the ending of the file; `to_networkx`, `to_pgmpy` and
`to_causal_learn` make objects of these libraries, of which only networkx is required.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from causalpima.inference.graphs.formats import (
    ORIENTATION,
    ExportedGraph,
    adjacency_csv,
    bif,
    dot,
    edge_list_csv,
    graph_json,
    graphml,
    read_adjacency_csv,
    read_bif,
    read_dot,
    read_edge_list_csv,
    read_graph_json,
    read_graphml,
)
from causalpima.inference.store.input_files import read_text, reason_of

if TYPE_CHECKING:  # late: only who hands over such a graph needs it
    import networkx as nx

__all__ = [
    "ENDINGS",
    "check_ending",
    "from_causal_learn",
    "from_networkx",
    "from_pgmpy",
    "graph_text",
    "read_graph",
    "to_causal_learn",
    "to_networkx",
    "to_pgmpy",
    "write_graph",
]


# Files of graphs; the ending says which format.


class _Format(NamedTuple):
    write: Callable[[ExportedGraph], str]
    read: Callable[[str], ExportedGraph]


# The longest ending that fits counts.
_FORMATS = {
    ".edges.csv": _Format(edge_list_csv, read_edge_list_csv),
    ".csv": _Format(adjacency_csv, read_adjacency_csv),
    ".graphml": _Format(graphml, read_graphml),
    ".dot": _Format(dot, read_dot),
    ".gv": _Format(dot, read_dot),
    ".bif": _Format(bif, read_bif),
    ".json": _Format(graph_json, read_graph_json),
}
ENDINGS = tuple(_FORMATS)
"""Endings of files that can be written and read."""


def check_ending(path: Path | str) -> str:
    """The ending of a file that says its format.

    Raises:
        ValueError: It says none.
    """
    name = Path(path).name.lower()
    for ending in ENDINGS:
        if name.endswith(ending):
            return ending
    raise ValueError(
        f"output: expected a file that ends in {', '.join(ENDINGS)}, got {path}; the ending says the format"
    )


def graph_text(graph: ExportedGraph, path: Path | str) -> str:
    """The content of a file of that name.

    Raises:
        ValueError: The ending says no format, or the format needs what is not known.
    """
    return _FORMATS[check_ending(path)].write(graph)


def write_graph(graph: ExportedGraph, path: Path | str) -> None:
    """Write a graph in the format that the ending of the file says.

    Raises:
        ValueError: As `graph_text`.
        OutputError: The folder is missing or not writable, or the disk is full.
    """
    from causalpima.inference.store.files import write_text

    write_text(Path(path), graph_text(graph, path))


def read_graph(path: Path | str) -> ExportedGraph:
    """Read what `write_graph` wrote.

    Raises:
        ValueError: There is no such file, or it is in another format.
    """
    ending = check_ending(path)
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"path: expected a file with a graph, got {path}, which cannot be read ({reason_of(error)}); name another"
        ) from error
    return _FORMATS[ending].read(text)


# Graphs of networkx.


def to_networkx(graph: ExportedGraph) -> nx.DiGraph:
    """A `networkx.DiGraph`; a line is there both ways, with `directed=False`.

    Nodes have `outcomes`, and where p(N) is known `parents` and `table`, p(node | parents) as nested lists. Edges have
    `directed` and what is known of `probability` (of this direction), `adjacency_probability`, `compelled_probability`
    and `strength`. The graph has `orientation`, `note` and `named`.
    """
    import networkx as nx

    found = nx.DiGraph(orientation=ORIENTATION, note=graph.note, named=graph.is_named)
    for node, name in enumerate(graph.nodes):
        found.add_node(name, **_of_node(graph, node))
    for i, j in np.argwhere(graph.graph):
        edge = graph.edge(int(i), int(j))
        found.add_edge(graph.nodes[i], graph.nodes[j], directed=edge.is_directed, **edge.numbers())
    return found


def _of_node(graph: ExportedGraph, node: int) -> dict[str, object]:
    outcomes: dict[str, object] = {"outcomes": list(graph.outcomes[node])} if graph.outcomes else {}
    if graph.joint is None:
        return outcomes
    parents = [graph.nodes[parent] for parent in graph.parents(node)]
    return {**outcomes, "parents": parents, "table": graph.table(node).tolist()}


def from_networkx(graph: nx.DiGraph) -> ExportedGraph:
    """Nodes, outcomes and edges of a `networkx.DiGraph`; an edge both ways is a line."""
    import networkx as nx

    nodes = tuple(map(str, graph.nodes))
    outcomes = tuple(tuple(data.get("outcomes", ())) for _, data in graph.nodes(data=True))
    matrix = nx.to_numpy_array(graph, weight=None).astype(np.int64)
    return ExportedGraph(
        nodes,
        outcomes if all(outcomes) else (),
        matrix,
        note=str(graph.graph.get("note", "")),
        is_named=bool(graph.graph.get("named", True)),
    )


# Networks of pgmpy: one graph of the class with its conditional tables.


def to_pgmpy(graph: ExportedGraph) -> Any:
    """A `pgmpy.models.DiscreteBayesianNetwork` with tables, along `ExportedGraph.dag`.

    Raises:
        ValueError: pgmpy is not installed, p(N) is not known, or the outcomes have no names.
    """
    network, table_type = _pgmpy()
    if graph.joint is None or not graph.outcomes:
        raise ValueError("graph: expected one with p(N) and outcomes, got one without; export another format")
    model = network()
    model.add_nodes_from(graph.nodes)
    model.add_edges_from((graph.nodes[i], graph.nodes[j]) for i, j in np.argwhere(graph.dag))
    model.add_cpds(*(_table(graph, node, table_type) for node in range(len(graph.nodes))))
    return model


def _pgmpy() -> tuple[Any, Any]:
    try:
        from pgmpy.factors.discrete import TabularCPD
        from pgmpy.models import DiscreteBayesianNetwork
    except ImportError as error:
        raise ValueError("pgmpy: expected it to be installed, got none; pip install pgmpy, or write BIF") from error
    return DiscreteBayesianNetwork, TabularCPD


def _table(graph: ExportedGraph, node: int, table_type: Any) -> Any:
    parents = graph.parents(node)
    values = graph.table(node).reshape(-1, len(graph.outcomes[node])).T
    names = {graph.nodes[index]: list(graph.outcomes[index]) for index in (node, *parents)}
    evidence = [graph.nodes[parent] for parent in parents] or None
    sizes = [len(graph.outcomes[parent]) for parent in parents] or None
    return table_type(graph.nodes[node], len(values), values, evidence, sizes, state_names=names)


def from_pgmpy(model: Any) -> ExportedGraph:
    """Graph, outcomes and p(N) of a `DiscreteBayesianNetwork`."""
    nodes = tuple(map(str, model.nodes()))
    outcomes = tuple(tuple(map(str, model.get_cpds(node).state_names[node])) for node in nodes)
    dag = np.zeros((len(nodes), len(nodes)), dtype=np.int64)
    for cause, effect in model.edges():
        dag[nodes.index(cause), nodes.index(effect)] = 1
    joint = np.ones([len(found) for found in outcomes])
    for node in nodes:
        cpd = model.get_cpds(node)
        axes = [nodes.index(str(name)) for name in cpd.variables]
        table = np.transpose(cpd.values, np.argsort(axes))
        joint = joint * table.reshape([joint.shape[axis] if axis in axes else 1 for axis in range(len(nodes))])
    return ExportedGraph(nodes, outcomes, dag, joint)


# Graphs of causal-learn, whose matrix has the mark at the end of an edge: -1 a tail, 1 a head.


_TAIL, _HEAD = -1, 1


def to_causal_learn(graph: ExportedGraph) -> Any:
    """A `causallearn.graph.GeneralGraph`; lines are edges with two tails.

    In its matrix entry `[j, i]` is the mark at j of the edge between i and j: i -> j is `[j, i] = 1`, `[i, j] = -1`.
    Here rows are causes; there they are not, which this function takes care of.

    Raises:
        ValueError: causal-learn is not installed.
    """
    try:
        from causallearn.graph.Edge import Edge
        from causallearn.graph.Endpoint import Endpoint
        from causallearn.graph.GeneralGraph import GeneralGraph
        from causallearn.graph.GraphNode import GraphNode
    except ImportError as error:
        raise ValueError("causal-learn: expected it to be installed, got none; pip install causal-learn") from error
    nodes = [GraphNode(name) for name in graph.nodes]
    found = GeneralGraph(nodes)
    for edge in graph.edges():
        end = Endpoint.ARROW if edge.is_directed else Endpoint.TAIL
        found.add_edge(Edge(nodes[edge.cause], nodes[edge.effect], Endpoint.TAIL, end))
    return found


def from_causal_learn(graph: Any) -> ExportedGraph:
    """Nodes and edges of a `GeneralGraph` without open marks (circles).

    Raises:
        ValueError: It has other marks than tails and heads, or two heads.
    """
    marks = np.asarray(graph.graph)
    head, tail = marks == _HEAD, marks == _TAIL
    if ((marks != 0) & ~head & ~tail).any() or (head & head.T).any():
        raise ValueError("graph: expected arrows and lines, got circles or two heads; that is no class of DAGs")
    # A mark of a head at j, in row j, is an edge i -> j.
    return ExportedGraph(tuple(graph.get_node_names()), (), (head.T | (tail & tail.T)).astype(np.int64))
