"""A graph from a file: a table of zeros and ones, or a line per edge."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from inference.graphs.edge_text import ARROW, edge_text, read_edge
from inference.results.input_files import read_text, reason_of
from inference.training.config import ModelConfig

__all__ = ["read_graph_file", "with_graph_file"]

_PREFIX = "fixed:"
_FORMS = "a table with the names of the nodes in its first row and column, or lines A -> B"


def with_graph_file(model: ModelConfig, nodes: Sequence[str]) -> ModelConfig:
    """The settings with the edges of the file that `fixed:FILE` names in place of its name: it is needed no more.

    Raises:
        ValueError: No such file, or it holds no graph over these nodes.
    """
    if not model.graph.startswith(_PREFIX):
        return model
    return dataclasses.replace(model, graph="fixed", edges=read_graph_file(model.graph.removeprefix(_PREFIX), nodes))


def read_graph_file(path: Path | str, nodes: Sequence[str]) -> tuple[str, ...]:
    """Edges `A->B` of a graph over the nodes.

    Args:
        path: A table with commas (what the export of a graph writes), entry 1 from row to column, or a text of lines
            `A -> B`; empty lines and lines that begin with # do not count.
        nodes: Names of all nodes; the table has each of them, in any order.

    Raises:
        ValueError: It cannot be read, is neither, or has other nodes, an edge without direction or one twice.
    """
    lines = [line for line in _text(path).splitlines() if line.strip() and not line.lstrip().startswith("#")]
    is_list = lines and all(ARROW.search(line) for line in lines)
    edges = tuple(_listed(path, lines, nodes) if is_list else _table(path, lines, nodes))
    twice = next((edge for number, edge in enumerate(edges) if edge in edges[:number]), None)
    if twice is not None:
        raise ValueError(f"model.graph: expected every edge once in {path}, got {twice} twice; leave one out")
    return edges


def _text(path: Path | str) -> str:
    try:
        return read_text(path, encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(
            f"model.graph: expected a file with a graph, got {path}: {reason_of(error)}; it is {_FORMS}"
        ) from error


def _listed(path: Path | str, lines: Sequence[str], nodes: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield edge_text(*read_edge(f"model.graph: {path}", line, nodes))


def _table(path: Path | str, lines: Sequence[str], nodes: Sequence[str]) -> Iterator[str]:
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines)]
    names = rows[0][1:] if rows else []
    found = [row[0] for row in rows[1:]]
    if not rows or names != found or any(len(row) != len(names) + 1 for row in rows):
        raise ValueError(f"model.graph: expected {_FORMS} in {path}, got something else")
    if sorted(names) != sorted(nodes):
        raise ValueError(f"model.graph: expected the nodes {', '.join(nodes)} in {path}, got {', '.join(names)}")
    entries = {(cause, names[k]): _entry(path, cell) for cause, *row in rows[1:] for k, cell in enumerate(row)}
    for (cause, effect), is_edge in entries.items():
        if is_edge and entries[effect, cause]:
            raise ValueError(
                f"model.graph: expected edges with a direction in {path}, got {cause} -- {effect} both ways; set one "
                "of the two to 0"
            )
    yield from (edge_text(*pair) for pair, is_edge in entries.items() if is_edge)


def _entry(path: Path | str, cell: str) -> bool:
    if cell not in ("0", "1", "0.0", "1.0"):
        raise ValueError(f"model.graph: expected 0 or 1 in {path}, got {cell!r}; 1 is an edge from row to column")
    return cell.startswith("1")
