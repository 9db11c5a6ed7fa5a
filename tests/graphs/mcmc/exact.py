"""BDeu by hand, and the sum over all values of nodes that are not seen."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.special import gammaln, logsumexp

from causalpima.inference.graphs.dags import all_dags


def bdeu(counts: np.ndarray, dag: np.ndarray, s: float) -> np.ndarray:
    """log marginal likelihood of sequences with these counts, `[...]` from `[..., C_1, ..., C_L]`."""
    n_nodes, total = len(dag), 0.0
    first = counts.ndim - n_nodes
    for node in range(n_nodes):
        others = tuple(first + k for k in range(n_nodes) if k != node and not dag[k, node])
        family = counts.sum(axis=others, keepdims=True)
        size = counts.shape[first + node]
        rows = np.prod(family.shape[first:]) / size
        a = s / (size * rows)
        within = gammaln(family + a) - gammaln(a)
        outer = gammaln(a * size) - gammaln(family.sum(axis=first + node, keepdims=True) + a * size)
        axes = tuple(range(first, counts.ndim))
        total = total + within.sum(axis=axes) + outer.sum(axis=axes)
    return np.asarray(total)


def edge_probability(scores: np.ndarray, dags: np.ndarray) -> np.ndarray:
    """`[L, L]` under a uniform prior over the graphs."""
    return np.einsum("g,gij->ij", np.exp(scores - logsumexp(scores)), dags)


def observed(counts: np.ndarray, s: float) -> np.ndarray:
    """BDeu of all graphs, `[G]`."""
    return np.array([bdeu(counts, dag, s) for dag in all_dags(counts.ndim)])


def hidden(log_likelihood: np.ndarray, counts: np.ndarray, s: float) -> np.ndarray:
    """log sum over all cells of a few samples `[n, C]`, next to counts of samples whose cell is known, `[G]`."""
    cells = np.array(list(product(range(counts.size), repeat=len(log_likelihood))))
    weight = log_likelihood[np.arange(len(log_likelihood)), cells].sum(1)
    added = np.stack([(cells == cell).sum(1) for cell in range(counts.size)], axis=1)
    totals = counts + added.reshape(-1, *counts.shape)
    return np.array([logsumexp(weight + bdeu(totals, dag, s)) for dag in all_dags(counts.ndim)])
