"""What is left open of a graph when more is known than observations tell: knowledge of edges, interventions."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from inference.graphs.cpdag import cpdag, meek_closure, skeleton, v_structures
from inference.graphs.knowledge import GraphKnowledge

__all__ = ["essential_graph", "interventional_codes", "mpdag"]


def mpdag(dag: np.ndarray, knowledge: GraphKnowledge) -> np.ndarray:
    """The graphs that are equivalent to a DAG and agree with what is known, as one graph.

    Equivalent graphs have the same pairs joined, so that of an edge which is known not to be there, either its pair is
    not joined in any of them, or its reverse is there in all that agree. What is known is thus a set of directions, for
    which the rules of Meek are complete: no enumeration of the class is needed.

    Args:
        dag: `[L, L]` of 0 and 1, row = cause, column = effect.
        knowledge: What is known.

    Returns:
        `[L, L]` of 0 and 1: the union of those graphs; 1 both ways where they disagree on the direction.

    Raises:
        ValueError: The DAG has a cycle, or does not agree with what is known itself.
    """
    return essential_graph(dag, (), knowledge)


def essential_graph(
    dag: np.ndarray, targets: Iterable[Collection[int]] = (), knowledge: GraphKnowledge | None = None
) -> np.ndarray:
    """The interventional Markov equivalence class of a DAG (Hauser and Bühlmann 2012), of what knowledge leaves of it.

    Besides observations there are samples under interventions upon sets of nodes. An edge of which exactly one end is
    in some set has its direction told: perfect interventions cut it or leave it (theorem 10 there), soft ones change
    the conditional distribution of one end alone (Yang, Katcoff and Uhler 2018). Then the rules of Meek.

    Args:
        dag: `[L, L]` of 0 and 1, row = cause, column = effect.
        targets: Nodes of each intervention, by position; samples without intervention are there as well.
        knowledge: What is known; None: nothing.

    Returns:
        `[L, L]` of 0 and 1; 1 both ways where the direction is open.

    Raises:
        ValueError: The DAG has a cycle, does not agree with what is known, or targets are no nodes.
    """
    joined = skeleton(cpdag(dag))  # refuses what is no DAG
    told = _told(len(dag), targets)
    if knowledge is not None:
        if not bool(knowledge.allows(dag)):
            raise ValueError("dag: expected a graph that agrees with what is known, got another; look at knowledge")
        told |= knowledge.required | knowledge.forbidden
    return meek_closure(np.asarray(v_structures(dag).any(-1)) | (dag.astype(bool) & (told | told.T)), joined)


def interventional_codes(dags: np.ndarray, targets: Iterable[Collection[int]] = ()) -> np.ndarray:
    """Number of the interventional equivalence class of each DAG, `[graph]`, by definition.

    Equal where skeleton and v-structures are, and where for each set of targets the same edges are left when those into
    its nodes are cut (Hauser and Bühlmann 2012, theorem 10).

    Args:
        dags: `[graph, L, L]`.
        targets: Nodes of each intervention, by position.
    """
    cut = (skeleton(dags.astype(bool) & ~_into(dags.shape[-1], nodes)) for nodes in targets)
    flat = [part.reshape(len(dags), -1) for part in (skeleton(dags), v_structures(dags), *cut)]
    return np.unique(np.packbits(np.concatenate(flat, axis=1), axis=1), axis=0, return_inverse=True)[1].reshape(-1)


def _told(n_nodes: int, targets: Iterable[Collection[int]]) -> np.ndarray:
    """Pairs exactly one node of which some set of targets has, bool `[L, L]`, symmetric."""
    told = np.zeros((n_nodes, n_nodes), dtype=bool)
    for nodes in targets:
        inside = _into(n_nodes, nodes)[0]
        told |= inside[:, None] != inside[None, :]
    return told


def _into(n_nodes: int, nodes: Collection[int]) -> np.ndarray:
    """Every pair whose second node is one of these, bool `[L, L]`."""
    odd = next((node for node in nodes if not 0 <= node < n_nodes), None)
    if odd is not None:
        raise ValueError(f"targets: expected nodes 0 to {n_nodes - 1}, got {odd}; give positions of nodes")
    inside = np.zeros(n_nodes, dtype=bool)
    inside[list(nodes)] = True
    return np.tile(inside, (n_nodes, 1))
