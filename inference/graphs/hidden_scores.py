r"""Scores of graphs over nodes that are seen only through a mixture with fixed components.

BIC is the maximum of the mixture's log-likelihood less d/2 log n. BDeu is the marginal likelihood
$\int p(\theta) \prod_n \sum_c p_\theta(c)\, l_{nc}\, d\theta$, which has no closed form; Cheeseman and Stutz (1996)
approximate it at the most probable tables θ with the expected counts m there:

$$\log p(x) \approx \log p(m) - \log p(m \mid \theta) + \log p(x \mid \theta)$$

where p(m) is BDeu's closed form at fractional counts. Where every sample shows its cell, m are the plain counts, the
last two terms cancel, and it is BDeu itself. Else it lies below the truth (Beal and Ghahramani 2006, Bayesian Analysis
1, 793).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import xlogy

from inference.graphs.cpdag import class_codes
from inference.graphs.family_scores import bdeu_terms
from inference.graphs.mixture_likelihood import count_parameters, expected_counts, fit_dags
from inference.graphs.posterior import Score

__all__ = ["hidden_scores", "scores_by_class"]


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
