"""A fit before its first step: samples split and scaled, model, guide and optimiser made of a configuration."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from causalpima.inference.clusters.names import outcome_names
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.data.stored import DataFingerprint
from causalpima.inference.data.tensors import TensorData, fingerprint, split_samples, to_tensors
from causalpima.inference.graphs.hidden import group_weights
from causalpima.inference.graphs.learners import POSTHOC, check_installed
from causalpima.inference.store.text import format_count
from causalpima.inference.training.build import Supplied, build, build_stand_ins, describe_modalities, scales
from causalpima.inference.training.checkpoint import Checkpoint, OtherConfigurationError, load_checkpoint
from causalpima.inference.training.components import Components
from causalpima.inference.training.config import FitConfig, from_plain
from causalpima.inference.training.loop import Task
from causalpima.inference.training.side_information import (
    fit_covariate_shift,
    make_labeller,
    observed_labels,
    with_trained_levels,
)
from causalpima.inference.training.state import (
    TrainingState,
    choose_device,
    generator_state,
    make_optimizer,
    restore_generators,
    seed_generators,
    surroundings,
)
from causalpima.inference.training.trial_run import own_parts, rehearse, telling
from causalpima.inference.training.user_code import own_names, source_hashes
from causalpima.models.batch import Modality, Standardisation

__all__ = [
    "SAMPLES",
    "VERSION",
    "OtherDataError",
    "PreparedRun",
    "RunDescription",
    "check_feasible",
    "check_samples",
]


# Whether a configuration can be fitted to a data set: told before anything is allocated.


def check_feasible(data: MultimodalData, config: FitConfig, split: np.ndarray) -> None:
    """Refuse a configuration that these data cannot be fitted with.

    Args:
        data: The samples.
        config: The configuration, with an entry for every modality.
        split: `train`, `validation` or `test` per sample.

    Raises:
        ValueError: More cells than training samples, a learner of graphs that is not installed, settings or a mask for
            other modalities than there are, a modality that no training sample has, or samples without any modality
            where the guide has no prior expert.
    """
    if config.model.graph in POSTHOC:
        check_installed(config.model.graph)
    _check_cells(math.prod(config.outcomes), int((split == "train").sum()))
    _check_modalities(data, config)
    _check_mask(data, config)
    for name, present in data.present.items():
        _check_trained(name, present, split)
    if len(data.modalities) == 1:
        _check_several(config)
    elif config.distillation.epochs and not (np.sum(list(data.present.values()), axis=0) > 1).any():
        raise ValueError(
            f"distillation.epochs: expected 0 where no sample has two modalities, got {config.distillation.epochs}; "
            "there is nothing to teach one by the other"
        )
    if not config.guide.prior_expert:
        _check_presence(data, "leave these samples out" + ("" if config.mask else ", or set guide.prior_expert"))


def _check_cells(n_cells: int, n_training: int) -> None:
    if n_training < n_cells:
        raise ValueError(
            f"nodes: expected at least as many training samples as cells, got {n_training} samples for "
            f"{format_count(n_cells)} cells (the product of the outcomes); give fewer nodes or outcomes, or more "
            "samples"
        )


def _check_modalities(data: MultimodalData, config: FitConfig) -> None:
    if set(data.modalities) != set(config.modality):
        raise ValueError(
            f"modality: expected settings for {', '.join(data.modalities)}, the modalities of {data.name}, "
            f"got settings for {', '.join(config.modality) or 'none'}"
        )


def _check_mask(data: MultimodalData, config: FitConfig) -> None:
    if config.mask and set(data.modalities) != set(config.mask):
        raise ValueError(
            f"mask: expected the nodes that each of {', '.join(data.modalities)} sees, the modalities of {data.name}, "
            f"got those of {', '.join(config.mask)}; name every modality once"
        )


def _check_trained(name: str, present: np.ndarray, split: np.ndarray) -> None:
    """Nothing is known of a modality that is measured on held-out samples alone, not even its scale."""
    if not (present & (split == "train")).any():
        raise ValueError(
            f"{name}: expected it in some training samples, got it in {present.sum()} of {len(present)} samples, none "
            "of them for training; hold out fewer samples, change the seed, or leave this modality out"
        )


def _check_several(config: FitConfig) -> None:
    for name, value in (
        ("training.modality_dropout", config.training.modality_dropout),
        ("distillation.epochs", config.distillation.epochs),
    ):
        if value:
            raise ValueError(f"{name}: expected 0 with one modality, got {value}; it is about the absence of others")


def _check_presence(data: MultimodalData, what_to_do: str) -> None:
    absent = ~np.any(list(data.present.values()), axis=0)
    if absent.any():
        raise ValueError(
            f"{data.name}: expected at least one modality per sample, got none for {absent.sum()} of {len(absent)}, "
            f"first sample {absent.argmax()}; {what_to_do}"
        )


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


# What must be known of a fit, next to its weights, to use it without the data that it was fitted to.


VERSION = 1


@dataclass(frozen=True)
class RunDescription:
    """A configuration and what the data added to it.

    Attributes:
        config: The configuration.
        modalities: What is known of every modality.
        covariate_levels: Names of the levels of every covariate, in the order in which decoders see them.
        supplied: Per modality whose law or decoder was passed as an object, the name of its class.
        dataset: Name of the data set.
        outcome_names: Names of the outcomes of every node, in the order of the nodes.
        environment_names: Names of the environments that the model tells apart, in the order of their codes.
        components: Per setting whose component was passed as an object, the name of its class.
        data: Fingerprint of the samples; None in a run of an older version.
    """

    config: FitConfig
    modalities: Mapping[str, Modality]
    covariate_levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    supplied: Mapping[str, str] = field(default_factory=dict)
    dataset: str = ""
    outcome_names: tuple[tuple[str, ...], ...] = ()
    environment_names: tuple[str, ...] = ()
    components: Mapping[str, str] = field(default_factory=dict)
    data: DataFingerprint | None = None

    @property
    def n_covariates(self) -> int:
        """Indicators that decoders see, one for each level of each covariate."""
        return sum(map(len, self.covariate_levels.values()))

    def to_plain(self) -> dict[str, Any]:
        """Nested plain values, as a checkpoint holds them."""
        return {
            "version": VERSION,
            "config": self.config.to_dict(),
            "modalities": {name: _plain_modality(modality) for name, modality in self.modalities.items()},
            "covariate_levels": {name: list(levels) for name, levels in self.covariate_levels.items()},
            "supplied": dict(self.supplied),
            "dataset": self.dataset,
            "outcome_names": [list(names) for names in self.outcome_names],
            "environment_names": list(self.environment_names),
            "components": dict(self.components),
            "data": None if self.data is None else self.data.to_plain(),
        }

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> RunDescription:
        """The inverse of `to_plain`.

        Raises:
            ValueError: It was written by another version of the program.
        """
        if values.get("version") != VERSION:
            raise ValueError(f"expected a description of version {VERSION}, got {values.get('version')}")
        return cls(
            from_plain(FitConfig, values["config"]),
            {name: _modality(entry) for name, entry in values["modalities"].items()},
            {name: tuple(levels) for name, levels in values["covariate_levels"].items()},
            values["supplied"],
            values["dataset"],
            tuple(tuple(names) for names in values.get("outcome_names", ())),
            tuple(values.get("environment_names", ())),
            values.get("components", {}),
            None if values.get("data") is None else DataFingerprint.from_plain(values["data"]),
        )


_NAMES = ("dimensions", "source_dimensions")


def _plain_modality(modality: Modality) -> dict[str, Any]:
    values = {entry.name: getattr(modality, entry.name) for entry in dataclasses.fields(Modality)}
    return values | {
        "event_shape": list(modality.event_shape),
        "positions": None if modality.positions is None else modality.positions.tolist(),
        "standardisation": dataclasses.asdict(modality.standardisation),
        **{name: list(getattr(modality, name)) for name in _NAMES},
        "coordinates": {dim: list(places) for dim, places in modality.coordinates.items()},
    }


def _modality(values: Mapping[str, Any]) -> Modality:
    positions = values["positions"]
    shaped = {
        "event_shape": torch.Size(values["event_shape"]),
        "positions": None if positions is None else torch.tensor(positions, dtype=torch.float64),
        "standardisation": Standardisation(**values["standardisation"]),
        **{name: tuple(values.get(name, ())) for name in _NAMES},
        "coordinates": {dim: tuple(places) for dim, places in values.get("coordinates", {}).items()},
    }
    return Modality(**{**values, **shaped})


# A run and its samples belong together: the one place where samples are compared with those of a run.


SAMPLES = "samples"
"""Entry of a training state: the fingerprint of the samples, as plain values."""


class OtherDataError(ValueError):
    """Samples are not those of a run; the message is one line."""


def check_samples(checkpoint: Checkpoint, data: MultimodalData, run: str, with_labels: bool = True) -> None:
    """Refuse samples that are not those that a run was fitted to.

    Of a run of an older version, which has no fingerprint of its samples alone, settings and samples are compared
    together, and labels are not told from values; of one that has none of both, nothing.

    Args:
        checkpoint: A checkpoint of the run, of an epoch or final.
        data: The samples.
        run: What the run is called in the message.
        with_labels: Whether other labels count: they chose the split, and do not matter to who only scores against
            them.

    Raises:
        OtherDataError: They are others; the message says in what.
    """
    description = checkpoint.state.get("description")
    known = checkpoint.state.get(SAMPLES) or (description or {}).get("data")
    if known is not None:
        difference = DataFingerprint.from_plain(known).difference(data, with_labels)
        if difference is not None:
            raise OtherDataError(
                f"expected the samples that {run} was fitted to, got {difference}; put its data back, or fit again"
            )
    elif description is not None:
        _check_together(checkpoint, RunDescription.from_plain(description), data, run)


def _check_together(checkpoint: Checkpoint, description: RunDescription, data: MultimodalData, run: str) -> None:
    settings = description.config.to_dict()
    try:
        load_checkpoint(
            checkpoint.path.parent, description.config.fingerprint(fingerprint(data), source_hashes(settings))
        )
    except OtherConfigurationError as error:
        own = ", ".join(own_names(settings).values())
        code = f", and the file of {own} if that changed" if own else ""
        raise OtherDataError(
            f"expected the samples that {run} was fitted to, got others (values, order or labels; it is of an older "
            f"version of this program, which cannot tell which); put its data back{code}, or fit again"
        ) from error
