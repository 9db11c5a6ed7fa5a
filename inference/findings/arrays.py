"""What a finished fit hands to export, figures and reports: plain NumPy arrays, no tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from causalpima.inference.clusters.design import DesignedNode
from causalpima.inference.data.multimodal import Axis, ModalityKind
from causalpima.inference.findings.explained_variance import VarianceExplained
from causalpima.inference.store.files import write_atomically
from causalpima.inference.store.input_files import open_regular

if TYPE_CHECKING:
    from causalpima.inference.findings.linear_model import LinearModelArrays

__all__ = [
    "CurveArrays",
    "FitArrays",
    "FoundStart",
    "GraphArrays",
    "MixtureArrays",
    "ModalityArrays",
    "PhysicsArrays",
    "PosteriorDraws",
    "RestartArrays",
    "StartArrays",
    "read_start",
    "write_start",
]


@dataclass(frozen=True)
class GraphArrays:
    """The directed acyclic graph over the nodes, as learned.

    Rows are causes and columns are effects, everywhere: `edge_strength[i, j]` belongs to i -> j.

    Attributes:
        node_names: Names of the L nodes.
        outcome_names: Names of the outcomes of each node.
        edge_strength: Soft edge indicators `[L, L]` at the final temperature, in [0, 1]; NaN where p(N) has a weight of
            its own for every cell and no graph.
        adjacency: `[L, L]` of 0 and 1, `edge_strength > 0.5`; acyclic.
        log_joint: log p(N), `[C_1, ..., C_L]`.
        log_joint_environment: log p(N | e) of the environments that the model tells apart, `[1 + E, C_1, ..., C_L]`;
            None where there are none.
        environment_names: What they are called; empty where there are none.
        conditional_tables: p(N_l | parents) per node, `[L, C_1, ..., C_L]`, normalised over axis l.
        node_score: Node scores, `[L]`.
        edge_weight: Symmetric non-negative edge weights, `[L, L]`.
        temperature: Final temperature.
        variational_edges: q(i -> j) of a guide over graphs, `[L, L]`; None where the guide has one graph.
        linear_model: The linear structural equation model that was trained (`model.prior=linear_scm`), or None.
    """

    node_names: tuple[str, ...]
    outcome_names: tuple[tuple[str, ...], ...]
    edge_strength: np.ndarray
    adjacency: np.ndarray
    log_joint: np.ndarray
    conditional_tables: np.ndarray
    node_score: np.ndarray
    edge_weight: np.ndarray
    temperature: float
    variational_edges: np.ndarray | None = None
    log_joint_environment: np.ndarray | None = None
    environment_names: tuple[str, ...] = ()
    linear_model: LinearModelArrays | None = None


@dataclass(frozen=True)
class MixtureArrays:
    """The Gaussian mixture on the latent space; K components, each of one cell (K >= C).

    Attributes:
        loc: Component means `[K, J]`.
        covariance: Component covariances `[K, J, J]`.
        weight: Weight of each component in p(Z), `[K]`: p(cell) times its share of the cell; sums to 1.
        cell: Index of the cell of each component, `[K]`, row-major over `[C_1, ..., C_L]`.
    """

    loc: np.ndarray
    covariance: np.ndarray
    weight: np.ndarray
    cell: np.ndarray


@dataclass(frozen=True)
class PhysicsArrays:
    """Parameters of a physics law per cell, in their units, with uncertainty given the clusters (docs/physics.md).

    Attributes:
        names: Names of the P parameters.
        units: Their units.
        value: Estimates `[C, P]`.
        standard_error: `[C, P]`; NaN where the data do not determine it.
        lower: Lower end of the 95 % interval, `[C, P]`.
        upper: Upper end, `[C, P]`.
        status: `ok`, or why there is no interval, `[C, P]` of str.
        effective_samples: Number of independent samples behind each cell, `[C]`.
        curve: The law at the estimates, `[C, position]`.
        curve_lower: Lower end of its pointwise 95 % band, `[C, position]`.
        curve_upper: Upper end, `[C, position]`.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    value: np.ndarray
    standard_error: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    status: np.ndarray
    effective_samples: np.ndarray
    curve: np.ndarray
    curve_lower: np.ndarray
    curve_upper: np.ndarray


@dataclass(frozen=True)
class CurveArrays:
    """Measured curves of each cell, and the band in which the model expects new ones.

    Attributes:
        examples: Measured curves of the samples of each cell, at most E of them, `[C, E, position]`; NaN where an
            element is missing and after the last curve of a cell.
        lower: Two predictive standard deviations below the mean of the cell, `[C, position]`; None where the
            likelihood has no scale (Bernoulli, categories).
        upper: Two above it, `[C, position]`.
    """

    examples: np.ndarray
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None


@dataclass(frozen=True)
class ModalityArrays:
    """One modality in the units of the data.

    Attributes:
        kind: `image` ([height, width, channel]), `curve` or `vector`.
        exemplars: The measured sample nearest to the mean of each cell `[C, *shape]`; NaN where a cell is empty
            or no present sample exists.
        decoded: Decoded mean of each cell `[C, *shape]`.
        variance_training: Decoder variance used while training (floored); None where the likelihood has none.
        variance: Decoder variance re-estimated after training, without the floor, over all elements; on the scale of
            the transform.
        unit: Unit of the values; empty if there is none.
        axis: Positions of a curve, or None.
        likelihood: `normal`, `poisson`, ...
        transform: Transform under which the likelihood is stated.
        physics: Estimates of the parameters of a physics law, per cell, or None.
        missing_elements: Share of the elements that are missing in the samples that have the modality.
        knee: Where the transform `asinh` turns from linear to logarithmic, in the unit of the values.
        curves: What is drawn of measured curves beside the decoded ones; None for other kinds.
        noise_sd: Standard deviation of a Gaussian decoder in every element, `[*shape]`, as intervals have it, on the
            scale of the transform; None where the likelihood has none.
        interval: Of a vector, two predictive standard deviations below and above the mean of each cell, `[C, *shape]`
            each; None for other kinds, and where the likelihood has no scale.
    """

    kind: ModalityKind
    exemplars: np.ndarray
    decoded: np.ndarray
    variance_training: float | None
    variance: float | None
    unit: str = ""
    axis: Axis | None = None
    likelihood: str = "normal"
    transform: str = "identity"
    physics: PhysicsArrays | None = None
    missing_elements: float = 0.0
    knee: float = 1.0
    curves: CurveArrays | None = None
    noise_sd: np.ndarray | None = None
    interval: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def band(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Where the model expects samples of each cell, `[C, *shape]` each: of curves and vectors, if they have one."""
        if self.curves is None or self.curves.lower is None or self.curves.upper is None:
            return self.interval
        return self.curves.lower, self.curves.upper


@dataclass(frozen=True)
class PosteriorDraws:
    """Draws from the guide for a bounded subset of samples (D draws, S samples, S <= 512).

    Attributes:
        samples: Indices of the S samples in the data set.
        latent: `[D, S, J]` draws of Z from q(Z|X).
        nodes: `[D, S, L]` integer draws of N from p(N | Z, X).
        log_weight: `[D, S]` log p(X, Z) - log q(Z|X), the importance weights behind k-hat.
        log_likelihood: Per modality `[D, S]` log p(X_m | Z, N); NaN where absent.
        predictive_samples: Indices of the P <= S samples that have predictive draws.
        predictive: Per modality `[D, P, *shape]`, draws of X_m given Z and N.
        prior_latent: `[D, J]` draws of Z from the prior.
        prior_nodes: `[D, L]` integer draws of N from the prior.
        log_weight_without_cells: `[D, S]`, `log_weight` under the prior without cells that was trained, before clusters
            were read out; None where the prior has cells.
    """

    samples: np.ndarray
    latent: np.ndarray
    nodes: np.ndarray
    log_weight: np.ndarray
    log_likelihood: Mapping[str, np.ndarray]
    predictive_samples: np.ndarray
    predictive: Mapping[str, np.ndarray]
    prior_latent: np.ndarray
    prior_nodes: np.ndarray
    log_weight_without_cells: np.ndarray | None = None


@dataclass(frozen=True)
class FitArrays:
    """A finished fit in arrays: n samples, C cells, K components, J latent dimensions, L nodes.

    Attributes:
        dataset: Name of the data set.
        seed: Seed of the fit.
        objective: `collapsed`, `meanfield` or `paper`.
        status: `ok`, `collapsed` or `diverged`.
        responsibilities: q(N|X) per cell, `[n, C]`, cells row-major over `[C_1, ..., C_L]`.
        latent_loc: Mean of q(Z|X), `[n, J]`.
        latent_scale: Standard deviation of q(Z|X), `[n, J]`.
        graph: The graph over the nodes.
        mixture: The mixture on the latent space.
        modalities: Per modality, exemplars, decoded means and variances.
        present: Per modality, bool `[n]`.
        observed: Per modality, the measured values `[P, *shape]` of `draws.predictive_samples`.
        factors: Known factors, integer codes `[n]`.
        factor_levels: Names of the levels of each factor.
        scored_factors: Those that the fit is scored against; none: all of them.
        measurements: Known continuous quantities `[n]`.
        split: `train`, `validation` or `test` per sample, `[n]` of str.
        bayes_ceiling: Cluster accuracy of the Bayes-optimal classifier, where known.
        history: One record per epoch: `epoch`, `phase` (`pretraining` or `training`), `seconds`, `objective`
            (training, nats per sample), `validation_objective` (None without a validation split), `terms`
            {name: nats per sample, they sum to the held-out, else the training, objective}, `temperature`,
            `node_noise`, `kl_weight`, `effective_components`, `decoder_variance` {modality: value}.
        draws: Bounded draws for ArviZ.
        attributes: Further facts for the file's attributes (versions, configuration); JSON-serialisable.
        measured_share: Share of the elements that were measured, `[n]`, of the modalities that lack single ones.
        sample_names: Names of the samples `[n]` of str, or None.
        groups: Codes of the groups (specimens, plates) of the samples `[n]`, or None.
        environment: Codes of the environments of the samples `[n]`, 0 = observational, or None.
        true_joint: p(factors) that the samples were drawn from, one axis per factor, where known.
        true_adjacency: The true DAG over the factors `[L, L]`, row = cause, column = effect, where known.
        labelling: Where the meaning of the cells comes from (`Labelling.to_plain`); None: from nowhere.
        identifiability: What is undetermined of the nodes (`identifiability.found.identification`).
        restarts: The starts of which this fit is the best; None of a single one.
        labelled: Samples whose labels named the cells, bool `[n]`, or None.
        node_labels: Outcome of each node by these labels, `[n, L]`, -1 where no label tells it, or None. Of training
            samples alone. A node without -1 among these is data: plain counts. With `observe.use training`,
            `responsibilities` of a labelled sample are 0 outside of its labels.
        searched: Class of and posterior over graphs (`graph_search`), of nodes that have a meaning; None: not yet.
        variance_explained: Per modality, how much of its variance nodes and cells explain.
        designed: Nodes that the experimenter set, with what their outcomes do to every modality.
    """

    dataset: str
    seed: int
    objective: str
    status: str
    responsibilities: np.ndarray
    latent_loc: np.ndarray
    latent_scale: np.ndarray
    graph: GraphArrays
    mixture: MixtureArrays
    modalities: Mapping[str, ModalityArrays]
    present: Mapping[str, np.ndarray]
    observed: Mapping[str, np.ndarray]
    factors: Mapping[str, np.ndarray]
    factor_levels: Mapping[str, tuple[str, ...]]
    measurements: Mapping[str, np.ndarray]
    split: np.ndarray
    bayes_ceiling: float | None
    history: Sequence[Mapping[str, Any]]
    draws: PosteriorDraws
    attributes: Mapping[str, Any] = field(default_factory=dict)
    measured_share: Mapping[str, np.ndarray] = field(default_factory=dict)
    sample_names: np.ndarray | None = None
    groups: np.ndarray | None = None
    environment: np.ndarray | None = None
    true_joint: np.ndarray | None = None
    true_adjacency: np.ndarray | None = None
    labelling: Mapping[str, Any] | None = None
    identifiability: Mapping[str, Any] | None = None
    restarts: RestartArrays | None = None
    labelled: np.ndarray | None = None
    node_labels: np.ndarray | None = None
    searched: Mapping[str, Any] | None = None
    variance_explained: Mapping[str, VarianceExplained] = field(default_factory=dict)
    designed: Mapping[str, DesignedNode] = field(default_factory=dict)
    scored_factors: tuple[str, ...] = ()


# What of a start is kept beside the others, and what several starts found together: plain NumPy arrays.


_LIKELIHOOD = "log_likelihood/"


@dataclass(frozen=True)
class StartArrays:
    """What a start that did not diverge found; n samples, C cells, D draws of S samples, L nodes.

    Attributes:
        responsibilities: q(N|X), `[n, C]`.
        nodes: Draws of N, `[D, S, L]`.
        log_weight: log p(X, Z) - log q(Z|X) of the draws, `[D, S]`.
        log_likelihood: Per modality, log p(X_m | Z, N) of the draws, `[D, S]`; NaN where absent.
        log_joint: log p(N), `[C_1, ..., C_L]`.
        latent: Draws of Z, `[D, S, J]`; None of a start that an earlier version made.
        latent_loc: Mean of q(Z|X), `[n, J]`; None alike.
    """

    responsibilities: np.ndarray
    nodes: np.ndarray
    log_weight: np.ndarray
    log_likelihood: Mapping[str, np.ndarray]
    log_joint: np.ndarray
    latent: np.ndarray | None = None
    latent_loc: np.ndarray | None = None

    @classmethod
    def of(cls, fit: FitArrays) -> StartArrays:
        """That of a finished fit."""
        draws = fit.draws
        return cls(
            responsibilities=fit.responsibilities,
            nodes=draws.nodes,
            log_weight=draws.log_weight,
            log_likelihood=draws.log_likelihood,
            log_joint=fit.graph.log_joint,
            latent=draws.latent,
            latent_loc=fit.latent_loc,
        )

    @property
    def outcomes(self) -> tuple[int, ...]:
        """Outcomes per node."""
        return self.log_joint.shape


@dataclass(frozen=True)
class RestartArrays:
    """Several starts side by side: K starts, of which H are chains, with cells numbered as those of the chosen one.

    Attributes:
        status: `ok`, `collapsed` or `diverged`, `[K]` of str.
        entropy: Mean entropy of q(N|X) in nats, `[K]`; NaN where it diverged.
        ari: Adjusted Rand index of every pair of starts, `[K, K]`; NaN with one that diverged.
        chain: Number of the start of each chain, `[H]`: the chosen one first, then the others that did not fail.
        nodes: Draws of N, `[H, D, S, L]`.
        log_weight: log p(X, Z) - log q(Z|X) of the draws, `[H, D, S]`.
        log_likelihood: Per modality, log p(X_m | Z, N) of the draws, `[H, D, S]`.
        responsibilities: q(N|X) of the S samples that have draws, `[H, S, C]`.
        log_joint: log p(N), `[H, C_1, ..., C_L]`.
        node_agreement: Share of the samples with the same outcome as in the chosen start, `[H, L]`.
        cpdag: The best equivalence class of graphs over the cells, `[H, L, L]`; None where it was not searched for.
        latent: Draws of Z, `[H, D, S, J]`, mapped to the latent space of the chosen start (`restart_chains`); None
            where a start of an earlier version has none.
    """

    status: np.ndarray
    entropy: np.ndarray
    ari: np.ndarray
    chain: np.ndarray
    nodes: np.ndarray
    log_weight: np.ndarray
    log_likelihood: Mapping[str, np.ndarray]
    responsibilities: np.ndarray
    log_joint: np.ndarray
    node_agreement: np.ndarray
    cpdag: np.ndarray | None
    latent: np.ndarray | None = None

    @property
    def chosen(self) -> int:
        """Number of the start that was kept."""
        return int(self.chain[0])


@dataclass(frozen=True)
class FoundStart:
    """A start that ended; its arrays are read when they are asked for, since many may not fit into memory together.

    Attributes:
        number: Its number.
        summary: What it found, as `summary.json` of a run has it.
        file: What `write_start` wrote; None if it diverged.
    """

    number: int
    summary: Mapping[str, Any]
    file: Path | None

    @property
    def status(self) -> str:
        """`ok`, `collapsed` or `diverged`."""
        return str(self.summary["status"])

    def read(self) -> StartArrays:
        """Its arrays.

        Raises:
            ValueError: It diverged and has none, or they can't be read.
        """
        if self.file is None:
            raise ValueError(f"restart {self.number}: expected one that found something, got one that diverged")
        return read_start(self.file)


_PLAIN = ("responsibilities", "nodes", "log_weight", "log_joint")
_NEWER = ("latent", "latent_loc")


def write_start(path: Path, arrays: StartArrays) -> None:
    """Write the arrays as `.npz`, whole or not at all.

    Raises:
        OutputError: The disk is full, the folder is missing or not writable.
    """
    content = {name: getattr(arrays, name) for name in (*_PLAIN, *_NEWER) if getattr(arrays, name) is not None}
    content |= {f"{_LIKELIHOOD}{position}": values for position, values in enumerate(arrays.log_likelihood.values())}
    names = np.array(list(arrays.log_likelihood), dtype=np.str_)
    write_atomically(path, lambda file: np.savez(file, allow_pickle=False, modalities=names, **content))


def read_start(path: Path) -> StartArrays:
    """Read what `write_start` wrote.

    Raises:
        ValueError: It can't be read.
    """
    try:
        with open_regular(path, path.parent) as raw, np.load(raw, allow_pickle=False) as file:
            names = [str(name) for name in file["modalities"]]
            likelihood = {name: file[f"{_LIKELIHOOD}{position}"] for position, name in enumerate(names)}
            newer = {name: file[name] for name in _NEWER if name in file}
            return StartArrays(log_likelihood=likelihood, **{name: file[name] for name in _PLAIN}, **newer)
    except MemoryError:
        raise
    except Exception as error:  # whatever a damaged archive makes its reader raise
        raise ValueError(
            f"{path}: expected the arrays of a start, got something else; remove its folder, then "
            "--resume makes it again"
        ) from error
