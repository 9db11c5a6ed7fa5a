r"""The reversal of an edge with new parents at both ends (Grzegorczyk and Husmeier 2008, Machine Learning 71, 265).

Where two nodes depend strongly, i → j and j → i are as good and everything between is bad, so that steps that change
one node at a time stay on one side. This step takes the parents of both away, draws parents of i with j among them from
all that do not make a cycle, then parents of j, each from its posterior given the rest of the graph, and accepts with

$$\min \Bigl\{1, \frac{|E|}{|E'|} \cdot
\frac{\sum_{P \ni j} w_i(P)\, \sum_P w_j(P)}{\sum_{P \ni i} w_j(P)\, \sum_P w_i(P)} \Bigr\},$$

sums over sets of parents that are allowed at that point: above on the way there, below on the way back.
"""

from __future__ import annotations

from math import exp, log

import numpy as np

from inference.graphs.partition_score import PartitionScore, nodes_of

__all__ = ["Parents", "descendants", "reverse_an_edge"]

Parents = tuple[int, ...]
"""Parents of each node, sets as bits."""


def reverse_an_edge(parents: Parents, score: PartitionScore, generator: np.random.Generator) -> Parents:
    """Reverse one edge, chosen evenly, or leave the graph as it is.

    Args:
        parents: A graph.
        score: Sums over sets of parents.
        generator: Source of chance.
    """
    edges = [(i, j) for j, above in enumerate(parents) for i in nodes_of(above)]
    if not edges:
        return parents
    i, j = edges[int(generator.integers(len(edges)))]
    orphaned = _with(_with(parents, i, 0), j, 0)
    proposal, there = _drawn(orphaned, i, j, score, generator)
    if proposal is None:
        return parents
    _, back = _sums(orphaned, j, i, parents[j], score)
    n_edges = sum(above.bit_count() for above in proposal)
    gain = there - back + log(len(edges)) - log(n_edges)
    return proposal if gain >= 0 or generator.random() < exp(gain) else parents


def descendants(parents: Parents, node: int) -> int:
    """The node and all that can be reached from it, as bits."""
    found, before = 1 << node, 0
    while found != before:
        before = found
        found |= sum(1 << child for child, above in enumerate(parents) if above & found)
    return found


def _drawn(
    orphaned: Parents, i: int, j: int, score: PartitionScore, generator: np.random.Generator
) -> tuple[Parents | None, float]:
    """Parents of i with j among them, then of j; and the log of the product of both sums."""
    allowed = _allowed(orphaned, i)
    if not allowed >> j & 1 or score.node(i, allowed, 1 << j) == -np.inf:
        return None, -np.inf
    above = score.draw_parents(i, allowed, 1 << j, generator)
    half, total = _sums(orphaned, i, j, above, score)
    if total == -np.inf:
        return None, total
    return _with(half, j, score.draw_parents(j, _allowed(half, j), 0, generator)), total


def _sums(orphaned: Parents, i: int, j: int, above: int, score: PartitionScore) -> tuple[Parents, float]:
    """The graph with these parents of i, and the log of the product of the sums that a proposal draws from."""
    half = _with(orphaned, i, above)
    return half, score.node(i, _allowed(orphaned, i), 1 << j) + score.node(j, _allowed(half, j), 0)


def _allowed(parents: Parents, node: int) -> int:
    """Nodes that make no cycle as parents."""
    return (1 << len(parents)) - 1 & ~descendants(parents, node)


def _with(parents: Parents, node: int, above: int) -> Parents:
    return (*parents[:node], above, *parents[node + 1 :])
