"""A run from data to fitted model: prepared, trained with checkpoints, resumed exactly, finished."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor
from tqdm.auto import tqdm

from inference.data.multimodal import MultimodalData
from inference.data.splits import split_samples
from inference.data.tensors import TensorData, fingerprint, to_tensors
from inference.design.effects import DesignedNode
from inference.graphs.group_weights import group_weights
from inference.identifiability import SideInformation
from inference.labelling.cell_names import CellNames
from inference.labelling.masked_names import check_mask
from inference.labelling.outcome_names import outcome_names
from inference.labelling.renamed import under_names
from inference.results.arrays import FitArrays
from inference.results.collect import Fitted, collect, responsibilities
from inference.results.fit_result import FitResult
from inference.results.graph_search import graph_search
from inference.results.run_folder import RunFolder
from inference.results.summary import diverged_summary, fit_status, summarise
from inference.training.build import Supplied, build, build_stand_ins
from inference.training.checkpoint import (
    Checkpoint,
    CheckpointError,
    OtherConfigurationError,
    load_checkpoint,
    save_checkpoint,
)
from inference.training.components import Components
from inference.training.config import FitConfig
from inference.training.covariate_effects import fit_covariate_shift, with_trained_levels
from inference.training.description import RunDescription
from inference.training.designed import designed_nodes
from inference.training.divergence import DivergedError, no_singular_matrices
from inference.training.epochs import pretraining_step
from inference.training.feasibility import check_feasible
from inference.training.labellers import make_labeller
from inference.training.loop import Task, finish, is_finished, run_epochs
from inference.training.modalities import describe_modalities, scales
from inference.training.observed import observed_labels
from inference.training.own_code import own_names, source_hashes
from inference.training.own_parts import own_parts, telling
from inference.training.rehearsal import rehearse
from inference.training.renaming import relabel_cells, with_node_names
from inference.training.side_information import side_information
from inference.training.state import TrainingState, make_optimizer
from inference.training.surroundings import (
    choose_device,
    generator_state,
    restore_generators,
    seed_generators,
    surroundings,
)

__all__ = ["Run"]


class Run:
    """One fit of one configuration to one data set.

    All randomness comes from torch's generators, seeded by the configuration. The caller's generators, default dtype
    and Pyro settings are not touched, so two runs in one process equal two runs in two processes.

    Args:
        data: The samples.
        config: The configuration, with an entry for every modality.
        device: Where to compute.
        decoders: Physics laws or decoders in place of the configured ones, by modality.
        components: Objects in place of other configured components.

    Raises:
        ValueError: The device is not there, or the data cannot be fitted with this configuration (`check_feasible`).
    """

    def __init__(
        self,
        data: MultimodalData,
        config: FitConfig,
        device: str = "cpu",
        decoders: Supplied | None = None,
        components: Components | None = None,
    ) -> None:
        self.data, self.config, self.decoders = data, config, dict(decoders or {})
        self.components = components or Components()
        self.device = choose_device(device)
        self.split = _split(data, config)
        check_feasible(data, config, self.split)
        self.labels = observed_labels(config, data, np.flatnonzero(self.split == "train"))
        self.outcome_names = outcome_names(config.nodes, {} if self.labels is None else self.labels.levels)
        self._declared = config, self.labels
        self._own = own_parts(config, self.components)
        with surroundings(self.device), telling(self._own):
            seed_generators(config.start_seed, self.device)
            self._build()
            self._generators = generator_state(self.device)
            if self._own:
                fresh = self._fresh_state(self.task.training)
                rehearse(fresh, self.task.elbo, self.task.training, config, self._own)
        self.fingerprint = config.fingerprint(fingerprint(data), source_hashes(config.to_dict()))

    def _build(self) -> None:
        self.tensors = to_tensors(self.data, self.split == "train", scales(self.config), self.device)
        self.tensors = with_trained_levels(self.tensors, self.split == "train")
        training = self._subset("train")
        self.modalities = describe_modalities(self.data, training, self.config)
        self.state = self._fresh_state(training)
        if self.labels is not None and self.config.observe.use == "training":
            training = dataclasses.replace(training, cells=self.labels.cells(self.split == "train", self.device))
        validation = self._subset("validation") if (self.split == "validation").any() else None
        rows = np.flatnonzero(self.split == "train")
        labeller = make_labeller(self.config, self.data, rows)
        weights = group_weights(None if self.data.groups is None else self.data.groups[rows])
        self.task = Task.of(self.config, training, validation, labeller, weights)

    def _fresh_state(self, training: TensorData) -> TrainingState:
        """Model, guide and optimiser before training."""
        covariates = None if training.covariates is None else training.covariates.mean(0)
        model, guide = build(self.config, self.modalities, self.decoders, covariates, self.components)
        stand_ins = build_stand_ins(self.config, self.modalities, model)
        model, guide, stand_ins = model.to(self.device), guide.to(self.device), stand_ins.to(self.device)
        fit_covariate_shift(guide, training)
        optimizer = make_optimizer(model, guide, self.config, stand_ins)
        return TrainingState(model, guide, optimizer, stand_ins, components=self.components)

    def _subset(self, part: str) -> TensorData:
        return self.tensors.subset(np.flatnonzero(self.split == part))

    @cached_property
    def _designed(self) -> dict[int, DesignedNode]:
        """Designed nodes by position, as they were declared: labels, not clusters, tell their outcomes."""
        return designed_nodes(*self._declared, self.data, self.split, self.tensors.standardisation)

    @property
    def is_finished(self) -> bool:
        """Whether there are no more epochs to run."""
        return is_finished(self.state, self.config)

    @contextmanager
    def _working(self) -> Iterator[None]:
        """The run's own surroundings, with its generators where it left them."""
        with surroundings(self.device), telling(self._own):
            restore_generators(self._generators, self.device)
            yield
            self._generators = generator_state(self.device)

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
        save_checkpoint(folder.checkpoints, state.epoch, state.weights(), state.scalars(), self.fingerprint)
        folder.write_metrics(state.history)

    def restore(self, folder: RunFolder) -> Checkpoint:
        """Go on from the newest valid checkpoint of a folder; its `warning` says if a damaged one was passed over.

        Raises:
            CheckpointError: There is none, or it is of another configuration, other data, or another program.
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
        return RunDescription(self.config, self.modalities, *facts, environments, self.components.class_names())

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

    def rehearse(self, n_steps: int) -> None:
        """Take some gradient steps, to see how long they take; the run is no more good for training after it."""
        with self._working():
            batch = next(self.task.training.batches(self.config.training.batch_size))
            for _ in range(n_steps):
                pretraining_step(self.state, batch, 1.0)

    def weights(self) -> dict[str, Tensor]:
        """Weights of model and guide as they are now."""
        return {name: value.detach().clone() for name, value in self.state.modules.state_dict().items()}


def _split(data: MultimodalData, config: FitConfig) -> np.ndarray:
    fractions = config.training.validation_fraction, config.seed, config.training.test_fraction
    return split_samples(data.n_samples, *fractions, data.factors, data.groups)


def _postfix(record: Mapping[str, Any]) -> dict[str, str]:
    shown = {"ELBO": f"{record['objective']:.1f}"}
    if "effective_components" in record:
        shown["cells"] = f"{record['effective_components']:.1f}"
    return shown
