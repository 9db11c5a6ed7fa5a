"""What a modality that says nothing is taught: the mean and the whole spread of the posteriors that see the other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from causalpima.guides.encoders import Encoder, GaussianParameters, mlp_encoder
from causalpima.guides.guide import Guide
from causalpima.inference.training.loop import distillation_loss
from causalpima.models.batch import Batch

N = 200


class Constant(Encoder):
    """q(z | x) = N(loc, exp log_variance), whatever x is."""

    def __init__(self) -> None:
        super().__init__(nn.Identity())
        self.loc, self.log_variance = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))

    def forward(self, value: Tensor, observed: Tensor | None = None) -> GaussianParameters:
        return GaussianParameters(self.loc.expand(len(value), 2), self.log_variance.expand(len(value), 2))


def test_the_best_student_has_the_moments_of_all_its_teachers() -> None:
    """At E μ and E σ² + Var μ of the fused posteriors, the gradient of the loss is zero."""
    telling = mlp_encoder((3,), (8,), 2)
    guide = Guide({"silent": Constant(), "telling": telling})
    guide.copy_encoders()
    batch = Batch.whole({"silent": torch.randn(N, 1), "telling": 20 * torch.randn(N, 3)})
    fused = guide.encode(batch)
    student: Any = guide.unimodal["silent"]
    variance = fused.log_variance.exp().mean(0) + fused.loc.var(0, unbiased=False)
    assert (variance > 1.2 * fused.log_variance.exp().mean(0)).all(), "their means differ"
    state: Any = SimpleNamespace(guide=guide)
    for log_variance, is_best in ((variance.log(), True), (fused.log_variance.mean(0), False)):
        student.loc.data, student.log_variance.data = fused.loc.mean(0).detach(), log_variance.detach()
        loss, _ = distillation_loss(state, batch)
        gradients = torch.autograd.grad(loss, [student.loc, student.log_variance])
        assert all((gradient.abs() < 1e-8).all() for gradient in gradients) == is_best
