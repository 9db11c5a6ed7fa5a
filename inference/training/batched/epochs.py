"""One epoch of pretraining or of joint training of a group, and evaluation on held-out samples.

What `inference.training.epochs` does for one start, with the same records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from inference.data.tensors import TensorData
from inference.training.batched.bounds import joint_bound, pretraining_bound
from inference.training.batched.group import Group
from inference.training.batched.mixtures import cell_counts, update_mixtures
from inference.training.epochs import Tally, effective_cells, pretraining_weight, set_schedules, update_steps
from inference.training.modality_dropout import hide_modalities
from models.batch import Batch

__all__ = ["Records", "evaluate", "pretraining_epoch", "pretraining_step", "training_epoch", "training_step"]

Records = dict[int, dict[str, Any]]
"""Of every start that did not diverge, what the epoch is remembered by."""


def pretraining_step(group: Group, batch: Batch, prior_weight: float, noise: Tensor) -> None:
    """One gradient step of pretraining of every start.

    Args:
        group: The starts.
        batch: The samples, the same for all.
        prior_weight: Weight of the prior term.
        noise: That of the draws of z, `[K, batch, J]`.
    """
    terms = group.stack.evaluate(pretraining_bound(batch), noise)
    prior = terms["latent"] + terms["latent_entropy"]
    group.step(-sum(_reconstruction(terms).values(), prior_weight * prior).mean(-1), "objective")
    _observe(group, batch, group.add(terms, group.tallies))


def training_step(group: Group, batch: Batch, noise: Tensor) -> None:
    """One gradient step of joint training of every start; arguments as for `pretraining_step`."""
    terms, log_prior = group.stack.evaluate(joint_bound(group.config.objective, batch), noise)
    bound = sum(terms.values(), torch.zeros_like(noise[..., 0]))
    group.step(-bound.mean(-1) - log_prior / batch.n_samples, "objective")
    group.stack.project()
    _observe(group, batch, group.add(terms, group.tallies))


def _reconstruction(terms: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value for name, value in terms.items() if name.startswith("reconstruction/")}


def _observe(group: Group, batch: Batch, sums: Mapping[str, Tensor]) -> None:
    for name, weight in group.states[0].model.weights.items():
        group.stack.observe(name, sums[f"reconstruction/{name}"] / weight, batch.n_elements(name))


def pretraining_epoch(group: Group, data: TensorData, step_done: Callable[[], None]) -> Records:
    """One epoch without clusters; torch's global generator gives the order of the samples."""
    config = group.config
    weight = pretraining_weight(group.states[0].epoch, config)
    group.stack.train()
    for batch in data.batches(config.training.batch_size, shuffle=True):
        shown = hide_modalities(batch, config.training.modality_dropout)
        pretraining_step(group, shown, weight, group.noise.normal(len(batch), config.model.latent_dim))
        step_done()
    return {k: {"phase": "pretraining", **_means(group.tallies[k]), "kl_weight": weight} for k in group.alive}


def training_epoch(group: Group, data: TensorData, step_done: Callable[[], None]) -> Records:
    """One epoch of joint training; torch's global generator gives the order of the samples."""
    config = group.config
    for state in group.states:
        schedule = set_schedules(state, config)
    n_steps = -(-data.n_samples // config.training.batch_size)
    updates = update_steps(n_steps, config.mixture.updates_per_epoch)
    group.stack.train()
    for step, batch in enumerate(data.batches(config.training.batch_size, shuffle=True), start=1):
        group.stack.set_node_noise(schedule["node_noise"] * group.noise.normal(len(config.outcomes)))
        shown = hide_modalities(batch, config.training.modality_dropout)
        training_step(group, shown, group.noise.normal(len(batch), config.model.latent_dim))
        if step in updates:
            update_mixtures(group, data)
        step_done()
    return _training_records(group, data, schedule)


def _training_records(group: Group, data: TensorData, schedule: Mapping[str, float]) -> Records:
    return {
        k: {
            "phase": "training",
            **_means(group.tallies[k]),
            "reseeded": group.reseeded[k],
            **schedule,
            **effective_cells(count),
        }
        for k, count in cell_counts(group, data).items()
    }


def _means(tally: Tally) -> dict[str, Any]:
    return {"objective": tally.objective(), "terms": tally.means()}


@torch.no_grad()
def evaluate(group: Group, data: TensorData, joint: bool) -> Records:
    """Terms on held-out samples, without noise on the graph, of the bound of joint training or of pretraining."""
    group.stack.train(False)
    tallies, config = [Tally() for _ in group.states], group.config
    for batch in data.batches(1024):
        noise = group.noise.normal(len(batch), config.model.latent_dim)
        if joint:
            terms = group.stack.evaluate(joint_bound(config.objective, batch), noise)[0]
        else:
            terms = group.stack.evaluate(pretraining_bound(batch), noise)
        group.add(terms, tallies)
    group.check_finite("held-out objective", torch.tensor([tally.objective() for tally in tallies]))
    return {k: {"validation_objective": tallies[k].objective(), "terms": tallies[k].means()} for k in group.alive}
