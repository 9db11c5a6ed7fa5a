r"""Markov equivalence: what observations alone can tell of a directed acyclic graph.

Two graphs are equivalent, that is, allow the same distributions, exactly if they have the same skeleton and the same
v-structures (Verma and Pearl 1990). The class is drawn as a CPDAG: an edge is directed (compelled) where all graphs of
the class agree on it, else undirected. Entry `[i, j]` = 1 and `[j, i]` = 0: i → j; 1 both ways: i — j.
"""

from __future__ import annotations

import numpy as np

from inference.graphs.dags import is_acyclic

__all__ = ["class_codes", "compelled", "cpdag", "meek_closure", "skeleton", "v_structures"]


def skeleton(graph: np.ndarray) -> np.ndarray:
    """Whether two nodes are joined, bool `[..., L, L]`, symmetric."""
    edges = graph.astype(bool)
    return edges | edges.swapaxes(-1, -2)


def compelled(graph: np.ndarray) -> np.ndarray:
    """The directed edges of a CPDAG (of a DAG: all), bool `[..., L, L]`."""
    edges = graph.astype(bool)
    return edges & ~edges.swapaxes(-1, -2)


def v_structures(graph: np.ndarray) -> np.ndarray:
    """Where i → k ← j with i and j not joined, bool `[..., i, k, j]`, symmetric in i and j.

    Args:
        graph: DAGs or CPDAGs, `[..., L, L]`.
    """
    into, joined = compelled(graph), skeleton(graph)
    apart = ~joined & ~np.eye(graph.shape[-1], dtype=bool)
    both = into[..., :, :, None] & into.swapaxes(-1, -2)[..., None, :, :]
    return both & apart[..., :, None, :]


def cpdag(dag: np.ndarray) -> np.ndarray:
    """The Markov equivalence class of a DAG.

    The v-structures are directed; then the rules of Meek (1995) direct what else is the same in the whole class.

    Args:
        dag: `[L, L]` of 0 and 1, row = cause, column = effect.

    Returns:
        `[L, L]` of 0 and 1; 1 both ways where the direction is open.

    Raises:
        ValueError: It is not square, or has a cycle.
    """
    _check(dag)
    return meek_closure(np.asarray(v_structures(dag).any(-1)), skeleton(dag))


def meek_closure(directed: np.ndarray, joined: np.ndarray) -> np.ndarray:
    """All directions that follow from some, by the four rules of Meek (1995), until none says more.

    With v-structures and directions that are known from elsewhere the four are sound and complete (Meek 1995, theorem
    4): what they leave open differs between graphs of the class that agree with what is known. The fourth says nothing
    where only v-structures were directed.

    Args:
        directed: What is directed, bool `[L, L]`: all v-structures, and more.
        joined: The skeleton, bool `[L, L]`.

    Returns:
        `[L, L]` of 0 and 1; 1 both ways where the direction is open.
    """
    while True:
        open_edges = joined & ~directed & ~directed.T
        rules = _away_from_collider(directed, joined) | _no_cycle(directed)
        rules |= _two_ways(directed, open_edges, joined) | _around(directed, open_edges, joined)
        more = open_edges & rules
        if not more.any():
            return (directed | open_edges).astype(np.int64)
        directed = directed | more


def class_codes(dags: np.ndarray) -> np.ndarray:
    """Number of the equivalence class of each DAG, `[graph]`: equal where skeleton and v-structures are.

    Args:
        dags: `[graph, L, L]`.
    """
    flat = [part(dags).reshape(len(dags), -1) for part in (skeleton, v_structures)]
    return np.unique(np.packbits(np.concatenate(flat, axis=1), axis=1), axis=0, return_inverse=True)[1].reshape(-1)


def _away_from_collider(directed: np.ndarray, joined: np.ndarray) -> np.ndarray:
    """Rule 1: k → i — j becomes i → j where k and j are not joined: else there were another v-structure."""
    apart = ~joined & ~np.eye(len(joined), dtype=bool)
    return directed.T @ apart


def _no_cycle(directed: np.ndarray) -> np.ndarray:
    """Rule 2: i → k → j and i — j becomes i → j: else there were a cycle."""
    return directed @ directed


def _two_ways(directed: np.ndarray, open_edges: np.ndarray, joined: np.ndarray) -> np.ndarray:
    """Rule 3: i — k → j and i — l → j with k and l not joined, and i — j, becomes i → j."""
    found = np.zeros_like(directed)
    apart = ~joined & ~np.eye(len(joined), dtype=bool)
    for i, j in np.argwhere(open_edges):
        middle = open_edges[i] & directed[:, j]
        found[i, j] = apart[np.ix_(middle, middle)].any()
    return found


def _around(directed: np.ndarray, open_edges: np.ndarray, joined: np.ndarray) -> np.ndarray:
    """Rule 4: i — k → l → j with k and j not joined, i and l joined, and i — j, becomes i → j.

    Were it j → i, then i → k (else there were another v-structure), so i → l (else a cycle), hence a cycle i → l → j.
    """
    found = np.zeros_like(directed)
    apart = ~joined & ~np.eye(len(joined), dtype=bool)
    for i, j in np.argwhere(open_edges):
        first, second = open_edges[i] & apart[:, j], joined[i] & directed[:, j]
        found[i, j] = directed[np.ix_(first, second)].any()
    return found


def _check(dag: np.ndarray) -> None:
    if dag.ndim != 2 or dag.shape[0] != dag.shape[1]:
        raise ValueError(f"dag: expected shape [node, node], got {dag.shape}; pass an adjacency matrix")
    if not bool(is_acyclic(dag)):
        raise ValueError("dag: expected a graph without cycles, got one with; rows are causes, columns are effects")
