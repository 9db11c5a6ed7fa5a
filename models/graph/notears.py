r"""The graph of NOTEARS: no cycles by an augmented Lagrangian (Zheng et al. 2018, NeurIPS; 2020, AISTATS).

With $h = \operatorname{tr} e^{E \circ E} - L$, the penalty is $\alpha h + \frac{\rho}{2} h^2$. After each stage ρ grows
tenfold where h has not come down to a quarter of what it was; else α grows by ρ h.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from models.acyclicity import trace_exponential
from models.augmented_lagrangian import GROWTH, PROGRESS, augmented_cost
from models.graph.relaxed import RelaxedGraph

__all__ = ["NotearsGraph"]

_LARGEST = 1e16


class NotearsGraph(RelaxedGraph):
    """Buffers: `multiplier` α, `stiffness` ρ, `last_cycles` h of the last stage that brought it down enough.

    Args:
        tolerance: h below which there are no cycles.
        *args: As of `RelaxedGraph`.
        **kwargs: The same.
    """

    multiplier: Tensor
    stiffness: Tensor
    last_cycles: Tensor

    def __init__(self, *args: Any, tolerance: float = 1e-8, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tolerance = tolerance
        self.register_buffer("multiplier", torch.zeros(()))
        self.register_buffer("stiffness", torch.ones(()))
        self.register_buffer("last_cycles", torch.tensor(torch.inf))

    def cycle_penalty(self, strength: Tensor) -> Tensor:
        """α h + ρ h² / 2."""
        return augmented_cost(trace_exponential(strength), self.multiplier, self.stiffness)

    def cycles(self) -> float:
        """h_exp."""
        return float(trace_exponential(self.soft_strength().detach().double()))

    def next_stage(self) -> None:
        """ρ ten times as large where h came down too little; else α + ρ h."""
        h = self.cycles()
        if h > PROGRESS * float(self.last_cycles):
            self.stiffness.mul_(GROWTH)
        else:
            self.multiplier.add_(h * self.stiffness)
            self.last_cycles.fill_(h)

    def is_done(self) -> bool:
        """h is below the tolerance, or ρ as large as it gets, and a first stage was solved."""
        is_first = bool(self.last_cycles.isinf())
        return not is_first and (self.cycles() <= self.tolerance or float(self.stiffness) >= _LARGEST)
