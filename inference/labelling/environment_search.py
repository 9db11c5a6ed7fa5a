"""Labelling, graph and targets of interventions together: an exact search by the score of do-type environments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from scipy.special import logsumexp, xlogy

from inference.graphs.dags import all_dags
from inference.graphs.knowledge import GraphKnowledge
from inference.labelling.labelling_search import as_tables

__all__ = ["MOST_MAPS", "Found", "Target", "family_scores", "search", "target_maps"]

MOST_MAPS = 5000
_ROWS_AT_ONCE = 2000

Target = int | None
"""Position of the node that an environment intervenes upon; None: not known."""


@dataclass(frozen=True)
class Found:
    """What the search found.

    Attributes:
        labellings: Those that were searched, `[K, C]`.
        evidence: Of each, log Σ over graphs and target maps of exp(score): a uniform prior on both, `[K]`.
        targets: Of each, the node that every environment but the first intervenes upon, summed over graphs, `[K, E]`.
        graphs: All DAGs that agree with what is known, `[G, L, L]`.
        graph_evidence: Of each under the best labelling, log Σ over target maps, `[G]`.
        n_maps: Number of target maps searched.
    """

    labellings: np.ndarray
    evidence: np.ndarray
    targets: np.ndarray
    graphs: np.ndarray
    graph_evidence: np.ndarray
    n_maps: int

    @property
    def best(self) -> int:
        """Position of the best labelling."""
        return int(self.evidence.argmax())

    @property
    def best_graph(self) -> np.ndarray:
        """The best graph under the best labelling, `[L, L]` of 0 and 1, row = cause, column = effect."""
        graph: np.ndarray = self.graphs[self.graph_evidence.argmax()]
        return graph


def target_maps(known: Sequence[Target], n_nodes: int) -> np.ndarray:
    """Every way to give each intervened environment one node, with those that are known, `[M, E]`.

    Raises:
        ValueError: More than `MOST_MAPS`.
    """
    choices = [range(n_nodes) if node is None else [node] for node in known]
    if prod(map(len, choices)) > MOST_MAPS:
        raise ValueError(
            f"environments.targets: expected at most {MOST_MAPS} ways to choose targets, got "
            f"{n_nodes}**{sum(node is None for node in known)}; name the target of some environments"
        )
    return np.array(list(product(*choices)), dtype=np.int64).reshape(-1, len(known))


def search(
    counts: np.ndarray,
    labellings: np.ndarray,
    outcomes: Sequence[int],
    known: Sequence[Target],
    knowledge: GraphKnowledge | None = None,
) -> Found:
    """Score every labelling with every DAG that agrees with what is known, and every target map (`family_scores`).

    Args:
        counts: Samples per environment and cluster, `[1 + E, C]`; the first is observational.
        labellings: `[K, C]` (`enumerate_labellings`).
        outcomes: Outcomes per node.
        known: Target of each of the E others.
        knowledge: What is known of the graph; None: nothing.

    Raises:
        ValueError: More nodes or target maps than can be searched.
    """
    maps, graphs = target_maps(known, len(outcomes)), all_dags(len(outcomes))
    graphs = graphs if knowledge is None else graphs[knowledge.allows(graphs)]
    blocks = (labellings[start : start + _ROWS_AT_ONCE] for start in range(0, len(labellings), _ROWS_AT_ONCE))
    parts = [_by_map(family_scores(counts, part, outcomes), graphs, maps) for part in blocks]
    by_map = np.concatenate(parts)
    evidence = logsumexp(by_map, axis=1)
    best = family_scores(counts, labellings[[evidence.argmax()]], outcomes)
    by_graph = logsumexp([scores[0] for scores in _scores(best, graphs, maps)], axis=0)
    return Found(labellings, evidence, maps[by_map.argmax(1)], graphs, by_graph, len(maps))


def _by_map(families: np.ndarray, graphs: np.ndarray, maps: np.ndarray) -> np.ndarray:
    """log Σ over graphs of exp(score), `[K, M]`."""
    return np.stack([logsumexp(scores, axis=1) for scores in _scores(families, graphs, maps)], axis=1)


def _scores(families: np.ndarray, graphs: np.ndarray, maps: np.ndarray) -> Iterator[np.ndarray]:
    """Score of every labelling and graph, `[K, G]`, map by map: the sum of the scores of its families."""
    parents = _as_set(graphs.swapaxes(1, 2))
    for targets in maps:
        chosen = [_as_set(targets == node) for node in range(graphs.shape[1])]
        parts = [families[:, node, which][:, parents[:, node]] for node, which in enumerate(chosen)]
        yield np.sum(parts, axis=0)


def _as_set(members: np.ndarray) -> np.ndarray:
    """The bits of the last axis as one number."""
    number: np.ndarray = (members.astype(np.int64) << np.arange(members.shape[-1])).sum(-1)
    return number


def family_scores(counts: np.ndarray, labellings: np.ndarray, outcomes: Sequence[int]) -> np.ndarray:
    r"""BIC of every node given every set of parents, for every set of environments that intervene upon it.

    With `m` the counts of the environments that leave node l alone, as a table over l and its parents, and `m_e` the
    counts of l in an environment e that intervenes upon it,

    $$\sum m \log \frac{m}{\sum_{l} m} + \sum_e \sum m_e \log \frac{m_e}{n_e} - \tfrac12 d \log n,$$

    where d counts the free probabilities: `(C_l - 1) ∏ C_pa`, and `C_l - 1` per intervention. A do-type intervention
    cuts a node from its parents, which is what no renaming of its outcomes per parent configuration can imitate.

    Args:
        counts: `[1 + E, C]`, see `search`.
        labellings: `[K, C]`.
        outcomes: Outcomes per node.

    Returns:
        `[K, L, 2^E, 2^L]`: sets of environments (without the first) and of parents as bits; minus infinity where the
        node itself is among the parents.
    """
    tables = as_tables(counts, labellings, outcomes)
    n_nodes, n_sets = len(outcomes), 2 ** (len(counts) - 1)
    found = np.full((len(labellings), n_nodes, n_sets, 2**n_nodes), -np.inf)
    for chosen in range(n_sets):
        cut = np.array([False, *(bool(chosen >> e & 1) for e in range(len(counts) - 1))])
        pooled, intervened = tables[:, ~cut].sum(1), tables[:, cut]
        for node, parents in product(range(n_nodes), range(2**n_nodes)):
            if not parents >> node & 1:
                found[:, node, chosen, parents] = _family(pooled, node, parents, outcomes)
        for node in range(n_nodes):
            found[:, node, chosen] += _interventions(intervened, node)[:, None]
    penalty = 0.5 * np.log(max(counts.sum(), 1.0))
    return found - penalty * _free_probabilities(outcomes, n_sets)


def _family(table: np.ndarray, node: int, parents: int, outcomes: Sequence[int]) -> np.ndarray:
    """Σ m log(m / Σ_l m) over the table of a node and its parents, `[K]`."""
    others = [k for k in range(len(outcomes)) if k != node and not parents >> k & 1]
    family = table.sum(axis=tuple(1 + k for k in others), keepdims=True)
    given = family.sum(axis=1 + node, keepdims=True)
    axes = tuple(range(1, table.ndim))
    score: np.ndarray = xlogy(family, family).sum(axes) - xlogy(given, given).sum(axes)
    return score


def _interventions(tables: np.ndarray, node: int) -> np.ndarray:
    """Σ_e Σ m_e log(m_e / n_e) of the node, `[K]`."""
    axes = tuple(2 + k for k in range(tables.ndim - 2) if k != node)
    own = tables.sum(axes)
    score: np.ndarray = (xlogy(own, own).sum(-1) - xlogy(own.sum(-1), own.sum(-1))).sum(-1)
    return score


def _free_probabilities(outcomes: Sequence[int], n_sets: int) -> np.ndarray:
    """`[L, 2^E, 2^L]`."""
    sizes = np.array(outcomes)
    bits = np.arange(2 ** len(sizes))[:, None] >> np.arange(len(sizes)) & 1
    configurations = np.where(bits, sizes, 1).prod(1)
    n_cut = np.array([chosen.bit_count() for chosen in range(n_sets)])
    found: np.ndarray = (sizes - 1)[:, None, None] * (configurations + n_cut[:, None])
    return found
