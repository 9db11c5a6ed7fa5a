"""The law of every cell, fitted to the cell's mean curve from several starts."""

from __future__ import annotations

import copy

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from models.decoders.physics.law_curve import LawCurve
from models.decoders.physics.levenberg_marquardt import minimise

__all__ = ["fit_cells"]

_FIRST_STEPS, _KEPT_STARTS = 15, 4


@torch.no_grad()
def fit_cells(
    curve: LawCurve,
    current: Float[Tensor, "C P"],
    mean: Float[Tensor, "C D"],
    weight: Float[Tensor, "C D"],
    n_random: int = 12,
    seed: int = 0,
) -> Float[Tensor, "C P"]:
    """argmin_u Σ_d weight_d (law_d(u) - mean_d)² of every cell: the best of several starts.

    Starts: the current values, the law's starting values, the law's guess from the mean curve, and random draws within
    the bounds. Each makes a few steps, the best go on until nothing moves. Computed in float64 on the CPU; the same
    arguments give the same result.

    Args:
        curve: The law.
        current: Unconstrained parameters.
        mean: Mean of the measured curves of the cell, on the scale of the model; any value where the weight is zero.
        weight: Weights, not negative.
        n_random: Number of random starts.
        seed: Of the random starts.

    Returns:
        Unconstrained parameters like `current`; those of cells without weight, or whose curve is finite from no start,
        are as they were.
    """
    there, curve = current, _on_cpu(curve)
    current, mean, weight = (tensor.detach().double().cpu() for tensor in (current, mean, weight))
    cells = (weight.sum(-1) > 0).nonzero().squeeze(-1)
    result = current.clone()
    if len(cells):
        weight = weight[cells] / weight[cells].amax(-1, keepdim=True)
        starts = _starts(curve, current[cells], mean[cells], weight, n_random, seed)
        result[cells] = curve.parameters_of_law.wrapped(_best(curve, starts, mean[cells], weight, current[cells]))
    return result.to(there)


def _on_cpu(curve: LawCurve) -> LawCurve:
    return curve if curve.position.device.type == "cpu" else copy.deepcopy(curve).cpu()


def _starts(
    curve: LawCurve, current: Tensor, mean: Tensor, weight: Tensor, n_random: int, seed: int
) -> Float[Tensor, "S C P"]:
    vector, rng = curve.parameters_of_law, np.random.default_rng(seed)
    drawn = torch.as_tensor(vector.draw(rng, n_random))
    common = torch.cat([vector.start().unsqueeze(0), vector.to_unconstrained(drawn)])
    guessed = torch.stack([_guess(curve, row, seen) for row, seen in zip(mean, weight > 0, strict=True)])
    return torch.cat([current.unsqueeze(0), guessed.unsqueeze(0), common.unsqueeze(1).expand(-1, len(mean), -1)])


def _guess(curve: LawCurve, mean: Tensor, is_seen: Tensor) -> Float[Tensor, " P"]:
    """The law's guess, completed by starting values; only those if it is not finite."""
    vector = curve.parameters_of_law
    measured = np.where(is_seen.numpy(), curve.standardisation.invert(mean.numpy()), np.nan)
    start = {parameter.name: parameter.start for parameter in vector.parameters}
    values = start | dict(curve.law.guess(curve.position.double().numpy(), measured))
    guess = torch.tensor([float(values[name]) for name in vector.names], dtype=torch.float64)
    return vector.to_unconstrained(guess) if torch.isfinite(guess).all() else vector.start()


def _best(curve: LawCurve, starts: Tensor, mean: Tensor, weight: Tensor, current: Tensor) -> Float[Tensor, "C P"]:
    value, cost = _minimise_all(curve, starts, mean, weight, _FIRST_STEPS)
    order = cost.argsort(0)[:_KEPT_STARTS]
    kept = value.gather(0, order.unsqueeze(-1).expand(-1, -1, value.shape[-1]))
    value, cost = _minimise_all(curve, kept, mean, weight)
    best = cost.argmin(0)
    chosen = value[best, torch.arange(len(best))]
    return torch.where(torch.isfinite(cost.amin(0)).unsqueeze(-1), chosen, current)


def _minimise_all(
    curve: LawCurve, starts: Tensor, mean: Tensor, weight: Tensor, max_steps: int = 300
) -> tuple[Tensor, Tensor]:
    """`minimise` from `[S, C, P]`, with the starts and the cells in one row after the other."""
    n_starts, n_cells, n_parameters = starts.shape
    target, weights = (tensor.expand(n_starts, *tensor.shape).flatten(0, 1) for tensor in (mean, weight))
    value, cost = minimise(curve, target, weights, starts.reshape(-1, n_parameters), max_steps)
    return value.reshape(starts.shape), cost.reshape(n_starts, n_cells)
