r"""A linear structural equation model on blocks of Z, $z_l = \sum_k A_{kl} z_k + \varepsilon_l$: pure functions.

Source: Pearl 2009, section 7.1 (abduction, action, prediction); Yang et al. 2021 (CausalVAE), section 3.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["abducted", "counterfactual", "mixing", "propagated"]

Weight = Float[Tensor, "nodes nodes"]
Blocks = Float[Tensor, "*batch nodes block"]


def mixing(weight: Weight) -> Weight:
    r"""$(I - A^T)^{-1}$, which takes $\varepsilon$ to z; the total effect of cause k on l stands in row l, column k."""
    return torch.linalg.inv(torch.eye(len(weight), dtype=weight.dtype, device=weight.device) - weight.T)


def abducted(latent: Blocks, weight: Weight) -> Blocks:
    r"""$\varepsilon = z - A^T z$: what the causes of every node leave unexplained."""
    return latent - weight.T @ latent


def propagated(noise: Blocks, weight: Weight, do: Mapping[int, Tensor]) -> Blocks:
    r"""z of $\varepsilon$, with some nodes set: these have no causes any more.

    Args:
        noise: $\varepsilon$.
        weight: A.
        do: By node, the value that its block is set to, `[block]`.
    """
    kept, forced = weight.clone(), noise.clone()
    for node, value in do.items():
        kept[:, node] = 0.0
        forced[..., node, :] = value
    return mixing(kept) @ forced


def counterfactual(latent: Blocks, weight: Weight, do: Mapping[int, Tensor]) -> Blocks:
    r"""z as it would have been, had some nodes been set: $\varepsilon$ from z, action, prediction.

    Args:
        latent: z as it is.
        weight: A, without cycles.
        do: By node, the value that its block is set to, `[block]`.
    """
    return propagated(abducted(latent, weight), weight, do)
