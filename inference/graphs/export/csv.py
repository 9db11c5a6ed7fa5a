"""Tables with commas: the adjacency with the names of the nodes, and a list of all pairs with what is known of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

import numpy as np

from inference.graphs.export.graph import ExportedGraph

__all__ = ["adjacency_csv", "edge_list_csv", "read_adjacency_csv", "read_edge_list_csv"]

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
