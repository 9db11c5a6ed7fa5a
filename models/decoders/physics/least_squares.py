"""The law of every cell, fitted to the cell's mean curve from several starts."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from causalpima.models.decoders.physics.law import LawCurve

__all__ = [
    "Solution",
    "fit_cells",
    "minimise",
]


# Levenberg-Marquardt for many small weighted least-squares problems at once.


_MOST_DAMPING, _LEAST_DAMPING = 1e12, 1e-12
_LARGEST_STEP = 2.0  # of a parameter with bounds, so that no step ends on the flat part of its bijection


@dataclass
class Solution:
    """The rows in work.

    Attributes:
        value: Unconstrained parameters, `[R, P]`.
        cost: ½ Σ_d w_d (law_d - target_d)², `[R]`; infinity where the curve is not finite.
        gradient: Its gradient, `[R, P]`.
        curvature: J^T W J, `[R, P, P]`.
    """

    value: Tensor
    cost: Tensor
    gradient: Tensor
    curvature: Tensor


def minimise(
    curve: LawCurve,
    target: Float[Tensor, "R D"],
    weight: Float[Tensor, "R D"],
    start: Float[Tensor, "R P"],
    max_steps: int = 200,
    tolerance: float = 1e-10,
) -> tuple[Float[Tensor, "R P"], Float[Tensor, " R"]]:
    """Minimise `½ Σ_d w_d (law_d(u) - target_d)²` over u in every row by itself.

    Marquardt's scaling (damping times the diagonal of J^T W J) makes the steps the same in any units; a step that does
    not lower the cost is not taken. A row is done when a step changes no parameter by more than `tolerance`, or when
    no damping helps.

    Args:
        curve: The law.
        target: Curves to fit, on the scale of the model.
        weight: Their weights, not negative.
        start: Unconstrained parameters to start from.
        max_steps: Most steps, taken or not.
        tolerance: Largest change of the unconstrained parameters that counts as none.

    Returns:
        Best parameters and their cost, infinity where no start had a finite curve.
    """
    limit = _step_limits(curve).to(start)
    now = _evaluate(curve, target, weight, start.clone())
    damping = torch.full_like(now.cost, 1e-3)
    is_open = torch.isfinite(now.cost)
    for _ in range(max_steps):
        rows = is_open.nonzero().squeeze(-1)
        if not len(rows):
            break
        step = _damped_step(now.gradient[rows], now.curvature[rows], damping[rows]).clamp(-limit, limit)
        trial = _evaluate(curve, target[rows], weight[rows], now.value[rows] + step)
        is_better = trial.cost < now.cost[rows]
        _take(now, trial, rows, is_better)
        damping[rows] = torch.where(is_better, damping[rows] / 5, damping[rows] * 4).clamp(min=_LEAST_DAMPING)
        is_open[rows] = (step.abs().amax(-1) > tolerance) & (damping[rows] < _MOST_DAMPING)
    return now.value, now.cost


def _step_limits(curve: LawCurve) -> Tensor:
    parameters = curve.parameters_of_law.parameters
    return torch.tensor([_LARGEST_STEP if parameter.has_bounds else torch.inf for parameter in parameters])


def _evaluate(curve: LawCurve, target: Tensor, weight: Tensor, value: Tensor) -> Solution:
    mean, jacobian = curve.with_jacobian(value)
    residual = torch.where(weight > 0, mean - target, 0.0)
    jacobian = torch.where((weight > 0).unsqueeze(-1), jacobian, 0.0)
    weighted = weight.unsqueeze(-1) * jacobian
    cost = 0.5 * (weight * residual.square()).sum(-1)
    gradient = (weighted * residual.unsqueeze(-1)).sum(-2)
    curvature = weighted.mT @ jacobian
    is_fine = torch.isfinite(cost) & torch.isfinite(gradient).all(-1) & torch.isfinite(curvature).flatten(1).all(-1)
    return Solution(value, torch.where(is_fine, cost, torch.inf), gradient, curvature)


def _damped_step(gradient: Tensor, curvature: Tensor, damping: Tensor) -> Tensor:
    """-(H + λ diag H)⁻¹ g, after scaling H to a unit diagonal."""
    diagonal = curvature.diagonal(dim1=-2, dim2=-1)
    smallest = 1e-14 * diagonal.amax(-1, keepdim=True) + torch.finfo(diagonal.dtype).tiny
    scale = diagonal.clamp(min=smallest).rsqrt()
    unit = curvature * scale.unsqueeze(-1) * scale.unsqueeze(-2)
    identity = torch.eye(unit.shape[-1], dtype=unit.dtype, device=unit.device)
    damped = unit + (damping[:, None, None] + 1e-13) * identity
    step, _ = torch.linalg.solve_ex(damped, -(gradient * scale).unsqueeze(-1))
    return torch.nan_to_num(step.squeeze(-1) * scale, nan=0.0, posinf=0.0, neginf=0.0)


def _take(now: Solution, trial: Solution, rows: Tensor, is_better: Tensor) -> None:
    chosen = rows[is_better]
    for name in ("value", "cost", "gradient", "curvature"):
        getattr(now, name)[chosen] = getattr(trial, name)[is_better]


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
