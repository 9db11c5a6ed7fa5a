"""The graph of a run for other programs: no more directions than are identified, with what is known of every edge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from causalpima.inference.findings.graph import ShownGraph, arrow_notes, is_free, shown_graph
from causalpima.inference.findings.meaning import is_named
from causalpima.inference.graphs.formats import ExportedGraph
from causalpima.inference.reporting.content import content_of_folder
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.store.text import printable

__all__ = [
    "exported_graph",
    "graph_of_run",
]


Summary = Mapping[str, Any]

_STRONG = 0.5
_ASSUMED = "An arrow assumes no hidden common cause and no selection; a line: direction not identified."
_NOTES = {
    "given": "Graph that the fit was given: a declaration, not a finding.",
    "interventions": f"Graph by the interventions. {_ASSUMED}",
    "class": f"Equivalence class. {_ASSUMED}",
    "strengths": "Strengths above 0.5 of the trained model: no test of an edge, no direction is identified.",
}
_FREE = "No graph in the model: p(N) has a weight of its own for every cell."
_UNNAMED = "UNNAMED: the nodes are one arbitrary reading of clusters, and so are the edges; nothing is said of causes."


def exported_graph(
    summary: Summary,
    outcome_names: Sequence[Sequence[str]],
    log_joint: np.ndarray,
    as_labelled: bool = False,
) -> ExportedGraph:
    """The graph that figure, table and report show, with p(N) and the numbers of its edges.

    Args:
        summary: Of the run.
        outcome_names: Names of the outcomes of every node.
        log_joint: log p(N), `[C_1, ..., C_L]`.
        as_labelled: Export nodes without a meaning, too, as they happen to be labelled; the export says so.

    Raises:
        ValueError: Some node has no meaning and `as_labelled` is off; or there is no result.
    """
    if "graph" not in summary:
        raise ValueError("run: expected one that found something, got one that diverged; fit again")
    if not is_named(summary) and not as_labelled:
        raise ValueError(
            "run: expected nodes that all have a meaning, got clusters of which some are unnamed; name them (python -m "
            "inference.name), or export this arbitrary labelling by --as_labelled"
        )
    found, graph = shown_graph(summary), summary["graph"]
    posterior = graph.get("posterior") or {}
    joint = np.exp(np.asarray(log_joint, dtype=np.float64))
    return ExportedGraph(
        _names(graph["node_names"]),
        tuple(tuple(map(printable, names)) for names in outcome_names),
        _matrix(found),
        joint / joint.sum(),
        _table(posterior.get("edge_probability")),
        _table(posterior.get("compelled_probability")),
        None if is_free(graph) else _table(graph["edge_strength"]),
        _note(found, is_named(summary), is_free(graph)),
        is_named(summary),
    )


def _note(found: ShownGraph, named: bool, free: bool) -> str:
    """What the edges are, with the arrows that were declared and not found."""
    notes = arrow_notes(found.matrix(), found.names) if found.basis == "class" else []
    declared = [f"{note[0].upper()}{note[1:]}." for note in notes if "declared" in note]
    basis = _FREE if free and found.basis == "strengths" else _NOTES[found.basis]
    return " ".join([*([] if named else [_UNNAMED]), basis, *declared])


def graph_of_run(run: Path | str, as_labelled: bool = False) -> ExportedGraph:
    """The same from the folder of a finished run; neither data nor weights are needed.

    Args:
        run: The folder.
        as_labelled: As for `exported_graph`.

    Raises:
        ValueError: It holds no finished run, or as `exported_graph`.
    """
    folder = RunFolder(run)
    folder.read_config()
    found = content_of_folder(folder)
    return exported_graph(found.summary, found.outcome_names, found.log_joint, as_labelled)


def _names(nodes: Sequence[str]) -> tuple[str, ...]:
    """Without characters that files cannot hold, as far as the names stay different."""
    names = tuple(map(printable, nodes))
    return names if len(set(names)) == len(names) else tuple(nodes)


def _matrix(found: ShownGraph) -> np.ndarray:
    """`[L, L]`, 1 both ways for lines; soft strengths count from 0.5."""
    matrix = np.zeros((len(found.names), len(found.names)), dtype=np.int64)
    for edge in found.edges:
        if edge.strength is None or edge.strength > _STRONG:
            matrix[edge.first, edge.second] = 1
            matrix[edge.second, edge.first] = int(not edge.is_directed)
    return matrix


def _table(values: Any) -> np.ndarray | None:
    return None if values is None else np.array(values, dtype=np.float64)
