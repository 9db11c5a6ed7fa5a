"""How far the graphs that a run shows are from the true one: each of them on its own, where the nodes have a meaning.

A run can have several graphs: the class of the search over its named nodes, the graph that was trained, that of a
learner after the fit, the edges that a linear model claims. Distances are structural Hamming distances between
classes of equivalent graphs, with the nodes at the factors that evaluation assigns them to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from inference.graphs.comparison import permute_nodes, structural_hamming_distance
from inference.graphs.cpdag import cpdag

__all__ = ["graph_distances"]


def graph_distances(summary: Mapping[str, Any]) -> dict[str, int]:
    """`reported`, `trained`, `posthoc`, `linear_scm`, each where there is one; nothing where nodes have no meaning.

    Args:
        summary: That of the run.
    """
    evaluation, graph = summary.get("evaluation") or {}, summary.get("graph") or {}
    scored = evaluation.get("graph") or {}
    true, reported = scored.get("true_cpdag"), graph.get("equivalence_class")
    assignment = evaluation.get("assignment") or {}
    order = _order(list(summary["nodes"]), list(evaluation.get("factor_levels") or {}), assignment)
    if true is None or reported is None or order is None:
        return {}
    found = {"reported": reported, "posthoc": graph.get("posthoc")}
    classes = {name: np.array(entry["cpdag"]) for name, entry in found.items() if entry and entry.get("cpdag")}
    if graph.get("linear_scm"):
        classes["linear_scm"] = cpdag(np.array(graph["linear_scm"]["adjacency"]))
    if scored.get("edge_strength"):
        classes["trained"] = cpdag(np.array(graph["adjacency"]))
    truth = np.array(true)
    return {name: structural_hamming_distance(permute_nodes(own, order), truth) for name, own in classes.items()}


def _order(nodes: list[str], factors: list[str], assignment: Mapping[str, str]) -> list[int] | None:
    """The node of every factor; None where they do not correspond one to one."""
    node_of = {factor: nodes.index(node) for node, factor in assignment.items() if node in nodes}
    is_whole = len(node_of) == len(nodes) == len(factors) and set(node_of) == set(factors)
    return [node_of[factor] for factor in factors] if is_whole else None
