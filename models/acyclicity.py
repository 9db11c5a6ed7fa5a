r"""How far a weighted graph is from having no cycle, an augmented Lagrangian that drives it there, and what is left.

Source: Zheng et al. 2018 (NOTEARS).
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

__all__ = ["AugmentedLagrangian", "acyclic_edges", "closure", "trace_exponential"]

_ENOUGH = 0.25
_GROWTH = 10.0


def trace_exponential(weight: Float[Tensor, "nodes nodes"]) -> Float[Tensor, ""]:
    r"""$h(A) = \mathrm{tr}\, e^{A \circ A} - L$ (Zheng et al. 2018, theorem 1), 0 where A has no cycle, else above 0.

    The k-th term of the series counts closed walks of k steps, with squared weights, divided by k!. The gradient is
    $(e^{A \circ A})^T \circ 2 A$.

    Args:
        weight: A, row = cause, column = effect.
    """
    return torch.linalg.matrix_exp(weight.square()).diagonal().sum() - len(weight)


@torch.no_grad()
def acyclic_edges(
    strength: Float[Tensor, "nodes nodes"], threshold: float, required: Bool[Tensor, "nodes nodes"] | None = None
) -> Bool[Tensor, "nodes nodes"]:
    """Edges above a threshold; as long as there is a cycle, the weakest of those that lie on one is taken out.

    Args:
        strength: Row = cause, column = effect; the diagonal is not looked at.
        threshold: What is not above it is no edge.
        required: Edges that are there whatever their strength; without a cycle. None: none.
    """
    required = torch.zeros_like(strength, dtype=torch.bool) if required is None else required
    edges = ((strength > threshold) | required) & ~torch.eye(len(strength), dtype=torch.bool, device=strength.device)
    while bool((on_cycle := edges & closure(edges).T & ~required).any()):
        weakest = torch.where(on_cycle, strength, torch.inf).argmin()
        edges.view(-1)[weakest] = False
    return edges


def closure(edges: Bool[Tensor, "nodes nodes"]) -> Bool[Tensor, "nodes nodes"]:
    """Where a path of at least one edge leads."""
    reach = edges.clone()
    for middle in range(len(edges)):
        reach |= reach[:, middle, None] & reach[None, middle, :]
    return reach


class AugmentedLagrangian(nn.Module):
    r"""Multiplier and penalty of a constraint $h = 0$: $\alpha h + \tfrac{\rho}{2} h^2$.

    $\alpha$ grows by $\rho h$ in every round, and $\rho$ tenfold where $h$ did not fall to a quarter, up to a largest
    one: stochastic gradient steps, unlike those of NOTEARS, leave $h$ as large as their own length, and would be thrown
    off by a penalty that knows no limit. Rounds with $h$ below a tolerance change nothing. The state is in buffers, so
    that a run that goes on from a checkpoint goes on alike.

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
        return self.multiplier * violation + 0.5 * self.penalty * violation.square()

    @torch.no_grad()
    def advance(self, violation: Tensor) -> None:
        """End a round with this violation."""
        if violation <= self.tolerance:
            return
        self.multiplier.add_(self.penalty * violation)
        if violation > _ENOUGH * self.last:
            self.penalty.mul_(_GROWTH).clamp_(max=self.most)
        self.last.copy_(violation)
