r"""Counts of the joint outcomes behind overlapping clusters, for graphs that are too many for EM in each.

p(N) without a graph has the highest likelihood at $\hat p$, found by EM with the components held, so that errors of the
clusters are modelled and leave no dependence behind. $n \hat p$ are not counts of n samples, though: where clusters
overlap, $\hat p$ scatters more than shares of n samples do. With $M = \frac1n \sum_n u_n u_n^\top$,
$u_{nc} = r_{nc} / \sqrt{\hat p_c}$, the eigenvalues of M but the one of $\sqrt{\hat p}$ (which is 1) are the shares of
the information on p(N) that is left in X, by direction. A log-likelihood ratio of d parameters that are superfluous is
$d/2$ in expectation from counts, and from $n \hat p$ the mean of 1/eigenvalue times that. Hence the counts here are
$n \rho \hat p$ with ρ the harmonic mean of the eigenvalues: 1 where every sample shows its cell, and they are the plain
counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from inference.graphs.mixture_likelihood import expected_counts, fit_dags

__all__ = ["Deconvolved", "deconvolve", "information_share"]

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
