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

from causalpima.inference.graphs.scores import parents_of, shares_given

__all__ = [
    "DagFit",
    "Deconvolved",
    "bootstrap_weights",
    "count_parameters",
    "deconvolve",
    "expected_counts",
    "fit_dags",
    "group_weights",
    "information_share",
    "log_likelihood_ratio",
    "mixture_shares",
    "score_dag",
    "with_observed",
]


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
    fits = [_em_of_graphs(samples, tuple(outcomes), part, prior, until) for part in _parts(dags)]
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


def _em_of_graphs(
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


# Counts of the joint outcomes behind overlapping clusters, for graphs that are too many for EM in each.
#
# p(N) without a graph has the highest likelihood at $\hat p$, found by EM with the components held, so that errors of
# the
# clusters are modelled and leave no dependence behind. $n \hat p$ are not counts of n samples, though: where clusters
# overlap, $\hat p$ scatters more than shares of n samples do. With $M = \frac1n \sum_n u_n u_n^\top$,
# $u_{nc} = r_{nc} / \sqrt{\hat p_c}$, the eigenvalues of M but the one of $\sqrt{\hat p}$ (which is 1) are the shares
# of
# the information on p(N) that is left in X, by direction. A log-likelihood ratio of d parameters that are superfluous
# is
# $d/2$ in expectation from counts, and from $n \hat p$ the mean of 1/eigenvalue times that. Hence the counts here are
# $n \rho \hat p$ with ρ the harmonic mean of the eigenvalues: 1 where every sample shows its cell, and they are the
# plain
# counts.


_LEAST_SHARE = 1e-6


class Deconvolved(NamedTuple):
    """What overlapping clusters tell of p(N).

    Attributes:
        counts: n ρ p, `[C_1, ..., C_L]`.
        information_share: ρ, in (0, 1].
    """

    counts: np.ndarray
    information_share: float


def deconvolve(
    log_likelihood: np.ndarray,
    outcomes: Sequence[int],
    weights: np.ndarray | None = None,
    equivalent_sample_size: float = 0.0,
) -> Deconvolved:
    """Counts by EM for p(N) without a graph.

    Args:
        log_likelihood: log p(x_n | c), `[n, C]`, up to a constant per sample.
        outcomes: Number of outcomes of each node.
        weights: How much each sample counts, `[n]`; their sum is n. By default 1.
        equivalent_sample_size: Of a Dirichlet prior on p(N), as BDeu has it; 0: none.

    Raises:
        ValueError: The cells do not fit the nodes, or a sample belongs to no cell.
    """
    complete = np.triu(np.ones((len(outcomes), len(outcomes)), dtype=np.int8), 1)[None]
    joint = fit_dags(
        log_likelihood, outcomes, complete, weights=weights, equivalent_sample_size=equivalent_sample_size
    ).joint
    counts = expected_counts(log_likelihood, joint, weights)[1][0]
    share = information_share(log_likelihood, counts / counts.sum(), weights)
    return Deconvolved((share * counts).reshape(tuple(outcomes)), share)


def information_share(log_likelihood: np.ndarray, joint: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Share of the information on p(N) that X keeps: the harmonic mean over all directions of change.

    Cells with less than one sample in expectation are left out: little is known of them from counts either.

    Args:
        log_likelihood: `[n, C]`, up to a constant per sample.
        joint: p(N), `[C]`.
        weights: How much each sample counts, `[n]`; by default 1.
    """
    weight = np.ones(len(log_likelihood)) if weights is None else weights
    kept = joint * weight.sum() >= 1
    likelihood = np.exp(log_likelihood - log_likelihood.max(1, keepdims=True))[:, kept]
    evidence = likelihood @ joint[kept]
    seen = evidence > 0
    scaled = likelihood[seen] * np.sqrt(joint[kept]) / evidence[seen, None]
    kernel = (scaled * weight[seen, None]).T @ scaled / weight[seen].sum()
    eigenvalues = np.sort(np.linalg.eigvalsh(kernel))[:-1]
    return float(1 / np.mean(1 / np.clip(eigenvalues, _LEAST_SHARE, 1.0))) if len(eigenvalues) else 1.0


# What a sample of a group of replicates counts in a score of graphs.


def group_weights(groups: np.ndarray | None) -> np.ndarray | None:
    """One over the size of the sample's group, `[n]`, so that a group counts as one independent sample.

    Replicates of one specimen share its node outcomes. Counted one by one, k of them multiply every log-likelihood
    ratio by k while BIC's penalty stays, and dependence that is chance among the specimens becomes an edge. Where the
    members of a group do differ, this is cautious: edges need more groups.

    Args:
        groups: Group of each sample, `[n]`; None: there are none.

    Returns:
        Weights that sum to the number of groups; None where there are no groups.
    """
    if groups is None:
        return None
    _, members, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    weights: np.ndarray = 1.0 / sizes[members.reshape(-1)]
    return weights


# How sure p(N) of one graph is, nodes being seen through a mixture with fixed components only.
#
# The Bayesian bootstrap (Rubin 1981; of likelihoods, Newton and Raftery 1994): every independent unit gets a weight
# from
# Dirichlet(1, ..., 1), and the likelihood of the mixture is maximised under these weights,
#
# $$\max_\theta \sum_n w_n \log \sum_c p_G(c; \theta)\, l_{nc}.$$
#
# With samples whose cell is certain, tables have the Dirichlet posterior of their counts (prior weight 0); where cells
# overlap, draws vary by what that hides, which counts that are taken for certain would not.


_MOST_STEPS = 500
_TOLERANCE = 1e-7
_ELEMENTS_AT_ONCE = 2**22


def bootstrap_weights(
    n_samples: int, groups: np.ndarray | None, n_draws: int, generator: np.random.Generator
) -> np.ndarray:
    """Weights of the samples in every draw, `[draw, n]`; each row sums to n.

    Samples of a group go together, and a group weighs as much as another, whatever its size (`group_weights`).

    Args:
        n_samples: n.
        groups: Codes of the groups of the samples, `[n]`; None: every sample is independent.
        n_draws: Number of draws.
        generator: Where they come from.
    """
    units = np.arange(n_samples) if groups is None else np.unique(groups, return_inverse=True)[1].reshape(-1)
    share = group_weights(units)
    assert share is not None
    raw = generator.standard_exponential((n_draws, int(units.max()) + 1))[:, units] * share
    weights: np.ndarray = raw * (n_samples / raw.sum(axis=1, keepdims=True))
    return weights


def mixture_shares(
    log_likelihood: np.ndarray, outcomes: Sequence[int], dag: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Expected shares of the cells at the maximum of the weighted likelihood of a graph, `[draw, C_1, ..., C_L]`.

    The tables of the graph at its maximum are those of these shares (`shares_given`), and cells without a sample
    have no share: what is not known is seen. By EM from the independent uniform p(N).

    Args:
        log_likelihood: log p(x_n | c), `[n, C]`, up to a constant per sample.
        outcomes: Number of outcomes of each node.
        dag: `[L, L]`, row = cause, column = effect.
        weights: `[draw, n]`.
    """
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    size = max(1, _ELEMENTS_AT_ONCE // max(weights.shape[1], 1))
    parts = [
        _em_of_joint(likelihood, tuple(outcomes), dag, weights[at : at + size]) for at in range(0, len(weights), size)
    ]
    return np.concatenate(parts)


def _em_of_joint(likelihood: np.ndarray, outcomes: tuple[int, ...], dag: np.ndarray, weights: np.ndarray) -> np.ndarray:
    n_draws, n_cells = len(weights), likelihood.shape[1]
    joint = np.full((n_draws, n_cells), 1 / n_cells)
    shares, active = joint.copy(), np.arange(n_draws)
    for _ in range(_MOST_STEPS):
        now = _expected(likelihood, joint[active], weights[active])
        moved = np.abs(now - shares[active]).max(axis=1)
        shares[active] = now
        active = active[moved > _TOLERANCE]
        if not len(active):
            break
        joint[active] = _projected(shares[active], outcomes, dag)
    return shares.reshape(n_draws, *outcomes)


def _expected(likelihood: np.ndarray, joint: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Σ_n w_n r_nc / Σ_n w_n, `[draw, C]`."""
    evidence = joint @ likelihood.T
    shares: np.ndarray = joint * ((weights / evidence) @ likelihood) / weights.sum(axis=1, keepdims=True)
    return shares


def _projected(shares: np.ndarray, outcomes: tuple[int, ...], dag: np.ndarray) -> np.ndarray:
    """p_G with the tables of the shares; where parents never occur, uniform, from where EM can go on."""
    table = shares.reshape(-1, *outcomes)
    joint = np.ones_like(table)
    for node in range(len(outcomes)):
        joint = joint * shares_given(table, len(outcomes), node, parents_of(dag, node))
    return joint.reshape(shares.shape)


# Measured factors as further nodes beside those that are seen through a mixture.
#
# With l_nc = p(x_n | c) and a factor that changes nothing about x given c, the cells (c, f) of both have
#
# $$l_{n,(c,f)} = l_{nc}\; 1[f = f_n]$$
#
# where the level f_n of the sample is known, and $l_{nc}$ for every f where it is not: a node of which some samples
# have
# no outcome is summed out there.


def with_observed(log_likelihood: np.ndarray, codes: np.ndarray, n_levels: Sequence[int]) -> np.ndarray:
    """log p(x_n, levels of n | cell) over the joint cells, row-major; the observed nodes come last.

    Args:
        log_likelihood: log p(x_n | c), `[n, C]`, up to a constant per sample.
        codes: Level of every observed factor, `[n, F]`; negative where it is not known.
        n_levels: Levels of each, F.

    Returns:
        `[n, C · ∏ levels]`, -inf in cells of other levels.

    Raises:
        ValueError: Codes that are no levels, or of other samples.
    """
    if codes.shape != (len(log_likelihood), len(n_levels)) or (codes >= np.asarray(n_levels)).any():
        raise ValueError(
            f"codes: expected [{len(log_likelihood)}, {len(n_levels)}] below {list(n_levels)}, got shape {codes.shape} "
            f"up to {codes.max(initial=-1)}; one row per sample"
        )
    joint = log_likelihood
    for code, size in zip(codes.T, n_levels, strict=True):
        allowed = (code[:, None] < 0) | (code[:, None] == np.arange(size))
        joint = (joint[:, :, None] + np.where(allowed, 0.0, -np.inf)[:, None, :]).reshape(len(joint), -1)
    return joint
