r"""The graph of DAGMA: no cycles by a log-determinant and a central path (Bello et al. 2022, NeurIPS).

Minimised is, for μ = 0.1, 0.01, 0.001, 0.0001 one after the other, μ (score) + h with
$h = -\log\det(sI - E \circ E) + L \log s$ and s = 1, as in its non-linear version: per sample, h / μ. A gradient step
that leaves the domain, where the spectral radius of E∘E is below s, is drawn back into it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from models.graph.cycles import log_determinant_cycles, spectral_radius
from models.graph.relaxed import RelaxedGraph

__all__ = ["DagmaGraph"]

_S = 1.0
_FIRST_MU = 0.1
_FACTOR = 0.1
_STAGES = 4
_DRAWN_BACK = 0.95


class DagmaGraph(RelaxedGraph):
    """Buffer: `stage`, the number of stages that are solved.

    Args:
        *args: As of `RelaxedGraph`.
        **kwargs: The same.
    """

    stage: Tensor

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register_buffer("stage", torch.zeros((), dtype=torch.long))

    def path_weight(self) -> float:
        """μ of the present stage; of the last one where all are solved."""
        return float(_FIRST_MU * _FACTOR ** min(int(self.stage), _STAGES - 1))

    def cycle_penalty(self, strength: Tensor) -> Tensor:
        """h / μ."""
        return log_determinant_cycles(strength, _S) / self.path_weight()

    def cycles(self) -> float:
        """h_logdet."""
        return float(log_determinant_cycles(self.soft_strength().detach().double(), _S))

    @torch.no_grad()
    def project(self) -> None:
        """Put strengths back to [0, 1), and into the domain of h: all of them smaller by the same factor."""
        super().project()
        while spectral_radius(self.soft_strength()) >= _S:
            self.edge.mul_(_DRAWN_BACK)

    def next_stage(self) -> None:
        """μ a tenth."""
        self.stage.add_(1)

    def is_done(self) -> bool:
        """All four stages are solved."""
        return int(self.stage) >= _STAGES
