"""Levenberg-Marquardt for many small weighted least-squares problems at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from models.decoders.physics.law_curve import LawCurve

__all__ = ["Solution", "minimise"]

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
