r"""Likelihood of a graph with targets, over environments, for nodes that are seen only through a mixture.

With l_nc = p(x_n | cell c) fixed and e(n) the environment of sample n, by expectation maximisation

$$\log L(G, T) = \max_\theta \sum_n \log \sum_c p_\theta(c \mid e(n))\, l_{nc},$$

where p(c | e) is a product over nodes of tables that all environments share which leave the node alone, and of tables
of its own in each environment that is upon it. As for one environment (`mixture_likelihood`), clusters are never taken
for certain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import logsumexp

from causalpima.inference.graphs.dags import GraphKnowledge, all_dags, class_codes, compelled
from causalpima.inference.graphs.enumeration import Evidence, credible_classes, mean_graph, unions
from causalpima.inference.graphs.hidden import count_parameters
from causalpima.inference.graphs.scores import (
    GraphPosterior,
    Score,
    parent_sets,
    parents_of,
    shares_given,
    table_family_scores,
)

__all__ = [
    "MOST_FITTED",
    "EnvironmentGraphs",
    "HiddenSamples",
    "InterventionKind",
    "environment_bic",
    "environment_posterior",
    "factorised",
    "fit_environments",
]


InterventionKind = Literal["do", "soft"]

_TOLERANCE = 1e-6
_MOST_STEPS = 500


class HiddenSamples(NamedTuple):
    """Samples of environments whose nodes are hidden.

    Attributes:
        log_likelihood: log p(x_n | c) up to a constant per sample, `[n, C]`.
        codes: Environment of each sample, `[n]`; 0 is without intervention.
        outcomes: Outcomes per node.
    """

    log_likelihood: np.ndarray
    codes: np.ndarray
    outcomes: tuple[int, ...]

    @property
    def sizes(self) -> np.ndarray:
        """Samples of every environment, `[1 + E]`."""
        return np.bincount(self.codes)


def environment_bic(samples: HiddenSamples, dag: np.ndarray, targets: np.ndarray, kind: InterventionKind) -> float:
    """Maximum log-likelihood less 1/2 log n for every free number, n being the samples that its table is made of.

    Args:
        samples: The samples.
        dag: `[L, L]`, row = cause, column = effect.
        targets: Node of every environment but the first, `[E]`.
        kind: What an intervention does.
    """
    value, _ = fit_environments(samples, dag, targets, kind)
    upon = np.concatenate([[-1], targets])
    for node in range(len(dag)):
        shared, own = _n_free(samples.outcomes, dag, node), _n_free(samples.outcomes, _cut(dag, node, kind), node)
        value -= 0.5 * shared * log(samples.sizes[upon != node].sum())
        value -= 0.5 * own * sum(log(size) for size in samples.sizes[upon == node])
    return value


def fit_environments(
    samples: HiddenSamples, dag: np.ndarray, targets: np.ndarray, kind: InterventionKind
) -> tuple[float, np.ndarray]:
    """Maximum of log L, and p(c | e) there, `[1 + E, C_1, ..., C_L]`; each step of EM raises log L."""
    highest = samples.log_likelihood.max(1, keepdims=True)
    weight = np.exp(samples.log_likelihood - highest)
    parts = [weight[samples.codes == code] for code in range(len(targets) + 1)]
    joint = np.full((len(parts), weight.shape[1]), 1 / weight.shape[1])
    before = -np.inf
    for _ in range(_MOST_STEPS):
        evidence = [part @ share for part, share in zip(parts, joint, strict=True)]
        now = float(sum(np.log(each).sum() for each in evidence))
        if now - before <= _TOLERANCE:
            break
        before = now
        counts = np.stack([s * ((1 / e) @ w) for w, s, e in zip(parts, joint, evidence, strict=True)])
        joint = factorised(counts.reshape(-1, *samples.outcomes), dag, targets, kind).reshape(joint.shape)
    return now + float(highest.sum()), joint.reshape(-1, *samples.outcomes)


def factorised(counts: np.ndarray, dag: np.ndarray, targets: np.ndarray, kind: InterventionKind) -> np.ndarray:
    r"""p(c | e) of the highest likelihood for counts that are seen, `[1 + E, C_1, ..., C_L]`.

    Every factor is the share of its counts over the environments that leave its node alone; that of a target, the share
    in its environment. Uniform where a configuration of the parents never occurs in these.

    Args:
        counts: m_e, `[1 + E, C_1, ..., C_L]`; the first is without intervention.
        dag: `[L, L]`, row = cause, column = effect.
        targets: Node of every environment but the first, `[E]`.
        kind: What an intervention does.
    """
    joint = np.ones_like(counts)
    upon = np.concatenate([[-1], targets])
    for node in range(len(dag)):
        joint[upon != node] *= shares_given(counts[upon != node].sum(0), len(dag), node, parents_of(dag, node))
        for e in np.flatnonzero(upon == node):
            joint[e] *= shares_given(counts[e], len(dag), node, parents_of(_cut(dag, node, kind), node))
    return joint


def _cut(dag: np.ndarray, node: int, kind: InterventionKind) -> np.ndarray:
    """The graph under an intervention upon the node."""
    if kind == "soft":
        return dag
    without = dag.copy()
    without[:, node] = 0
    return without


def _n_free(outcomes: Sequence[int], dag: np.ndarray, node: int) -> int:
    """Free numbers of the table of one node."""
    alone = np.zeros_like(dag)
    alone[:, node] = dag[:, node]
    return count_parameters(alone, outcomes) - sum(size - 1 for k, size in enumerate(outcomes) if k != node)


# The posterior over graphs from environments in which one node each was intervened upon.
#
# Every node has one table for all environments that leave it alone, and one of its own in each that is upon it. With
# $m_e$ the counts of environment e, and T(l) the environments upon node l, the score of a node is
#
# $$s\Bigl(\ell \mid pa; \sum_{e \notin T(\ell)} m_e\Bigr) + \sum_{e \in T(\ell)} s(\ell \mid pa_e; m_e),$$
#
# $pa_e = pa$ for soft interventions, under which the node goes on to depend on its causes, and no parents for do-type
# ones (Tian and Pearl 2001, UAI; Eaton and Murphy 2007, AISTATS). s is BIC or BDeu (`family_scores`).
#
# Graphs and targets that no such data tell apart are those whose graphs with a further node per environment, a cause of
# its target, have the same skeleton and the same v-structures (Yang et al. 2018, ICML; with unknown targets: Jaber et
# al.
# 2020, NeurIPS). An edge into or out of a target is thereby directed; others as far as they follow from it.


_NOTABLE_NATS = 30.0
_TIE = 1e-6
MOST_FITTED = 200
"""Pairs of a graph and a map of targets that are fitted to hidden nodes: the best by counts, and their equals."""


class EnvironmentGraphs(NamedTuple):
    """What environments tell of graph and targets.

    Attributes:
        posterior: Over graphs, summed over targets; its classes are interventional ones.
        target_probability: p(node is the target), of every environment with an intervention, `[E, L]`.
        graph: The best graph with its targets, bool `[L, L]`.
        targets: Its targets, `[E]`.
        gap: How far the class of the best is ahead of the next, in nats of total weight; None where it is the only one.
    """

    posterior: GraphPosterior
    target_probability: np.ndarray
    graph: np.ndarray
    targets: np.ndarray
    gap: float | None


class _Pairs(NamedTuple):
    """Graphs with target maps: positions, weights (sum 1), and the log of the sum before that."""

    graph: np.ndarray
    map: np.ndarray
    weight: np.ndarray
    log_evidence: float


def environment_posterior(
    counts: np.ndarray,
    maps: np.ndarray,
    knowledge: GraphKnowledge,
    kind: InterventionKind = "soft",
    score: Score | None = None,
    hidden: HiddenSamples | None = None,
) -> EnvironmentGraphs:
    """Score every graph over up to five nodes with every map of targets, under a uniform prior on both.

    Counts of cells that are hidden are less sure than they look. With `hidden`, the pairs of graph and targets that
    weigh something by counts, the best 200 and their equals, are scored anew by BIC on the likelihood of the mixture.

    Args:
        counts: Of every environment, `[1 + E, C_1, ..., C_L]`; the first is without intervention. Nodes have their
            names: clusters without a meaning have no graph.
        maps: The targets that are possible, `[M, E]` (`target_maps`).
        knowledge: Names of the nodes, and what is known of their graph.
        kind: What an intervention does.
        score: BIC by default; the only one of hidden nodes.
        hidden: The samples behind the counts, where their cells are not seen.

    Raises:
        ValueError: More than five nodes, an environment without samples, or another score than BIC of hidden nodes.
    """
    if hidden is not None and (score or Score()).name != "bic":
        raise ValueError("score: expected BIC where nodes are hidden, got bdeu; leave it out")
    dags = all_dags(counts.ndim - 1)
    dags = dags[knowledge.allows(dags)]
    pairs = _weigh(_Families(counts, knowledge, kind, score), dags, maps)
    if hidden is not None:
        pairs = _fitted(pairs, hidden, dags, maps, kind)
    n_samples = round(float(counts.sum()))
    return _summed(pairs, dags, maps, knowledge.nodes, Evidence(score or Score(), n_samples, n_samples))


def _summed(
    pairs: _Pairs, dags: np.ndarray, maps: np.ndarray, nodes: tuple[str, ...], evidence: Evidence
) -> EnvironmentGraphs:
    """Graphs summed over targets, targets over graphs, and both over classes."""
    chosen, targets = dags[pairs.graph], maps[pairs.map]
    number = class_codes(_augmented(chosen, targets))
    probability, graphs = np.bincount(number, pairs.weight), unions(chosen, number).astype(bool)
    by_graph = np.bincount(pairs.graph, pairs.weight, len(dags))
    kept = np.flatnonzero(by_graph)[np.argsort(-by_graph[by_graph > 0], kind="stable")]
    best = int(pairs.weight.argmax())
    posterior = GraphPosterior(
        nodes=nodes,
        edge_probability=mean_graph(by_graph, dags),
        compelled_probability=mean_graph(probability, compelled(graphs)),
        best=graphs[number[best]].astype(np.int64),
        classes=credible_classes(graphs, probability),
        dags=dags[kept],
        weights=by_graph[kept],
        log_marginal_likelihood=pairs.log_evidence - float(np.log(len(dags) * len(maps))),
        score=evidence.score,
        method="enumeration",
        n_samples=evidence.n_samples,
        n_independent=evidence.n_independent,
        diagnostics={"n_graphs": len(dags), "n_targets": len(maps), "n_weighed": len(pairs.weight)},
    )
    of_targets = _of_targets(pairs, maps, len(nodes))
    return EnvironmentGraphs(posterior, of_targets, chosen[best] > 0, targets[best], _gap(probability))


class _Families:
    """Scores of every node with every set of parents, for every set of environments upon it; made when asked for."""

    def __init__(
        self, counts: np.ndarray, knowledge: GraphKnowledge, kind: InterventionKind, score: Score | None
    ) -> None:
        self._counts, self._knowledge, self._score = counts, knowledge, score
        own = [table_family_scores(table, score) for table in counts[1:]]
        self._own = [np.broadcast_to(each[:, :1], each.shape) if kind == "do" else each for each in own]
        self._pooled: dict[tuple[bool, ...], np.ndarray] = {}

    def of(self, node: int, upon: np.ndarray) -> np.ndarray:
        """`[2^L]`; `upon` is bool `[E]`."""
        key = tuple(upon.tolist())
        if key not in self._pooled:
            left_alone = self._counts[np.array([True, *(not each for each in key)])].sum(0)
            self._pooled[key] = table_family_scores(left_alone, self._score, self._knowledge)
        score = self._pooled[key][node]
        # Where parents are not allowed, the pooled score says so, and no -inf of a node itself is added twice.
        own = [np.where(score > -np.inf, self._own[e][node], 0.0) for e in np.flatnonzero(upon)]
        total: np.ndarray = score + np.sum(own, axis=0)
        return total


def _weigh(families: _Families, dags: np.ndarray, maps: np.ndarray) -> _Pairs:
    """All pairs of a graph and a map that weigh something beside the best."""
    scores = list(_scores(families, dags, maps))
    log_evidence = float(logsumexp([logsumexp(each) for each in scores]))
    least = max(each.max() for each in scores) - _NOTABLE_NATS
    notable = [np.flatnonzero(each >= least) for each in scores]
    graph, of_map = np.concatenate(notable), np.repeat(np.arange(len(maps)), [len(each) for each in notable])
    weight = np.exp(np.concatenate([s[rows] for s, rows in zip(scores, notable, strict=True)]) - log_evidence)
    return _Pairs(graph, of_map, weight / weight.sum(), log_evidence)


def _fitted(pairs: _Pairs, hidden: HiddenSamples, dags: np.ndarray, maps: np.ndarray, kind: InterventionKind) -> _Pairs:
    """The best pairs, weighed by the likelihood of the mixture; equivalent ones share one fit.

    Some 200: those that tie with the last one are kept, since a class without some of its graphs would look directed.
    """
    ordered = np.sort(pairs.weight)[::-1]
    kept = np.flatnonzero(pairs.weight >= ordered[:MOST_FITTED][-1] * (1 - _TIE))
    graph, of_map = pairs.graph[kept], pairs.map[kept]
    codes = class_codes(_augmented(dags[graph], maps[of_map]))
    _, first, number = np.unique(codes, return_index=True, return_inverse=True)
    fits = [environment_bic(hidden, dags[graph[k]], maps[of_map[k]], kind) for k in first]
    scores = np.array(fits)[number.reshape(-1)]
    log_evidence = float(logsumexp(scores))
    return _Pairs(graph, of_map, np.exp(scores - log_evidence), log_evidence)


def _scores(families: _Families, dags: np.ndarray, maps: np.ndarray) -> Iterator[np.ndarray]:
    """Score of every graph, `[G]`, map by map."""
    nodes, parents = np.arange(dags.shape[-1]), parent_sets(dags)
    for targets in maps:
        yield np.sum([families.of(int(node), targets == node)[parents[:, node]] for node in nodes], axis=0)


def _augmented(dags: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Graphs with a node per environment, a cause of its target, `[K, L + E, L + E]`."""
    (size, n_nodes, _), n_environments = dags.shape, targets.shape[1]
    graph = np.zeros((size, n_nodes + n_environments, n_nodes + n_environments), dtype=np.int8)
    graph[:, :n_nodes, :n_nodes] = dags
    for number in range(n_environments):
        graph[np.arange(size), n_nodes + number, targets[:, number]] = 1
    return graph


def _of_targets(pairs: _Pairs, maps: np.ndarray, n_nodes: int) -> np.ndarray:
    by_map = np.bincount(pairs.map, pairs.weight, len(maps))
    found: np.ndarray = (by_map[:, None, None] * (maps[:, :, None] == np.arange(n_nodes))).sum(0)
    return found


def _gap(probability: np.ndarray) -> float | None:
    ordered = np.sort(probability)
    return float(np.log(ordered[-1] / ordered[-2])) if len(ordered) > 1 and ordered[-2] > 0 else None
