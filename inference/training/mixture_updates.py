"""Closed-form updates of the mixture from sums over samples (paper, equation 7, as maximum a posteriori).

Sums are accumulated batch by batch in float64 and can be added across processes; the data are never needed at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import NamedTuple, cast

import torch
from torch import Tensor

from causalpima.guides.fusion import LatentPosterior
from causalpima.inference.data.tensors import TensorData, weighted_means
from causalpima.inference.objectives.responsibilities import log_responsibilities
from causalpima.inference.training.config import FitConfig
from causalpima.inference.training.state import TrainingState, check_finite
from causalpima.models import gaussian
from causalpima.models.batch import Batch
from causalpima.models.block_mixture import FactorisedMixture
from causalpima.models.decoders.base import Decoder
from causalpima.models.mixture import Covariance, GaussianMixture
from causalpima.models.program import CausalPIMA

__all__ = [
    "BlockSums",
    "MixtureSums",
    "apply_block_update",
    "apply_update",
    "block_moments",
    "fit_cells",
    "log_prior",
    "moments",
    "posterior_block_moments",
    "posterior_moments",
    "report_element_variances",
    "reseed",
]


class MixtureSums(NamedTuple):
    """Responsibility-weighted counts, first and second moments of K components, float64.

    Attributes:
        count: Σ_d r_dk, `[K]`.
        first: Σ_d r_dk z_d, `[K, J]`.
        second: Σ_d r_dk (z_d z_dᵀ + diag σ_d²), `[K, J, J]`.
    """

    count: Tensor  # type: ignore[assignment]
    first: Tensor
    second: Tensor

    def plus(self, other: MixtureSums) -> MixtureSums:
        """Sums over the samples of both."""
        return MixtureSums(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


def moments(responsibilities: Tensor, loc: Tensor, variance: Tensor | None = None) -> MixtureSums:
    """Sums over a batch.

    Args:
        responsibilities: r, `[B, K]`.
        loc: Draws of z (`collapsed`) or means of q(Z|X) (`meanfield`, `paper`), `[B, J]`.
        variance: Variances of q(Z|X) `[B, J]`, or None for draws.
    """
    r, z = responsibilities.double(), loc.double()
    outer = z.unsqueeze(-1) * z.unsqueeze(-2)
    if variance is not None:
        outer = outer + torch.diag_embed(variance.double())
    return MixtureSums(r.sum(0), r.T @ z, torch.einsum("bk,bij->kij", r, outer))


def posterior_moments(responsibilities: Tensor, posterior: LatentPosterior) -> MixtureSums:
    """Sums over a batch with the moments of q(Z|X): of all its Gaussians by their weights, where it is a mixture.

    Args:
        responsibilities: r, `[B, K]`.
        posterior: q(Z|X).
    """
    sums = (
        moments(weight.unsqueeze(-1) * responsibilities, one.loc, one.log_variance.exp())
        for weight, one in posterior.parts()
    )
    return reduce(MixtureSums.plus, sums)


def apply_update(mixture: GaussianMixture, sums: MixtureSums, pseudo_count: float, variance_floor: float) -> list[int]:
    r"""Set means, covariances and shares to the maximisers of the objective that the sums belong to, plus `log_prior`.

    `μ̃_k = Σ r z / n_k`, `Σ̃_k = (Σ r (z - μ̃_k)(z - μ̃_k)ᵀ + r diag σ² + κ I) / (n_k + κ)` with eigenvalues (diagonal:
    entries) not below the floor, `π_{k|c} = (n_k + κ) / Σ_{k' in c} (n_k' + κ)`. A component with `n_k < κ` keeps its
    mean and covariance.

    Args:
        mixture: Changed in place.
        sums: Of all samples.
        pseudo_count: κ > 0.
        variance_floor: Smallest variance in any direction.

    Returns:
        The components that were kept because nothing belongs to them.
    """
    count = sums.count.clamp(min=torch.finfo(torch.float64).tiny)
    loc = sums.first / count.unsqueeze(-1)
    scatter = sums.second - count[:, None, None] * loc.unsqueeze(-1) * loc.unsqueeze(-2)
    eye = torch.eye(loc.shape[-1], dtype=loc.dtype, device=loc.device)
    spread = (scatter + pseudo_count * eye) / (count + pseudo_count)[:, None, None]
    scale = _floored_scale(spread, mixture.covariance_kind, variance_floor)
    empty = sums.count < pseudo_count
    old_loc, old_scale = mixture.component_loc.to(loc), mixture.component_scale.to(loc)
    loc = torch.where(empty.unsqueeze(-1), old_loc, loc)
    scale = torch.where(empty.reshape(-1, *[1] * (scale.dim() - 1)), old_scale, scale)
    dtype = mixture.component_loc.dtype
    shares = _log_shares(mixture, sums.count + pseudo_count)
    mixture.replace(loc.to(dtype), scale.to(dtype), mixture.component_cell, shares.to(dtype))
    return [int(k) for k in torch.nonzero(empty)]


def _floored_scale(covariance: Tensor, kind: Covariance, floor: float) -> Tensor:
    if kind == "diagonal":
        return covariance.diagonal(dim1=-2, dim2=-1).clamp(min=floor).sqrt()
    return gaussian.floored_cholesky(covariance, floor)


def _log_shares(mixture: GaussianMixture, count: Tensor) -> Tensor:
    per_cell = count.new_zeros(mixture.n_cells).index_add(0, mixture.component_cell, count)
    return torch.log(count / per_cell[mixture.component_cell])


def log_prior(mixture: GaussianMixture, pseudo_count: float) -> Tensor:
    r"""The declared log-prior under which `apply_update` is a maximiser, up to a constant.

    `Σ_k [-κ/2 (log det Σ̃_k + tr Σ̃_k⁻¹) + κ log π_{k|c}]`: κ pseudo-observations of unit variance per component.
    """
    covariance = mixture.covariance().double()
    trace = torch.linalg.inv(covariance).diagonal(dim1=-2, dim2=-1).sum(-1)
    gaussians = -0.5 * pseudo_count * (torch.logdet(covariance) + trace)
    return (gaussians + pseudo_count * mixture.component_log_share.double()).sum()


@torch.no_grad()
def reseed(mixture: GaussianMixture, count: Tensor, smallest_share: float) -> tuple[list[int], Tensor]:
    """Give empty components a new place: each splits the largest component, of its own cell unless that is empty.

    The components of the pair sit half a standard deviation to both sides along the widest direction and are narrower
    there, so that the two together have the mean and covariance of the one that was split, and no two are the same.

    Args:
        mixture: Changed in place.
        count: Samples per component, `[K]`.
        smallest_share: A component with less than this share of all samples counts as empty; below 1 / K.

    Returns:
        The components that were moved, and the samples per component after that: a pair shares those of the one split.
    """
    count = count.double().clone()
    threshold = smallest_share * count.sum()
    moved = [int(k) for k in torch.nonzero(count < threshold)]
    cells = mixture.component_cell
    for k in moved:
        siblings = torch.where(cells == cells[k], count, torch.zeros_like(count))
        pool = siblings if bool(siblings.max() >= threshold) else count
        source = int(pool.argmax())
        _split(mixture, source, k)
        count[k] = count[source] = count[source] / 2
    if moved:
        shares = _log_shares(mixture, count.clamp(min=1e-12)).to(mixture.component_log_share)
        mixture.replace(mixture.component_loc, mixture.component_scale, cells, shares)
    return moved, count


def _split(mixture: GaussianMixture, source: int, target: int) -> None:
    covariance = mixture.covariance()[source]
    values, vectors = torch.linalg.eigh(covariance)
    step = 0.5 * values[-1].sqrt() * vectors[:, -1]
    loc, scale = mixture.component_loc.clone(), mixture.component_scale.clone()
    loc[target], loc[source] = loc[source] + step, loc[source] - step
    scale[[target, source]] = _floored_scale(covariance - torch.outer(step, step), mixture.covariance_kind, 0.0)
    mixture.replace(loc, scale, mixture.component_cell, mixture.component_log_share)


# Closed-form updates of the blocks of a mixture: each from the samples that tell of it.


class BlockSums(NamedTuple):
    """Sums over samples, float64.

    Attributes:
        count: Σ_d r_dc of all samples, `[C]`.
        blocks: Per block, sums of its levels over the samples that tell of it: under a mask those with its modality.
    """

    count: Tensor  # type: ignore[assignment]
    blocks: Mapping[str, MixtureSums]

    def plus(self, other: BlockSums) -> BlockSums:
        """Sums over the samples of both."""
        blocks = {name: sums.plus(other.blocks[name]) for name, sums in self.blocks.items()}
        return BlockSums(self.count + other.count, blocks)


def block_moments(
    mixture: FactorisedMixture, batch: Batch, responsibilities: Tensor, loc: Tensor, variance: Tensor | None = None
) -> BlockSums:
    """Sums over a batch: r of a level is that of its cells together, zero where nothing tells of the block.

    Args:
        mixture: Its blocks and levels.
        batch: Which modalities the samples have.
        responsibilities: r, `[B, C]`.
        loc: Draws of z (`collapsed`) or means of q(Z|X) (`meanfield`, `paper`), `[B, J]`.
        variance: Variances of q(Z|X) `[B, J]`, or None for draws.
    """
    r, blocks = responsibilities.double(), {}
    for name in mixture.visible:
        of_levels, given = mixture.sum_to_block_levels(name, r), mixture.block_given(name, batch.present)
        of_levels = of_levels if given is None else of_levels * given.unsqueeze(-1)
        spread = None if variance is None else mixture.block_part(name, variance)
        blocks[name] = moments(of_levels, mixture.block_part(name, loc), spread)
    return BlockSums(r.sum(0), blocks)


def posterior_block_moments(
    mixture: FactorisedMixture, batch: Batch, responsibilities: Tensor, posterior: LatentPosterior
) -> BlockSums:
    """Sums over a batch with the moments of q(Z|X), as `posterior_moments` has them.

    Args:
        mixture: Its blocks and levels.
        batch: Which modalities the samples have.
        responsibilities: r, `[B, C]`.
        posterior: q(Z|X).
    """
    sums = (
        block_moments(mixture, batch, weight.unsqueeze(-1) * responsibilities, one.loc, one.log_variance.exp())
        for weight, one in posterior.parts()
    )
    return reduce(BlockSums.plus, sums)


def apply_block_update(mixture: FactorisedMixture, sums: BlockSums, pseudo_count: float, variance_floor: float) -> None:
    """`apply_update` of every block; a level without samples keeps its Gaussian.

    The objectives that the sums belong to are sums over blocks of what each block's parameters change, so that each
    update is the maximiser for its block.

    Args:
        mixture: Changed in place.
        sums: Of all samples.
        pseudo_count: κ > 0.
        variance_floor: Smallest variance in any direction.
    """
    for name, of_block in sums.blocks.items():
        apply_update(mixture.block(name), of_block, pseudo_count, variance_floor)


# What decoders on N alone know of each cell, fitted to its samples at once instead of by gradient steps.


@torch.no_grad()
def fit_cells(state: TrainingState, data: TensorData, responsibilities: Tensor) -> None:
    """Let every decoder that depends on N alone fit its cells, or levels under a mask (`Decoder.update_cells`).

    Args:
        state: Decoders are changed.
        data: The training samples.
        responsibilities: q(N|X), `[n, C]`.
    """
    for name, decoder in state.decoders.items():
        if decoder.depends_on_cell and not decoder.depends_on_latent:
            of_levels = state.model.mixture.sum_to_levels(name, responsibilities)
            decoder.update_cells(*weighted_means(data, name, of_levels))


# The variance of every element that is reported, from one pass over the training samples.


_PASS_SIZE = 1024

_Sums = tuple[Tensor, Tensor]


@torch.no_grad()
def report_element_variances(state: TrainingState, data: TensorData, config: FitConfig) -> None:
    """Tell every decoder that reports a variance per element the squared errors of its elements.

    `S_e = Σ_n o_ne Σ_c q(c|X_n) (x_ne - μ_e(z_n, c))²`, z_n drawn once from q(Z|X_n), o_ne = 1 where measured. The
    draws have a generator of their own: what comes later is the same with and without this pass.

    Args:
        state: Decoders are changed.
        data: The training samples.
        config: Objective, which q(N|X) belongs to, and seed.

    Raises:
        DivergedError: An error is not finite.
    """
    names = [name for name, decoder in state.decoders.items() if decoder.reports_elements]
    sums: dict[str, _Sums] = {}
    generators = torch.Generator().manual_seed(config.seed), torch.Generator().manual_seed(config.seed + 1)
    for batch in data.batches(_PASS_SIZE) if names else ():
        sample, r = _draw(state, config, batch, *generators)
        for name in names:
            error, n_elements = _batch_sums(state.model, name, sample, r, batch)
            before = sums.get(name, (0.0, 0.0))
            sums[name] = before[0] + error, before[1] + n_elements
    for name, (error, n_elements) in sums.items():
        check_finite(f"squared error of {name}", error)
        state.decoders[name].report_elements(error, n_elements)


def _draw(
    state: TrainingState, config: FitConfig, batch: Batch, generator: torch.Generator, choices: torch.Generator
) -> _Sums:
    """z `[B, J]` drawn from q(Z|X), and q(N|X) `[B, C]` that goes with it; `choices` is for mixtures."""
    posterior = state.guide.encode(batch)
    noise = torch.randn(posterior.loc.shape, generator=generator, dtype=posterior.loc.dtype, device="cpu")
    uniform = torch.rand(noise.shape[:-1], generator=choices, dtype=noise.dtype, device="cpu")
    sample = posterior.draw(noise.to(posterior.loc), uniform.to(posterior.loc))
    log_r = log_responsibilities(config.objective, state.model, posterior, sample, batch)
    return sample, state.model.mixture.sum_to_cells(log_r.exp()).double()


def _batch_sums(model: CausalPIMA, name: str, sample: Tensor, r: Tensor, batch: Batch) -> _Sums:
    """S_e and n_e of a batch, `[*event]` of float64 each."""
    value, measured = batch.values[name].double(), batch.measured(name).double()
    weights = r.T if cast(Decoder, model.decoders[name]).depends_on_cell else torch.ones_like(r.T[:1])
    error = torch.zeros_like(value[0])
    for weight, mean in zip(weights, _means(model, name, sample, batch.covariates), strict=True):
        squared = measured * (value - mean.double()).square()
        error = error + torch.tensordot(weight, squared, dims=([0], [0]))
    return error, measured.sum(0)


def _means(model: CausalPIMA, name: str, sample: Tensor, covariates: Tensor | None) -> Iterator[Tensor]:
    """Means `[B, *event]` of X_m: of every cell in turn, or one where they do not depend on cells."""
    decoder = cast(Decoder, model.decoders[name])
    cells = torch.arange(model.mixture.n_cells if decoder.depends_on_cell else 1, device=sample.device)
    if decoder.depends_on_latent:
        yield from (model.decode(name, sample, cell, covariates).mean for cell in cells)
    else:
        yield from model.decode(name, sample, cells.unsqueeze(1), covariates).mean
