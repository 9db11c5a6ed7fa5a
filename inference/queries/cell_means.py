r"""Mean of every modality in every cell, in the units of the data.

$$E[X_m \mid N = c] = \sum_{k \in c} \pi_{k \mid c} \int E[X_m \mid z, c]\ N(z; \tilde\mu_k, \tilde\Sigma_k)\ dz$$

with the integral by draws of z that are the same in all cells, so that cells differ by nothing else. Given z, the mean
is exact, transforms included. With these, the mean under any distribution of the cells is their average.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np
import torch
from torch import Tensor

from inference.prediction.mixtures import Part
from inference.prediction.moments import category_probabilities, mixture_moments
from inference.training.fitted_run import FittedRun
from inference.training.surroundings import seed_generators, surroundings
from models.decoders.base import Decoder

__all__ = ["cell_means"]

_ELEMENTS_AT_ONCE = 2**20


def cell_means(fitted: FittedRun, name: str, draws: int, seed: int) -> np.ndarray:
    """`[C, *event]`; of categories their probabilities, `[C, *event, K]`. NaN where there is no mean.

    Args:
        fitted: The run.
        name: The modality.
        draws: Draws of z per Gaussian.
        seed: Of the draws.
    """
    mixture = fitted.model.mixture
    with surroundings(fitted.device), torch.no_grad():
        seed_generators(seed, fitted.device)
        noise = torch.randn(draws, mixture.latent_dim).to(mixture.component_loc)
        cells = [_of_cell(fitted, name, noise, cell) for cell in range(mixture.n_cells)]
        array: np.ndarray = torch.stack(cells).cpu().numpy()
    return array


def _of_cell(fitted: FittedRun, name: str, noise: Tensor, cell: int) -> Tensor:
    parts = _parts(fitted, name, noise, cell)
    if fitted.config.modality[name].decoder.likelihood == "categorical":
        return category_probabilities(parts)[0]
    return mixture_moments(parts, fitted.modalities[name].standardisation)[0][0]


def _parts(fitted: FittedRun, name: str, noise: Tensor, cell: int) -> Iterator[Part]:
    """p(X_m | N = c) as a mixture over the Gaussians of the cell and the draws."""
    model, mixture = fitted.model, fitted.model.mixture
    decoder = cast(Decoder, model.decoders[name])
    noise = noise if decoder.depends_on_latent else noise[:1]
    size = max(1, _ELEMENTS_AT_ONCE // max(1, decoder.event_shape.numel()))
    index = torch.tensor(cell, device=noise.device)
    for component, share in _gaussians(fitted, cell):
        loc, scale = mixture.component_loc[component], mixture.component_scale[component]
        for part in noise.split(size):
            step = scale * part if scale.dim() == 1 else part @ scale.T
            distribution = model.decode(name, (loc + step).unsqueeze(1), index, None)
            yield Part(part.new_full((len(part), 1), share / len(noise)), distribution)


def _gaussians(fitted: FittedRun, cell: int) -> list[tuple[int, float]]:
    """Number and share of the Gaussians of a cell."""
    mixture = fitted.model.mixture
    members = torch.nonzero(mixture.component_cell == cell).flatten()
    shares = torch.softmax(mixture.component_log_share[members].double(), dim=0)
    return list(zip(members.tolist(), shares.tolist(), strict=True))
