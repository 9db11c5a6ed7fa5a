"""The training loop: pretraining, cluster read-out, joint training, and the final read-out."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor

from causalpima.guides.encoders import GaussianParameters
from causalpima.guides.guide import Guide
from causalpima.inference.clusters.clustering import ReadOut, occupied
from causalpima.inference.clusters.labels import Labeller
from causalpima.inference.data.tensors import TensorData
from causalpima.inference.objectives.closed_form import ELBOTerms
from causalpima.inference.objectives.enumerated import CollapsedELBO, Evaluation, make_elbo
from causalpima.inference.objectives.responsibilities import log_likelihood
from causalpima.inference.training.clustering import (
    cell_counts,
    cell_responsibilities,
    harden_graph,
    refit_graph,
    settle_graph,
    start_clusters,
    take_over_graph,
    update_mixture,
)
from causalpima.inference.training.config import FitConfig
from causalpima.inference.training.mixture_updates import fit_cells, report_element_variances
from causalpima.inference.training.state import (
    DivergedError,
    TrainingState,
    check_finite,
    check_weights,
    geometric,
    linear,
    no_singular_matrices,
    warmup,
)
from causalpima.models.batch import Batch
from causalpima.models.decoders.base import Decoder
from causalpima.models.gaussian import LOG_2PI
from causalpima.models.program import CausalPIMA

__all__ = [
    "Tally",
    "Task",
    "decoder_variances",
    "distillation_epoch",
    "distillation_loss",
    "effective_cells",
    "evaluate",
    "finish",
    "hide_modalities",
    "is_finished",
    "next_phase",
    "pretraining_epoch",
    "pretraining_step",
    "pretraining_terms",
    "pretraining_weight",
    "record_epoch",
    "run_epochs",
    "set_schedules",
    "start_distillation",
    "training_epoch",
    "training_step",
    "update_steps",
]


# Pretraining of encoders and decoders without clusters (paper, section 3.3).


def pretraining_terms(model: CausalPIMA, guide: Guide, batch: Batch, noise: Tensor | None = None) -> ELBOTerms:
    r"""Terms of the unit-normal variational autoencoder, `E_q log p(X|z) - KL(q(z|X) ‖ N(0, I))`, per sample.

    The prior term has its closed form: `latent + latent_entropy = -½ Σ_j (μ_j² + σ_j² - 1 - log σ_j²)`; of a mixture,
    whose entropy has none, -log q(z) at the drawn z is in the place of the entropy. With decoders per cell the
    likelihood is averaged over cells, since there are none yet.

    Args:
        model: The model, with decoders on Z.
        guide: The guide.
        batch: The samples.
        noise: That of the draw of z, `[batch, J]`; None: from torch's global generator.
    """
    posterior = guide.encode(batch)
    sample = posterior.draw(noise)
    reconstruction = {name: _mean_over_cells(log_likelihood(model, name, sample, batch)) for name in model.decoders}
    latent_dim = posterior.loc.shape[-1]
    second_moment = posterior.loc.square() + posterior.log_variance.exp()
    latent = -0.5 * (second_moment.sum(-1) + latent_dim * LOG_2PI)
    zero = torch.zeros_like(latent)
    return ELBOTerms(reconstruction, zero, latent, zero, posterior.entropy_at(sample))


def _mean_over_cells(value: Tensor) -> Tensor:
    return value if value.dim() == 1 else value.mean(-1)


# Hiding modalities from the encoders while training, so that each learns to do without the others.


def hide_modalities(batch: Batch, probability: float) -> Batch:
    """The batch with present modalities hidden at random; every sample keeps at least one (docs/missing.md).

    Each present modality of each sample is hidden with `probability`; where that would hide all of them, one of them,
    drawn evenly, is seen. What is hidden is still explained by its decoder: the bound stays one, of a posterior that
    sees less. Draws come from torch's global generator on the CPU; probability 0 draws nothing.

    Args:
        batch: The samples.
        probability: In [0, 1).
    """
    if probability == 0 or len(batch.values) == 1:
        return batch
    present = torch.stack([batch.has(name) for name in batch.values])
    hidden = (torch.rand(present.shape) < probability).to(present.device) & present
    order = torch.rand(present.shape).to(present.device).masked_fill(~present, -1.0)
    kept = torch.zeros_like(present).scatter(0, order.argmax(0, keepdim=True), True)
    none_seen = ~(present & ~hidden).any(0)
    hidden = hidden & ~(kept & none_seen)
    return dataclasses.replace(batch, hidden=dict(zip(batch.values, hidden, strict=True)))


# One epoch of pretraining or of joint training, and evaluation on held-out samples.


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


# Unimodal encoders, taught after joint training by the fused posterior (docs/missing.md).
#
# One expert of a product is trained to be right together with the others, not alone. A copy of each encoder is
# therefore
# fitted to minimise `KL(q(z | X) ‖ q(z | x_m))` over the samples that have the modality and at least one other, with
# everything else held fixed: the joint bound does not change. In this direction q(z | x_m) takes the mean and the
# spread
# of all the q(z | X) that go with x_m, so that it is as unsure as x_m alone leaves it; in the other one,
# `KL(q(z | x_m) ‖ q(z | X))`, it settles on one of them, and predictions are too sure of themselves (docs/missing.md).


def start_distillation(state: TrainingState, config: FitConfig) -> None:
    """Go back to the best weights, copy the encoders, and let the optimiser move the copies alone."""
    state.return_to_best()
    state.best_weights = {}
    state.add_unimodal_encoders(config.training.learning_rate)


def distillation_epoch(
    state: TrainingState, data: TensorData, config: FitConfig, step_done: Callable[[], None]
) -> dict[str, Any]:
    """One epoch of distillation; returns its record. The objective is minus the mean divergence, in nats."""
    total, n_taught = 0.0, 0
    state.modules.train()
    for batch in data.batches(config.training.batch_size, shuffle=True):
        loss, n_rows = distillation_loss(state, batch)
        check_finite("objective of distillation", -loss.detach())
        if n_rows:
            state.optimizer.zero_grad(set_to_none=True)
            (loss / n_rows).backward()
            state.optimizer.step()
        total, n_taught = total + float(loss.detach()), n_taught + n_rows
        step_done()
    return {"phase": "distillation", "objective": -total / max(n_taught, 1), "terms": {}, "validation_objective": None}


def distillation_loss(state: TrainingState, batch: Batch) -> tuple[Tensor, int]:
    """Sum of `KL(q(z | X) ‖ q(z | x_m))` over modalities and the samples that have m and another, and their number.

    Raises:
        ValueError: q(z | X) is a mixture.
    """
    with torch.no_grad():
        teacher = state.guide.encode(batch)
    if not isinstance(teacher, GaussianParameters):
        raise ValueError(
            "distillation.epochs: expected 0 with a fusion that gives a mixture, which no encoder of one Gaussian can "
            "be taught, got more; leave it out"
        )
    present = {name: batch.has(name) for name in state.guide.unimodal}
    several = torch.stack(list(present.values())).sum(0) > 1
    total, n_taught = torch.zeros((), device=teacher.loc.device), 0
    for name, encoder in state.guide.unimodal.items():
        rows = torch.nonzero(present[name] & several).squeeze(-1)
        if not len(rows):
            continue
        value = state.guide.covariate_shift(name, batch.values[name], batch.covariates)
        student = encoder(*(part[rows] for part in (value, batch.observed.get(name)) if part is not None))
        total = total + divergence(GaussianParameters(*(part[rows] for part in teacher)), student).sum()
        n_taught += len(rows)
    return total, n_taught


def divergence(q: GaussianParameters, p: GaussianParameters) -> Tensor:
    """`KL(q ‖ p) = ½ Σ_j [σ_q²/σ_p² + (μ_q - μ_p)²/σ_p² - 1 - log σ_q² + log σ_p²]` of diagonal Gaussians."""
    ratio = (q.log_variance - p.log_variance).exp()
    distance = (q.loc - p.loc).square() * (-p.log_variance).exp()
    return 0.5 * (ratio + distance - 1 - q.log_variance + p.log_variance).sum(-1)


EpochDone = Callable[[TrainingState], None]

# Alternations of q(N|X) and what decoders on N alone fit to it, after the final read-out.
_CELL_UPDATES = 2


@dataclass(frozen=True)
class Task:
    """What does not change during a run.

    Attributes:
        config: The configuration.
        training: The training samples.
        validation: The held-out samples, or None.
        elbo: The objective.
        labeller: Names the clusters, where there is side information.
        weights: How much each training sample counts for the graph, `[n]` (`group_weights`); None: 1.
    """

    config: FitConfig
    training: TensorData
    validation: TensorData | None
    elbo: CollapsedELBO
    labeller: Labeller | None = None
    weights: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        config: FitConfig,
        training: TensorData,
        validation: TensorData | None,
        labeller: Labeller | None = None,
        weights: np.ndarray | None = None,
    ) -> Task:
        """The task of a configuration on these samples."""
        return cls(config, training, validation, make_elbo(config.objective), labeller, weights)


Phase = Literal["pretraining", "training", "distillation"]


def next_phase(state: TrainingState, config: FitConfig) -> Phase | None:
    """What the next epoch does; None if there are no more: all done, or diverged."""
    if state.diverged is not None:
        return None
    if state.epoch < config.pretraining_epochs:
        return "pretraining"
    planned = config.pretraining_epochs + config.training.epochs
    if state.distilled_epochs == 0 and state.epoch < planned and not _is_stalled(state, config):
        return "training"
    return "distillation" if state.distilled_epochs < config.distillation.epochs else None


def is_finished(state: TrainingState, config: FitConfig) -> bool:
    """Whether there are no more epochs to run."""
    return next_phase(state, config) is None


def _is_stalled(state: TrainingState, config: FitConfig) -> bool:
    """Joint training got no better for as many epochs as one waits."""
    patience = config.training.patience
    return patience > 0 and bool(state.best_weights) and state.epoch - state.best_epoch >= patience


def run_epochs(
    state: TrainingState, task: Task, until: int, step_done: Callable[[], None], epoch_done: EpochDone
) -> None:
    """Run epochs until `until` of them are finished, or the run is.

    Args:
        state: Where the run is; changed.
        task: Configuration, data and objective.
        until: Number of finished epochs (pretraining included) at which to return.
        step_done: Called after every gradient step.
        epoch_done: Called after every epoch.
    """
    while state.epoch < until and (phase := next_phase(state, task.config)) is not None:
        began = time.perf_counter()
        try:
            with no_singular_matrices():
                record = _run_epoch(phase, state, task, step_done)
        except DivergedError as error:
            state.diverged = f"{error}, in epoch {state.epoch + 1}"
            return
        record_epoch(state, record, time.perf_counter() - began, task.config.kl_weight)
        epoch_done(state)


def record_epoch(state: TrainingState, record: Mapping[str, Any], seconds: float, full_weight: float = 1.0) -> None:
    """Count an epoch that went well, and keep the weights if it is the best one of joint training.

    While the weight β of the bound rises, objectives of different epochs are not comparable; these are no best ones.

    Args:
        state: Changed.
        record: What the epoch is remembered by.
        seconds: How long it took.
        full_weight: β after that.
    """
    state.epoch += 1
    state.history.append({"epoch": state.epoch, **record, "seconds": round(seconds, 4)})
    if record["phase"] == "training" and record["kl_weight"] >= full_weight:
        state.keep_best(_selection_objective(record))


def _run_epoch(phase: Phase, state: TrainingState, task: Task, step_done: Callable[[], None]) -> dict[str, Any]:
    record = _EPOCHS[phase](state, task, step_done)
    check_weights(state.modules)
    return {**record, "decoder_variance": decoder_variances(state)}


def _pretrain(state: TrainingState, task: Task, step_done: Callable[[], None]) -> dict[str, Any]:
    record = pretraining_epoch(state, task.training, task.config, step_done)
    return record | _held_out(state, task, "pretraining")


def _train(state: TrainingState, task: Task, step_done: Callable[[], None]) -> dict[str, Any]:
    if not state.clustered and state.model.prior_in_force is None:
        start_clusters(state, task.training, task.config, keep_cells=False, labeller=task.labeller)
        state.clustered = True
    record = training_epoch(state, task.elbo, task.training, task.config, step_done)
    return record | _held_out(state, task, "training")


def _distil(state: TrainingState, task: Task, step_done: Callable[[], None]) -> dict[str, Any]:
    if state.distilled_epochs == 0:
        start_distillation(state, task.config)
    record = distillation_epoch(state, task.training, task.config, step_done)
    state.distilled_epochs += 1
    return record


_EPOCHS: Mapping[Phase, Callable[[TrainingState, Task, Callable[[], None]], dict[str, Any]]] = {
    "pretraining": _pretrain,
    "training": _train,
    "distillation": _distil,
}


def _held_out(state: TrainingState, task: Task, phase: str) -> dict[str, Any]:
    if task.validation is None:
        return {"validation_objective": None}
    tally = evaluate(state, task.elbo if phase == "training" else None, task.validation)
    check_finite("held-out objective", tally.objective())
    return {"validation_objective": tally.objective(), "terms": tally.means()}


def _selection_objective(record: Mapping[str, Any]) -> float:
    held_out = record["validation_objective"]
    value = record["objective"] if held_out is None else held_out
    return float(value)


def decoder_variances(state: TrainingState) -> dict[str, float]:
    """The variance that every decoder trains with, where it has one."""
    variances = {name: getattr(decoder, "variance", None) for name, decoder in state.decoders.items()}
    return {
        name: float(variance.training_variance().detach())
        for name, variance in variances.items()
        if variance is not None
    }


def finish(state: TrainingState, task: Task) -> None:
    """After the last epoch: best weights, the final read-out, and unfloored decoder variances.

    A prior without cells comes to its end before the read-out; p(N) is fitted to the clusters from new parameters then,
    as it took no part in the training.

    The clusters are read out of the embedding once more and written back (unless `read_out.final` is off), so that
    clusters, graph, predictions and scores come from one and the same q(N|X); p(N) is fitted to them at the final
    temperature, whatever that of the best epoch was, and a graph that a penalty keeps from cycles becomes a hard one.
    Where environments tell the graph, it is theirs, and p(N)
    that without interventions.

    Raises:
        DivergedError: Something is not finite.
    """
    state.return_to_best()
    state.modules.eval()
    state.model.kl_weight = 1.0
    if state.model.prior_in_force is not None:
        state.model.prior_in_force.retire()
    if not state.clustered or task.config.read_out.final:
        state.model.graph.set_temperature(task.config.graph.temperature_end)
        found = start_clusters(state, task.training, task.config, state.clustered, task.labeller)
        state.clustered = True
        if not take_over_graph(state, task.training, task.config):
            _fit_untrained(state, task, found)
            settle_graph(state, task.training, task.config, task.weights)
    harden_graph(state, task.training, task.config)
    for _ in range(_CELL_UPDATES if _has_cell_decoders(state) else 0):
        report_variances(state, task)
        fit_cells(state, task.training, cell_responsibilities(state, task.training, task.config))
    report_variances(state, task)
    report_element_variances(state, task.training, task.config)
    state.modules.eval()


def _fit_untrained(state: TrainingState, task: Task, found: ReadOut) -> None:
    """Fit p(N) over the schedules of joint training, where it stood aside for a prior without cells."""
    if state.model.latent_prior is not None:
        count = torch.from_numpy(found.cell_responsibilities).double().sum(0)
        refit_graph(state, count.to(state.device), task.config)


def _has_cell_decoders(state: TrainingState) -> bool:
    return any(decoder.depends_on_cell and not decoder.depends_on_latent for decoder in state.decoders.values())


@torch.no_grad()
def report_variances(state: TrainingState, task: Task) -> None:
    """Re-estimate decoder variances on the training samples, without the floor; all that is reported uses them."""
    tally = evaluate(state, task.elbo, task.training)
    check_finite("objective", tally.objective())
    for name, decoder in state.decoders.items():
        log_likelihood = tally.sums[f"reconstruction/{name}"] / state.model.weights[name]
        n_elements = task.training.n_elements[name]
        decoder.report(*(torch.tensor(float(value), dtype=torch.float64) for value in (log_likelihood, n_elements)))
