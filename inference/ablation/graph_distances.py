"""How far the graphs that a run shows are from the true one: each of them on its own, where the nodes have a meaning.

A run can have several graphs: the class of the search over its named nodes, the graph that was trained, that of a
learner after the fit, the edges that a linear model claims. Distances are structural Hamming distances between
classes of equivalent graphs. A node stands at the factor that its labels came from, or whose name it bears, so that
names that are exchanged are not put right; where neither tells all nodes, at the one that evaluation assigns it to.
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
    true, reported = scored.get("true_cpdag"), graph.get("equivalence_class") or graph.get("posterior")
    if true is None or reported is None:
        return {}
    order = _order(list(summary["nodes"]), list(evaluation.get("factor_levels") or {}), summary)
    if order is None:
        return {}
    found = {"reported": reported, "posthoc": graph.get("posthoc")}
    classes = {name: np.array(entry["cpdag"]) for name, entry in found.items() if entry and entry.get("cpdag")}
    if graph.get("linear_scm"):
        classes["linear_scm"] = cpdag(np.array(graph["linear_scm"]["adjacency"]))
    if scored.get("edge_strength"):
        classes["trained"] = cpdag(np.array(graph["adjacency"]))
    truth = np.array(true)
    return {name: structural_hamming_distance(permute_nodes(own, order), truth) for name, own in classes.items()}


def _order(nodes: list[str], factors: list[str], summary: Mapping[str, Any]) -> list[int] | None:
    """The node of every factor; None where they do not correspond one to one."""
    variables = ((summary.get("labelling") or {}).get("details") or {}).get("variables") or {}
    named = {variables.get(node, node): node for node in nodes}
    assigned = summary["evaluation"].get("assignment") or {}
    whole = [each for each in (named, assigned) if set(each) == set(factors) and set(each.values()) == set(nodes)]
    return [nodes.index(whole[0][factor]) for factor in factors] if whole else None
