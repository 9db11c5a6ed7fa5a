"""Everything that determines a fit, as frozen dataclasses; the command line makes its flags from them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from inference.objectives.responsibilities import ObjectiveName
from models.decoders.variance import VarianceKind
from models.mixture import Covariance

__all__ = [
    "DecoderConfig",
    "EncoderConfig",
    "FitConfig",
    "GraphConfig",
    "GuideConfig",
    "MixtureConfig",
    "ModalityConfig",
    "ModelConfig",
    "PretrainingConfig",
    "ReadOutConfig",
    "TrainingConfig",
    "paper_settings",
]


@dataclass(frozen=True)
class EncoderConfig:
    """Encoder of one modality.

    Attributes:
        kind: `mlp` for anything, `convolutional` for images, `curve` for curves.
        sizes: Widths of the hidden layers, or channels of the convolutions, from X to Z.
    """

    kind: Literal["mlp", "convolutional", "curve"] = "mlp"
    sizes: tuple[int, ...] = (128, 64, 32, 16)


@dataclass(frozen=True)
class DecoderConfig:
    """Decoder of one modality.

    Attributes:
        kind: `mlp` for anything, `convolutional` for images.
        sizes: Widths of the hidden layers, or three channel numbers, from Z to X.
        per_cell: One output head per cell instead of one on Z alone.
        variance: `analytic` (maximises the objective), `learned` by gradient, or `fixed`.
        variance_initial: Variance before the first update (the value, if fixed), in standardised units.
        variance_floor: Smallest variance while training, in standardised units.
    """

    kind: Literal["mlp", "convolutional"] = "mlp"
    sizes: tuple[int, ...] = (16, 32, 64, 128)
    per_cell: bool = False
    variance: VarianceKind = "analytic"
    variance_initial: float = 1.0
    variance_floor: float = 0.05


@dataclass(frozen=True)
class ModalityConfig:
    """How one modality enters the model.

    Attributes:
        encoder: q(Z | X_m).
        decoder: p(X_m | Z, N).
        standardise: Subtract the mean and divide by the standard deviation of all elements (training split).
    """

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    decoder: DecoderConfig = field(default_factory=DecoderConfig)
    standardise: bool = True


@dataclass(frozen=True)
class ModelConfig:
    """The generative model.

    Attributes:
        latent_dim: Dimension of Z.
        covariance: Covariance of the mixture components.
    """

    latent_dim: int = 2
    covariance: Covariance = "full"


@dataclass(frozen=True)
class GuideConfig:
    """The guide.

    Attributes:
        prior_expert: Add the standard normal as one more expert to the product.
    """

    prior_expert: bool = False


@dataclass(frozen=True)
class PretrainingConfig:
    """Pretraining of encoders and decoders, before there are clusters (paper, section 3.3).

    Attributes:
        kind: `vae` (unit-normal prior), `reconstruction` (no prior term), or `none`.
        epochs: Number of epochs.
        kl_warmup: Epochs over which the weight of the prior term rises from 0 to 1.
    """

    kind: Literal["vae", "reconstruction", "none"] = "vae"
    epochs: int = 20
    kl_warmup: int = 20


@dataclass(frozen=True)
class TrainingConfig:
    """Joint training.

    Attributes:
        epochs: Number of epochs after pretraining.
        batch_size: Samples per gradient step.
        learning_rate: Adam's step size for encoders and decoders.
        validation_fraction: Share of the samples held out for early stopping and held-out figures.
        patience: Stop after so many epochs without a better held-out objective; 0 never stops early.
    """

    epochs: int = 10
    batch_size: int = 256
    learning_rate: float = 1e-3
    validation_fraction: float = 0.1
    patience: int = 20


@dataclass(frozen=True)
class GraphConfig:
    """Training of the graph.

    Attributes:
        learning_rate: Adam's step size for node scores, edge weights and tables.
        start_steps: Gradient steps that fit p(N) to the clusters when they are read out.
        extra_steps: Gradient steps on p(N) alone after every mixture update.
        temperature_start: β at the first epoch of joint training.
        temperature_end: β at the last epoch; geometric in between.
        noise_start: Standard deviation of the noise on node scores at the first epoch.
        noise_end: The same at the last epoch; linear in between.
        edge_rate: Rate of the exponential prior on every edge weight; 0 is flat.
    """

    learning_rate: float = 1e-2
    start_steps: int = 300
    extra_steps: int = 20
    temperature_start: float = 1.0
    temperature_end: float = 0.05
    noise_start: float = 0.5
    noise_end: float = 0.0
    edge_rate: float = 0.0


@dataclass(frozen=True)
class MixtureConfig:
    """Closed-form updates of the mixture.

    Attributes:
        updates_per_epoch: Updates per epoch, spread evenly; 0 keeps the mixture as it was started.
        gaussians: `several` Gaussians per cell as read out, or `one` per cell.
        pseudo_count: Weight of the prior on covariances and shares, in samples.
        variance_floor: Smallest variance of a component in any direction.
    """

    updates_per_epoch: int = 1
    gaussians: Literal["several", "one"] = "several"
    pseudo_count: float = 1e-3
    variance_floor: float = 1e-4


@dataclass(frozen=True)
class ReadOutConfig:
    """Reading clusters out of the embedding (docs/recipe.md).

    Attributes:
        sizes: Numbers of Gaussians tried before merging to the number of cells; empty: 1.5 to 2.5 times that number.
        n_init: Initialisations per size.
        final: Read the clusters out once more after joint training.
    """

    sizes: tuple[int, ...] = ()
    n_init: int = 2
    final: bool = True


@dataclass(frozen=True)
class FitConfig:
    """All that determines a fit, next to the data.

    Attributes:
        nodes: Outcomes per node, by name.
        seed: Seed of everything random.
        objective: Evidence lower bound to maximise.
        model: The generative model.
        guide: The guide.
        pretraining: Pretraining.
        training: Joint training.
        graph: Training of the graph.
        mixture: Mixture updates.
        read_out: Cluster read-out.
        modality: Encoder, decoder and scaling per modality.
    """

    nodes: Mapping[str, int]
    seed: int = 0
    objective: ObjectiveName = "collapsed"
    model: ModelConfig = field(default_factory=ModelConfig)
    guide: GuideConfig = field(default_factory=GuideConfig)
    pretraining: PretrainingConfig = field(default_factory=PretrainingConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    graph: GraphConfig = field(default_factory=GraphConfig)
    mixture: MixtureConfig = field(default_factory=MixtureConfig)
    read_out: ReadOutConfig = field(default_factory=ReadOutConfig)
    modality: Mapping[str, ModalityConfig] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Copies: no change from outside, and plain dicts for JSON.
        object.__setattr__(self, "nodes", dict(self.nodes))
        object.__setattr__(self, "modality", dict(self.modality))
        for name, rule in _RULES.items():
            _check(name, operator.attrgetter(name)(self), rule)
        _check_nodes(self.nodes)
        _check_sizes(self.read_out.sizes, math.prod(self.outcomes))
        for name, modality in self.modality.items():
            _check_modality(name, modality)

    @property
    def outcomes(self) -> tuple[int, ...]:
        """Outcomes per node."""
        return tuple(self.nodes.values())

    @property
    def pretraining_epochs(self) -> int:
        """Epochs of pretraining that are run."""
        return 0 if self.pretraining.kind == "none" else self.pretraining.epochs

    @property
    def total_epochs(self) -> int:
        """Planned epochs of pretraining and joint training together."""
        return self.pretraining_epochs + self.training.epochs

    def to_dict(self) -> dict[str, Any]:
        """Nested plain values, as `config.yaml` has them."""
        plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        return plain

    def fingerprint(self, data_fingerprint: str) -> str:
        """Hash of the configuration and the data; a checkpoint of another hash is not resumed."""
        content = json.dumps([self.to_dict(), list(self.nodes), data_fingerprint], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


_Rule = tuple[Callable[[float], bool], str]

_POSITIVE: _Rule = (lambda value: 0 < value < math.inf, "> 0")
_NOT_NEGATIVE: _Rule = (lambda value: 0 <= value < math.inf, ">= 0")
_SHARE: _Rule = (lambda value: 0 <= value < 1, "in [0, 1)")
_SEED: _Rule = (lambda value: 0 <= value < 2**32, "in [0, 2**32)")
_RULES: Mapping[str, _Rule] = {
    "seed": _SEED,
    "model.latent_dim": _POSITIVE,
    "pretraining.epochs": _NOT_NEGATIVE,
    "pretraining.kl_warmup": _NOT_NEGATIVE,
    "training.epochs": _NOT_NEGATIVE,
    "training.batch_size": _POSITIVE,
    "training.learning_rate": _POSITIVE,
    "training.validation_fraction": _SHARE,
    "training.patience": _NOT_NEGATIVE,
    "graph.learning_rate": _POSITIVE,
    "graph.start_steps": _NOT_NEGATIVE,
    "graph.extra_steps": _NOT_NEGATIVE,
    "graph.temperature_start": _POSITIVE,
    "graph.temperature_end": _POSITIVE,
    "graph.noise_start": _NOT_NEGATIVE,
    "graph.noise_end": _NOT_NEGATIVE,
    "graph.edge_rate": _NOT_NEGATIVE,
    "mixture.updates_per_epoch": _NOT_NEGATIVE,
    "mixture.pseudo_count": _POSITIVE,
    "mixture.variance_floor": _POSITIVE,
    "read_out.n_init": _POSITIVE,
}


def _check(name: str, value: float, rule: _Rule) -> None:
    holds, expected = rule
    if not holds(value):
        raise ValueError(f"{name}: expected a number {expected}, got {value}")


def _check_nodes(nodes: Mapping[str, int]) -> None:
    if not nodes:
        raise ValueError("nodes: expected at least one node, got none; give the outcomes per node, for example 2,2")
    for name, outcomes in nodes.items():
        if not isinstance(outcomes, int) or outcomes < 2:
            raise ValueError(f"nodes: expected at least 2 outcomes for {name}, an integer, got {outcomes!r}")


def _check_sizes(sizes: tuple[int, ...], n_cells: int) -> None:
    if any(size < n_cells for size in sizes):
        raise ValueError(
            f"read_out.sizes: expected at least {n_cells} Gaussians, one per cell, got {list(sizes)}; "
            "leave it empty to have them chosen"
        )


def _check_modality(name: str, modality: ModalityConfig) -> None:
    for part, sizes in (("encoder", modality.encoder.sizes), ("decoder", modality.decoder.sizes)):
        if any(size < 1 for size in sizes):
            raise ValueError(f"modality.{name}.{part}.sizes: expected widths >= 1, got {list(sizes)}")
    for part in ("variance_initial", "variance_floor"):
        _check(f"modality.{name}.decoder.{part}", getattr(modality.decoder, part), _POSITIVE)


def paper_settings(config: FitConfig) -> FitConfig:
    """The settings that the paper states, for the record: they do not train (docs/errata.md item 21).

    Learning rate 1e-6 for everything, unit decoder variance, the paper's objective, one Gaussian per cell with
    diagonal covariance, and no second read-out.
    """
    rate = 1e-6
    modality = {
        name: dataclasses.replace(
            entry, decoder=dataclasses.replace(entry.decoder, variance="fixed", variance_initial=1.0)
        )
        for name, entry in config.modality.items()
    }
    return dataclasses.replace(
        config,
        objective="paper",
        model=dataclasses.replace(config.model, covariance="diagonal"),
        training=dataclasses.replace(config.training, learning_rate=rate),
        graph=dataclasses.replace(config.graph, learning_rate=rate),
        mixture=dataclasses.replace(config.mixture, gaussians="one"),
        read_out=dataclasses.replace(config.read_out, final=False),
        modality=modality,
    )
