r"""p(X_m | x) as a finite mixture: over the draws of Z, and exactly over the cells.

`p(x_m | x) = Σ_d Σ_c w_dc p(x_m | z_d, c)`, `w_dc = p(c | z_d, x) / D`. Decoders on Z alone need no cells, those on N
alone no draws: then it is exact but for w.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

import torch
from pyro.distributions import TorchDistribution
from torch import Tensor

from inference.prediction.draws import Drawn, Noise, draw_cell
from models.causal_pima import CausalPIMA
from models.decoders.base import Decoder

__all__ = ["Part", "all_parts", "one_per_draw"]


class Part(NamedTuple):
    """K components of a mixture for every sample: weights `[K, B]`, and distributions of batch shape `[K, B]`."""

    weight: Tensor
    distribution: TorchDistribution


def all_parts(model: CausalPIMA, name: str, drawn: Drawn, covariates: Tensor | None) -> Iterator[Part]:
    """The whole mixture, a part at a time.

    Args:
        model: The generative model.
        name: The modality.
        drawn: Draws for a batch.
        covariates: `[B, V]`, or None for their average.
    """
    decoder, latent = cast(Decoder, model.decoders[name]), drawn.latent
    if not decoder.depends_on_latent:
        yield _of_cells(model, name, drawn, covariates)
    elif not decoder.depends_on_cell:
        yield _of_draws(model, name, drawn, covariates, torch.zeros((), dtype=torch.long, device=latent.device))
    else:
        for cell in torch.arange(model.mixture.n_cells, device=latent.device):
            part = _of_draws(model, name, drawn, covariates, cell)
            yield Part(drawn.given_all[..., cell] / len(latent), part.distribution)


def one_per_draw(model: CausalPIMA, name: str, drawn: Drawn, covariates: Tensor | None, noise: Noise) -> Part:
    """A mixture with one cell for every draw of Z, drawn from p(N | Z, x); the whole one for decoders on N alone.

    Args:
        model: The generative model.
        name: The modality.
        drawn: Draws for a batch.
        covariates: `[B, V]`, or None for their average.
        noise: What the draws were made of.
    """
    decoder = cast(Decoder, model.decoders[name])
    if not decoder.depends_on_latent:
        return _of_cells(model, name, drawn, covariates)
    return _of_draws(model, name, drawn, covariates, draw_cell(drawn.cell_probability, noise))


def _of_draws(model: CausalPIMA, name: str, drawn: Drawn, covariates: Tensor | None, cell: Tensor) -> Part:
    shape = drawn.latent.shape[:2]
    weight = drawn.cell_probability.new_full(shape, 1 / shape[0])
    return Part(weight, model.decode(name, drawn.latent, cell, covariates))


def _of_cells(model: CausalPIMA, name: str, drawn: Drawn, covariates: Tensor | None) -> Part:
    cells = torch.arange(model.mixture.n_cells, device=drawn.loc.device).unsqueeze(1)
    return Part(drawn.cell_probability.mean(0).T, model.decode(name, drawn.loc, cells, covariates))
