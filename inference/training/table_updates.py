r"""A hard graph during training: tables in closed form, and structural EM where the graph is searched.

Structural EM (Friedman 1998, UAI): with the expected counts $n_c = \sum_n q(c \mid x_n)$ as if they were counts of
nodes that are seen, the graph of the highest expected BIC is found exactly, then its tables. The likelihood of the
mixture with the penalty of BIC never falls over an update of this kind where n_c comes from the exact p(N | x).

Expected counts carry the uncertainty of the clusters into dependence between nodes, as labels with errors do
(SCIENCE.md, section 3). The graph that a fit ends with is therefore scored by the likelihood of the mixture, by EM for
every class of graphs (`inference.graphs.mixture_likelihood`), where that takes no more than a moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from inference.graphs.exact_search import score_classes
from inference.graphs.family_scores import table_family_scores
from inference.graphs.knowledge import GraphKnowledge
from inference.graphs.mixture_likelihood import log_likelihood_ratio
from inference.graphs.optimum import best_dag, score_of_dag
from inference.graphs.search_cost import is_quick
from inference.training.graph_choice import known_of_graph
from models.graph import TableGraph

if TYPE_CHECKING:
    from inference.training.config import FitConfig

__all__ = ["search_by_counts", "search_by_mixture", "settle_tables", "update_tables"]

_BETTER = 1e-6


def update_tables(graph: TableGraph, cell_count: Tensor, config: FitConfig) -> None:
    """Tables for the given mass of every cell; first the graph itself where it is searched.

    Args:
        graph: Changed in place.
        cell_count: n_c, `[C]`.
        config: The configuration.
    """
    if config.model.graph == "exact":
        count = cell_count.double().reshape(graph.outcomes).cpu().numpy()
        found = search_by_counts(count, graph.edges.cpu().numpy(), known_of_graph(config))
        graph.set_edges(torch.from_numpy(found).to(graph.edges.device))
    graph.fit(cell_count, config.graph.pseudo_count)


def search_by_counts(counts: np.ndarray, present: np.ndarray, known: GraphKnowledge) -> np.ndarray:
    """The graph with the highest BIC on (expected) counts, by exact search; the present one where none is better.

    Equivalent graphs are equally good, so that a graph stays until another class is better.

    Args:
        counts: `[C_1, ..., C_L]`.
        present: The present graph, bool `[L, L]`, row = cause, column = effect.
        known: What every graph must agree with.

    Returns:
        Bool `[L, L]`.
    """
    scores = table_family_scores(counts, knowledge=known)
    best, score = best_dag(scores)
    return best.astype(bool) if score > score_of_dag(scores, present) + _BETTER else present


def settle_tables(
    graph: TableGraph, responsibilities: Tensor, config: FitConfig, weights: np.ndarray | None = None
) -> None:
    """The graph that a fit ends with, by the likelihood of the mixture, with its tables at their maximum.

    Nothing happens unless the graph is searched, and quickly: two to four nodes (`is_quick`). Else it stays as expected
    counts have it.

    Args:
        graph: Changed in place.
        responsibilities: q(N|X) under the present p(N), `[n, C]`.
        config: The configuration.
        weights: How much each sample counts, `[n]` (`group_weights`); None: 1.
    """
    if config.model.graph != "exact":
        return
    joint = graph.log_joint().double().exp().reshape(-1).cpu().numpy()
    likelihood = log_likelihood_ratio(responsibilities.double().cpu().numpy(), joint / joint.sum())
    if len(graph.outcomes) > 1 and is_quick(likelihood, graph.outcomes):
        present = graph.edges.cpu().numpy()
        edges, counts = search_by_mixture(likelihood, graph.outcomes, present, known_of_graph(config), weights)
        graph.set_edges(torch.from_numpy(edges).to(graph.edges.device))
        graph.fit(torch.from_numpy(counts).to(graph.edges.device), config.graph.pseudo_count)


def search_by_mixture(
    log_likelihood: np.ndarray,
    outcomes: tuple[int, ...],
    present: np.ndarray,
    known: GraphKnowledge,
    weights: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The graph of the best class by BIC on the likelihood of the mixture, among those that agree with what is known.

    Args:
        log_likelihood: log p(x_n | c) up to a constant per sample, `[n, C]`.
        outcomes: Outcomes per node, of at most five nodes.
        present: Taken where it is of the best class: its directions are as good as any.
        known: What the graph must agree with.
        weights: How much each sample counts, `[n]`; None: 1.

    Returns:
        The graph, bool `[L, L]`, and n p(N) at its maximum, `[C]`.
    """
    found = score_classes(log_likelihood, outcomes, weights=weights, knowledge=known)
    members = found.members[found.class_of_member == 0].astype(bool)
    is_present = (members == present).all((1, 2))
    n_independent = len(log_likelihood) if weights is None else float(weights.sum())
    return members[int(is_present.argmax())], n_independent * found.joint[0].reshape(-1)
