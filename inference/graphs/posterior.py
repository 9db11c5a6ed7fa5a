"""The posterior over graphs from local scores, by the way of summing that fits the number of nodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from causalpima.inference.graphs.dags import MOST_NODES, GraphKnowledge, all_dags, class_codes, compelled, mpdag
from causalpima.inference.graphs.enumeration import (
    EdgeLogOdds,
    Evidence,
    ScoredClasses,
    credible_classes,
    enumerated_posterior,
    mean_graph,
    weigh_dags,
)
from causalpima.inference.graphs.exact_sums import draw_exactly, graph_sums, log_partition
from causalpima.inference.graphs.hidden import count_parameters, deconvolve, expected_counts, fit_dags
from causalpima.inference.graphs.partition_mcmc import Chains, partition_chains
from causalpima.inference.graphs.scores import (
    GraphPosterior,
    Method,
    Score,
    bdeu_terms,
    best_dag,
    dag_scores,
    table_family_scores,
    with_edge_prior,
)
from causalpima.inference.store.arviz import convergence

__all__ = [
    "MOST_SCORED_NODES",
    "MOST_SUMMED",
    "NodeSamples",
    "Sampling",
    "classes_posterior",
    "exact_posterior",
    "hidden_scores",
    "large_posterior",
    "mixture_posterior",
    "posterior_of_scores",
    "sampled_posterior",
    "scores_by_class",
]


# The posterior over graphs of more nodes than can be listed: sums over all graphs, and graphs that are drawn.


MOST_SUMMED = 16
"""Up to so many nodes all graphs are summed: 16 take seconds, and each node more three times as long."""


class Sampling(NamedTuple):
    """How graphs are drawn.

    Attributes:
        n_draws: Number of graphs in all.
        n_chains: Number of chains, where there are too many nodes for exact sums.
        seed: Seed of all chance.
    """

    n_draws: int = 4000
    n_chains: int = 4
    seed: int = 0


class _Drawn(NamedTuple):
    """Different graphs among the draws, best score first, how often each came, and the best graph of all."""

    dags: np.ndarray
    weights: np.ndarray
    best: np.ndarray


def large_posterior(
    scores: np.ndarray,
    knowledge: GraphKnowledge,
    evidence: Evidence,
    edge_log_odds: EdgeLogOdds = 0.0,
    sampling: Sampling | None = None,
) -> GraphPosterior:
    """The posterior over the graphs that agree with what is known, by exact sums or by chains.

    Args:
        scores: Of every node with every set of parents, `[L, 2^L]`, in nats; -inf: not allowed.
        knowledge: Names of the nodes, and what is known of their graph; `scores` is -inf where it forbids parents.
        evidence: What the scores rest on.
        edge_log_odds: Log-odds of every edge of a declared prior, or `[L, L]`; 0: all possible graphs alike.
        sampling: How graphs are drawn.

    Raises:
        ValueError: Another shape, more than 20 nodes, or no graph that is allowed.
    """
    way = exact_posterior if len(scores) <= MOST_SUMMED else sampled_posterior
    return way(scores, knowledge, evidence, edge_log_odds, sampling)


def exact_posterior(
    scores: np.ndarray,
    knowledge: GraphKnowledge,
    evidence: Evidence,
    edge_log_odds: EdgeLogOdds = 0.0,
    sampling: Sampling | None = None,
) -> GraphPosterior:
    """Edges and marginal likelihood by sums over all graphs; classes from independent graphs, drawn exactly.

    `diagnostics`: how many graphs were drawn, and how far rounding leaves probabilities that sum to 1 from it.

    Args:
        scores: As for `large_posterior`, as all else.
        knowledge: What is known.
        evidence: What the scores rest on.
        edge_log_odds: Of a declared prior.
        sampling: How graphs are drawn.
    """
    sampling, weighed = sampling or Sampling(), with_edge_prior(scores, edge_log_odds)
    sums = graph_sums(weighed)
    dags = draw_exactly(sums, sampling.n_draws, np.random.default_rng(sampling.seed))
    diagnostics = {"draws": sampling.n_draws, "rounding": sums.rounding}
    prior = with_edge_prior(np.where(scores > -np.inf, 0.0, -np.inf), edge_log_odds)
    total = sums.log_total - log_partition(prior)
    drawn = _different(dags, weighed)
    return _posterior("exact sums", sums.edge_probability, total, drawn, knowledge, evidence, diagnostics)


def sampled_posterior(
    scores: np.ndarray,
    knowledge: GraphKnowledge,
    evidence: Evidence,
    edge_log_odds: EdgeLogOdds = 0.0,
    sampling: Sampling | None = None,
) -> GraphPosterior:
    """Everything from graphs of several Markov chains.

    `diagnostics`: chains, draws of each, and of score and edges the largest R-hat (infinite where chains are stuck at
    different values) and the smallest effective sample size; None where nothing varies.

    Args:
        scores: As for `large_posterior`, as all else.
        knowledge: What is known.
        evidence: What the scores rest on.
        edge_log_odds: Of a declared prior.
        sampling: How graphs are drawn.
    """
    sampling, weighed = sampling or Sampling(), with_edge_prior(scores, edge_log_odds)
    chains = partition_chains(weighed, sampling.n_chains, -(-sampling.n_draws // sampling.n_chains), sampling.seed)
    dags = chains.dags.reshape(-1, *chains.dags.shape[2:])
    drawn = _different(dags, weighed)
    return _posterior("partition mcmc", dags.mean(0), None, drawn, knowledge, evidence, _agreement(chains))


def _different(dags: np.ndarray, scores: np.ndarray) -> _Drawn:
    packed = np.packbits(dags.reshape(len(dags), -1), axis=1)
    _, first, counts = np.unique(packed, axis=0, return_index=True, return_counts=True)
    order = np.argsort(-dag_scores(scores, dags[first]), kind="stable")
    return _Drawn(dags[first][order], counts[order] / len(dags), best_dag(scores)[0])


def _posterior(
    method: Method,
    edges: np.ndarray,
    log_marginal_likelihood: float | None,
    drawn: _Drawn,
    knowledge: GraphKnowledge,
    evidence: Evidence,
    diagnostics: dict[str, Any],
) -> GraphPosterior:
    graphs, probability = _classes(drawn, knowledge)
    return GraphPosterior(
        nodes=knowledge.nodes,
        edge_probability=edges,
        compelled_probability=mean_graph(probability, compelled(graphs)),
        best=mpdag(drawn.best.astype(np.int64), knowledge),
        classes=credible_classes(graphs, probability),
        dags=drawn.dags,
        weights=drawn.weights,
        log_marginal_likelihood=log_marginal_likelihood,
        score=evidence.score,
        method=method,
        n_samples=evidence.n_samples,
        n_independent=evidence.n_independent,
        diagnostics=diagnostics,
    )


def _classes(drawn: _Drawn, knowledge: GraphKnowledge) -> tuple[np.ndarray, np.ndarray]:
    """Equivalence classes among the draws, that of the best graph of them first, and how often each came."""
    codes = class_codes(drawn.dags)
    _, first, number = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    graphs = np.stack([mpdag(drawn.dags[k].astype(np.int64), knowledge) for k in first[order]])
    return graphs, np.bincount(number.reshape(-1), drawn.weights)[order]


def _agreement(chains: Chains) -> dict[str, Any]:
    n_chains, n_draws = chains.log_scores.shape
    followed = np.concatenate([chains.log_scores[:, :, None], chains.dags.reshape(n_chains, n_draws, -1)], axis=2)
    r_hat, bulk, _ = convergence(followed)
    varies = np.isfinite(bulk)
    found = {"r_hat": float(r_hat[varies].max()), "ess": float(bulk[varies].min())} if varies.any() else {}
    return {"chains": n_chains, "draws": n_draws, **{"r_hat": None, "ess": None}, **found}


def posterior_of_scores(
    scores: np.ndarray, knowledge: GraphKnowledge, evidence: Evidence, edge_log_odds: EdgeLogOdds = 0.0
) -> GraphPosterior:
    """The posterior over the graphs that agree with what is known.

    Args:
        scores: Of every node with every set of parents, `[L, 2^L]`, in nats (`family_scores`); -inf: not allowed.
        knowledge: Names of the nodes, and what is known of their graph.
        evidence: What the scores rest on.
        edge_log_odds: Log-odds of every edge of a declared prior, or `[L, L]`; 0: all possible graphs alike.

    Raises:
        ValueError: Another shape, or more than 20 nodes.
    """
    if len(scores) <= MOST_NODES:
        return enumerated_posterior(scores, knowledge, evidence, edge_log_odds)
    return large_posterior(scores, knowledge, evidence, edge_log_odds)


# Scores of graphs over nodes that are seen only through a mixture with fixed components.
#
# BIC is the maximum of the mixture's log-likelihood less d/2 log n. BDeu is the marginal likelihood
# $\int p(\theta) \prod_n \sum_c p_\theta(c)\, l_{nc}\, d\theta$, which has no closed form; Cheeseman and Stutz (1996)
# approximate it at the most probable tables θ with the expected counts m there:
#
# $$\log p(x) \approx \log p(m) - \log p(m \mid \theta) + \log p(x \mid \theta)$$
#
# where p(m) is BDeu's closed form at fractional counts. Where every sample shows its cell, m are the plain counts, the
# last two terms cancel, and it is BDeu itself. Else it lies below the truth (Beal and Ghahramani 2006, Bayesian
# Analysis
# 1, 793).


def hidden_scores(
    log_likelihood: np.ndarray,
    outcomes: Sequence[int],
    dags: np.ndarray,
    score: Score,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Score of every graph, in nats.

    Args:
        log_likelihood: log p(x_n | c), `[n, C]`, up to a constant per sample; of samples of known cell, 0 there and
            -inf elsewhere.
        outcomes: Number of outcomes of each node.
        dags: `[G, L, L]`, row = cause, column = effect.
        score: BIC or BDeu.
        weights: How much each sample counts, `[n]`; their sum is the n of BIC. By default 1.

    Returns:
        `[G]`; a constant per sample in `log_likelihood` is a constant here.

    Raises:
        ValueError: Cells that do not fit the nodes, or BDeu without an equivalent sample size.
    """
    if score.name == "bic":
        n = len(log_likelihood) if weights is None else float(weights.sum())
        fitted = fit_dags(log_likelihood, outcomes, dags, weights=weights).log_likelihood
        penalty: np.ndarray = np.array([count_parameters(dag, outcomes) for dag in dags]) / 2 * np.log(n)
        return np.asarray(fitted - penalty)
    return _cheeseman_stutz(log_likelihood, tuple(outcomes), dags, score.sample_size, weights)


def scores_by_class(
    log_likelihood: np.ndarray,
    outcomes: Sequence[int],
    dags: np.ndarray,
    score: Score,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """`hidden_scores`, where one graph stands for all equivalent ones: they have the same."""
    _, chosen, number = np.unique(class_codes(dags), return_index=True, return_inverse=True)
    found: np.ndarray = hidden_scores(log_likelihood, outcomes, dags[chosen], score, weights)[number.reshape(-1)]
    return found


def _cheeseman_stutz(
    log_likelihood: np.ndarray, outcomes: tuple[int, ...], dags: np.ndarray, size: float, weights: np.ndarray | None
) -> np.ndarray:
    joint = fit_dags(log_likelihood, outcomes, dags, weights=weights, equivalent_sample_size=size).joint
    seen, counts = expected_counts(log_likelihood, joint, weights)
    tables = counts.reshape(-1, *outcomes)
    completed = np.array([_marginal(table, dag, size) for table, dag in zip(tables, dags, strict=True)])
    return np.asarray(completed - xlogy(counts, joint).sum(1) + seen)


def _marginal(counts: np.ndarray, dag: np.ndarray, size: float) -> float:
    """BDeu of one graph from counts `[C_1, ..., C_L]`."""
    return sum(_set_terms(counts, family, size) - _set_terms(counts, parents, size) for family, parents in _sets(dag))


def _sets(dag: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Per node, which nodes are it or its parents, and which are its parents, bool `[L]` each."""
    for node in range(len(dag)):
        parents = dag[:, node] > 0
        yield parents | (np.arange(len(dag)) == node), parents


def _set_terms(counts: np.ndarray, members: np.ndarray, size: float) -> float:
    table = counts.sum(axis=tuple(np.flatnonzero(~members))).reshape(-1)
    return bdeu_terms(table, table.size, size)


# The posterior over graphs whose nodes are seen only through a mixture with fixed components.


MOST_SCORED_NODES = 4
"""Up to so many nodes EM is run for every equivalence class; of more, counts are deconvolved once."""

_WHOLE = 1 - 1e-9


class NodeSamples(NamedTuple):
    """What samples tell of their nodes.

    Attributes:
        nodes: Names of the L nodes.
        outcomes: Number of outcomes of each.
        log_likelihood: log p(x_n | c), `[n, C]`, up to a constant per sample; -inf where a cell is ruled out.
        weights: How much each sample counts, `[n]`; None: 1.
    """

    nodes: tuple[str, ...]
    outcomes: tuple[int, ...]
    log_likelihood: np.ndarray
    weights: np.ndarray | None = None

    @property
    def n_independent(self) -> int:
        """The sum of the weights: samples, or groups of them."""
        return len(self.log_likelihood) if self.weights is None else round(float(self.weights.sum()))

    def evidence(self, score: Score) -> Evidence:
        """What scores of these samples rest on."""
        return Evidence(score, len(self.log_likelihood), self.n_independent)


def mixture_posterior(
    samples: NodeSamples, score: Score, knowledge: GraphKnowledge, edge_log_odds: EdgeLogOdds = 0.0
) -> GraphPosterior:
    """The posterior over graphs; the components of the mixture, and what the clusters mean, are held.

    Up to four nodes, every graph is scored by the likelihood of the mixture (`hidden_scores`). Beyond, by the counts
    behind the clusters (`deconvolution`), whose share of the information stands in the diagnostics.

    Args:
        samples: What is known of the nodes of each sample.
        score: BIC or BDeu.
        knowledge: Which graphs are possible.
        edge_log_odds: Log-odds of every edge of a declared prior, or `[L, L]`; 0: all possible graphs alike.

    Raises:
        ValueError: A sample that belongs to no cell, or more nodes than can be scored.
    """
    if len(samples.nodes) > MOST_SCORED_NODES:
        return _by_counts(samples, score, knowledge, edge_log_odds)
    dags = all_dags(len(samples.nodes))
    dags = dags[knowledge.allows(dags)]
    scores = scores_by_class(samples.log_likelihood, samples.outcomes, dags, score, samples.weights)
    return weigh_dags(dags, scores, knowledge, samples.evidence(score), edge_log_odds)


def classes_posterior(
    found: ScoredClasses, samples: NodeSamples, knowledge: GraphKnowledge, edge_log_odds: EdgeLogOdds = 0.0
) -> GraphPosterior:
    """`mixture_posterior` by BIC, from a search that scored every class already.

    Args:
        found: What `score_classes` found with the same samples and knowledge.
        samples: The samples.
        knowledge: Which graphs are possible.
        edge_log_odds: As for `mixture_posterior`.
    """
    scores, evidence = found.bic[found.class_of_member], samples.evidence(Score())
    return weigh_dags(found.members, scores, knowledge, evidence, edge_log_odds)


def _by_counts(
    samples: NodeSamples, score: Score, knowledge: GraphKnowledge, edge_log_odds: EdgeLogOdds
) -> GraphPosterior:
    size = score.equivalent_sample_size or 0.0
    found = deconvolve(samples.log_likelihood, samples.outcomes, samples.weights, size)
    scores = table_family_scores(found.counts, score, knowledge)
    posterior = posterior_of_scores(scores, knowledge, samples.evidence(score), edge_log_odds)
    return dataclasses.replace(
        posterior,
        log_marginal_likelihood=posterior.log_marginal_likelihood if found.information_share > _WHOLE else None,
        diagnostics={**posterior.diagnostics, "information_share": found.information_share},
    )
