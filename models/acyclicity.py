r"""How far a weighted graph is from having no cycle, and which edges are left without one.

Source: Zheng et al. 2018 (NOTEARS).
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

__all__ = ["acyclic_edges", "closure", "trace_exponential"]


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
