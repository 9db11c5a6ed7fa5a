"""Labellings under which the nodes depend on each other least, for nodes that are declared independent."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from scipy.special import xlogy
from scipy.stats import chi2

from inference.labelling.labelling_search import as_tables

__all__ = ["TIE_WINDOW", "chance_limit", "total_correlation"]

TIE_WINDOW = 8.0
"""Labellings this close to the least dependence, in nats over all samples, are told apart by other means."""

_CHANCE = 0.999


def chance_limit(outcomes: Sequence[int]) -> float:
    """Total correlation that independent nodes exceed once in a thousand samples of any size, in nats (Wilks)."""
    n_free = prod(outcomes) - 1 - sum(size - 1 for size in outcomes)
    return float(chi2.ppf(_CHANCE, n_free) / 2) if n_free else 0.0


def total_correlation(mass: np.ndarray, labellings: np.ndarray, outcomes: Sequence[int]) -> np.ndarray:
    r"""How far the nodes are from independence, times the number of samples.

    $$n \Big( \sum_\ell H(N_\ell) - H(N) \Big) \ge 0$$

    in nats, the logarithm of the likelihood ratio of the complete graph to the empty one.

    Args:
        mass: Samples per cluster, `[C]`.
        labellings: `[K, C]`.
        outcomes: Outcomes per node.

    Returns:
        `[K]`.
    """
    tables = as_tables(mass, labellings, outcomes)
    nodes = range(len(outcomes))
    marginals = [tables.sum(tuple(1 + k for k in nodes if k != node)) for node in nodes]
    own = np.sum([xlogy(table, table).sum(1) for table in marginals], axis=0)
    total = mass.sum()
    found: np.ndarray = xlogy(mass, mass).sum() - own + (len(outcomes) - 1) * xlogy(total, total)
    return found.clip(min=0.0)
