r"""The best graph among all, exactly (Silander and Myllymäki 2006, UAI).

Some node of the best graph over S is a sink, and the rest is the best graph over the rest:

$$M(S) = \max_{j \in S} \bigl[ \max_{P \subseteq S \setminus j} s_j(P) + M(S \setminus j) \bigr],$$

`L 2^L` steps for all S, instead of a walk through the graphs, of which L = 10 has 4e18.
"""

from __future__ import annotations

import numpy as np

from inference.graphs.score_table import check_scores, dag_scores
from inference.graphs.subsets import count_nodes, maxima_over_subsets, members, sets_by_size, subsets_of

__all__ = ["best_after", "best_dag", "best_within", "score_of_dag"]


def best_dag(scores: np.ndarray) -> tuple[np.ndarray, float]:
    """A graph of the highest score, and that score.

    Ties are settled the same way every time: the sink of the lowest number first, then the fewest parents, then the
    lowest numbers. Equivalent graphs tie under BIC and BDeu: take `cpdag` of what comes back.

    Args:
        scores: Of every node with every set of parents, `[L, 2^L]`, in nats; -inf: not allowed.

    Returns:
        `[L, L]` of 0 and 1, row = cause, column = effect; its score in nats.

    Raises:
        ValueError: The table has another shape, or allows no graph.
    """
    check_scores(scores)
    best = maxima_over_subsets(scores)
    total = best_within(best)
    dag = np.zeros((len(scores), len(scores)), dtype=np.int8)
    left = scores.shape[1] - 1
    if total[left] == -np.inf:
        raise ValueError("scores: expected a table that allows a graph, got one without; require fewer edges")
    while left:
        sink = _sink(left, best, total)
        left ^= 1 << sink
        dag[:, sink] = members(np.array(_parents(scores[sink], left)), len(scores))
    return dag, score_of_dag(scores, dag)


def best_within(best: np.ndarray) -> np.ndarray:
    """M: the score of the best graph over each set, `[2^L]`.

    Args:
        best: Of every node, the score of its best parents within each set, `[L, 2^L]`.
    """
    total = np.full(best.shape[1], -np.inf)
    total[0] = 0.0
    for sets in sets_by_size(count_nodes(best))[1:]:
        for node in range(len(best)):
            having = sets[sets >> node & 1 == 1]
            rest = having ^ 1 << node
            total[having] = np.maximum(total[having], best[node, rest] + total[rest])
    return total


def best_after(best: np.ndarray) -> np.ndarray:
    """The best score of the nodes outside each set where none in the set has a parent outside, `[2^L]`.

    Args:
        best: Of every node, the score of its best parents within each set, `[L, 2^L]`.
    """
    total = np.full(best.shape[1], -np.inf)
    total[-1] = 0.0
    for sets in reversed(sets_by_size(count_nodes(best))[:-1]):
        for node in range(len(best)):
            lacking = sets[sets >> node & 1 == 0]
            total[lacking] = np.maximum(total[lacking], best[node, lacking] + total[lacking | 1 << node])
    return total


def score_of_dag(scores: np.ndarray, dag: np.ndarray) -> float:
    """Sum over nodes of the score with their parents, in nats.

    Args:
        scores: `[L, 2^L]`.
        dag: `[L, L]`, row = cause, column = effect.
    """
    return float(dag_scores(scores, dag[None])[0])


def _sink(left: int, best: np.ndarray, total: np.ndarray) -> int:
    nodes = np.flatnonzero(members(np.array(left), len(best)))
    rest = left ^ 1 << nodes
    return int(nodes[np.argmax(best[nodes, rest] + total[rest])])


def _parents(scores: np.ndarray, within: int) -> int:
    sets = subsets_of(within)
    tied = sets[scores[sets] == scores[sets].max()]
    return int(tied[np.argmin(np.bitwise_count(tied))])
