"""Draws from a fitted guide and model for a bounded subset of the samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from guides.guide import Guide
from inference.data.tensors import TensorData
from inference.objectives.given_latent import GivenLatent, given_latent
from inference.results.arrays import PosteriorDraws
from models.batch import Batch
from models.causal_pima import CausalPIMA
from models.decoders.base import Decoder
from models.latent_priors import LatentPrior

__all__ = ["DrawBounds", "choose_samples", "draw_posterior", "held_out_log_likelihood", "standard_error"]

_ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class DrawBounds:
    """How much is drawn.

    Attributes:
        draws: Draws per sample.
        samples: At most so many samples.
        predictive_elements: At most so many predictive values per modality.
    """

    draws: int = 100
    samples: int = 512
    predictive_elements: int = 2**23


def choose_samples(split: np.ndarray, bound: int) -> np.ndarray:
    """Indices of at most `bound` samples, held-out ones first, evenly spread, in increasing order."""
    held_out, rest = np.flatnonzero(split != "train"), np.flatnonzero(split == "train")
    first = _spread(held_out, bound)
    return np.sort(np.concatenate([first, _spread(rest, bound - len(first))]))


def _spread(index: np.ndarray, bound: int) -> np.ndarray:
    if len(index) <= bound:
        return index
    return index[np.linspace(0, len(index) - 1, bound).round().astype(int)] if bound else index[:0]


class _Drawn(NamedTuple):
    """Draws for a batch.

    Attributes:
        latent: Z, `[D, B, J]`.
        cell: N, `[D, B]`.
        log_weight: log p(X, Z) - log q(Z|X), `[D, B]`.
        log_likelihood: log p(X_m | Z, N) per modality, `[D, B]`.
        log_weight_without_cells: `log_weight` under the prior without cells, or None.
    """

    latent: Tensor
    cell: Tensor
    log_weight: Tensor
    log_likelihood: dict[str, Tensor]
    log_weight_without_cells: Tensor | None


@torch.no_grad()
def draw_posterior(
    model: CausalPIMA, guide: Guide, data: TensorData, samples: np.ndarray, bounds: DrawBounds
) -> PosteriorDraws:
    """Draw Z from q(Z|X), N from p(N | Z, X), and X from p(X | Z, N), from torch's global generator.

    Args:
        model: Fitted model.
        guide: Fitted guide.
        data: All samples.
        samples: Which of them.
        bounds: How much is drawn.
    """
    subset = data.subset(samples)
    chunks = [_draw_batch(model, guide, subset, batch, bounds.draws) for batch in subset.batches(_chunk(bounds.draws))]
    latent, cell, log_weight = (torch.cat(parts, dim=1) for parts in zip(*(chunk[:3] for chunk in chunks), strict=True))
    likelihood = {m: torch.cat([chunk.log_likelihood[m] for chunk in chunks], dim=1) for m in model.decoders}
    kept = _predictive_samples(model, len(samples), bounds)
    prior_latent, prior_cell = _draw_prior(model, bounds.draws)
    return PosteriorDraws(
        samples=samples,
        latent=_array(latent),
        nodes=_nodes(model, cell),
        log_weight=_array(log_weight),
        log_likelihood={m: _array(value) for m, value in likelihood.items()},
        predictive_samples=samples[kept],
        predictive={m: _predict(model, subset, m, latent[:, kept], cell[:, kept], kept) for m in model.decoders},
        prior_latent=_array(prior_latent),
        prior_nodes=_nodes(model, prior_cell),
        log_weight_without_cells=_without_cells(chunks),
    )


def _chunk(draws: int) -> int:
    return max(1, _ROWS_AT_ONCE // draws)


def _draw_batch(model: CausalPIMA, guide: Guide, data: TensorData, batch: Batch, draws: int) -> _Drawn:
    """Draws, and densities at them.

    Z of a modality that has a block of its own and is absent is drawn given N, and no part of the densities.
    Densities are of the data in their units, without the weights of the modalities, with the
    variances that are reported; cells are drawn from q(N|X), with the weights and one variance per modality.
    Densities are float64: ratios of float32 ones underflow, and Pareto smoothing of them is NaN.
    """
    posterior = guide.encode(batch)
    latent = posterior.draw(torch.randn(draws, *posterior.loc.shape, device=posterior.loc.device))
    flat, repeated = latent.flatten(0, 1), batch.repeated(draws)
    present = model.mixture.present(repeated)
    given = given_latent(model, flat, repeated)
    cell = torch.distributions.Categorical(logits=given.cell_logits, validate_args=False).sample()
    jacobian = {m: data.log_jacobian(m, batch).double() for m in given.log_likelihood}
    likelihood = {
        m: _at(value, cell).unflatten(0, (draws, -1)) + jacobian[m] for m, value in given.log_likelihood.items()
    }
    log_q = posterior.log_density(latent, model.mixture.present(batch))
    log_weight = given.log_joint().unflatten(0, (draws, -1)) + sum(jacobian.values(), -log_q)
    likelihood = {m: value.where(batch.has(m), torch.nan) for m, value in likelihood.items()}
    if present is not None:
        latent = model.mixture.complete(flat, cell, torch.randn_like(flat), present).unflatten(0, (draws, -1))
    other = None if model.latent_prior is None else log_weight + _exchanged(model.latent_prior, flat, given, draws)
    return _Drawn(latent, cell.unflatten(0, (draws, -1)), log_weight, likelihood, other)


def _exchanged(prior: LatentPrior, flat: Tensor, given: GivenLatent, draws: int) -> Tensor:
    """log p(Z) without cells minus that of the mixture, `[D, B]`: decoders beside such a prior know no cells."""
    other = prior.distribution().log_prob(flat).double()
    return (other - torch.logsumexp(given.log_prior, dim=1)).unflatten(0, (draws, -1))


def _without_cells(chunks: list[_Drawn]) -> np.ndarray | None:
    found = [chunk.log_weight_without_cells for chunk in chunks]
    known = [weight for weight in found if weight is not None]
    return _array(torch.cat(known, dim=1)) if known else None


def _at(per_cell: Tensor, cell: Tensor) -> Tensor:
    """The value of the cell of every row, `[B]`, of values `[B, C]` or `[B, 1]`."""
    return per_cell.squeeze(1) if per_cell.shape[1] == 1 else per_cell.gather(1, cell.unsqueeze(1)).squeeze(1)


def _draw_prior(model: CausalPIMA, draws: int) -> tuple[Tensor, Tensor]:
    weight = model.mixture.log_weight(model.graph.log_joint())
    component = torch.distributions.Categorical(logits=weight, validate_args=False).sample((draws,))
    return model.mixture.component(component).rsample(), model.mixture.component_cell[component]


def _nodes(model: CausalPIMA, cell: Tensor) -> np.ndarray:
    return np.stack(np.unravel_index(_array(cell), model.graph.outcomes), axis=-1)


def _predictive_samples(model: CausalPIMA, n_samples: int, bounds: DrawBounds) -> np.ndarray:
    largest = max(_n_elements(model, name) for name in model.decoders)
    affordable = max(1, bounds.predictive_elements // (bounds.draws * largest))
    return _spread(np.arange(n_samples), min(n_samples, affordable))


def _predict(
    model: CausalPIMA, data: TensorData, name: str, latent: Tensor, cell: Tensor, samples: np.ndarray
) -> np.ndarray:
    covariates = None if data.covariates is None else data.covariates[torch.as_tensor(samples, device=latent.device)]
    drawn = model.decode(name, latent, cell, covariates).sample()
    return _array(data.standardisation[name].invert(drawn))


def _n_elements(model: CausalPIMA, name: str) -> int:
    return cast(Decoder, model.decoders[name]).event_shape.numel()


def held_out_log_likelihood(
    draws: PosteriorDraws, split: np.ndarray, groups: np.ndarray | None = None
) -> dict[str, Any] | None:
    r"""Two lower bounds of log p(x) of held-out samples, in the units of the data, nats per sample.

    `log 1/D Σ_d p(X, z_d) / q(z_d | X)` averaged over samples, N summed out: a bound in expectation that tightens with
    D. Beside it the collapsed bound, `1/D Σ_d log p(X, z_d) / q(z_d | X)`, which is never above it.
    The standard error takes groups, not their samples, as independent.

    Args:
        draws: Draws with `log_weight`.
        split: Split of all samples.
        groups: Codes of the groups of all samples; None: every sample is its own.

    Returns:
        `per_sample`, `standard_error`, `n_samples`, `n_draws`, `split`, `collapsed_bound` {per_sample, standard_error};
        None with fewer than two held-out samples, or groups.
    """
    parts = split[draws.samples]
    name = "test" if (parts == "test").any() else "validation"
    held_out = parts == name
    unit = np.flatnonzero(held_out) if groups is None else groups[draws.samples][held_out]
    if len(np.unique(unit)) < 2:
        return None
    weights = draws.log_weight[:, held_out].astype(np.float64)
    per_sample = np.logaddexp.reduce(weights, axis=0) - np.log(len(weights))
    collapsed = weights.mean(0)
    return {
        "per_sample": float(per_sample.mean()),
        "standard_error": standard_error(per_sample, unit),
        "n_samples": int(held_out.sum()),
        "n_draws": len(weights),
        "split": name,
        "collapsed_bound": {
            "per_sample": float(collapsed.mean()),
            "standard_error": standard_error(collapsed, unit),
        },
    }


def standard_error(values: np.ndarray, groups: np.ndarray) -> float:
    r"""Of the mean: `√(G / (G - 1) Σ_g (Σ_{i in g} x_i - x̄)²) / n`, s / √n where every value is its own group."""
    codes = np.unique(groups, return_inverse=True)[1]
    sums = np.bincount(codes, values - values.mean())
    return float(np.sqrt(len(sums) / (len(sums) - 1) * np.square(sums).sum()) / len(values))


def _array(value: Tensor) -> np.ndarray:
    array: np.ndarray = value.detach().cpu().numpy()
    return array
