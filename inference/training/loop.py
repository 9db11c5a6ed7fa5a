"""The training loop: pretraining, cluster read-out, joint training, and the final read-out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from inference.data.tensors import TensorData
from inference.objectives.enumerated import CollapsedELBO, make_elbo
from inference.training.clustering import start_clusters
from inference.training.config import FitConfig
from inference.training.divergence import DivergedError, check_finite, check_weights, no_singular_matrices
from inference.training.epochs import evaluate, pretraining_epoch, training_epoch
from inference.training.state import TrainingState

__all__ = ["Task", "decoder_variances", "finish", "is_finished", "run_epochs"]

EpochDone = Callable[[TrainingState], None]


@dataclass(frozen=True)
class Task:
    """What does not change during a run.

    Attributes:
        config: The configuration.
        training: The training samples.
        validation: The held-out samples, or None.
        elbo: The objective.
    """

    config: FitConfig
    training: TensorData
    validation: TensorData | None
    elbo: CollapsedELBO

    @classmethod
    def of(cls, config: FitConfig, training: TensorData, validation: TensorData | None) -> Task:
        """The task of a configuration on these samples."""
        return cls(config, training, validation, make_elbo(config.objective))


def is_finished(state: TrainingState, config: FitConfig) -> bool:
    """Whether there are no more epochs to run: all done, stopped early, or diverged."""
    patience = config.training.patience
    stalled = patience > 0 and bool(state.best_weights) and state.epoch - state.best_epoch >= patience
    return state.epoch >= config.total_epochs or stalled or state.diverged is not None


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
    while state.epoch < until and not is_finished(state, task.config):
        began = time.perf_counter()
        try:
            with no_singular_matrices():
                record = _run_epoch(state, task, step_done)
        except DivergedError as error:
            state.diverged = f"{error}, in epoch {state.epoch + 1}"
            return
        state.epoch += 1
        seconds = round(time.perf_counter() - began, 4)
        state.history.append({"epoch": state.epoch, **record, "seconds": seconds})
        if record["phase"] == "training":
            state.keep_best(_selection_objective(record))
        epoch_done(state)


def _run_epoch(state: TrainingState, task: Task, step_done: Callable[[], None]) -> dict[str, Any]:
    config = task.config
    if state.epoch < config.pretraining_epochs:
        record = pretraining_epoch(state, task.training, config, step_done)
    else:
        if not state.clustered:
            start_clusters(state, task.training, config, keep_cells=False)
            state.clustered = True
        record = training_epoch(state, task.elbo, task.training, config, step_done)
    record |= _held_out(state, task, record["phase"])
    check_weights(state.modules)
    return {**record, "decoder_variance": decoder_variances(state)}


def _held_out(state: TrainingState, task: Task, phase: str) -> dict[str, Any]:
    if task.validation is None:
        return {"validation_objective": None}
    tally = evaluate(state, task.elbo if phase == "training" else None, task.validation)
    check_finite("held-out objective", tally.objective())
    return {"validation_objective": tally.objective(), "terms": tally.means()}


def _selection_objective(record: dict[str, Any]) -> float:
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

    The clusters are read out of the embedding once more and written back (unless `read_out.final` is off), so that
    clusters, graph, predictions and scores come from one and the same q(N|X); p(N) is fitted to them at the final
    temperature, whatever that of the best epoch was.

    Raises:
        DivergedError: Something is not finite.
    """
    state.return_to_best()
    state.modules.eval()
    if not state.clustered or task.config.read_out.final:
        state.model.graph.temperature.fill_(task.config.graph.temperature_end)
        start_clusters(state, task.training, task.config, keep_cells=state.clustered)
        state.clustered = True
    report_variances(state, task)
    state.modules.eval()


@torch.no_grad()
def report_variances(state: TrainingState, task: Task) -> None:
    """Re-estimate decoder variances on the training samples, without the floor; all that is reported uses them."""
    tally = evaluate(state, task.elbo, task.training)
    check_finite("objective", tally.objective())
    for name, decoder in state.decoders.items():
        mask = task.training.present[name]
        n_present = torch.tensor(float(task.training.n_samples if mask is None else mask.sum()), dtype=torch.float64)
        log_likelihood = torch.tensor(tally.sums[f"reconstruction/{name}"], dtype=torch.float64)
        decoder.report(log_likelihood, n_present)
