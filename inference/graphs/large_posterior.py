"""The posterior over graphs of more nodes than can be listed: sums over all graphs, and graphs that are drawn."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from inference.graphs.cpdag import class_codes, compelled
from inference.graphs.enumerated_posterior import EdgeLogOdds, Evidence, credible_classes, mean_graph
from inference.graphs.essential import mpdag
from inference.graphs.exact_draws import draw_exactly
from inference.graphs.exact_sums import graph_sums, log_partition
from inference.graphs.knowledge import GraphKnowledge
from inference.graphs.optimum import best_dag
from inference.graphs.partition_mcmc import Chains, partition_chains
from inference.graphs.posterior import GraphPosterior, Method
from inference.graphs.score_table import dag_scores, with_edge_prior
from inference.results.arviz_compat import convergence

__all__ = ["MOST_SUMMED", "Sampling", "exact_posterior", "large_posterior", "sampled_posterior"]

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
