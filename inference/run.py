"""A run from data to fitted model: trained with checkpoints, and resumed exactly."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor
from tqdm.auto import tqdm

from causalpima.inference.clusters.clustering import fit_status
from causalpima.inference.clusters.design import DesignedNode
from causalpima.inference.clusters.identify import SideInformation
from causalpima.inference.clusters.names import CellNames, check_mask, under_names
from causalpima.inference.data.tensors import TensorData
from causalpima.inference.findings.arrays import FitArrays
from causalpima.inference.findings.collect import Fitted, collect, responsibilities
from causalpima.inference.findings.posterior import graph_search
from causalpima.inference.reporting.summary import diverged_summary, summarise
from causalpima.inference.result import FitResult
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.checkpoint import (
    Checkpoint,
    CheckpointError,
    OtherConfigurationError,
    load_checkpoint,
    save_checkpoint,
)
from causalpima.inference.training.clustering import relabel_cells, with_node_names
from causalpima.inference.training.limits import side_information
from causalpima.inference.training.loop import finish, is_finished, pretraining_step, run_epochs
from causalpima.inference.training.prepared_run import SAMPLES, PreparedRun, RunDescription, check_samples
from causalpima.inference.training.side_information import designed_nodes
from causalpima.inference.training.state import DivergedError, TrainingState, no_singular_matrices
from causalpima.inference.training.user_code import own_names

__all__ = [
    "FoundRun",
    "Run",
]


# What a trained run found: clusters read out, named, and collected as a result.


class FoundRun(PreparedRun):
    """A run whose clusters can be looked at, read out for good, named, and collected."""

    @cached_property
    def _designed(self) -> dict[int, DesignedNode]:
        """Designed nodes by position, as they were declared: labels, not clusters, tell their outcomes."""
        return designed_nodes(*self._declared, self.data, self.split, self.tensors.standardisation)

    def clusters(self) -> tuple[np.ndarray, np.ndarray]:
        """q(N|X) `[n, C]` and the mean of q(Z|X) `[n, J]` of all samples, as the model has them now."""
        with self._working():
            return responsibilities(self.state.model, self.state.guide, self._observed(), self.config.objective)[:2]

    def as_found(self, labelling: Mapping[str, Any] | None) -> FitResult:
        """The finished fit that was taken over, collected anew.

        Args:
            labelling: Where the meaning of its cells comes from (`Labelling.to_plain`), or None.
        """
        began = time.perf_counter()
        self.state.labelling = None if labelling is None else dict(labelling)
        with self._working():
            arrays = collect(self._fitted())
        return self._finished(arrays, began)

    def named(self, names: CellNames, before: Mapping[str, Any] | None = None) -> FitResult:
        """The finished fit with its cells numbered and called as a person says, with p(N) to go with them.

        Args:
            names: The names.
            before: Where the meaning of the cells came from so far (`Labelling.to_plain`), or None.

        Raises:
            ValueError: The names contradict the mask, or a decoder of cells cannot be renumbered.
        """
        began = time.perf_counter()
        labelling = under_names(before, names, tuple(self.config.nodes))
        with self._working(), no_singular_matrices():
            try:
                check_mask(names.permutation, self.config.outcomes, self.config.visible, tuple(names.nodes))
                facts = self.task.training, self.config, labelling, self.task.weights
                relabel_cells(self.state, *facts, tuple(names.nodes))
            except ValueError as error:
                raise ValueError(f"names: {error}") from error
            self.config = with_node_names(self.config, tuple(names.nodes))
            self.state.model.node_names = self.state.guide.node_names = tuple(names.nodes)
            self.outcome_names, self.labels = names.outcomes, None
            arrays = collect(self._fitted())
        return self._finished(arrays, began)

    def finish(self) -> FitResult:
        """Read the clusters out for good and collect what the fit found; of a diverged fit, only that it is one."""
        began = time.perf_counter()
        try:
            if self.state.diverged is not None:
                raise DivergedError(self.state.diverged)
            with self._working(), no_singular_matrices():
                finish(self.state, self.task)
                arrays = collect(self._fitted())
        except DivergedError as error:
            return self._result(self._diverged(str(error)), None)
        return self._finished(arrays, began)

    def _finished(self, arrays: FitArrays, began: float) -> FitResult:
        searched = graph_search(arrays) if (arrays.identifiability or {}).get("is_named") else None
        arrays = dataclasses.replace(arrays, status=fit_status(arrays.responsibilities), searched=searched)
        return self._result(summarise(arrays, time.perf_counter() - began), arrays)

    def _diverged(self, reason: str) -> dict[str, Any]:
        return diverged_summary(self.data, self.config.seed, self.config.nodes, self.state.history, reason)

    def _result(self, summary: Mapping[str, Any], arrays: FitArrays | None) -> FitResult:
        history = list(self.state.history)
        facts = self.weights(), self.fingerprint, self._described().to_plain(), self.decoders
        return FitResult(
            self.config.to_dict(), summary, history, arrays, *facts, data=self.data, components=self.components
        )

    def _described(self) -> RunDescription:
        levels = {name: self.data.covariate_levels[name] for name in self.data.covariates}
        supplied = {name: type(decoder).__name__ for name, decoder in self.decoders.items()}
        facts = levels, supplied, self.data.name, self.outcome_names
        environments = () if self.state.model.environments.target is None else self.data.environment_names
        return RunDescription(
            self.config, self.modalities, *facts, environments, self.components.class_names(), self.samples
        )

    def _fitted(self) -> Fitted:
        return Fitted(
            model=self.state.model,
            guide=self.state.guide,
            objective=self.config.objective,
            seed=self.config.seed,
            status="ok",
            data=self.data,
            tensors=self._observed(),
            split=self.split,
            history=self.state.history,
            attributes={"config": self.config.to_dict()},
            labelling=self.state.labelling,
            known=self._known(),
            outcome_names=self.outcome_names,
            labelled=None if self.labels is None else self.labels.labelled,
            node_labels=None if self.labels is None else self.labels.codes,
            designed={list(self.config.nodes)[place]: node for place, node in self._designed.items()},
            likelihoods={name: entry.decoder.likelihood for name, entry in self.config.modality.items()},
        )

    def _observed(self) -> TensorData:
        """All samples, those of the training with what labels tell of N where these took part in it."""
        if self.labels is None or self.config.observe.use != "training":
            return self.tensors
        return dataclasses.replace(self.tensors, cells=self.labels.cells(np.full(len(self.split), True), self.device))

    def _known(self) -> SideInformation:
        """What was known of the nodes, names that were given afterwards included."""
        labelling = self.state.labelling or {}
        named = labelling.get("named_nodes", ()) if labelling.get("source") == "names" else ()
        return side_information(self.config, self.data.environment_names[1:], named)


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
            elif folder is not None:
                folder.write_metrics(self.state.history)  # a kill may have come between a checkpoint and them
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
