"""One epoch of pretraining or of joint training, and evaluation on held-out samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor

from inference.clusters.occupancy import occupied
from inference.data.tensors import TensorData
from inference.objectives.enumerated import CollapsedELBO, Evaluation
from inference.objectives.terms import ELBOTerms
from inference.training.clustering import cell_counts, update_mixture
from inference.training.config import FitConfig
from inference.training.divergence import check_finite
from inference.training.modality_dropout import hide_modalities
from inference.training.pretraining import pretraining_terms
from inference.training.schedules import geometric, linear, warmup
from inference.training.state import TrainingState
from models.batch import Batch
from models.causal_pima import CausalPIMA
from models.decoders.base import Decoder

__all__ = [
    "Tally",
    "effective_cells",
    "evaluate",
    "pretraining_epoch",
    "pretraining_step",
    "pretraining_weight",
    "set_schedules",
    "training_epoch",
    "training_step",
    "update_steps",
]

StepDone = Callable[[], None]


@dataclass
class Tally:
    """Running sums of the named terms over samples."""

    n_samples: int = 0
    sums: dict[str, float] = field(default_factory=dict)

    def add(self, terms: ELBOTerms, n_samples: int) -> None:
        """Add a batch."""
        self.add_sums(terms.sums(), n_samples)

    def add_sums(self, sums: Mapping[str, float], n_samples: int) -> None:
        """Add what was summed already."""
        for name, value in sums.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        self.n_samples += n_samples

    def means(self) -> dict[str, float]:
        """Terms per sample."""
        return {name: value / self.n_samples for name, value in self.sums.items()}

    def objective(self) -> float:
        """The bound per sample: the sum of all terms."""
        return sum(self.means().values())


def pretraining_step(state: TrainingState, batch: Batch, prior_weight: float) -> ELBOTerms:
    """One gradient step of pretraining; returns the terms before it."""
    model = state.pretraining_model
    terms = pretraining_terms(model, state.guide, batch)
    prior = terms.latent + terms.latent_entropy
    _step(state, -sum(terms.reconstruction.values(), prior_weight * prior).mean())
    _observe(model, terms, batch)
    return terms


def pretraining_epoch(state: TrainingState, data: TensorData, config: FitConfig, step_done: StepDone) -> dict[str, Any]:
    """One epoch without clusters; returns its record."""
    weight = pretraining_weight(state.epoch, config)
    tally = Tally()
    state.modules.train()
    for batch in data.batches(config.training.batch_size, shuffle=True):
        shown = hide_modalities(batch, config.training.modality_dropout)
        tally.add(pretraining_step(state, shown, weight), len(batch))
        step_done()
    return {"phase": "pretraining", "objective": tally.objective(), "terms": tally.means(), "kl_weight": weight}


def pretraining_weight(epoch: int, config: FitConfig) -> float:
    """Weight of the prior term of pretraining."""
    return config.kl_weight * warmup(epoch, config.pretraining.kl_warmup) if config.pretraining.kind == "vae" else 0.0


def training_epoch(
    state: TrainingState, elbo: CollapsedELBO, data: TensorData, config: FitConfig, step_done: StepDone
) -> dict[str, Any]:
    """One epoch of joint training: gradient steps, alternating with closed-form mixture updates; returns its record.

    While a prior without cells is in force there are neither updates nor cells to be counted.
    """
    schedule, prior = set_schedules(state, config), state.model.prior_in_force
    n_steps = -(-data.n_samples // config.training.batch_size)
    updates = update_steps(n_steps, config.mixture.updates_per_epoch) if prior is None else set()
    tally, reseeded = Tally(), 0
    state.modules.train()
    for step, batch in enumerate(data.batches(config.training.batch_size, shuffle=True), start=1):
        state.model.graph.draw_noise(schedule["node_noise"])
        shown = hide_modalities(batch, config.training.modality_dropout)
        tally.add(training_step(state, elbo, shown), len(batch))
        if step in updates:
            reseeded += len(update_mixture(state, data, config))
        step_done()
    if prior is not None:
        prior.end_epoch()
    return {
        "phase": "training",
        "objective": tally.objective(),
        "terms": tally.means(),
        "reseeded": reseeded,
        **schedule,
        **({} if prior is not None else _of_cells(state, data, config)),
    }


def _of_cells(state: TrainingState, data: TensorData, config: FitConfig) -> dict[str, float]:
    """What the end of an epoch says of graph and cells; the graph is told that it ended."""
    return {**state.model.graph.end_epoch(), **effective_cells(cell_counts(state, data, config))}


def training_step(state: TrainingState, elbo: CollapsedELBO, batch: Batch) -> ELBOTerms:
    """One gradient step of joint training on the bound and the declared log-priors; returns the terms before it."""
    evaluation, kl_weight = elbo.evaluate(state.model, state.guide, batch), state.model.kl_weight
    _step(state, -(kl_weight * evaluation.elbo + state.model.log_prior()) / batch.n_samples)
    state.model.graph.project()
    state.model.mixture.project()
    terms = _named(evaluation).times(kl_weight)
    _observe(state.model, terms, batch)
    return terms


def _named(evaluation: Evaluation) -> ELBOTerms:
    assert evaluation.terms is not None, "our programs keep the rule of the direct contraction, which names its terms"
    return evaluation.terms


def set_schedules(state: TrainingState, config: FitConfig) -> dict[str, float]:
    """Set the graph's temperature and the weight β of an epoch; returns both, and the scale of noise on node scores."""
    epoch, n_epochs, graph = state.epoch - config.pretraining_epochs, config.training.epochs, config.graph
    temperature = geometric(graph.temperature_start, graph.temperature_end, epoch, n_epochs)
    state.model.graph.set_temperature(temperature)
    state.model.kl_weight = config.kl_weight * warmup(epoch, config.training.kl_warmup)
    noise = linear(graph.noise_start, graph.noise_end, epoch, n_epochs)
    return {"kl_weight": state.model.kl_weight, "temperature": temperature, "node_noise": noise}


def update_steps(n_steps: int, n_updates: int) -> set[int]:
    """Steps after which the mixture is updated: evenly spread, the last one at the end of the epoch."""
    return {round(n_steps * (i + 1) / n_updates) for i in range(n_updates)} - {0}


def _step(state: TrainingState, loss: Tensor) -> None:
    check_finite("objective", -loss.detach())
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    state.optimizer.step()


def _observe(model: CausalPIMA, terms: ELBOTerms, batch: Batch) -> None:
    for name, decoder in model.decoders.items():
        log_likelihood = terms.reconstruction[name].detach().sum() / model.weights[name]
        cast(Decoder, decoder).observe(log_likelihood, batch.n_elements(name))


def effective_cells(count: Tensor) -> dict[str, float]:
    """How many cells the samples are spread over: exponential of the entropy, and occupied cells.

    Args:
        count: Samples per cell, `[C]`.
    """
    share = count / count.sum()
    entropy = -torch.special.xlogy(share, share).sum()
    return {"effective_components": float(entropy.exp()), "occupied": int(occupied(count.detach().cpu().numpy()).sum())}


@torch.no_grad()
def evaluate(state: TrainingState, elbo: CollapsedELBO | None, data: TensorData) -> Tally:
    """Named terms on samples that are not trained on; without noise. `elbo=None` evaluates the pretraining bound."""
    tally = Tally()
    state.modules.eval()
    for batch in data.batches(1024):
        if elbo is None:
            terms = pretraining_terms(state.pretraining_model, state.guide, batch)
        else:
            terms = _named(elbo.evaluate(state.model, state.guide, batch)).times(state.model.kl_weight)
        tally.add(terms, len(batch))
    return tally
