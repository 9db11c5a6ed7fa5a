"""The mixture during training: passes over the data, updates, and the cluster read-out written back into the model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial, reduce
from itertools import chain
from math import prod
from typing import cast

import numpy as np
import torch
from torch import Tensor

from causalpima.guides.fusion import LatentPosterior
from causalpima.guides.guide import Guide
from causalpima.inference.clusters.clustering import (
    ReadOut,
    centred,
    choose_shape,
    keep_allowed,
    observed_nodes,
    read_out,
    read_out_round,
    row_blocks,
    split_by_outcomes,
    sum_by_cell,
)
from causalpima.inference.clusters.labels import Clusters, Labeller, Labelling
from causalpima.inference.clusters.masked import View, masked_em
from causalpima.inference.clusters.matching import match_cells, match_nodes, nearest_allowed, nearest_renaming, relabel
from causalpima.inference.data.tensors import TensorData, in_order
from causalpima.inference.graphs.dags import KnowledgeConfig, edge_text, read_edge
from causalpima.inference.objectives.responsibilities import ObjectiveName, log_responsibilities
from causalpima.inference.training.build import chosen_graph, chosen_prior
from causalpima.inference.training.components import known_of_graph
from causalpima.inference.training.config import FitConfig
from causalpima.inference.training.graph_updates import (
    fit_graph_guide,
    graph_loss,
    settle_relaxed,
    settle_tables,
    take_over_environments,
    update_tables,
)
from causalpima.inference.training.mixture_updates import (
    BlockSums,
    MixtureSums,
    apply_block_update,
    apply_update,
    block_moments,
    fit_cells,
    moments,
    posterior_block_moments,
    posterior_moments,
    reseed,
)
from causalpima.inference.training.state import Adam, TrainingState, check_finite, geometric, linear
from causalpima.models.batch import Batch
from causalpima.models.block_mixture import BlockMixture, FactorisedMixture, Mixture
from causalpima.models.graph.relaxed import RelaxedGraph
from causalpima.models.graph.table import TableGraph
from causalpima.models.latent_priors import LinearSCM
from causalpima.models.mixture import GaussianMixture
from causalpima.models.program import CausalPIMA

__all__ = [
    "PASS_SIZE",
    "batch_moments",
    "cell_counts",
    "cell_responsibilities",
    "embed",
    "fit_graph",
    "harden_graph",
    "keep_blocks",
    "move_components",
    "read_out_blocks",
    "refit_graph",
    "relabel_cells",
    "renumbered",
    "settle_graph",
    "start_clusters",
    "take_over_graph",
    "under_labels",
    "update_mixture",
    "with_node_names",
    "write_blocks",
]


# The cluster read-out of a mixture of blocks: from the embedding to responsibilities of the cells, and back.


_PASS_SIZE = 2048


def read_out_blocks(mixture: FactorisedMixture, data: TensorData, loc: np.ndarray, seed: int) -> ReadOut:
    """Cells by expectation-maximisation on all blocks together (`masked_em`): those of modalities, or of nodes.

    Args:
        mixture: Its blocks and levels.
        data: The samples, for which of them have a modality.
        loc: Mean of q(Z|X), `[n, J]`.
        seed: Of the starts.
    """
    return masked_em([_view(mixture, data, name, loc) for name in mixture.visible], seed=seed)


def _view(mixture: FactorisedMixture, data: TensorData, name: str, loc: np.ndarray) -> View:
    given = mixture.block_given(name, data.present)
    is_there = np.ones(len(loc), dtype=bool) if given is None else given.cpu().numpy()
    points = mixture.block_part(name, torch.from_numpy(loc)).numpy()
    return View(points, mixture.block_levels(name).cpu().numpy(), is_there)


def renumbered(found: ReadOut, present: np.ndarray, mixture: FactorisedMixture, config: FitConfig) -> ReadOut:
    """The same read-out with nodes and outcomes as in the model's present cells; see `match_nodes`.

    Args:
        found: What was read out.
        present: q(N|X) of the model's present cells, `[n, C]`.
        mixture: Which nodes its blocks depend on.
        config: The configuration.
    """
    visible = list(mixture.visible.values())
    return relabel(found, match_nodes(present, found.cell_responsibilities, config.outcomes, visible))


def keep_blocks(found: ReadOut, labelling: Labelling, mixture: FactorisedMixture, config: FitConfig) -> np.ndarray:
    """Of what a labeller says of the cells, as much as the blocks of Z leave open, `[C]`.

    Under a mask see `nearest_allowed`. Blocks of nodes leave open which node each of them is, and what its outcomes are
    called; the mixture is told.

    Args:
        found: What was read out.
        labelling: What the labeller says: how well cells agree with each other's numbers, or else one permutation.
        mixture: Its blocks.
        config: The configuration.
    """
    agreement = labelling.agreement
    if agreement is None:
        mass = found.cell_responsibilities.sum(0)
        agreement = np.eye(len(mass))[labelling.permutation] * mass[:, None]
    if isinstance(mixture, BlockMixture):
        return nearest_allowed(agreement, config.outcomes, list(mixture.visible.values()))
    permutation = nearest_renaming(agreement, config.outcomes)
    mixture.relabel(torch.from_numpy(permutation))
    return permutation


@torch.no_grad()
def write_blocks(
    mixture: FactorisedMixture,
    data: TensorData,
    responsibilities: Tensor,
    posterior: LatentPosterior,
    config: FitConfig,
) -> Tensor:
    """Gaussians of the levels from the moments of q(Z|X) under the responsibilities that were read out.

    Args:
        mixture: Its blocks are changed.
        data: The training samples.
        responsibilities: Of the cells, `[n, C]`.
        posterior: q(Z|X).
        config: Settings of the mixture.

    Returns:
        Mass of every cell, `[C]`.
    """
    parts = (
        posterior_block_moments(
            mixture, batch, responsibilities[batch.index], type(posterior)(*(part[batch.index] for part in posterior))
        )
        for batch in data.batches(_PASS_SIZE)
    )
    sums = reduce(BlockSums.plus, parts)
    apply_block_update(mixture, sums, config.mixture.pseudo_count, config.mixture.variance_floor)
    return sums.count


# Clusters of samples whose labels take part in the training: what is observed stays as it was observed.


def under_labels(
    found: ReadOut,
    allowed: np.ndarray,
    embedding: np.ndarray,
    config: FitConfig,
    unseen: Collection[str],
    read: Callable[[np.ndarray, int], ReadOut],
    present: np.ndarray | None,
) -> ReadOut:
    """The clusters with every sample in cells that its labels allow.

    Where a node is observed of all samples and clusters do not follow it (its labels are no better than chance), the
    clusters are those of the other nodes, read out of the embedding centred by what is observed, and each is split by
    the observed outcomes. That takes them to be the same clusters under every outcome, up to a shift.

    Args:
        found: What was read out without labels, with cells numbered by them.
        allowed: Cells that labels leave possible, bool `[n, C]`.
        embedding: `[n, J]`.
        config: The configuration.
        unseen: Nodes that clusters do not follow.
        read: From an embedding and a number of cells to clusters.
        present: q(N|X) of the model's present cells, `[n, C]`, which numbers are to agree with; None: with none.
    """
    observed = observed_nodes(allowed, config.outcomes)
    n_hidden = prod(count for node, count in enumerate(config.outcomes) if node not in observed)
    is_unseen = any(list(config.nodes)[node] in unseen for node in observed)
    if is_unseen and n_hidden > 1:
        cells = np.stack(np.unravel_index(allowed.argmax(1), config.outcomes), axis=1)
        codes = cells[:, list(observed)]
        joint = np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1)
        hidden = read(centred(embedding, joint), n_hidden)
        if present is not None:
            axes = tuple(1 + node for node in observed)
            kept = present.reshape(-1, *config.outcomes).sum(axes).reshape(len(present), -1)
            hidden = relabel(hidden, match_cells(kept, hidden.cell_responsibilities))
        found = split_by_outcomes(hidden, codes, config.outcomes, observed)
    return keep_allowed(found, allowed, embedding)


Sums = MixtureSums | BlockSums

_EMPTY_SHARE = 1e-2
# q of the graph is moved by steps of its own, far fewer than a point estimate that joint training moves, too.
_GUIDE_RATE = 5.0
PASS_SIZE = 2048


@torch.no_grad()
def embed(state: TrainingState, data: TensorData) -> LatentPosterior:
    """q(Z|X) of all samples, `[sample, J]`."""
    encoded = (state.guide.encode(batch) for batch in data.batches(PASS_SIZE))
    first = next(encoded)
    posterior = type(first)(*in_order(chain([first], encoded), data.n_samples))
    check_finite("embedding", posterior.loc)
    return posterior


@torch.no_grad()
def update_mixture(state: TrainingState, data: TensorData, config: FitConfig) -> list[int]:
    """One update of the mixture, in the closed form of the objective, from one pass over the data.

    `collapsed`: expectation maximisation on drawn z. `meanfield`: r* and the moments of q(Z|X). `paper`: γ at drawn z,
    and the moments of q(Z|X). Then empty components are re-seeded (not in a mixture of blocks, where a level has no
    place of its own in the others' blocks to split) and p(N) is fitted to the new cells. Components that gradients move
    are left as they are.

    Returns:
        The components that were re-seeded.
    """
    moved, cell_count = move_components(state.model.mixture, _pass(state, data, config), config)
    fit_graph(state, cell_count, config, config.graph.extra_steps)
    return moved


def move_components(mixture: Mixture, sums: Sums, config: FitConfig) -> tuple[list[int], Tensor]:
    """Closed-form update, then a new place for empty components.

    In a mixture of blocks nothing gets a new place: a level is in the cells of several others, which have no other to
    split. Nothing at all is done where gradients move the components.

    Args:
        mixture: Changed in place.
        sums: Of all samples.
        config: The configuration.

    Returns:
        The components that were re-seeded, and the samples per cell after that, `[C]`.
    """
    if config.mixture.updates == "gradient":
        return [], mixture.sum_to_cells(sums.count)
    settings = config.mixture.pseudo_count, config.mixture.variance_floor
    if isinstance(sums, BlockSums):
        apply_block_update(cast(FactorisedMixture, mixture), sums, *settings)
        return [], sums.count
    assert isinstance(mixture, GaussianMixture), "sums over components are those of one mixture for all of Z"
    apply_update(mixture, sums, *settings)
    moved, count = reseed(mixture, sums.count, _EMPTY_SHARE / mixture.n_components)
    return moved, mixture.sum_to_cells(count)


def cell_counts(state: TrainingState, data: TensorData, config: FitConfig) -> Tensor:
    """Expected number of samples per cell under q(N|X), `[C]`."""
    return state.model.mixture.sum_to_cells(_pass(state, data, config).count)


@torch.no_grad()
def _pass(state: TrainingState, data: TensorData, config: FitConfig) -> Sums:
    objective, model, guide = config.objective, state.model, state.guide
    parts = (batch_moments(objective, model, guide, batch) for batch in data.batches(PASS_SIZE))
    total: Sums = reduce(lambda one, other: one.plus(other), parts)  # type: ignore[arg-type]
    check_finite("mass of the clusters", total.count)
    return total


def batch_moments(
    objective: ObjectiveName, model: CausalPIMA, guide: Guide, batch: Batch, noise: Tensor | None = None
) -> Sums:
    """What a batch adds to the sums that an update of the mixture is made of.

    Args:
        objective: Whose update it is.
        model: The model.
        guide: The guide.
        batch: The samples.
        noise: That of the draws of z, `[batch, J]`; None: from torch's global generator.
    """
    posterior = guide.encode(batch)
    sample = posterior.draw(noise)
    r = log_responsibilities(objective, model, posterior, sample, batch).exp()
    mixture = model.mixture
    if not isinstance(mixture, FactorisedMixture):
        return moments(r, sample) if objective == "collapsed" else posterior_moments(r, posterior)
    if objective == "collapsed":
        return block_moments(mixture, batch, r, sample)
    return posterior_block_moments(mixture, batch, r, posterior)


def fit_graph(state: TrainingState, cell_count: Tensor, config: FitConfig, n_steps: int) -> None:
    """Fit p(N) alone to the given mass of every cell: by gradient steps, or in closed form (`table_updates`).

    Args:
        state: Graph and optimiser are changed.
        cell_count: n_c, `[C]`.
        config: The configuration.
        n_steps: Number of gradient steps; a closed form takes none.
    """
    if isinstance(state.model.graph, TableGraph):
        check_finite("mass of the cells", cell_count)
        update_tables(state.model.graph, cell_count, config)
    elif state.guide.graph_guide is not None:
        check_finite("mass of the cells", cell_count)
        fit_graph_guide(state.guide.graph_guide, cell_count, _GUIDE_RATE * config.graph.learning_rate, n_steps)
    elif isinstance(state.model.graph, RelaxedGraph) and state.model.graph.is_settled:
        settle_relaxed(state.model.graph, cell_count, config)
    else:
        state.model.graph.count_samples(float(cell_count.sum()))
        _descend(state, cell_count, n_steps)


@torch.enable_grad()
def _descend(state: TrainingState, cell_count: Tensor, n_steps: int) -> None:
    """Gradient steps on p(N) alone, towards the given mass of every cell (paper, section 3.3).

    Maximises `Σ_c n_c log p(c)` per sample plus the declared log-priors; noise on node scores as in the epoch.
    """
    graph = state.model.graph
    weight = (cell_count / cell_count.sum()).to(graph.log_joint())
    n_samples = float(cell_count.sum())
    for _ in range(n_steps):
        state.optimizer.zero_grad(set_to_none=True)
        loss = graph_loss(graph, weight, n_samples)
        check_finite("objective of the graph", -loss.detach())
        loss.backward()
        state.optimizer.step()
        graph.project()


def start_clusters(
    state: TrainingState, data: TensorData, config: FitConfig, keep_cells: bool, labeller: Labeller | None = None
) -> ReadOut:
    """Read clusters out of the embedding and write them into the model: components, map to cells, p(N).

    Args:
        state: Mixture and graph are changed.
        data: The training samples.
        config: The configuration.
        keep_cells: Number the cells so that they overlap most with the model's present cells.
        labeller: Numbers the cells by what side information says.

    Labels that take part in the training (`data.cells`) are kept to: no sample is in a cell that they exclude.
    """
    posterior, mixture = embed(state, data), state.model.mixture
    embedding = posterior.loc.cpu().numpy()
    found = _read_out(state, data, embedding, config)
    present = cell_responsibilities(state, data, config).cpu().numpy() if keep_cells else None
    if present is not None:
        found = _renumbered(found, present, mixture, config)
    if labeller is not None:
        labelling = labeller(Clusters(found.cell_responsibilities, embedding))
        found = _numbered(found, labelling, mixture, config)
        state.labelling = labelling.to_plain()
    if data.cells is not None:
        found = _under_labels(found, state, data.cells.cpu().numpy(), embedding, config, present)
    cells = torch.from_numpy(found.cell_responsibilities).to(posterior.loc.device)
    if isinstance(mixture, FactorisedMixture):
        count = write_blocks(mixture, data, cells, posterior, config)
        fit_graph(state, count, config, config.graph.start_steps)
    else:
        revive = not keep_cells and state.model.latent_prior is None
        _write_back(state, mixture, found, posterior, config, revive)
    state.follow_mixture()
    fit_cells(state, data, cells)
    return found


def _under_labels(
    found: ReadOut,
    state: TrainingState,
    allowed: np.ndarray,
    embedding: np.ndarray,
    config: FitConfig,
    present: np.ndarray | None,
) -> ReadOut:
    if isinstance(state.model.mixture, FactorisedMixture):
        return keep_allowed(found, allowed, embedding)
    unseen = ((state.labelling or {}).get("details") or {}).get("no_better_than_chance", ())
    return under_labels(found, allowed, embedding, config, unseen, partial(_cells_of, config=config), present)


def _renumbered(found: ReadOut, present: np.ndarray, mixture: Mixture, config: FitConfig) -> ReadOut:
    if isinstance(mixture, FactorisedMixture):
        return renumbered(found, present, mixture, config)
    return relabel(found, match_cells(present, found.cell_responsibilities))


def _numbered(found: ReadOut, labelling: Labelling, mixture: Mixture, config: FitConfig) -> ReadOut:
    if isinstance(mixture, FactorisedMixture):
        return relabel(found, keep_blocks(found, labelling, mixture, config))
    return relabel(found, labelling.permutation)


def _read_out(state: TrainingState, data: TensorData, embedding: np.ndarray, config: FitConfig) -> ReadOut:
    if isinstance(state.model.mixture, FactorisedMixture):
        return read_out_blocks(state.model.mixture, data, embedding, config.start_seed)
    return _cells_of(embedding, state.model.graph.n_cells, config)


def _cells_of(embedding: np.ndarray, n_cells: int, config: FitConfig) -> ReadOut:
    settings, shape = config.read_out, config.read_out.shape
    if shape == "auto":
        shape = choose_shape(len(embedding), embedding.shape[1], n_cells)
    if shape == "round":
        return read_out_round(embedding, n_cells, seed=config.start_seed)
    return read_out(embedding, n_cells, sizes=settings.sizes or None, n_init=settings.n_init, seed=config.start_seed)


@torch.no_grad()
def cell_responsibilities(state: TrainingState, data: TensorData, config: FitConfig) -> Tensor:
    """q(N|X) per cell at the mean of q(Z|X), averaged over the means where that is a mixture, `[n, C]`."""

    def of_batch(batch: Batch) -> tuple[Tensor]:
        posterior = state.guide.encode(batch)
        r = [
            weight.unsqueeze(-1) * log_responsibilities(config.objective, state.model, posterior, one.loc, batch).exp()
            for weight, one in posterior.parts()
        ]
        return (state.model.mixture.sum_to_cells(torch.stack(r).sum(0)),)

    return in_order(map(of_batch, data.batches(PASS_SIZE)), data.n_samples)[0]


@torch.no_grad()
def _write_back(
    state: TrainingState,
    mixture: GaussianMixture,
    found: ReadOut,
    posterior: LatentPosterior,
    config: FitConfig,
    revive: bool,
) -> None:
    """Components from the moments of q(Z|X) under the responsibilities that were read out; p(N) from their cells.

    Before training, cells that came out empty are revived; after it they stay empty: a result makes up no clusters.
    """
    cell, responsibilities = _every_cell_once(found, config.mixture.gaussians == "one")
    device, size = posterior.loc.device, len(cell)
    scale = mixture.component_scale[:1].expand(size, *mixture.component_scale.shape[1:])
    log_share = mixture.component_log_share.new_zeros(size)
    loc = posterior.loc
    mixture.replace(loc[:1].expand(size, -1).clone(), scale.clone(), cell.to(device), log_share)
    parts = (
        posterior_moments(
            torch.from_numpy(responsibilities(rows)).to(device), type(posterior)(*(part[rows] for part in posterior))
        )
        for rows in row_blocks(len(loc))
    )
    sums = reduce(MixtureSums.plus, parts)
    apply_update(mixture, sums, config.mixture.pseudo_count, config.mixture.variance_floor)
    count = reseed(mixture, sums.count, _EMPTY_SHARE / size)[1] if revive else sums.count
    fit_graph(state, mixture.sum_to_cells(count), config, config.graph.start_steps)


def _every_cell_once(found: ReadOut, merge: bool) -> tuple[Tensor, Callable[[slice], np.ndarray]]:
    """Cell of each component, and from rows to responsibilities `[b, K]`; empty cells get an empty component.

    Args:
        found: What was read out.
        merge: One component per cell.
    """
    r, cells = found.responsibilities, found.component_cell
    if merge:
        return torch.arange(found.n_cells), lambda rows: sum_by_cell(r[rows], cells, found.n_cells)
    missing = np.setdiff1d(np.arange(found.n_cells), cells)
    every = torch.from_numpy(np.concatenate([cells, missing]).astype(np.int64))
    return every, lambda rows: np.pad(r[rows], ((0, 0), (0, len(missing))))


# A finished fit whose cells get other numbers and names, with p(N) to go with them.


def relabel_cells(
    state: TrainingState,
    data: TensorData,
    config: FitConfig,
    labelling: Labelling,
    weights: np.ndarray | None = None,
    nodes: Sequence[str] | None = None,
) -> None:
    """Let cell c become cell `permutation[c]`, with p(N) of the cells as they are numbered then.

    p(N) is fitted to their mass; where environments told it, it is theirs, with their graph as far as the names leave
    it a meaning: the mass of all samples is not p(N) then.

    Args:
        state: The model is changed, and made good for no more training.
        data: The training samples.
        config: The configuration.
        labelling: The permutation, and what environments told.
        weights: How much each of these counts, where they come in groups, `[n]` (`group_weights`); None: 1.
        nodes: What the labelling calls the nodes; None: as the configuration does.

    Raises:
        ValueError: The nodes have blocks of Z of their own, or decoders and mask do not allow the permutation.
    """
    if isinstance(state.model.latent_prior, LinearSCM):
        raise ValueError(
            "expected a prior whose cells can be renamed, got linear_scm, whose blocks of Z are nodes by the labels "
            "that it was trained with; train with other labels"
        )
    count = cell_counts(state, data, config)
    permutation = torch.from_numpy(labelling.permutation).to(count.device)
    state.model.relabel(permutation)
    state.labelling = labelling.to_plain()
    if labelling.joint is None:
        refit_graph(state, count[torch.argsort(permutation)], config)
        settle_graph(state, data, config, weights)
    elif not take_over_graph(state, data, config, nodes):
        refit_graph(state, torch.tensor(labelling.joint).to(count).reshape(-1) * count.sum(), config)


def take_over_graph(
    state: TrainingState, data: TensorData, config: FitConfig, nodes: Sequence[str] | None = None
) -> bool:
    """Give the model graph, p(N) and p(N | e) as environments tell them; False where they tell none.

    Samples of several environments have no one p(N) to be fitted to. A graph that the configuration gives stays, with
    tables of their p(N). Where the graph that they tell contradicts what is known, p(N) is fitted to theirs under what
    is known.

    Args:
        state: The model is changed.
        data: The training samples.
        config: The configuration.
        nodes: What the labelling calls the nodes; None: as the configuration does.
    """
    labelling = state.labelling or {}
    if "joint" not in labelling or "graph" not in labelling["details"]:
        return False
    graph = state.model.graph
    like = graph.log_joint()
    joint = torch.tensor(labelling["joint"]).to(like)
    if isinstance(graph, TableGraph) and config.model.graph != "exact":
        graph.take_over_joint(joint)
    elif bool(known_of_graph(config).allows(np.array(labelling["details"]["graph"]))):
        graph.take_over(torch.tensor(labelling["details"]["graph"], device=like.device), joint)
    else:
        refit_graph(state, joint.reshape(-1) * sum(labelling["details"]["samples"].values()), config)
    take_over_environments(state.model, labelling, data.environment_names, tuple(nodes or config.nodes))
    return True


def settle_graph(state: TrainingState, data: TensorData, config: FitConfig, weights: np.ndarray | None = None) -> None:
    """The graph that a fit ends with, where it is searched: by the likelihood of the mixture (`settle_tables`)."""
    if isinstance(state.model.graph, TableGraph):
        settle_tables(state.model.graph, cell_responsibilities(state, data, config), config, weights)


def harden_graph(state: TrainingState, data: TensorData, config: FitConfig) -> None:
    """Run the schedule of a graph that a penalty keeps from cycles to its end, and make it hard; else nothing."""
    graph = state.model.graph
    if isinstance(graph, RelaxedGraph) and not graph.is_settled:
        settle_relaxed(graph, cell_counts(state, data, config), config)


def refit_graph(state: TrainingState, cell_count: Tensor, config: FitConfig) -> None:
    """Fit p(N) to the given mass of every cell from new parameters, over the schedules of joint training.

    A hard graph has its closed form, whatever it was before, and one that a penalty keeps from cycles its own schedule
    (`settle_relaxed`). An order of the nodes that was learned for other cells
    would stand in the way: reversing an edge passes through a barrier of the likelihood. Temperature and noise run
    through their schedules with as many steps per epoch as the training takes; the last steps are at the final
    temperature, without noise, as after the final read-out.

    Args:
        state: Graph and optimiser are replaced.
        cell_count: n_c, `[C]`.
        config: The configuration.
    """
    graph, settings, n_epochs = state.model.graph, config.graph, max(config.training.epochs, 1)
    fresh = chosen_graph(config, chosen_prior(config, state.components), state.components).to(cell_count.device)
    graph.load_state_dict(fresh.state_dict())
    if isinstance(graph, TableGraph):
        update_tables(graph, cell_count, config)
        return
    if isinstance(graph, RelaxedGraph):
        settle_relaxed(graph, cell_count, config)
        return
    if state.guide.graph_guide is not None:
        state.guide.graph_guide.restart()
        graph.set_temperature(settings.temperature_end)
        fit_graph(state, cell_count, config, settings.start_steps)
        return
    state.optimizer = Adam(graph.parameters(), lr=settings.learning_rate, fused=True)
    steps = settings.extra_steps + max(1, round(float(cell_count.sum()) / config.training.batch_size))
    graph.train()
    for epoch in range(n_epochs):
        start, end = settings.temperature_start, settings.temperature_end
        graph.set_temperature(geometric(start, end, epoch, n_epochs))
        graph.draw_noise(linear(settings.noise_start, settings.noise_end, epoch, n_epochs))
        fit_graph(state, cell_count, config, steps + (settings.start_steps if epoch == 0 else 0))
    graph.eval()
    graph.set_temperature(settings.temperature_end)
    fit_graph(state, cell_count, config, settings.start_steps)


def with_node_names(config: FitConfig, names: tuple[str, ...]) -> FitConfig:
    """The same configuration with other names of the nodes, in their order."""
    nodes = dict(zip(names, config.nodes.values(), strict=True))
    renamed = dict(zip(config.nodes, names, strict=True))
    targets = {name: renamed.get(node, node) for name, node in config.environments.targets.items()}
    variables = {renamed.get(node, node): variable for node, variable in config.observe.variables.items()}
    mask = {name: tuple(renamed[node] for node in seen) for name, seen in config.mask.items()}
    knowledge, edges = _knowledge_with_names(config.knowledge, renamed), _edges_with_names(config.model.edges, renamed)
    return dataclasses.replace(
        config,
        nodes=nodes,
        mask=mask,
        model=dataclasses.replace(config.model, edges=edges),
        knowledge=knowledge,
        observe=dataclasses.replace(config.observe, variables=variables),
        environments=dataclasses.replace(config.environments, targets=targets),
    )


def _knowledge_with_names(knowledge: KnowledgeConfig, renamed: Mapping[str, str]) -> KnowledgeConfig:
    tiers = tuple(tuple(renamed[node] for node in tier) for tier in knowledge.tiers)
    designed = tuple(renamed[node] for node in knowledge.designed)
    forbid, require = (_edges_with_names(texts, renamed) for texts in (knowledge.forbid, knowledge.require))
    return KnowledgeConfig(forbid, require, tiers, designed)


def _edges_with_names(texts: tuple[str, ...], renamed: Mapping[str, str]) -> tuple[str, ...]:
    pairs = (read_edge("edges", text, tuple(renamed)) for text in texts)
    return tuple(edge_text(renamed[cause], renamed[effect]) for cause, effect in pairs)
