"""What environments told of clusters, kept under the names that a person gives to them afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from inference.labelling.cell_names import CellNames
from inference.labelling.labelling import Labelling
from inference.labelling.labelling_search import node_outcomes, partition_codes

__all__ = ["order_of_nodes", "under_names"]

_OF_ENVIRONMENTS = ("kind", "known_targets", "samples", "graph_gap", "labelling_gap", "n_searched")
_OF_PAIRS = ("graph", "class", "edge_probability", "compelled_probability")


def under_names(before: Mapping[str, Any] | None, names: CellNames, nodes: Sequence[str]) -> Labelling:
    """The names, with p(N) and, where the names keep the nodes, the graph that environments told before.

    Samples of several environments have no one p(N) that could be fitted to them: that without interventions moves to
    the new numbers of the cells. The graph, and which environment is upon which node, follow the nodes; names by which
    the clusters of a node are those of no node before leave both without meaning, and they are dropped.

    Args:
        before: Where the meaning of the cells came from so far (`Labelling.to_plain`), or None.
        names: The names that a person gave.
        nodes: What the nodes were called so far.
    """
    given = names.labelling()
    if before is None or "joint" not in before:
        return given
    outcomes = tuple(names.nodes.values())

    def moved(joint: Any) -> np.ndarray:
        return np.ravel(joint)[np.argsort(names.permutation)].reshape(outcomes)

    told = {name: moved(joint) for name, joint in before.get("environment_joint", {}).items()}
    given = replace(given, joint=moved(before["joint"]), environment_joint=told)
    order = order_of_nodes(names.permutation, outcomes)
    if order is None or "graph" not in before["details"]:
        return given
    called = {nodes[old]: new for old, new in zip(order, names.nodes, strict=True)}
    return _with_graph(given, before, order, called)


def order_of_nodes(permutation: np.ndarray, outcomes: Sequence[int]) -> tuple[int, ...] | None:
    """Which old node every new one is, up to the numbers of its outcomes; None where one is none of them.

    Args:
        permutation: Cell c becomes cell `permutation[c]`, `[C]`.
        outcomes: Outcomes per node.
    """
    old, new = (partition_codes(node_outcomes(cells, outcomes)) for cells in (np.arange(len(permutation)), permutation))
    same = (new[:, None] == old).all(-1)
    return tuple(same.argmax(1).tolist()) if same.any(1).all() else None


def _with_graph(
    given: Labelling, before: Mapping[str, Any], order: Sequence[int], called: Mapping[str, str]
) -> Labelling:
    """Graph, weights of edges, targets and named nodes in the new order of nodes, by what each is `called` now."""
    told = before["details"]
    known = {*given.named_nodes, *(called[node] for node in before["named_nodes"])}
    named = [node for node in called.values() if node in known]
    details = {
        **given.details,
        **{key: told[key] for key in _OF_ENVIRONMENTS if key in told},
        **{key: np.array(told[key])[np.ix_(order, order)].tolist() for key in _OF_PAIRS if key in told},
        "targets": {name: called[node] for name, node in told["targets"].items()},
    }
    if "n_remaining" in told:  # soft interventions leave the number of labellings as it is
        details["n_remaining"] = 1 if len(named) == len(called) else told["n_remaining"]
    return replace(given, named_nodes=named, details=details)
