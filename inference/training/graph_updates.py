r"""A hard graph during training: tables in closed form, and structural EM where the graph is searched.

Structural EM (Friedman 1998, UAI): with the expected counts $n_c = \sum_n q(c \mid x_n)$ as if they were counts of
nodes that are seen, the graph of the highest expected BIC is found exactly, then its tables. The likelihood of the
mixture with the penalty of BIC never falls over an update of this kind where n_c comes from the exact p(N | x).

Expected counts carry the uncertainty of the clusters into dependence between nodes, as labels with errors do
(SCIENCE.md, section 3). The graph that a fit ends with is therefore scored by the likelihood of the mixture, by EM for
every class of graphs (`inference.graphs.hidden`), where that takes no more than a moment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from pyro.infer import TraceEnum_ELBO
from torch import Tensor

from causalpima.guides.graph import GraphGuide
from causalpima.inference.graphs.dags import GraphKnowledge
from causalpima.inference.graphs.enumeration import is_quick, score_classes
from causalpima.inference.graphs.hidden import log_likelihood_ratio
from causalpima.inference.graphs.scores import best_dag, score_of_dag, table_family_scores
from causalpima.inference.training.components import known_of_graph
from causalpima.inference.training.state import Adam, check_finite
from causalpima.models.graph.base import NodeGraph, conditional_table
from causalpima.models.graph.relaxed import RelaxedGraph
from causalpima.models.graph.table import TableGraph
from causalpima.models.program import CausalPIMA

if TYPE_CHECKING:
    from causalpima.inference.training.config import FitConfig

__all__ = [
    "MOST_STAGES",
    "fit_graph_guide",
    "graph_bound",
    "graph_loss",
    "search_by_counts",
    "search_by_mixture",
    "settle_relaxed",
    "settle_tables",
    "take_over_environments",
    "update_tables",
]


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


# The end of a graph that a penalty keeps from cycles: its schedule on the mass of the cells, then a hard graph.


MOST_STAGES = 100
"""Stages of a schedule at most, as in the programs of NOTEARS."""


def graph_loss(graph: NodeGraph, weight: Tensor, n_samples: float) -> Tensor:
    """-(Σ_c w_c log p(c) + declared log-prior / n), a scalar.

    Args:
        graph: p(N).
        weight: w_c, share of the samples in every cell, `[C]`.
        n_samples: n.
    """
    return -(weight * graph.log_joint().reshape(-1)).sum() - graph.log_prior() / n_samples


def settle_relaxed(graph: RelaxedGraph, cell_count: Tensor, config: FitConfig) -> None:
    """Run what is left of the schedule on the mass of the cells, then make the graph hard.

    Args:
        graph: Changed in place; a hard one gets its tables alone.
        cell_count: n_c, `[C]`.
        config: `graph.start_steps` gradient steps per stage, of `graph.learning_rate`.

    Raises:
        DivergedError: Something is not finite.
    """
    check_finite("mass of the cells", cell_count)
    graph.count_samples(float(cell_count.sum()))
    if not graph.is_settled:
        _solve(graph, cell_count, config)
    graph.settle(cell_count, config.graph.pseudo_count)


@torch.enable_grad()
def _solve(graph: RelaxedGraph, cell_count: Tensor, config: FitConfig) -> None:
    """Adam for every problem of the schedule, until it has none, or had as many as there are at most."""
    weight, n_samples = (cell_count / cell_count.sum()).to(graph.edge), float(cell_count.sum())
    for _ in range(MOST_STAGES):
        if graph.is_done():
            return
        optimizer = Adam(graph.parameters(), lr=config.graph.learning_rate)
        for _ in range(config.graph.start_steps):
            optimizer.zero_grad(set_to_none=True)
            loss = graph_loss(graph, weight, n_samples)
            check_finite("objective of the graph", -loss.detach())
            loss.backward()
            optimizer.step()
            graph.project()
        graph.end_epoch()


# q over graphs during training: steps on its own part of the bound, given the expected counts of the cells.
#
# With $n_c = \sum_n q(c \mid x_n)$, what the bound says of the graph is
#
# $$\mathbb{E}_{q(\xi, S, \theta)}\Bigl[\sum_c n_c \log p(c \mid S, \theta)\Bigr] -
#   \mathrm{KL}(q(\xi, S, \theta)\,\|\,p(\xi, S, \theta)),$$
#
# the divergence once for the data set. For the best q(θ | S) the tables integrate out: each family gives its BDeu score
# of the counts. Parents are enumerated by Pyro, scores are drawn and reparametrised; networks, mixture and q over
# graphs
# are moved in turns, each up the same bound.


_PARTICLES = 256


@torch.enable_grad()
def fit_graph_guide(guide: GraphGuide, cell_count: Tensor, learning_rate: float, n_steps: int) -> None:
    """Move q(ξ, S) by gradient steps and q(θ | S) in closed form, then write the means into the graph.

    Args:
        guide: Changed, and its graph.
        cell_count: n_c, `[C]`.
        learning_rate: Of Adam, which begins anew at every call.
        n_steps: Number of steps.
    """
    guide.set_counts(cell_count)
    optimizer = Adam(guide.parameters(), lr=learning_rate)
    for step in range(n_steps):
        optimizer.param_groups[0]["lr"] = learning_rate * (1 - step / n_steps)
        optimizer.zero_grad(set_to_none=True)
        loss = -graph_bound(guide, _PARTICLES)
        check_finite("objective of the graph", -loss.detach())
        loss.backward()
        optimizer.step()
    guide.write_into_graph()


@torch.enable_grad()
def graph_bound(guide: GraphGuide, n_draws: int) -> Tensor:
    """The bound above in nats, a differentiable scalar, averaged over draws of the scores.

    Args:
        guide: q, with its counts.
        n_draws: Number of draws, all at once.
    """
    elbo = TraceEnum_ELBO(num_particles=n_draws, vectorize_particles=True, max_plate_nesting=0)
    model = partial(guide.graph.sample_parents, guide.log_evidence())
    return -torch.as_tensor(elbo.differentiable_loss(model, guide.sample_parents))


# What environments tell of their targets, written into a model after training.


def take_over_environments(
    model: CausalPIMA, labelling: Mapping[str, Any], names: Sequence[str], nodes: Sequence[str]
) -> None:
    """Give the target of every environment its own table; all other factors of p(N | e) are those of the graph.

    Under do-type interventions it is the marginal of the target, under soft ones its table given the parents that it
    has in the graph of the model.

    Args:
        model: With its final graph.
        labelling: What environments told (`Labelling.to_plain`); those that it does not know follow p(N).
        names: Names of the environments in the order of their codes, the first without intervention.
        nodes: Names of the nodes by which the labelling calls them.
    """
    told, targets = labelling.get("environment_joint", {}), labelling["details"].get("targets", {})
    known = [name if name in told and name in targets else None for name in names]
    if not any(known):
        model.environments.clear()
        return
    like = model.graph.log_joint()
    positions = [None if name is None else list(nodes).index(targets[name]) for name in known]
    is_soft = labelling["details"].get("kind") == "soft"

    def own(name: str, node: int) -> Tensor:
        parents = model.graph.adjacency()[:, node]
        joint = torch.tensor(told[name], dtype=torch.float64, device=like.device)
        return conditional_table(joint, node, parents if is_soft else torch.zeros_like(parents))

    tables = [
        None if name is None or node is None else own(name, node) for name, node in zip(known, positions, strict=True)
    ]
    model.environments.replace(positions, tables, like.detach())
