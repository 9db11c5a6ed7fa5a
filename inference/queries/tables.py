"""p(N) of every graph with its uncertainty, as shares of the cells that the tables are read off."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from inference.graphs.group_weights import group_weights
from inference.graphs.joint_draws import bootstrap_weights, mixture_shares
from inference.labelling.environment_joint import interventional_joint
from inference.queries.graph_set import GraphSet
from inference.queries.source import QuerySource

__all__ = ["CellShares", "cell_shares"]

_DRAWS = 200
_MOST_FITS = 1000
_LEAST_DRAWS = 40


class CellShares(NamedTuple):
    """Expected shares of the cells; the tables of a graph are those of its shares.

    Attributes:
        best: Of the fit, per equivalence class, `[K, C_1, ..., C_L]`.
        draws: Of the Bayesian bootstrap, `[K, D, C_1, ..., C_L]`.
        n_samples: Number of samples behind every table; of environments, those of the observational one, at least.
    """

    best: np.ndarray
    draws: np.ndarray
    n_samples: int


def cell_shares(source: QuerySource, graphs: GraphSet, seed: int) -> CellShares:
    """Fit p(N) of every equivalence class to the samples, and to samples that are weighted at random.

    By the likelihood of the mixture; where interventions told the graph, from the expected counts of every environment,
    each table from the environments that left its node alone. A group counts as one sample, as it does for the graph.

    Args:
        source: The fit.
        graphs: Its graphs.
        seed: Of the weights.
    """
    uses_environments = graphs.basis == "interventions"
    rows = source.is_training if uses_environments else source.rows
    groups = None if source.groups is None else source.groups[rows]
    n_classes = int(graphs.class_of[-1]) + 1
    n_draws = min(_DRAWS, max(_LEAST_DRAWS, _MOST_FITS // n_classes))
    weights = bootstrap_weights(int(rows.sum()), groups, n_draws, np.random.default_rng(seed))
    share = group_weights(groups)
    weights = np.concatenate([np.ones((1, weights.shape[1])) if share is None else share[None], weights])
    fit = _of_environments if uses_environments else _of_mixture
    firsts = [graphs.dags[int((graphs.class_of == number).argmax())] for number in range(n_classes)]
    found = fit(source, np.stack(firsts), weights)
    return CellShares(found[:, 0], found[:, 1:], int(source.rows.sum()))


def _of_mixture(source: QuerySource, dags: np.ndarray, weights: np.ndarray) -> np.ndarray:
    log_likelihood = source.log_likelihood()
    return np.stack([mixture_shares(log_likelihood, source.sizes, dag, weights) for dag in dags])


def _of_environments(source: QuerySource, dags: np.ndarray, weights: np.ndarray) -> np.ndarray:
    rows, environment = source.is_training, source.environment
    assert environment is not None
    targets = source.summary["labelling"]["details"]["targets"]
    indicator = (environment[rows][:, None] == np.arange(1 + len(targets))).astype(np.float64)
    counts = np.einsum("dn,ne,nc->dec", weights, indicator, source.responsibilities[rows], optimize=True)
    nodes = np.array([source.nodes.index(node) for node in targets.values()])
    labelling = np.arange(counts.shape[2])
    return np.stack(
        [[interventional_joint(part, labelling, source.sizes, dag, nodes) for part in counts] for dag in dags]
    )
