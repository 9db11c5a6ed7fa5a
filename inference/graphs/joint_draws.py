r"""How sure p(N) of one graph is, nodes being seen through a mixture with fixed components only.

The Bayesian bootstrap (Rubin 1981; of likelihoods, Newton and Raftery 1994): every independent unit gets a weight from
Dirichlet(1, ..., 1), and the likelihood of the mixture is maximised under these weights,

$$\max_\theta \sum_n w_n \log \sum_c p_G(c; \theta)\, l_{nc}.$$

With samples whose cell is certain, tables have the Dirichlet posterior of their counts (prior weight 0); where cells
overlap, draws vary by what that hides, which counts that are taken for certain would not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inference.graphs.group_weights import group_weights
from inference.graphs.tables import parents_of, shares_given

__all__ = ["bootstrap_weights", "mixture_shares"]

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
    parts = [_em(likelihood, tuple(outcomes), dag, weights[at : at + size]) for at in range(0, len(weights), size)]
    return np.concatenate(parts)


def _em(likelihood: np.ndarray, outcomes: tuple[int, ...], dag: np.ndarray, weights: np.ndarray) -> np.ndarray:
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
