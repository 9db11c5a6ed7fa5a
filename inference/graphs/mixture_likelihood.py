r"""Likelihood of graphs over nodes that are seen only through a mixture with fixed components.

With l_nc = p(x_n | cell c) fixed, a graph G says $p_G(c) = \prod_\ell \theta_\ell(c_\ell \mid c_{pa(\ell)})$, and

$$\log L(G) = \max_\theta \sum_n \log \sum_c p_G(c)\, l_{nc}$$

by EM: $r_{nc} \propto p_G(c)\, l_{nc}$, then θ from the expected counts $\sum_n r_{nc}$ of each family. Labels that are
taken for certain would not do: errors of a few per cent leave dependence between nodes that are independent given
others, and with a few thousand samples that buys an edge (SCIENCE.md, section 3).

Samples may weigh less than one: of a group of k replicates each counts 1/k, so that a group counts as one sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from inference.graphs.tables import shares_given

__all__ = ["DagFit", "count_parameters", "expected_counts", "fit_dags", "log_likelihood_ratio", "score_dag"]

_GRAPHS_AT_ONCE = 256


class DagFit(NamedTuple):
    """Graphs G, fitted.

    Attributes:
        log_likelihood: log L at the maximum (with a prior: of the posterior density), in nats, `[G]`.
        joint: p_G over the cells at the maximum, `[G, C]`, row-major over the nodes' outcomes.
    """

    log_likelihood: np.ndarray
    joint: np.ndarray


class _Samples(NamedTuple):
    """Likelihoods relative to the highest of each sample `[n, C]`, and what each sample weighs `[n]`."""

    likelihood: np.ndarray
    weight: np.ndarray


class _Until(NamedTuple):
    """When EM ends: after so many steps, or one that adds less, in nats."""

    n_steps: int
    tolerance: float


def log_likelihood_ratio(responsibilities: np.ndarray, joint: np.ndarray | None = None) -> np.ndarray:
    """log p(x_n | c) up to a constant per sample, from q(N|X) and the p(N) that it was computed with: log r - log p.

    Args:
        responsibilities: `[n, C]`.
        joint: p(N), `[C]`; None: the mean of the responsibilities, where EM for p(N) without a graph comes to rest.

    Returns:
        `[n, C]`; -inf where a responsibility, or p(N), is zero.

    Raises:
        ValueError: A sample without a positive entry, or shapes that disagree.
    """
    prior = responsibilities.mean(0, dtype=np.float64) if joint is None else np.asarray(joint).reshape(-1)
    if responsibilities.ndim != 2 or prior.shape != responsibilities.shape[1:]:
        raise ValueError(f"joint: expected {responsibilities.shape[1:]} entries, got {prior.shape}; one per cell")
    r = np.where(prior > 0, responsibilities, 0).astype(np.float64)
    if not np.isfinite(r).all() or (r.sum(1) <= 0).any():
        raise ValueError("responsibilities: expected a positive finite entry in every row, got none; the fit failed")
    with np.errstate(divide="ignore"):
        return np.log(r) - np.log(np.where(prior > 0, prior, 1.0))


def count_parameters(dag: np.ndarray, outcomes: Sequence[int]) -> int:
    """Free numbers of the conditional tables: the sum over nodes of (C - 1) times the outcomes of its parents."""
    return sum((size - 1) * prod(np.asarray(outcomes)[dag[:, node] > 0].tolist()) for node, size in enumerate(outcomes))


def score_dag(
    log_likelihood: np.ndarray, outcomes: Sequence[int], dag: np.ndarray, n_steps: int = 500, tolerance: float = 1e-6
) -> tuple[float, int]:
    """Maximum log-likelihood of one graph and the number of its parameters; see `fit_dags`."""
    found = fit_dags(log_likelihood, outcomes, dag[None], n_steps, tolerance)
    return float(found.log_likelihood[0]), count_parameters(dag, outcomes)


def fit_dags(
    log_likelihood: np.ndarray,
    outcomes: Sequence[int],
    dags: np.ndarray,
    n_steps: int = 500,
    tolerance: float = 1e-6,
    weights: np.ndarray | None = None,
    equivalent_sample_size: float = 0.0,
) -> DagFit:
    """EM for every graph, from the independent uniform p(N); each step raises log L.

    With an equivalent sample size a, each table has the Dirichlet prior of BDeu, and its posterior density over the
    logarithms of odds is what rises: the tables are the posterior means given the expected counts, and equivalent
    graphs have one maximum (MacKay 1998, Machine Learning 33, 77: in this basis, not over the probabilities).

    Args:
        log_likelihood: log p(x_n | c), `[n, C]`, up to a constant per sample.
        outcomes: Number of outcomes of each node.
        dags: `[G, L, L]`, row = cause, column = effect.
        n_steps: Most steps.
        tolerance: A graph is done when a step adds less, in nats.
        weights: How much each sample counts, `[n]`; by default 1.
        equivalent_sample_size: Of the prior; 0: none, the maximum of the likelihood.

    Raises:
        ValueError: The cells do not fit the nodes, or a sample belongs to no cell.
    """
    _check(log_likelihood, prod(outcomes))
    samples, constant = _samples(log_likelihood, weights)
    prior, until = equivalent_sample_size / prod(outcomes), _Until(n_steps, tolerance)
    fits = [_em(samples, tuple(outcomes), part, prior, until) for part in _parts(dags)]
    values, joints = (np.concatenate(parts) for parts in zip(*fits, strict=True))
    return DagFit(values + constant, joints)


def expected_counts(
    log_likelihood: np.ndarray, joint: np.ndarray, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """log L of given p(N), and how many samples each cell then has in expectation.

    Args:
        log_likelihood: `[n, C]`, up to a constant per sample.
        joint: p(N) of each graph, `[G, C]`.
        weights: How much each sample counts, `[n]`; by default 1.

    Returns:
        log L in nats, `[G]`; sums of the responsibilities over the samples, `[G, C]`.
    """
    samples, constant = _samples(log_likelihood, weights)
    parts = [_expected_counts(samples, part) for part in _parts(joint)]
    values, counts = (np.concatenate(found) for found in zip(*parts, strict=True))
    return values + constant, counts


def _samples(log_likelihood: np.ndarray, weights: np.ndarray | None) -> tuple[_Samples, float]:
    """The samples, and what their highest log-likelihoods come to."""
    highest = log_likelihood.max(1, keepdims=True)
    weight = np.ones(len(log_likelihood)) if weights is None else weights
    return _Samples(np.exp(log_likelihood - highest), weight), float((highest[:, 0] * weight).sum())


def _parts(arrays: np.ndarray) -> Iterator[np.ndarray]:
    yield from (arrays[start : start + _GRAPHS_AT_ONCE] for start in range(0, len(arrays), _GRAPHS_AT_ONCE))


def _em(
    samples: _Samples, outcomes: tuple[int, ...], dags: np.ndarray, prior: float, until: _Until
) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihoods `[G]` and p(N) `[G, C]`; graphs that are done rest while others go on."""
    joint = np.full((len(dags), prod(outcomes)), 1 / prod(outcomes))
    value, reached, active = np.zeros(len(dags)), np.full(len(dags), -np.inf), np.arange(len(dags))
    for _ in range(until.n_steps):
        value[active], counts = _expected_counts(samples, joint[active])
        now = value[active] + _log_prior(joint[active], prior)
        gain, reached[active] = now - reached[active], now
        active, counts = active[gain > until.tolerance], counts[gain > until.tolerance]
        if not len(active):
            break
        joint[active] = _factorised(counts + prior, outcomes, dags[active])
    return value, joint


def _expected_counts(samples: _Samples, joint: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log L `[G]`, and the sum of the responsibilities over the samples `[G, C]`: no `[G, n, C]` is made."""
    evidence = joint @ samples.likelihood.T
    return (np.log(evidence) * samples.weight).sum(1), joint * ((samples.weight / evidence) @ samples.likelihood)


def _log_prior(joint: np.ndarray, prior: float) -> np.ndarray:
    """Log-density of the tables over their log-odds, up to a constant, `[G]`.

    It is the sum over all families of pseudo-counts times log θ, and the pseudo-counts of every family are sums of
    those of the cells, a / C each: the sum over cells of a / C times log p_G.
    """
    return prior * np.log(joint).sum(1) if prior > 0 else np.zeros(len(joint))


def _factorised(counts: np.ndarray, outcomes: tuple[int, ...], dags: np.ndarray) -> np.ndarray:
    """The p(N) of each graph that is nearest to the counts: each family in its own shares, `[G, C]`."""
    table = counts.reshape(-1, *outcomes)
    joint = np.ones_like(table)
    for node in range(len(outcomes)):
        for parents in np.unique(dags[:, :, node], axis=0):
            rows = (dags[:, :, node] == parents).all(1)
            joint[rows] *= shares_given(table[rows], len(outcomes), node, np.flatnonzero(parents))
    return joint.reshape(counts.shape)


def _check(log_likelihood: np.ndarray, n_cells: int) -> None:
    shape = log_likelihood.shape
    if len(shape) != 2 or shape[1] != n_cells:
        raise ValueError(f"log_likelihood: expected shape [sample, {n_cells}], got {shape}; one column per cell")
    if not np.isfinite(log_likelihood.max(1)).all():
        raise ValueError("log_likelihood: expected a finite entry in every row, got none; leave such samples out")
