"""The mixture during training: passes over the data, updates, and the cluster read-out written back into the model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from itertools import chain
from typing import cast

import numpy as np
import torch
from torch import Tensor

from guides.guide import Guide
from guides.posterior import LatentPosterior
from inference.clusters.attempts import sum_by_cell
from inference.clusters.matching import match_cells, relabel
from inference.clusters.read_out import ReadOut, read_out, row_blocks
from inference.clusters.round_clusters import choose_shape, read_out_round
from inference.clusters.told_cells import keep_allowed
from inference.data.in_order import in_order
from inference.data.tensors import TensorData
from inference.labelling.labelling import Clusters, Labeller, Labelling
from inference.objectives.responsibilities import ObjectiveName, log_responsibilities
from inference.training.block_updates import BlockSums, apply_block_update, block_moments, posterior_block_moments
from inference.training.cell_fits import fit_cells
from inference.training.config import FitConfig
from inference.training.divergence import check_finite
from inference.training.graph_inference import fit_graph_guide
from inference.training.masked_clusters import keep_blocks, read_out_blocks, renumbered, write_blocks
from inference.training.mixture_updates import MixtureSums, apply_update, moments, posterior_moments, reseed
from inference.training.observed_clusters import under_labels
from inference.training.relaxed_graphs import graph_loss, settle_relaxed
from inference.training.state import TrainingState
from inference.training.table_updates import update_tables
from models.batch import Batch
from models.causal_pima import CausalPIMA
from models.factorised_mixture import FactorisedMixture, Mixture
from models.graph import RelaxedGraph, TableGraph
from models.mixture import GaussianMixture

__all__ = [
    "PASS_SIZE",
    "batch_moments",
    "cell_counts",
    "cell_responsibilities",
    "embed",
    "fit_graph",
    "move_components",
    "start_clusters",
    "update_mixture",
]

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
