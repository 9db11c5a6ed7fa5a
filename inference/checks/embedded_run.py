"""What the checks work on: the samples that clusters and graph were read out of, where they are in latent space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr

from guides.fusion import Fusion, ProductOfExperts
from inference.clusters.round_clusters import choose_shape
from inference.data.multimodal import MultimodalData
from inference.graphs.group_weights import group_weights
from inference.graphs.knowledge import GraphKnowledge, graph_knowledge
from inference.labelling.labels import allowed_cells
from inference.results.arviz_names import variable_names
from inference.results.meaning import is_named
from inference.results.node_samples import observational_rows_of_file
from inference.training.config import FitConfig

__all__ = ["EmbeddedRun", "Expert", "embedded_run", "kept_samples"]


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
