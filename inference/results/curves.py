"""Measured curves of each cell, and where the model expects new curves and vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from pyro.distributions import TorchDistribution
from torch import Tensor

from inference.results.arrays import CurveArrays
from models.causal_pima import CausalPIMA
from models.decoders.variance import DecoderVariance

if TYPE_CHECKING:
    from inference.results.collect import Fitted

__all__ = ["curve_arrays", "predictive_deviation", "predictive_interval"]

_MOST_CURVES = 40
_MOST_ELEMENTS = 2**22
_DRAWS = 256
_WITHOUT_SCALE = ("bernoulli", "categorical")
_COUNTS = ("poisson", "negative_binomial")


def curve_arrays(fitted: Fitted, name: str, r: np.ndarray, mean: Tensor) -> CurveArrays:
    """Measured curves and predictive band of every cell, in the units of the data.

    Args:
        fitted: The fit.
        name: A modality that is a curve.
        r: q(N|X), `[n, C]`.
        mean: Decoded mean of each cell on the scale of the model, `[C, position]`.
    """
    examples = _examples(fitted, name, r)
    return CurveArrays(examples, *(predictive_interval(fitted, name, mean) or (None, None)))


def predictive_interval(fitted: Fitted, name: str, mean: Tensor) -> tuple[np.ndarray, np.ndarray] | None:
    """Two predictive standard deviations below and above the mean of every cell, in the units of the data.

    Args:
        fitted: The fit.
        name: The modality.
        mean: Decoded mean of each cell on the scale of the model, `[C, *shape]`.

    Returns:
        `[C, *shape]` each; None where the likelihood has no scale.
    """
    likelihood = fitted.likelihoods.get(name, "normal")
    deviation = None if likelihood in _WITHOUT_SCALE else predictive_deviation(fitted.model, name, mean)
    if deviation is None:
        return None
    lower, upper = mean - 2 * deviation, mean + 2 * deviation
    invert = fitted.tensors.standardisation[name].invert
    return _array(invert(lower.clamp(min=0) if likelihood in _COUNTS else lower)), _array(invert(upper))


@torch.no_grad()
def predictive_deviation(model: CausalPIMA, name: str, mean: Tensor) -> Tensor | None:
    r"""Root mean square distance of X_m from a curve per cell, given the cell, on the scale of the model.

    $\sqrt{E_{p(z|c)}[(\mu(z, c) - m_c)^2 + \sigma^2(z, c)]}$, over 256 draws of z where the decoder depends on it,
    from torch's global generator. None for a decoder that has no variance.

    Args:
        model: The fitted model.
        name: The modality.
        mean: The curves m, `[C, position]`.

    Returns:
        `[C, position]`.
    """
    deviations = [_deviation(model, name, cell, of_cell) for cell, of_cell in enumerate(mean)]
    known = [deviation for deviation in deviations if deviation is not None]
    return torch.stack(known) if len(known) == len(deviations) else None


def _deviation(model: CausalPIMA, name: str, cell: int, mean: Tensor) -> Tensor | None:
    mixture = model.mixture
    share = torch.distributions.Categorical(logits=mixture.cell_log_share[cell], validate_args=False)
    latent = mixture.component(mixture.cell_components[cell, share.sample((_DRAWS,))]).sample()
    distribution = model.decode(name, latent, torch.full((_DRAWS,), cell, device=latent.device))
    variance = _variance(model.decoders[name], distribution)
    if variance is None:
        return None
    return ((distribution.mean - mean).square() + variance).mean(0).sqrt()


def _variance(decoder: Any, distribution: TorchDistribution) -> Tensor | None:
    """The re-estimated variance of a Gaussian decoder, else that of the distribution, where there is one."""
    if hasattr(decoder, "variance"):
        return cast(DecoderVariance, decoder.variance).reported_variance()
    try:
        return distribution.variance
    except NotImplementedError:
        return None


def _examples(fitted: Fitted, name: str, r: np.ndarray) -> np.ndarray:
    """At most 40 measured curves of each cell, drawn with a fixed seed, `[C, E, position]`; NaN for what is missing."""
    data = fitted.data
    values, measured, cell = data.modalities[name], data.measured(name), r.argmax(1)
    n_cells, n_positions = r.shape[1], values.shape[1]
    most = max(1, min(_MOST_CURVES, _MOST_ELEMENTS // (n_cells * n_positions)))
    rng = np.random.default_rng(0)
    chosen = [_choose(np.flatnonzero((cell == index) & data.present[name]), most, rng) for index in range(n_cells)]
    examples = np.full((n_cells, max(map(len, chosen)), n_positions), np.nan, dtype=np.float32)
    for index, rows in enumerate(chosen):
        examples[index, : len(rows)] = np.where(measured[rows], values[rows], np.nan)
    return examples


def _choose(rows: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def _array(value: Tensor) -> np.ndarray:
    array: np.ndarray = value.detach().cpu().numpy()
    return array
