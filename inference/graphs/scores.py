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
from dataclasses import dataclass, field
from functools import partial
from math import log, prod
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import gammaln, xlogy

from causalpima.inference.graphs.dags import GraphKnowledge, is_acyclic

__all__ = [
    "MOST_COLUMNS",
    "MOST_NODES",
    "GraphPosterior",
    "Method",
    "Score",
    "WeighedClass",
    "bdeu_terms",
    "best_after",
    "best_dag",
    "best_within",
    "check_scores",
    "conditional_table",
    "count_nodes",
    "dag_scores",
    "family_scores",
    "joint_of",
    "log_sums_over_subsets",
    "log_sums_over_supersets",
    "maxima_over_subsets",
    "member_of",
    "members",
    "outside",
    "parent_sets",
    "parents_of",
    "score_of_dag",
    "sets_by_size",
    "shares_given",
    "subsets_of",
    "table_family_scores",
    "with_edge_prior",
]


# A posterior over graphs, however it was computed: what all readers of graphs work with.


_LARGEST_SIZE = 1e9

Method = Literal["enumeration", "exact sums", "partition mcmc"]


class Score(NamedTuple):
    """How a graph is scored.

    Attributes:
        name: `bic` (maximum log-likelihood less `d / 2 log n`) or `bdeu` (marginal likelihood under a Dirichlet prior).
        equivalent_sample_size: Of BDeu; None for BIC.
    """

    name: Literal["bic", "bdeu"] = "bic"
    equivalent_sample_size: float | None = None

    @classmethod
    def of(cls, name: Literal["bic", "bdeu"], equivalent_sample_size: float | None = None) -> Score:
        """BDeu has an equivalent sample size, 1 where none is given; BIC has none.

        Raises:
            ValueError: An equivalent sample size of BIC, or one that is not above 0, or so large that log Γ of it has
                no digits left for the samples.
        """
        if name == "bic" and equivalent_sample_size is not None:
            raise ValueError("equivalent_sample_size: expected it with BDeu, got the score bic; choose bdeu")
        size = 1.0 if equivalent_sample_size is None else float(equivalent_sample_size)
        if not 0 < size <= _LARGEST_SIZE:
            wanted = f"at most {_LARGEST_SIZE:g}" if _LARGEST_SIZE < size < float("inf") else "a number above 0"
            raise ValueError(f"equivalent_sample_size: expected {wanted}, got {size:g}; pass one, say 1")
        return cls() if name == "bic" else cls(name, size)

    @property
    def sample_size(self) -> float:
        """The equivalent sample size of BDeu.

        Raises:
            ValueError: It has none, or one that is not above 0.
        """
        size = self.equivalent_sample_size
        if size is None or not 0 < size < float("inf"):
            got = "none" if size is None else f"{size:g}"
            raise ValueError(f"score: expected BDeu with an equivalent sample size above 0, got {got}; pass one, say 1")
        return size


class WeighedClass(NamedTuple):
    """An equivalence class and its posterior probability.

    Attributes:
        graph: `[L, L]`, row = cause, column = effect; 1 both ways where graphs of the class, as far as what is known
            allows them, disagree on the direction.
        probability: In (0, 1].
    """

    graph: np.ndarray
    probability: float


@dataclass(frozen=True)
class GraphPosterior:
    r"""p(G | data) under a uniform prior over the DAGs that agree with what is known (or a declared edge prior).

    Rows are causes and columns are effects, everywhere.

    Attributes:
        nodes: Names of the L nodes.
        edge_probability: p(i → j in the DAG), `[L, L]`.
        compelled_probability: p(i → j has this direction in the whole equivalence class), `[L, L]`.
        best: The class of the most probable graph. `classes[0]` is the most probable class: it may have more graphs.
        classes: The smallest set of classes that carries 95 % of the mass, the most probable first.
        dags: Graphs that stand for the posterior, `[G, L, L]`: all with notable mass, or draws.
        weights: Their probabilities, `[G]`, sum 1.
        log_marginal_likelihood: $\log \sum_G p(G)\, e^{score(G)}$ in nats; None where only ratios are known.
        score: How graphs were scored.
        method: How the sum over graphs was taken.
        n_samples: Rows behind the scores.
        n_independent: Independent ones among them (groups), the n of BIC.
        diagnostics: Of Monte Carlo: effective sample sizes, agreement of chains; empty where sums are exact.
    """

    nodes: tuple[str, ...]
    edge_probability: np.ndarray
    compelled_probability: np.ndarray
    best: np.ndarray
    classes: tuple[WeighedClass, ...]
    dags: np.ndarray
    weights: np.ndarray
    log_marginal_likelihood: float | None
    score: Score
    method: Method
    n_samples: int
    n_independent: int
    diagnostics: dict[str, Any] = field(default_factory=dict)

    @property
    def adjacency_probability(self) -> np.ndarray:
        """p(i and j are joined), symmetric `[L, L]`."""
        return self.edge_probability + self.edge_probability.T


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


# Sets of nodes as bits of a number, and sums over all subsets or supersets of every set at once.


def count_nodes(table: np.ndarray) -> int:
    """L of a table over sets `[..., 2^L]`."""
    return int(table.shape[-1]).bit_length() - 1


def members(sets: np.ndarray, n_nodes: int) -> np.ndarray:
    """Whether node k is in each set, bool `[..., L]`."""
    return (sets[..., None] >> np.arange(n_nodes)) & 1 == 1


def parent_sets(dags: np.ndarray) -> np.ndarray:
    """The parents of every node as a set, `[..., L]`, from graphs `[..., L, L]`, row = cause, column = effect."""
    bits = 1 << np.arange(dags.shape[-1], dtype=np.int64)
    sets: np.ndarray = (dags.astype(np.int64) * bits[:, None]).sum(-2)
    return sets


def outside(sets: np.ndarray, n_nodes: int) -> np.ndarray:
    """The nodes that are not in each of some sets of one size, `[set, L - size]`, in ascending order."""
    return np.nonzero(~members(sets, n_nodes))[1].reshape(len(sets), -1)


def sets_by_size(n_nodes: int) -> list[np.ndarray]:
    """All sets of 0, 1, ..., L nodes, each list in ascending order."""
    sets = np.arange(2**n_nodes)
    size = np.bitwise_count(sets)
    return [sets[size == k] for k in range(n_nodes + 1)]


def subsets_of(nodes: int) -> np.ndarray:
    """All subsets of a set, itself and the empty one included, in ascending order."""
    found = np.zeros(1, dtype=np.int64)
    for bit in range(nodes.bit_length()):
        if nodes >> bit & 1:
            found = np.concatenate([found, found | 1 << bit])
    return found


def log_sums_over_subsets(table: np.ndarray) -> np.ndarray:
    r"""$\log \sum_{S \subseteq U} e^{t(S)}$ for every U, in `L 2^L` steps (the zeta transform).

    Args:
        table: t, `[..., 2^L]`, -inf allowed.
    """
    return _transformed(table, np.logaddexp, into=1)


def log_sums_over_supersets(table: np.ndarray) -> np.ndarray:
    r"""$\log \sum_{S \supseteq U} e^{t(S)}$ for every U, `[..., 2^L]`."""
    return _transformed(table, np.logaddexp, into=0)


def maxima_over_subsets(table: np.ndarray) -> np.ndarray:
    r"""$\max_{S \subseteq U} t(S)$ for every U, `[..., 2^L]`."""
    return _transformed(table, np.maximum, into=1)


def _transformed(table: np.ndarray, combine: np.ufunc, into: int) -> np.ndarray:
    """Node by node, what lacks the node and what has it are combined into one of the two."""
    found = np.array(table, dtype=float)
    for bit in range(count_nodes(table)):
        halves = found.reshape(*found.shape[:-1], -1, 2, 1 << bit)
        combine(halves[..., 0, :], halves[..., 1, :], out=halves[..., into, :])
    return found


# Tables of local scores: the score of every node with every set of parents.


MOST_COLUMNS = 20
"""Nodes that a table can have: 20 nodes are 168 MB."""


def check_scores(scores: np.ndarray) -> None:
    """Refuse what is no table of local scores.

    Args:
        scores: `[L, 2^L]`; bit k of the second index: node k is a parent; -inf: not allowed.

    Raises:
        ValueError: Another shape, too many nodes, NaN or +inf, a node among its own parents, or one with no parents
            that are allowed.
    """
    n_nodes = len(scores)
    if scores.ndim != 2 or not 1 <= n_nodes <= MOST_COLUMNS or scores.shape[1] != 2**n_nodes:
        raise ValueError(
            f"scores: expected [L, 2^L] with L from 1 to {MOST_COLUMNS}, got {scores.shape}; a row per node, a column "
            "per set of parents"
        )
    if np.isnan(scores).any() or (scores == np.inf).any():
        raise ValueError("scores: expected numbers or -inf, got NaN or +inf; -inf stands for what is not allowed")
    own = members(np.arange(2**n_nodes), n_nodes).T
    if (scores[own] > -np.inf).any():
        raise ValueError("scores: expected -inf where a node is its own parent, got a number; set it to -inf")
    if (scores.max(1) == -np.inf).any():
        node = int(np.argmax(scores.max(1) == -np.inf))
        raise ValueError(f"scores: expected parents that are allowed, got none for node {node}; require fewer edges")


def dag_scores(scores: np.ndarray, dags: np.ndarray) -> np.ndarray:
    """Score of every graph, the sum over its nodes, in nats `[G]`; -inf where a set of parents is not allowed.

    Args:
        scores: `[L, 2^L]`.
        dags: `[G, L, L]`, row = cause, column = effect.
    """
    total: np.ndarray = scores[np.arange(len(scores)), parent_sets(dags)].sum(-1)
    return total


def with_edge_prior(scores: np.ndarray, log_odds: float | np.ndarray) -> np.ndarray:
    r"""Scores under a prior $p(G) \propto \exp \sum_{i \to j} o_{ij}$ instead of the uniform one.

    Args:
        scores: `[L, 2^L]`.
        log_odds: o of every edge, or `[L, L]`, row = cause; 0 is the uniform prior, negative prefers fewer edges.

    Raises:
        ValueError: `log_odds` is not finite, or has another shape.
    """
    n_nodes = len(scores)
    odds = np.asarray(log_odds, dtype=float)
    if odds.shape not in {(), (n_nodes, n_nodes)} or not np.isfinite(odds).all():
        raise ValueError(
            f"log_odds: expected finite numbers, one or [{n_nodes}, {n_nodes}], got {odds.shape}; a row per cause"
        )
    every = np.broadcast_to(odds, (n_nodes, n_nodes))
    return np.asarray(scores + (members(np.arange(2**n_nodes), n_nodes) @ every).T)


# A member of an equivalence class, and the conditional tables that p(N) has along a graph.


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


# The best graph among all, exactly (Silander and Myllymäki 2006, UAI).
#
# Some node of the best graph over S is a sink, and the rest is the best graph over the rest:
#
# $$M(S) = \max_{j \in S} \bigl[ \max_{P \subseteq S \setminus j} s_j(P) + M(S \setminus j) \bigr],$$
#
# `L 2^L` steps for all S, instead of a walk through the graphs, of which L = 10 has 4e18.


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
