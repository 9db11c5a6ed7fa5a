"""Closed-form updates of the mixtures of a group, and p(N) after them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import cast

import torch
from torch import Tensor

from guides.guide import Guide
from inference.data.tensors import TensorData
from inference.training.batched.group import Group
from inference.training.clustering import PASS_SIZE, batch_moments, move_components
from inference.training.divergence import check_finite
from inference.training.mixture_updates import MixtureSums
from inference.training.state import TrainingState
from models.batch import Batch
from models.causal_pima import CausalPIMA

__all__ = ["cell_counts", "fit_graphs", "mixture_sums", "update_mixtures"]


@torch.no_grad()
def mixture_sums(group: Group, data: TensorData) -> list[MixtureSums]:
    """Of every start over all samples, from one pass over the data; see `clustering.batch_moments`."""
    joint = reduce(MixtureSums.plus, _passes(group, data))
    sizes = [state.model.mixture.n_components for state in group.states]
    return [MixtureSums(*(part[k, :size] for part in joint)) for k, size in enumerate(sizes)]


def _passes(group: Group, data: TensorData) -> Iterator[MixtureSums]:
    objective, latent_dim = group.config.objective, group.config.model.latent_dim
    for batch in data.batches(PASS_SIZE):

        def program(model: CausalPIMA, guide: Guide, noise: Tensor, batch: Batch = batch) -> MixtureSums:
            return cast(MixtureSums, batch_moments(objective, model, guide, batch, noise))

        yield group.stack.evaluate(program, group.noise.normal(len(batch), latent_dim))


def cell_counts(group: Group, data: TensorData) -> dict[int, Tensor]:
    """Expected number of samples per cell of every start that did not diverge, `[C]`."""
    sums, counts = mixture_sums(group, data), dict[int, Tensor]()

    def count(k: int, state: TrainingState) -> None:
        check_finite("mass of the clusters", sums[k].count)
        counts[k] = state.model.mixture.sum_to_cells(sums[k].count)

    group.for_each(count)
    return counts


def update_mixtures(group: Group, data: TensorData) -> None:
    """One update of every mixture, as `clustering.update_mixture` does it for one."""
    sums = mixture_sums(group, data)
    shape = len(group.states), group.states[0].model.graph.n_cells
    cell_count = torch.ones(shape, dtype=torch.float64, device=data.device)

    @torch.no_grad()
    def update(k: int, state: TrainingState) -> None:
        check_finite("mass of the clusters", sums[k].count)
        moved, cell_count[k] = move_components(state.model.mixture, sums[k], group.config)
        group.reseeded[k] += len(moved)

    group.for_each(update)
    fit_graphs(group, cell_count, group.config.graph.extra_steps)


def fit_graphs(group: Group, cell_count: Tensor, n_steps: int) -> None:
    """Gradient steps on p(N) alone, as `clustering.fit_graph` takes them for one start.

    Args:
        group: The starts.
        cell_count: Samples per cell, `[K, C]`.
        n_steps: Number of steps.
    """
    n_samples = cell_count.sum(-1, keepdim=True)
    weight = (cell_count / n_samples).to(group.stack.parameters["model.graph.conditional_logits"])

    def loss(model: CausalPIMA, guide: Guide, weight: Tensor, n_samples: Tensor) -> Tensor:
        return -(weight * model.graph.log_joint().reshape(-1)).sum() - model.graph.log_prior() / n_samples

    for _ in range(n_steps):
        losses = group.stack.evaluate(loss, weight, n_samples.squeeze(-1).to(weight))
        group.step(losses, "objective of the graph")
        group.stack.project()
