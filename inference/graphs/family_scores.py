r"""Local scores of all families at once: node l with every set of parents, from counts.

The score of a graph is the sum over its nodes of $s(\ell \mid pa(\ell))$, and BIC and BDeu alike are a difference of
one function of sets of nodes, $s(\ell \mid S) = g(S \cup \ell) - g(S)$, with m the counts of the joint outcomes of S,
|S| the number of these outcomes (seen or not), n the sum of all counts, and a the equivalent sample size:

$$g_{BIC}(S) = \sum_{cells} m \log m - \tfrac12 \log n \, |S|, \qquad
g_{BDeu}(S) = \sum_{cells} \log \Gamma(m + a / |S|) - \log \Gamma(a / |S|)$$

Cells without a count add nothing to either sum, so that only those that are seen are held. BDeu: Heckerman, Geiger and
Chickering (1995), Machine Learning 20, 197; BIC: Schwarz (1978), Annals of Statistics 6, 461.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import log, prod

import numpy as np
from scipy.special import gammaln, xlogy

from inference.graphs.knowledge import GraphKnowledge
from inference.graphs.posterior import Score

__all__ = ["MOST_NODES", "bdeu_terms", "family_scores", "table_family_scores"]

MOST_NODES = 20
"""Up to so many nodes all sets of them are listed: 2^20 local scores for each node are 168 MB."""

_MOST_CELLS = 2**62
_SPARE = 4

_Terms = Callable[[np.ndarray, float], float]


def family_scores(
    codes: np.ndarray,
    outcomes: Sequence[int],
    score: Score | None = None,
    knowledge: GraphKnowledge | None = None,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Local scores from samples whose nodes are all seen.

    Args:
        codes: Outcome of each node in each sample, integers `[n, L]`.
        outcomes: Number of outcomes of each node.
        score: BIC by default.
        knowledge: Sets of parents that it forbids get -inf; by default none does.
        weights: How much each sample counts, `[n]`; by default 1 (replicates of a group of k: 1/k). Their sum is n.

    Returns:
        float64 `[L, 2^L]` in nats, bit k of a set stands for node k; -inf where a node is among its own parents, too.

    Raises:
        ValueError: Codes that are no outcomes, too many nodes, or a score without its equivalent sample size.
    """
    _check(codes, tuple(outcomes))
    cells, counts = _counted(np.ravel_multi_index(tuple(codes.T), tuple(outcomes)), weights)
    return _scores(cells, counts, tuple(outcomes), score or Score(), knowledge)


def table_family_scores(
    counts: np.ndarray, score: Score | None = None, knowledge: GraphKnowledge | None = None
) -> np.ndarray:
    """Local scores from a table of counts, which may be fractions.

    Args:
        counts: `[C_1, ..., C_L]`, not negative; their sum is n.
        score: As for `family_scores`.
        knowledge: As for `family_scores`.

    Returns:
        float64 `[L, 2^L]` in nats.

    Raises:
        ValueError: Negative counts or none, or too many nodes.
    """
    flat = np.asarray(counts, dtype=np.float64).reshape(-1)
    if not np.isfinite(flat).all() or (flat < 0).any() or flat.sum() <= 0:
        raise ValueError("counts: expected finite numbers of at least 0, some above, got others; pass counts of cells")
    _check_size(counts.shape)
    cells = np.flatnonzero(flat)
    return _scores(cells, flat[cells], counts.shape, score or Score(), knowledge)


def _scores(
    cells: np.ndarray, counts: np.ndarray, outcomes: tuple[int, ...], score: Score, knowledge: GraphKnowledge | None
) -> np.ndarray:
    n_nodes, terms = len(outcomes), _terms(score, float(counts.sum()))
    sums = np.empty(2**n_nodes)
    for members, found, size in _marginals(cells, counts, outcomes):
        sums[members] = terms(found, size)
    sets, bits = np.arange(2**n_nodes), (1 << np.arange(n_nodes))[:, None]
    known = knowledge or GraphKnowledge.none(tuple(map(str, range(n_nodes))))
    return np.where(known.parent_sets(), sums[sets | bits] - sums[sets], -np.inf)


def _terms(score: Score, n_samples: float) -> _Terms:
    """The function g of a set of nodes, given the counts of its cells and how many cells it has."""
    if score.name == "bic":
        return lambda counts, size: float(xlogy(counts, counts).sum()) - log(n_samples) / 2 * size
    return partial(bdeu_terms, equivalent_sample_size=score.sample_size)


def bdeu_terms(counts: np.ndarray, n_cells: float, equivalent_sample_size: float) -> float:
    """The function g of BDeu of a set of nodes: a sum over its cells, to which those without a count add nothing.

    Args:
        counts: Of the cells, `[m]`; those without a count may be missing.
        n_cells: How many cells there are.
        equivalent_sample_size: a.
    """
    share = equivalent_sample_size / n_cells
    return float(gammaln(counts + share).sum()) - len(counts) * float(gammaln(share))


def _marginals(
    cells: np.ndarray, counts: np.ndarray, outcomes: tuple[int, ...]
) -> Iterator[tuple[int, np.ndarray, float]]:
    """Every set of nodes as bits, the counts of its cells that are seen, and how many cells it has.

    Each set comes from one that has one node more, so that no more than L tables are held at a time.
    """
    stack = [(tuple(range(len(outcomes))), 0, cells, counts)]
    while stack:
        nodes, removable, held, found = stack.pop()
        sizes = [outcomes[node] for node in nodes]
        yield sum(1 << node for node in nodes), found, float(prod(sizes))
        for at in range(removable, len(nodes)):
            rest = nodes[:at] + nodes[at + 1 :]
            stack.append((rest, at, *_summed_out(held, found, sizes, at)))


def _summed_out(cells: np.ndarray, counts: np.ndarray, sizes: list[int], axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Cells, row-major, and counts without one of the nodes."""
    inner = prod(sizes[axis + 1 :])
    merged = cells // (inner * sizes[axis]) * inner + cells % inner
    if inner * prod(sizes[:axis]) <= _SPARE * len(cells):
        dense = np.bincount(merged, counts)
        seen = np.flatnonzero(dense)
        return seen, dense[seen]
    return _counted(merged, counts)


def _counted(cells: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The cells that are there, once, and how much each weighs in all."""
    seen, inverse = np.unique(cells, return_inverse=True)
    counts = np.bincount(inverse.reshape(-1), weights)
    return seen, counts.astype(np.float64)


def _check(codes: np.ndarray, outcomes: tuple[int, ...]) -> None:
    _check_size(outcomes)
    if codes.ndim != 2 or codes.shape[1] != len(outcomes) or not len(codes):
        raise ValueError(f"codes: expected shape [sample, {len(outcomes)}], got {codes.shape}; one column per node")
    if not np.issubdtype(codes.dtype, np.integer) or (codes < 0).any() or (codes >= np.array(outcomes)).any():
        raise ValueError(f"codes: expected integers below {outcomes} by column, got others; leave unknown ones out")


def _check_size(outcomes: tuple[int, ...]) -> None:
    if not 1 <= len(outcomes) <= MOST_NODES or prod(outcomes) > _MOST_CELLS:
        raise ValueError(
            f"outcomes: expected 1 to {MOST_NODES} nodes and at most 2^62 cells, got {len(outcomes)} nodes and "
            f"{prod(outcomes)} cells; leave nodes or outcomes out"
        )
