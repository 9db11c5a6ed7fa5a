"""What the checks work on: the samples that clusters and graph were read out of, where they are in latent space."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import xarray as xr

from causalpima.guides.encoders import GaussianParameters
from causalpima.guides.fusion import Fusion, ProductOfExperts
from causalpima.inference.analyses.samples import RunSamples, fit_to_run
from causalpima.inference.clusters.clustering import choose_shape
from causalpima.inference.clusters.labels import allowed_cells
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.findings.meaning import is_named
from causalpima.inference.findings.names import variable_names
from causalpima.inference.findings.posterior import observational_rows_of_file
from causalpima.inference.graphs.dags import GraphKnowledge, graph_knowledge
from causalpima.inference.graphs.hidden import group_weights
from causalpima.inference.training.config import FitConfig
from causalpima.inference.training.fitted_run import FittedRun
from causalpima.inference.training.state import surroundings
from causalpima.models.batch import Batch

__all__ = [
    "EmbeddedRun",
    "Expert",
    "bootstrap_rows",
    "embedded_run",
    "embedding_with_permuted",
    "encode_modalities",
    "kept_samples",
    "null_rows",
    "permuted",
    "unseen_cells",
]


class Expert(NamedTuple):
    """q(Z|X_m) of one modality: `loc` and `log_variance`, `[n, J]`; filler in samples that lack it."""

    loc: np.ndarray
    log_variance: np.ndarray


@dataclass(frozen=True)
class EmbeddedRun:
    """Training samples without intervention; n samples, C cells, J latent dimensions, L nodes.

    Attributes:
        status: `ok` or `collapsed`.
        responsibilities: q(N|X), `[n, C]`, cells row-major over the outcomes.
        loc: Mean of q(Z|X), `[n, J]`; under a mask the blocks of the modalities one after the other.
        outcomes: Outcomes per node.
        node_names: Names of the nodes.
        named: Whether every node has one meaning: only then edges between nodes say something.
        present: Per modality, which samples have it, bool `[n]`.
        shape: How cells are read out of `loc`.
        visible: Per modality of a mask, positions of the nodes that it sees; empty without one.
        by_node: Whether `loc` is a block per node, one after the other, that clusters were read out of.
        groups: Codes of the groups of the samples `[n]`, or None.
        batches: Codes of the levels of every covariate, `[n]`.
        experts: Per modality q(Z|X_m), where they are fused; empty where they are not, or not known.
        fusion: How the experts become one.
        knowledge: What the run declares of its graph; None: nothing.
        allowed: Cells that labels leave possible where they took part in the training, bool `[n, C]`; None: all.
    """

    status: str
    responsibilities: np.ndarray
    loc: np.ndarray
    outcomes: tuple[int, ...]
    node_names: tuple[str, ...]
    named: bool
    present: Mapping[str, np.ndarray]
    shape: Literal["curved", "round"] = "curved"
    visible: Mapping[str, Sequence[int]] = field(default_factory=dict)
    by_node: bool = False
    groups: np.ndarray | None = None
    batches: Mapping[str, np.ndarray] = field(default_factory=dict)
    experts: Mapping[str, Expert] = field(default_factory=dict)
    fusion: Fusion = field(default_factory=ProductOfExperts)
    knowledge: GraphKnowledge | None = None
    allowed: np.ndarray | None = None

    @property
    def n_samples(self) -> int:
        """Number of samples, n."""
        return len(self.loc)

    @property
    def n_cells(self) -> int:
        """Number of cells, C."""
        return self.responsibilities.shape[1]

    @property
    def cells(self) -> np.ndarray:
        """Most probable cell of each sample, `[n]`."""
        return self.responsibilities.argmax(1)

    @property
    def weights(self) -> np.ndarray | None:
        """How much each sample counts in scores of graphs, `[n]`: the samples of a group as one; None: 1 each."""
        return group_weights(self.groups)

    @property
    def known(self) -> GraphKnowledge:
        """What is known of the graph."""
        return GraphKnowledge.none(self.node_names) if self.knowledge is None else self.knowledge

    @property
    def is_told_once(self) -> bool:
        """Whether every node is seen by exactly one modality: nodes of shuffled modalities are then independent."""
        seen = [node for nodes in self.visible.values() for node in nodes]
        return sorted(seen) == list(range(len(self.outcomes)))

    def apart(self) -> np.ndarray:
        """Which nodes no modality sees together, bool `[L, L]`, the diagonal false."""
        together = np.eye(len(self.outcomes), dtype=bool)
        for nodes in self.visible.values():
            together[np.ix_(list(nodes), list(nodes))] = True
        return ~together

    def block(self, name: str) -> slice:
        """Dimensions of `loc` that are the block of a modality of the mask."""
        width = self.loc.shape[1] // len(self.visible)
        position = list(self.visible).index(name)
        return slice(position * width, (position + 1) * width)


def kept_samples(posterior: xr.DataTree) -> np.ndarray:
    """Positions of the training samples without intervention: those that clusters and graph are read out of, `[n]`.

    Args:
        posterior: As `read_posterior` reads it.
    """
    return np.flatnonzero(observational_rows_of_file(posterior))


def embedded_run(
    posterior: xr.DataTree,
    summary: Mapping[str, Any],
    config: FitConfig,
    data: MultimodalData | None = None,
    experts: Mapping[str, Expert] | None = None,
    fusion: Fusion | None = None,
) -> EmbeddedRun:
    """From what a run left.

    Args:
        posterior: As `read_posterior` reads it.
        summary: Its summary.
        config: Its configuration.
        data: All its samples, for covariates, which the file does not hold; or None.
        experts: Of the kept samples, as `encode_modalities` finds them; or None.
        fusion: How the guide of the run makes one of them; None: their product.

    Raises:
        ValueError: There are other samples than the run had, or none to check.
    """
    variational, constant = posterior["variational"].dataset, posterior["constant_data"].dataset
    kept, loc = kept_samples(posterior), variational["latent_loc"].to_numpy()
    if data is not None and data.n_samples != len(loc):
        raise ValueError(
            f"data: expected the {len(loc)} samples of the run, got {data.n_samples}; its file has changed, fit again"
        )
    if len(kept) < 2:
        raise ValueError(
            f"run: expected training samples without intervention, got {len(kept)}; there is nothing to check"
        )
    n_cells = variational.sizes["cell"]
    return EmbeddedRun(
        status=str(summary["status"]),
        responsibilities=variational["responsibilities"].to_numpy()[kept].astype(np.float64),
        loc=loc[kept],
        outcomes=config.outcomes,
        node_names=tuple(config.nodes),
        named=is_named(summary),
        present=_present(constant, summary, kept),
        shape=_shape(config, len(kept), loc.shape[1], n_cells),
        visible=config.visible,
        by_node=config.model.prior == "nodewise",
        groups=_groups(constant, data, kept),
        batches={} if data is None else {name: codes[kept] for name, codes in data.covariates.items()},
        experts=experts or {},
        fusion=fusion or ProductOfExperts(config.guide.prior_expert),
        knowledge=graph_knowledge(config.knowledge, tuple(config.nodes)),
        allowed=_allowed(constant, config, kept),
    )


def _present(constant: xr.Dataset, summary: Mapping[str, Any], kept: np.ndarray) -> dict[str, np.ndarray]:
    variables = variable_names(summary["modalities"])
    return {name: constant[f"present_{variable}"].to_numpy()[kept].astype(bool) for name, variable in variables.items()}


def _allowed(constant: xr.Dataset, config: FitConfig, kept: np.ndarray) -> np.ndarray | None:
    if config.observe.use != "training" or "node_label" not in constant:
        return None
    return allowed_cells(constant["node_label"].to_numpy()[kept], config.outcomes)


def _groups(constant: xr.Dataset, data: MultimodalData | None, kept: np.ndarray) -> np.ndarray | None:
    """Codes of the groups, from the file, else (one of an older version) from the samples."""
    if "group" in constant:
        codes: np.ndarray = constant["group"].to_numpy()[kept]
        return codes
    return None if data is None or data.groups is None else data.groups[kept]


def _shape(config: FitConfig, n_samples: int, n_dimensions: int, n_cells: int) -> Literal["curved", "round"]:
    shape = config.read_out.shape
    return choose_shape(n_samples, n_dimensions, n_cells) if shape == "auto" else shape


# Other samples made of the ones that there are: with independent nodes, and drawn again with replacement.


_LEAST_MASS = 1.0


def null_rows(run: EmbeddedRun, generator: np.random.Generator) -> np.ndarray:
    r"""Samples in which the nodes are independent, and everything else is as it was.

    Every sample gets a cell drawn from its own q(N|X); then the outcomes of each node are permuted among the samples,
    each node by itself, so that N has the product of its marginals; and a sample of the new cell c takes the place,
    drawn with probability $\propto q(N = c \mid X_n)$, which is p(embedding | c) as far as q is calibrated. Of groups
    (replicates of a specimen) the outcomes are permuted as a whole, so that samples of a group stay alike.

    Args:
        run: The run, whose cells are not empty (`unseen_cells`).
        generator: Of the draws.

    Returns:
        Which sample stands in each place, `[n]`.
    """
    nodes = np.stack(np.unravel_index(_draw_cells(run.responsibilities, generator), run.outcomes))
    cells = np.ravel_multi_index(tuple(permuted(node, run.groups, generator) for node in nodes), run.outcomes)
    rows = np.empty(run.n_samples, dtype=np.int64)
    for cell in np.unique(cells):
        places = np.flatnonzero(cells == cell)
        share = run.responsibilities[:, cell] / run.responsibilities[:, cell].sum()
        rows[places] = generator.choice(run.n_samples, len(places), p=share)
    return rows


def permuted(values: np.ndarray, groups: np.ndarray | None, generator: np.random.Generator) -> np.ndarray:
    """Values among the samples, or those of whole groups among groups, resampled to their sizes.

    Replicates of a specimen stay alike: permuted one by one they would look like many independent samples, and p-values
    would be too small.

    Args:
        values: `[n, ...]`.
        groups: Group of each sample, `[n]`; None: there are none.
        generator: Of the permutation.
    """
    if groups is None:
        return generator.permutation(values)
    members, moved = _members(groups), np.empty_like(values)
    for place, source in enumerate(generator.permutation(len(members))):
        size, found = len(members[place]), values[members[source]]
        moved[members[place]] = generator.choice(found, size, replace=size != len(found))
    return moved


def _members(units: np.ndarray) -> list[np.ndarray]:
    """Positions of the samples of each unit."""
    codes = np.unique(units, return_inverse=True)[1]
    return np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])


def _draw_cells(responsibilities: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    below = responsibilities.cumsum(1) < generator.random((len(responsibilities), 1)) * responsibilities.sum(1)[:, None]
    return below.sum(1).clip(max=responsibilities.shape[1] - 1)


def unseen_cells(run: EmbeddedRun) -> np.ndarray:
    """Cells of less than one sample that independent nodes would fill: of these nobody knows what they look like."""
    mass = run.responsibilities.sum(0)
    table = mass.reshape(run.outcomes) / mass.sum()
    product = np.ones_like(table)
    for node in range(table.ndim):
        product = product * table.sum(axis=tuple(o for o in range(table.ndim) if o != node), keepdims=True)
    return np.flatnonzero((mass < _LEAST_MASS) & (product.reshape(-1) * run.n_samples >= _LEAST_MASS / 2))


def bootstrap_rows(n_samples: int, units: np.ndarray | None, generator: np.random.Generator) -> np.ndarray:
    """As many units as there are, drawn with replacement, each with all of its samples, `[m]`.

    Args:
        n_samples: Number of samples.
        units: Codes of the unit of each sample, `[n]`; None: every sample is one.
        generator: Of the draws.
    """
    if units is None:
        return generator.integers(0, n_samples, n_samples)
    members = _members(units)
    return np.concatenate([members[unit] for unit in generator.integers(0, len(members), len(members))])


# q(Z|X_m) of every modality by itself, and fused again with rows that do not belong together.


_ROWS_AT_ONCE = 1024


def encode_modalities(fitted: FittedRun, data: MultimodalData, kept: np.ndarray) -> dict[str, Expert]:
    """q(Z|X_m) of the kept samples, by modality; none under a mask, where nothing is fused, and of one modality.

    Args:
        fitted: Model and guide.
        data: All samples of the run.
        kept: Positions of the samples that are wanted, `[n]`.

    Raises:
        ValueError: The samples are not those of the run.
    """
    if fitted.guide.blocks or len(fitted.modalities) < 2:
        return {}
    with surroundings(fitted.device), torch.no_grad():
        samples = fit_to_run(data, fitted)
        return {name: _expert(fitted, samples, name, kept) for name in fitted.guide.encoders}


def _expert(fitted: FittedRun, samples: RunSamples, name: str, kept: np.ndarray) -> Expert:
    parts = list(_encoded(fitted, samples, name))
    loc, log_variance = (torch.cat(part).double().cpu().numpy()[kept] for part in zip(*parts, strict=True))
    return Expert(loc, log_variance)


def _encoded(fitted: FittedRun, samples: RunSamples, name: str) -> Iterator[GaussianParameters]:
    for _, batch in samples.batches(_ROWS_AT_ONCE, fitted.model.mixture.component_loc):
        yield _encode(fitted, name, batch)


def _encode(fitted: FittedRun, name: str, batch: Batch) -> GaussianParameters:
    guide = fitted.guide
    value = guide.covariate_shift(name, batch.values[name], batch.covariates)
    observed = [batch.observed[name]] if name in batch.observed else []
    encoded: GaussianParameters = guide.encoders[name](value, *observed)
    return encoded


def embedding_with_permuted(
    run: EmbeddedRun, names: Sequence[str], generator: np.random.Generator | None
) -> np.ndarray:
    """Where the samples would be if these modalities were those of other samples, `[n, J]`.

    Each of them is permuted among the samples that have it, groups as a whole, so that what is missing stays missing.
    Under a mask that moves rows of blocks; else the experts are fused anew.

    Args:
        run: A run under a mask, or with experts.
        names: Modalities.
        generator: Of the permutations; None leaves all as it was.
    """
    order = {name: _order(run.present[name], run.groups, generator if name in names else None) for name in run.present}
    if not run.visible:
        return _fused(run, order)
    loc = run.loc.copy()
    for name in run.visible:
        block = run.block(name)
        loc[:, block] = run.loc[order[name]][:, block]
    return loc


def _order(present: np.ndarray, groups: np.ndarray | None, generator: np.random.Generator | None) -> np.ndarray:
    order, rows = np.arange(len(present)), np.flatnonzero(present)
    if generator is not None:
        order[rows] = permuted(rows, None if groups is None else groups[rows], generator)
    return order


def _fused(run: EmbeddedRun, order: Mapping[str, np.ndarray]) -> np.ndarray:
    experts = [
        GaussianParameters(*(torch.from_numpy(part[order[name]]) for part in expert))
        for name, expert in run.experts.items()
    ]
    present = [torch.from_numpy(run.present[name]) for name in run.experts]
    with torch.no_grad():
        loc: np.ndarray = run.fusion(experts, present).loc.numpy()
    return loc
