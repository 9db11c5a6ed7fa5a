"""JSON with everything that is known of the graph."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from inference.graphs.export.graph import ORIENTATION, ExportedGraph
from inference.results.versions import FORMAT, FORMAT_KEY, FormatError, check_format

__all__ = ["graph_json", "read_graph_json"]

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
