"""The variance of every element that is reported, from one pass over the training samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import torch
from torch import Tensor

from inference.data.tensors import TensorData
from inference.objectives.responsibilities import log_responsibilities
from inference.training.config import FitConfig
from inference.training.divergence import check_finite
from inference.training.state import TrainingState
from models.batch import Batch
from models.causal_pima import CausalPIMA
from models.decoders.base import Decoder

__all__ = ["report_element_variances"]

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
