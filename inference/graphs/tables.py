"""A member of an equivalence class, and the conditional tables that p(N) has along a graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inference.graphs.dags import is_acyclic

__all__ = ["conditional_table", "joint_of", "member_of", "parents_of", "shares_given"]


def member_of(graph: np.ndarray) -> np.ndarray:
    """A DAG of the class that a mixed graph stands for: no new v-structure and no cycle (Dor and Tarsi 1992).

    Nodes without an arrow out of them, whose lines lead only to neighbours of all their neighbours, are taken away one
    after the other; their lines point to them.

    Args:
        graph: `[L, L]` of 0 and 1, row = cause, column = effect; 1 both ways is a line.

    Returns:
        `[L, L]` of 0 and 1, acyclic, with the same edges and all arrows of `graph`.

    Raises:
        ValueError: No DAG of this class exists.
    """
    left, directed = np.array(graph, dtype=bool), np.array(graph, dtype=bool)
    np.fill_diagonal(left, False)
    nodes = list(range(len(left)))
    while nodes:
        last = next((node for node in nodes if _may_be_last(left, node)), None)
        if last is None:
            raise ValueError(
                "graph: expected a class that has a DAG, got one in which every choice of directions makes a cycle or "
                "a new v-structure; check its arrows"
            )
        directed[last] &= ~(left[last] & left[:, last])
        left[last], left[:, last] = False, False
        nodes.remove(last)
    np.fill_diagonal(directed, False)
    return directed.astype(np.int64)


def _may_be_last(left: np.ndarray, node: int) -> bool:
    lines, joined = left[node] & left[:, node], left[node] | left[:, node]
    if (left[node] & ~left[:, node]).any():
        return False
    adjacent = left | left.T | np.eye(len(left), dtype=bool)
    return bool(adjacent[np.ix_(lines, joined)].all())


def parents_of(dag: np.ndarray, node: int) -> tuple[int, ...]:
    """Causes of a node in ascending order."""
    return tuple(np.flatnonzero(dag[:, node]).tolist())


def shares_given(
    joint: np.ndarray, n_nodes: int, node: int, parents: Sequence[int] | np.ndarray, unseen: float | None = None
) -> np.ndarray:
    """p(N_node | parents), `[..., C_1 or 1, ..., C_L or 1]`: of size 1 along nodes that play no part.

    Args:
        joint: `[..., C_1, ..., C_L]`, shares or counts; leading dimensions are other joints of the same nodes.
        n_nodes: L.
        node: The node.
        parents: Its parents, by position.
        unseen: What stands for parents without mass; None: uniform shares.
    """
    leading, own = joint.ndim - n_nodes, {node, *map(int, parents)}
    others = tuple(leading + k for k in range(n_nodes) if k not in own)
    family = joint.sum(axis=others, keepdims=True, dtype=np.float64)
    total = family.sum(axis=leading + node, keepdims=True)
    empty = 1 / joint.shape[leading + node] if unseen is None else unseen
    shares: np.ndarray = np.where(total > 0, family / np.where(total > 0, total, 1.0), empty)
    return shares


def conditional_table(joint: np.ndarray, node: int, parents: Sequence[int]) -> np.ndarray:
    r"""$p(N_\ell \mid N_{pa})$ as a table of these nodes alone, the node last (`shares_given`).

    Args:
        joint: p(N), `[C_1, ..., C_L]`; need not be normalised.
        node: $\ell$.
        parents: In ascending order, without the node.

    Returns:
        `[*C_pa, C_l]`, sums to one over the last axis; uniform where the parents' outcome has no mass.
    """
    others = tuple(axis for axis in range(joint.ndim) if axis != node and axis not in parents)
    table = shares_given(joint, joint.ndim, node, parents).squeeze(others)
    return np.moveaxis(table, sum(parent < node for parent in parents), -1)


def joint_of(dag: np.ndarray, joint: np.ndarray) -> np.ndarray:
    r"""The distribution that factorises along a graph: $\prod_\ell p(N_\ell \mid N_{pa(\ell)})$, `[C_1, ..., C_L]`.

    Of all these the nearest to `joint` in Kullback-Leibler divergence.

    Args:
        dag: `[L, L]`, acyclic.
        joint: p(N), `[C_1, ..., C_L]`.

    Raises:
        ValueError: The graph has a cycle.
    """
    if not bool(is_acyclic(dag)):
        raise ValueError("dag: expected a graph without cycles, got one with; rows are causes, columns are effects")
    product = np.ones(joint.shape)
    for node in range(joint.ndim):
        product = product * shares_given(joint, joint.ndim, node, parents_of(dag, node))
    return product
