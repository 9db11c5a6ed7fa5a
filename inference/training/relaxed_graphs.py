"""The end of a graph that a penalty keeps from cycles: its schedule on the mass of the cells, then a hard graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from inference.training.divergence import check_finite
from models.graph import NodeGraph, RelaxedGraph

if TYPE_CHECKING:
    from inference.training.config import FitConfig

__all__ = ["MOST_STAGES", "graph_loss", "settle_relaxed"]

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
        optimizer = torch.optim.Adam(graph.parameters(), lr=config.graph.learning_rate)
        for _ in range(config.graph.start_steps):
            optimizer.zero_grad(set_to_none=True)
            loss = graph_loss(graph, weight, n_samples)
            check_finite("objective of the graph", -loss.detach())
            loss.backward()
            optimizer.step()
            graph.project()
        graph.end_epoch()
