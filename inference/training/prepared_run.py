"""A fit before its first step: samples split and scaled, model, guide and optimiser made of a configuration."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

import numpy as np
from torch import Tensor

from inference.data.fingerprint import DataFingerprint
from inference.data.multimodal import MultimodalData
from inference.data.splits import split_samples
from inference.data.tensors import TensorData, fingerprint, to_tensors
from inference.graphs.group_weights import group_weights
from inference.labelling.outcome_names import outcome_names
from inference.training.build import Supplied, build, build_stand_ins
from inference.training.components import Components
from inference.training.config import FitConfig
from inference.training.covariate_effects import fit_covariate_shift, with_trained_levels
from inference.training.feasibility import check_feasible
from inference.training.labellers import make_labeller
from inference.training.loop import Task
from inference.training.modalities import describe_modalities, scales
from inference.training.observed import observed_labels
from inference.training.own_code import source_hashes
from inference.training.own_parts import own_parts, telling
from inference.training.rehearsal import rehearse
from inference.training.state import TrainingState, make_optimizer
from inference.training.surroundings import (
    choose_device,
    generator_state,
    restore_generators,
    seed_generators,
    surroundings,
)

__all__ = ["PreparedRun"]


class PreparedRun:
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

    @cached_property
    def samples(self) -> DataFingerprint:
        """Fingerprint of the samples."""
        return DataFingerprint.of(self.data)

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

    @contextmanager
    def _working(self) -> Iterator[None]:
        """The run's own surroundings, with its generators where it left them."""
        with surroundings(self.device), telling(self._own):
            restore_generators(self._generators, self.device)
            yield
            self._generators = generator_state(self.device)

    def weights(self) -> dict[str, Tensor]:
        """Weights of model and guide as they are now."""
        return {name: value.detach().clone() for name, value in self.state.modules.state_dict().items()}


def _split(data: MultimodalData, config: FitConfig) -> np.ndarray:
    fractions = config.training.validation_fraction, config.seed, config.training.test_fraction
    return split_samples(data.n_samples, *fractions, data.factors, data.groups)
