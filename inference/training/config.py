"""Everything that determines a fit, as frozen dataclasses; the command line makes its flags from them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from causalpima.inference.clusters.clustering import Shape
from causalpima.inference.data.multimodal import ModalityKind, MultimodalData
from causalpima.inference.graphs.dags import KnowledgeConfig
from causalpima.inference.objectives.responsibilities import ObjectiveName
from causalpima.inference.store.files import to_json
from causalpima.inference.training.limits import check_settings
from causalpima.models.batch import Transform
from causalpima.models.decoders.base import VarianceKind, VariancePer
from causalpima.models.decoders.likelihoods import LikelihoodName
from causalpima.models.decoders.physics.decoder import ParameterSource
from causalpima.models.mixture import Covariance

__all__ = [
    "DecoderConfig",
    "DistillationConfig",
    "EncoderConfig",
    "EnvironmentsConfig",
    "Experiment",
    "FitConfig",
    "GraphConfig",
    "GuideConfig",
    "KnowledgeConfig",
    "MixtureConfig",
    "ModalityConfig",
    "ModelConfig",
    "ObserveConfig",
    "PretrainingConfig",
    "ReadOutConfig",
    "TrainingConfig",
    "default_batch_size",
    "default_config",
    "default_modality",
    "from_plain",
    "paper_settings",
]


# How one modality enters a fit: encoder, decoder, scaling.


@dataclass(frozen=True)
class EncoderConfig:
    """Encoder of one modality.

    Attributes:
        kind: `mlp` for anything, `convolutional` for images, `curve` for curves, or your own as `module:function`
            (docs/components.md).
        sizes: Widths of the hidden layers, or channels of the convolutions, from X to Z.
    """

    kind: str = "mlp"
    sizes: tuple[int, ...] = (128, 64, 32, 16)


@dataclass(frozen=True)
class DecoderConfig:
    """Decoder of one modality.

    Attributes:
        kind: `mlp` for anything, `convolutional` for images; for curves a physics law: `piecewise_linear`, `linear`,
            `power_law`, `peaks`, `damped_oscillation`, or your own as `module:Class` (docs/physics.md); a network of
            your own as `module:function` (docs/components.md).
        sizes: Widths of the hidden layers, or three channel numbers, from Z to X; of a physics law those behind
            `source` latent.
        per_cell: One output head per cell instead of one on Z alone; not for physics laws.
        likelihood: `normal`, `student_t` (outliers), `bernoulli` (masks), `categorical`, `poisson` or
            `negative_binomial` (counts); physics laws are normal (docs/likelihoods.md).
        source: What the parameters of a physics law come from: a table per `cell`, a network of the `latent`, or
            `both`.
        options: Arguments of a physics law.
        variance: `analytic` (maximises the objective), `learned` by gradient, or `fixed`.
        variance_initial: Variance before the first update (the value, if fixed), in standardised units.
        variance_floor: Smallest variance while training, in standardised units.
        variance_per: What the variance that is reported after training is one number for: every `element` of the
            modality, or the whole `modality`. These four are of the likelihood `normal`.
    """

    kind: str = "mlp"
    sizes: tuple[int, ...] = (16, 32, 64, 128)
    per_cell: bool = False
    likelihood: LikelihoodName = "normal"
    source: ParameterSource = "cell"
    options: dict[str, Any] = field(default_factory=dict)
    variance: VarianceKind = "analytic"
    variance_initial: float = 1.0
    variance_floor: float = 0.05
    variance_per: VariancePer = "element"


@dataclass(frozen=True)
class ModalityConfig:
    """How one modality enters the model.

    Attributes:
        encoder: q(Z | X_m).
        decoder: p(X_m | Z, N).
        standardise: Subtract the mean and divide by the standard deviation of all elements (training split), after the
            transform; by median and median distance where the likelihood is `student_t`; not at all where it is neither
            this nor `normal`.
        transform: `identity`, `log` (positive values over decades) or `asinh` (the same, touching zero).
        transform_knee: Size at which `asinh` turns from linear to logarithmic, in the unit of the data; 0: the 10 %
            quantile of the sizes of the training values.
        weight: Power that the likelihood is raised to: how much the modality counts (docs/fair_weights.md).
    """

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    decoder: DecoderConfig = field(default_factory=DecoderConfig)
    standardise: bool = True
    transform: Transform = "identity"
    transform_knee: float = 0.0
    weight: float = 1.0


# What is known of nodes besides the measurements: labels, environments, and the graph.


@dataclass(frozen=True)
class ObserveConfig:
    """Labels that tell the outcomes of nodes for some samples (docs/names_and_labels.md).

    Attributes:
        variables: Node -> the variable of the data that holds its outcomes; in short `--observe NODE=VARIABLE,...`, or
            `--observe NODE` for a variable of the same name.
        fraction: Share of the labelled samples whose labels are used, drawn at random: for experiments.
        use: `names`: labels number and name the clusters that are read out. `training`: they also tell N of their
            samples in the model during joint training.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    fraction: float = 1.0
    use: Literal["names", "training"] = "names"

    def __post_init__(self) -> None:
        if isinstance(self.variables, Mapping):  # anything else is refused by `check_settings`, by name
            object.__setattr__(self, "variables", dict(self.variables))


@dataclass(frozen=True)
class EnvironmentsConfig:
    """Environments, samples of which were taken under an intervention upon one node each (docs/environments.md).

    Attributes:
        kind: `do`: interventions cut their node from its causes, and name the clusters; `none`: environments are
            further samples. `soft`: a node goes on to depend on its causes; these name nothing, and direct edges
            between nodes that a mask or labels name.
        targets: Environment -> the node that is intervened upon; those without an entry are searched.
    """

    kind: Literal["none", "do", "soft"] = "none"
    targets: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.targets, Mapping):  # anything else is refused by `check_settings`, by name
            object.__setattr__(self, "targets", dict(self.targets))


@dataclass(frozen=True)
class ModelConfig:
    """The generative model.

    Attributes:
        prior: p(N) and p(Z | N). `dag`: causalPIMA, a mixture over the cells of a graph. `mixture`: with free weights.
            `nodewise`: a block of Z per node. `standard`: N(0, I) while training (docs/priors.md). `linear_scm`: linear
            structural equations between blocks that labels tell (docs/linear_scm.md).
        latent_dim: Dimension of Z; of every modality's block of it under a mask, of every node's with `nodewise`.
        covariance: Covariance of the mixture components.
        likelihood_scaling: `none`: every element counts alike, so that large modalities count more. `dimension`: every
            modality counts as if it had the mean number of elements.
        graph: `hodge`: learned by gradients, as in the paper. `exact`: a hard graph, searched anew at every update of
            the mixture. `complete`: p(N) is free. `empty`: nodes are independent. `fixed:FILE`: as a file has it
            (docs/dag.md). `notears`, `dagma`, `nocurl`: rivals learned by gradients. `posthoc:pc`, `posthoc:ges`,
            `posthoc:lingam`: p(N) is free, and causal-learn looks for a graph after the fit (docs/rival_graphs.md).
        edges: The edges of `fixed`, as `A->B`.
    """

    prior: str = "dag"
    latent_dim: int = 2
    covariance: Covariance = "full"
    likelihood_scaling: Literal["none", "dimension"] = "none"
    graph: str = "hodge"
    edges: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.edges, list):  # as files have it
            object.__setattr__(self, "edges", tuple(self.edges))


@dataclass(frozen=True)
class GuideConfig:
    """The guide.

    Attributes:
        fusion: How q(Z | X) is made of the encoders. `poe`: product of experts, as in the paper. `moe`: their mixture.
            `mopoe`: the mixture of the products of all sets of them. `concat`: a network of all (docs/fusion.md).
        prior_expert: Add the standard normal as one more expert to every product.
        graph: `point`: one graph, as in the paper. `bayesian`: a distribution over scores, edges and tables, with a
            declared prior (docs/mcmc.md).
    """

    fusion: str = "poe"
    prior_expert: bool = False
    graph: Literal["point", "bayesian"] = "point"


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
        test_fraction: Share of the samples kept for the evaluation alone.
        patience: Stop after so many epochs without a better held-out objective; 0 never stops early.
        kl_warmup: Epochs over which the weight of all terms but the likelihoods rises to `kl_weight`; 0: as it is.
        modality_dropout: Probability with which the encoders do not see a modality of a sample in a gradient step,
            although the decoders explain it; one modality is always seen.
    """

    epochs: int = 10
    batch_size: int = 256
    learning_rate: float = 1e-3
    validation_fraction: float = 0.1
    test_fraction: float = 0.0
    patience: int = 20
    kl_warmup: int = 0
    modality_dropout: float = 0.0


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
        pseudo_count: Samples added to every entry of a table in closed form: its Dirichlet prior.
        edge_penalty: Of `notears`, `dagma` and `nocurl`, weight of the sum of all edge strengths, in nats per sample.
        table_penalty: The same of half the sum of squares of the logits of their tables.
        acyclicity_tolerance: tr exp(E∘E) - L at which `notears` is without cycles.
    """

    learning_rate: float = 1e-2
    start_steps: int = 300
    extra_steps: int = 20
    temperature_start: float = 1.0
    temperature_end: float = 0.05
    noise_start: float = 0.5
    noise_end: float = 0.0
    edge_rate: float = 0.0
    pseudo_count: float = 0.5
    edge_penalty: float = 0.01
    table_penalty: float = 0.01
    acyclicity_tolerance: float = 1e-8


@dataclass(frozen=True)
class MixtureConfig:
    """Updates of the mixture.

    Attributes:
        updates: `em`: in closed form, as in the paper. `gradient`: means, scales and shares of the components are moved
            by Adam with the networks (docs/priors.md).
        updates_per_epoch: Updates per epoch, spread evenly; 0 keeps the mixture as it was started. With `gradient` they
            are updates of p(N) alone.
        gaussians: `several` Gaussians per cell as read out, or `one` per cell. Under a mask each level has one.
        pseudo_count: Weight of the prior on covariances and shares, in samples.
        variance_floor: Smallest variance of a component in any direction.
    """

    updates: Literal["em", "gradient"] = "em"
    updates_per_epoch: int = 1
    gaussians: Literal["several", "one"] = "several"
    pseudo_count: float = 1e-3
    variance_floor: float = 1e-4


@dataclass(frozen=True)
class ReadOutConfig:
    """Reading clusters out of the embedding (docs/recipe.md).

    Attributes:
        shape: `curved`: an over-complete mixture of full Gaussians, merged; `round`: k-means and one covariance for
            all; `auto`: curved where there are enough samples for the dimension of Z.
        sizes: Numbers of Gaussians tried before merging to the number of cells; empty: 1.5 to 2.5 times that number.
        n_init: Initialisations per size.
        final: Read the clusters out once more after joint training.
    """

    shape: Shape = "auto"
    sizes: tuple[int, ...] = ()
    n_init: int = 3
    final: bool = True


@dataclass(frozen=True)
class DistillationConfig:
    """After joint training: encoders for samples with one modality alone, taught by the fused q(Z|X).

    Attributes:
        epochs: Epochs of distillation; 0 leaves such samples to the encoder that was trained as one expert of several.
    """

    epochs: int = 0


@dataclass(frozen=True)
class FitConfig:
    """All that determines a fit, next to the data.

    Attributes:
        nodes: Outcomes per node, by name.
        seed: Seed of everything random.
        restart: Which of several starts: other weights, batches and draws, on the same split.
        objective: Evidence lower bound to maximise.
        kl_weight: β of E log p(X|Z,N) - β KL, what training maximises: 1 is the bound (docs/priors.md).
        model: The generative model.
        guide: The guide.
        pretraining: Pretraining.
        training: Joint training.
        graph: Training of the graph.
        mixture: Mixture updates.
        read_out: Cluster read-out.
        distillation: Unimodal encoders.
        observe: Labels of nodes.
        environments: Environments with interventions.
        knowledge: What is known of the graph (docs/knowledge.md).
        read_outs: Modality -> `moments`, `values` or `module:function`: quantities that the nodes' effects are declared
            to add up in; {} declares none (docs/read_outs.md).
        independent_nodes: Declare the nodes independent of each other (docs/read_outs.md).
        modality: Encoder, decoder and scaling per modality.
        mask: Per modality, the nodes that it sees; empty: all see all (docs/masks.md).
    """

    nodes: Mapping[str, int]
    seed: int = 0
    restart: int = 0
    objective: ObjectiveName = "collapsed"
    kl_weight: float = 1.0
    model: ModelConfig = field(default_factory=ModelConfig)
    guide: GuideConfig = field(default_factory=GuideConfig)
    pretraining: PretrainingConfig = field(default_factory=PretrainingConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    graph: GraphConfig = field(default_factory=GraphConfig)
    mixture: MixtureConfig = field(default_factory=MixtureConfig)
    read_out: ReadOutConfig = field(default_factory=ReadOutConfig)
    distillation: DistillationConfig = field(default_factory=DistillationConfig)
    observe: ObserveConfig = field(default_factory=ObserveConfig)
    environments: EnvironmentsConfig = field(default_factory=EnvironmentsConfig)
    knowledge: KnowledgeConfig = field(default_factory=KnowledgeConfig)
    read_outs: Mapping[str, str] = field(default_factory=dict)
    independent_nodes: bool = False
    modality: Mapping[str, ModalityConfig] = field(default_factory=dict)
    mask: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Copies: no change from outside, and plain dicts for JSON.
        object.__setattr__(self, "nodes", {name: _plain_integer(value) for name, value in self.nodes.items()})
        object.__setattr__(self, "seed", _plain_integer(self.seed))
        object.__setattr__(self, "restart", _plain_integer(self.restart))
        object.__setattr__(self, "modality", dict(self.modality))
        if isinstance(self.mask, Mapping):  # anything else is refused by `check_settings`, by name
            object.__setattr__(self, "mask", {name: _as_tuple(nodes) for name, nodes in self.mask.items()})
        if isinstance(self.read_outs, Mapping):
            object.__setattr__(self, "read_outs", dict(self.read_outs))
        check_settings(self)

    @property
    def outcomes(self) -> tuple[int, ...]:
        """Outcomes per node."""
        return tuple(self.nodes.values())

    @property
    def visible(self) -> dict[str, tuple[int, ...]]:
        """Per modality of the mask, the positions of the nodes that it sees, in the order of the nodes."""
        position = {node: index for index, node in enumerate(self.nodes)}
        return {name: tuple(sorted(position[node] for node in nodes)) for name, nodes in self.mask.items()}

    @property
    def start_seed(self) -> int:
        """Seed of weights, batches and draws: `seed` itself of the first start, derived from it of the others."""
        if self.restart == 0:
            return self.seed
        return int(np.random.SeedSequence((self.seed, self.restart)).generate_state(1)[0])

    @property
    def pretraining_epochs(self) -> int:
        """Epochs of pretraining that are run."""
        return 0 if self.pretraining.kind == "none" else self.pretraining.epochs

    @property
    def total_epochs(self) -> int:
        """Planned epochs of pretraining, joint training and distillation together."""
        return self.pretraining_epochs + self.training.epochs + self.distillation.epochs

    def to_dict(self) -> dict[str, Any]:
        """Nested plain values, as `config.yaml` has them."""
        plain: dict[str, Any] = json.loads(to_json(dataclasses.asdict(self)))
        return plain

    def fingerprint(self, data_fingerprint: str, own_code: Mapping[str, str] | None = None) -> str:
        """Hash of the configuration and the data; a checkpoint of another hash is not resumed.

        Args:
            data_fingerprint: Hash of the data.
            own_code: Hash of the files of every component of a user's own, by setting (`own_code.source_hashes`).
        """
        parts = [self.to_dict(), list(self.nodes), data_fingerprint, *([dict(own_code)] if own_code else [])]
        content = json.dumps(parts, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()


def _as_tuple(nodes: Any) -> Any:
    return tuple(nodes) if isinstance(nodes, list) else nodes


def _plain_integer(value: Any) -> Any:
    return int(value) if isinstance(value, numbers.Integral) and not isinstance(value, bool) else value


# From nested plain values, as files have them, back to the dataclasses of a configuration.


T = TypeVar("T")


def from_plain(kind: type[T], values: Mapping[str, Any]) -> T:
    """An object of a dataclass; the inverse of `dataclasses.asdict` for nested dataclasses, mappings and tuples.

    Args:
        kind: The dataclass.
        values: Its fields by name; those that are not there keep their defaults.

    Raises:
        ValueError: A field that the dataclass does not have.
    """
    hints = get_type_hints(kind)
    odd = sorted(set(values) - set(hints))
    if odd:
        raise ValueError(f"{kind.__name__}: expected settings {', '.join(hints)}, got {', '.join(odd)}")
    return kind(**{name: _value(hints[name], value) for name, value in values.items()})


def _value(hint: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return from_plain(hint, value)
    if get_origin(hint) is tuple:
        return tuple(_value(get_args(hint)[0], entry) for entry in value)
    arguments = get_args(hint)
    if isinstance(value, Mapping) and len(arguments) == 2 and dataclasses.is_dataclass(arguments[1]):
        return {key: _value(arguments[1], entry) for key, entry in value.items()}
    return value


# The settings that the paper states.


def paper_settings(config: FitConfig) -> FitConfig:
    """The settings that the paper states, for the record: they do not train (docs/errata.md item 21).

    Learning rate 1e-6 for everything, unit decoder variance, one per modality, the paper's objective, one Gaussian per
    cell with diagonal covariance, the graph learned by gradients, and no second read-out.
    """
    rate = 1e-6
    unit: dict[str, Any] = {"variance": "fixed", "variance_initial": 1.0, "variance_per": "modality"}
    modality = {
        name: dataclasses.replace(entry, decoder=dataclasses.replace(entry.decoder, **unit))
        for name, entry in config.modality.items()
    }
    return dataclasses.replace(
        config,
        objective="paper",
        kl_weight=1.0,
        model=dataclasses.replace(config.model, prior="dag", covariance="diagonal", graph="hodge", edges=()),
        guide=dataclasses.replace(config.guide, fusion="poe"),
        training=dataclasses.replace(config.training, learning_rate=rate, kl_warmup=0),
        graph=dataclasses.replace(config.graph, learning_rate=rate),
        mixture=dataclasses.replace(config.mixture, gaussians="one", updates="em"),
        read_out=dataclasses.replace(config.read_out, final=False),
        modality=modality,
    )


# Settings for data that come without any: networks by kind, batches by the number of samples.


_DISTILLATION_EPOCHS = 20
_SHORTEST_CURVE = 4  # two convolutions of width 3 leave nothing of it


def default_config(data: MultimodalData, nodes: Mapping[str, int]) -> FitConfig:
    """The configuration for samples of which nothing else is known.

    Several modalities: unimodal encoders are distilled, or else what samples with one of them alone are said to be is
    wrong with confidence (docs/missing.md).

    Args:
        data: The samples.
        nodes: Outcomes per node, by name.
    """
    return FitConfig(
        nodes=nodes,
        training=TrainingConfig(batch_size=default_batch_size(data.n_samples)),
        distillation=DistillationConfig(_DISTILLATION_EPOCHS if _overlap(data) else 0),
        modality={name: default_modality(kind, data.modalities[name].shape[1:]) for name, kind in data.kinds.items()},
    )


def default_batch_size(n_samples: int) -> int:
    """256, or less for fewer samples: the default number of epochs needs about 16 steps in each to get anywhere."""
    return min(256, max(8, n_samples // 16))


def _overlap(data: MultimodalData) -> bool:
    """Whether some sample has two modalities, so that the one can be taught by the other."""
    return bool((np.sum(list(data.present.values()), axis=0) > 1).any())


def default_modality(kind: ModalityKind, shape: Sequence[int]) -> ModalityConfig:
    """Networks by the kind of a modality: 1-D convolutions encode curves, unless too short, perceptrons do the rest.

    Args:
        kind: The kind.
        shape: Shape of one sample.
    """
    if kind == "curve" and shape[0] > _SHORTEST_CURVE:
        return ModalityConfig(EncoderConfig("curve", (8, 16)), DecoderConfig("mlp", (16, 32, 64)))
    return ModalityConfig()


# A named experiment: data with the configuration that goes with them.


@dataclass(frozen=True)
class Experiment:
    """Data and configuration under one name.

    Attributes:
        make: Makes the data; its arguments (but `seed`) become flags of the command line.
        config: Configuration for these data.
        options: Arguments of `make` that differ from its defaults.
    """

    make: Callable[..., MultimodalData]
    config: FitConfig
    options: Mapping[str, Any] = field(default_factory=dict)
