"""The training loop: pretraining, cluster read-out, joint training, and the final read-out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from inference.clusters.read_out import ReadOut
from inference.data.tensors import TensorData
from inference.labelling.labelling import Labeller
from inference.objectives.enumerated import CollapsedELBO, make_elbo
from inference.training.cell_fits import fit_cells
from inference.training.clustering import cell_responsibilities, start_clusters
from inference.training.config import FitConfig
from inference.training.distillation import distillation_epoch, start_distillation
from inference.training.divergence import DivergedError, check_finite, check_weights, no_singular_matrices
from inference.training.element_variances import report_element_variances
from inference.training.epochs import evaluate, pretraining_epoch, training_epoch
from inference.training.renaming import harden_graph, refit_graph, settle_graph, take_over_graph
from inference.training.state import TrainingState

__all__ = ["Task", "decoder_variances", "finish", "is_finished", "next_phase", "record_epoch", "run_epochs"]

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
