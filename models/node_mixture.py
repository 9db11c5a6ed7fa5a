"""p(Z | N) with one block of Z per node, which all modalities see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from models.factorised_mixture import FactorisedMixture
from models.mixture import Covariance, GaussianMixture
from models.whole_latent import WholeLatent

__all__ = ["NodeMixture"]


class NodeMixture(WholeLatent, FactorisedMixture):
    r"""p(Z | N) = ∏_l N(Z_l; μ̃_{l, N_l}, Σ̃_{l, N_l}): what a node says of a sample is in dimensions of its own.

    A `GaussianMixture` over the cells whose means are sums over nodes, with Σ_l C_l Gaussians for ∏_l C_l cells. The
    dependence between the blocks is that of the nodes, p(N). Every decoder depends on all of Z.

    Which block is which node's is saved with the weights (`level_of_cell`): when cells get other numbers the blocks
    stay where encoders and decoders have them. Numbers that do more than exchange nodes and rename outcomes leave the
    same density, in which blocks are no longer those of nodes.

    Args:
        outcomes: Number of outcomes per node.
        latent_dim: Dimension of every node's block.
        covariance: `diagonal` or `full`, within blocks.
        block: See `FactorisedMixture`.
    """

    def __init__(
        self,
        outcomes: Sequence[int],
        latent_dim: int,
        covariance: Covariance = "diagonal",
        block: Callable[[int, int, Covariance], GaussianMixture] = GaussianMixture,
    ) -> None:
        visible = {f"block_{node + 1}": (node,) for node in range(len(outcomes))}
        super().__init__(outcomes, visible, latent_dim, covariance, block)

    def block_given(self, name: str, present: Mapping[str, Tensor | None]) -> Tensor | None:
        """Which samples tell of a block: None, all."""
        return None
