r"""Unimodal encoders, taught after joint training by the fused posterior (docs/missing.md).

One expert of a product is trained to be right together with the others, not alone. A copy of each encoder is therefore
fitted to minimise `KL(q(z | X) ‖ q(z | x_m))` over the samples that have the modality and at least one other, with
everything else held fixed: the joint bound does not change. In this direction q(z | x_m) takes the mean and the spread
of all the q(z | X) that go with x_m, so that it is as unsure as x_m alone leaves it; in the other one,
`KL(q(z | x_m) ‖ q(z | X))`, it settles on one of them, and predictions are too sure of themselves (docs/missing.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from guides.encoders.base import GaussianParameters
from inference.data.tensors import TensorData
from inference.training.config import FitConfig
from inference.training.divergence import check_finite
from inference.training.state import TrainingState
from models.batch import Batch

__all__ = ["distillation_epoch", "distillation_loss", "start_distillation"]


def start_distillation(state: TrainingState, config: FitConfig) -> None:
    """Go back to the best weights, copy the encoders, and let the optimiser move the copies alone."""
    state.return_to_best()
    state.best_weights = {}
    state.add_unimodal_encoders(config.training.learning_rate)


def distillation_epoch(
    state: TrainingState, data: TensorData, config: FitConfig, step_done: Callable[[], None]
) -> dict[str, Any]:
    """One epoch of distillation; returns its record. The objective is minus the mean divergence, in nats."""
    total, n_taught = 0.0, 0
    state.modules.train()
    for batch in data.batches(config.training.batch_size, shuffle=True):
        loss, n_rows = distillation_loss(state, batch)
        check_finite("objective of distillation", -loss.detach())
        if n_rows:
            state.optimizer.zero_grad(set_to_none=True)
            (loss / n_rows).backward()
            state.optimizer.step()
        total, n_taught = total + float(loss.detach()), n_taught + n_rows
        step_done()
    return {"phase": "distillation", "objective": -total / max(n_taught, 1), "terms": {}, "validation_objective": None}


def distillation_loss(state: TrainingState, batch: Batch) -> tuple[Tensor, int]:
    """Sum of `KL(q(z | X) ‖ q(z | x_m))` over modalities and the samples that have m and another, and their number.

    Raises:
        ValueError: q(z | X) is a mixture.
    """
    with torch.no_grad():
        teacher = state.guide.encode(batch)
    if not isinstance(teacher, GaussianParameters):
        raise ValueError(
            "distillation.epochs: expected 0 with a fusion that gives a mixture, which no encoder of one Gaussian can "
            "be taught, got more; leave it out"
        )
    present = {name: batch.has(name) for name in state.guide.unimodal}
    several = torch.stack(list(present.values())).sum(0) > 1
    total, n_taught = torch.zeros((), device=teacher.loc.device), 0
    for name, encoder in state.guide.unimodal.items():
        rows = torch.nonzero(present[name] & several).squeeze(-1)
        if not len(rows):
            continue
        value = state.guide.covariate_shift(name, batch.values[name], batch.covariates)
        student = encoder(*(part[rows] for part in (value, batch.observed.get(name)) if part is not None))
        total = total + divergence(GaussianParameters(*(part[rows] for part in teacher)), student).sum()
        n_taught += len(rows)
    return total, n_taught


def divergence(q: GaussianParameters, p: GaussianParameters) -> Tensor:
    """`KL(q ‖ p) = ½ Σ_j [σ_q²/σ_p² + (μ_q - μ_p)²/σ_p² - 1 - log σ_q² + log σ_p²]` of diagonal Gaussians."""
    ratio = (q.log_variance - p.log_variance).exp()
    distance = (q.loc - p.loc).square() * (-p.log_variance).exp()
    return 0.5 * (ratio + distance - 1 - q.log_variance + p.log_variance).sum(-1)
