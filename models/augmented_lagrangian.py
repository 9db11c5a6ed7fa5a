r"""An augmented Lagrangian, which drives a violation h >= 0 to 0 (Zheng et al. 2018, NOTEARS)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["GROWTH", "PROGRESS", "AugmentedLagrangian", "augmented_cost"]

PROGRESS = 0.25
"""The penalty is stiff enough where h fell to such a share of what it was."""

GROWTH = 10.0
"""Factor of the penalty where it is not."""


def augmented_cost(violation: Tensor, multiplier: Tensor, penalty: Tensor) -> Tensor:
    r"""$\alpha h + \tfrac{\rho}{2} h^2$.

    Args:
        violation: h.
        multiplier: $\alpha$.
        penalty: $\rho$.
    """
    return multiplier * violation + 0.5 * penalty * violation.square()


class AugmentedLagrangian(nn.Module):
    r"""Multiplier and penalty of a constraint $h = 0$: $\alpha h + \tfrac{\rho}{2} h^2$.

    $\alpha$ grows by $\rho h$ in every round, and $\rho$ tenfold where $h$ did not fall to a quarter, up to a largest
    one: stochastic gradient steps, unlike those of NOTEARS, leave $h$ as large as their own length, and would be thrown
    off by a penalty that knows no limit. `NotearsGraph` keeps to the schedule of NOTEARS, in which either the one grows
    or the other. Rounds with $h$ below a tolerance change nothing. The state is in buffers, so that a run that goes on
    from a checkpoint goes on alike.

    Args:
        penalty: First $\rho$.
        most: Largest $\rho$.
        tolerance: h that counts as 0.
    """

    multiplier: Tensor
    penalty: Tensor
    last: Tensor

    def __init__(self, penalty: float = 1.0, most: float = 1e4, tolerance: float = 1e-6) -> None:
        super().__init__()
        self.most, self.tolerance = most, tolerance
        self.register_buffer("multiplier", torch.tensor(0.0))
        self.register_buffer("penalty", torch.tensor(float(penalty)))
        self.register_buffer("last", torch.tensor(torch.inf))

    def cost(self, violation: Tensor) -> Tensor:
        """What the violation h costs now, to be added to what is minimised."""
        return augmented_cost(violation, self.multiplier, self.penalty)

    @torch.no_grad()
    def advance(self, violation: Tensor) -> None:
        """End a round with this violation."""
        if violation <= self.tolerance:
            return
        self.multiplier.add_(self.penalty * violation)
        if violation > PROGRESS * self.last:
            self.penalty.mul_(GROWTH).clamp_(max=self.most)
        self.last.copy_(violation)
