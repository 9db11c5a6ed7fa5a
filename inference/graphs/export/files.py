"""Files of graphs; the ending says which format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from inference.graphs.export.bif import bif, read_bif
from inference.graphs.export.csv import adjacency_csv, edge_list_csv, read_adjacency_csv, read_edge_list_csv
from inference.graphs.export.dot import dot, read_dot
from inference.graphs.export.graph import ExportedGraph
from inference.graphs.export.graphml import graphml, read_graphml
from inference.graphs.export.json import graph_json, read_graph_json
from inference.results.input_files import read_text, reason_of

__all__ = ["ENDINGS", "check_ending", "graph_text", "read_graph", "write_graph"]


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
    from inference.results.files import write_text

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
