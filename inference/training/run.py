"""A run from data to fitted model: trained with checkpoints, and resumed exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor
from tqdm.auto import tqdm

from inference.results.run_folder import RunFolder
from inference.training.checkpoint import (
    Checkpoint,
    CheckpointError,
    OtherConfigurationError,
    load_checkpoint,
    save_checkpoint,
)
from inference.training.epochs import pretraining_step
from inference.training.found_run import FoundRun
from inference.training.loop import is_finished, run_epochs
from inference.training.own_code import own_names
from inference.training.run_samples import SAMPLES, check_samples
from inference.training.state import TrainingState

__all__ = ["Run"]


class Run(FoundRun):
    """One fit of one configuration to one data set, trained epoch after epoch; made as `PreparedRun` says.

    It goes on from a checkpoint, or from the weights of a finished one.
    """

    @property
    def is_finished(self) -> bool:
        """Whether there are no more epochs to run."""
        return is_finished(self.state, self.config)

    def train(
        self,
        until: int | None = None,
        folder: RunFolder | None = None,
        progress: bool = False,
        stepped: Callable[[], None] | None = None,
    ) -> None:
        """Run epochs, with a checkpoint after each.

        Args:
            until: Number of finished epochs (pretraining included) at which to stop; None: all that are planned.
            folder: Where checkpoints and metrics go; None keeps nothing on disk.
            progress: Show a progress bar on standard error.
            stepped: Called after every gradient step, in place of a progress bar.
        """
        until = self.config.total_epochs if until is None else min(until, self.config.total_epochs)
        with self._working(), self._bar(until, progress) as bar:
            if folder is not None and self.state.epoch == 0:
                self._save(folder)
            step_done = stepped or bar.update
            run_epochs(self.state, self.task, until, step_done, lambda state: self._epoch_done(state, folder, bar))

    def _bar(self, until: int, progress: bool) -> tqdm:
        steps = math.ceil(self.task.training.n_samples / self.config.training.batch_size)
        total, initial = until * steps, self.state.epoch * steps
        return tqdm(total=total, initial=initial, unit="step", disable=not progress, leave=False, dynamic_ncols=True)

    def _epoch_done(self, state: TrainingState, folder: RunFolder | None, bar: tqdm) -> None:
        record = state.history[-1]
        bar.set_description(f"{record['phase']} {state.epoch}/{self.config.total_epochs}", refresh=False)
        bar.set_postfix(_postfix(record), refresh=False)
        if folder is not None:
            self._save(folder)

    def save(self, folder: RunFolder) -> None:
        """Leave a checkpoint and the metrics of the epochs so far in a folder."""
        with self._working():
            self._save(folder)

    def _save(self, folder: RunFolder) -> None:
        state = self.state
        scalars = {**state.scalars(), SAMPLES: self.samples.to_plain()}
        save_checkpoint(folder.checkpoints, state.epoch, state.weights(), scalars, self.fingerprint)
        folder.write_metrics(state.history)

    def restore(self, folder: RunFolder) -> Checkpoint:
        """Go on from the newest valid checkpoint of a folder; its `warning` says if a damaged one was passed over.

        Raises:
            CheckpointError: There is none, or it is of another configuration or another program.
            OtherDataError: It is of other samples.
        """
        checkpoint = self._load(folder)
        with self._working():
            try:
                self.state.restore(checkpoint.weights, checkpoint.state)
            except (RuntimeError, ValueError, TypeError, LookupError) as error:
                raise CheckpointError(
                    f"checkpoint {checkpoint.path}: expected the weights of this model, got others; it was written by "
                    "another version of this program, use that one"
                ) from error
        return checkpoint

    def _load(self, folder: RunFolder) -> Checkpoint:
        try:
            return load_checkpoint(folder.checkpoints, self.fingerprint)
        except OtherConfigurationError as error:
            check_samples(load_checkpoint(folder.checkpoints), self.data, str(folder.path))
            own = ", ".join(f"{name} {value}" for name, value in own_names(self.config.to_dict()).items())
            if not own:
                raise
            raise OtherConfigurationError(f"{error}; the file of {own} counts as a setting, too") from error

    def take_over(self, weights: Mapping[str, Tensor], history: Sequence[Mapping[str, Any]]) -> None:
        """Be the finished run that had these weights and this history.

        Args:
            weights: By name, as `FitResult.weights` has them.
            history: One record per epoch.

        Raises:
            CheckpointError: They are the weights of another model.
        """
        with self._working():
            if any(name.startswith("guide.unimodal.") for name in weights):
                self.state.add_unimodal_encoders(self.config.training.learning_rate)
            try:
                self.state.modules.load_state_dict(dict(weights))
            except RuntimeError as error:
                raise CheckpointError(
                    "expected the weights of this model, got others; they were written by another version of this "
                    "program, use that one"
                ) from error
            self.state.modules.eval()
            self.state.history, self.state.epoch = [dict(record) for record in history], len(history)

    def rehearse(self, n_steps: int) -> None:
        """Take some gradient steps, to see how long they take; the run is no more good for training after it."""
        with self._working():
            batch = next(self.task.training.batches(self.config.training.batch_size))
            for _ in range(n_steps):
                pretraining_step(self.state, batch, 1.0)


def _postfix(record: Mapping[str, Any]) -> dict[str, str]:
    shown = {"ELBO": f"{record['objective']:.1f}"}
    if "effective_components" in record:
        shown["cells"] = f"{record['effective_components']:.1f}"
    return shown
