r"""Two more measures of cycles, beside the one of NOTEARS (`models.acyclicity`), and the order that paths give.

With $A = E \circ E$, 0 exactly where the support of E has no cycle, and positive else:

$$h_{\mathrm{poly}} = \operatorname{tr}(I + A / L)^L - L, \qquad
  h_{\mathrm{logdet}} = -\log\det(sI - A) + L \log s.$$

Sources: Yu et al. 2019, ICML (poly); Bello et al. 2022, NeurIPS (logdet, for a spectral radius of A below s).
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from models.acyclicity import closure

__all__ = ["curl_free_potential", "log_determinant_cycles", "polynomial_cycles", "spectral_radius"]


def polynomial_cycles(strength: Float[Tensor, "nodes nodes"]) -> Float[Tensor, ""]:
    """h_poly, which NoCurl begins with."""
    n_nodes = len(strength)
    step = torch.eye(n_nodes, dtype=strength.dtype, device=strength.device) + strength.square() / n_nodes
    return torch.linalg.matrix_power(step, n_nodes).trace() - n_nodes


def log_determinant_cycles(strength: Float[Tensor, "nodes nodes"], s: float) -> Float[Tensor, ""]:
    """h_logdet of DAGMA; a number that means nothing where `spectral_radius` is not below s.

    Args:
        strength: E.
        s: Radius of the domain, > 0.
    """
    domain = s * torch.eye(len(strength), dtype=strength.dtype, device=strength.device) - strength.square()
    return len(strength) * math.log(s) - torch.linalg.slogdet(domain).logabsdet


def spectral_radius(strength: Float[Tensor, "nodes nodes"]) -> float:
    """Largest modulus of an eigenvalue of E∘E; 0 without cycles."""
    return float(torch.linalg.eigvals(strength.detach().square().double()).abs().max())


def curl_free_potential(edges: Bool[Tensor, "nodes nodes"]) -> Float[Tensor, " nodes"]:
    r"""φ whose gradient φ_j - φ_i is nearest to who leads where, on the complete graph (Yu et al. 2021, ICML).

    With C_ij = 1 where a path leads from i to j, the Hodge decomposition of C - Cᵀ has the gradient of
    $\varphi = -\frac{1}{L} \sum_j (C_{\cdot j} - C_{j \cdot})$, up to a constant. φ grows along every path that none
    leads back.
    """
    leads = closure(edges).to(torch.get_default_dtype())
    return (leads.sum(0) - leads.sum(1)) / len(edges)
