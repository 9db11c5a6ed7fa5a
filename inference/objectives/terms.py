"""The named terms of an evidence lower bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["ELBOTerms"]


@dataclass(frozen=True)
class ELBOTerms:
    r"""One evidence lower bound in nats, split into what it consists of; every term is `[batch]`.

    With r = q(N|X) (for `collapsed`: p(N | z, X), for which the split is exact) and z ~ q(Z|X):

    Attributes:
        reconstruction: Per modality, Σ_c r_c log p(X_m | z, c).
        cells: Σ_c r_c log p(c), p(c) from the graph (and the shares of the components within cells).
        latent: Σ_c r_c log p(z | c) at the sample (`collapsed`), or its expectation under q(Z|X).
        cell_entropy: -Σ_c r_c log r_c.
        latent_entropy: -log q(z | X) at the sample (`collapsed`, and wherever q(Z|X) is a mixture), or the entropy of
            q(Z|X).
    """

    reconstruction: Mapping[str, Tensor]
    cells: Tensor
    latent: Tensor
    cell_entropy: Tensor
    latent_entropy: Tensor

    @property
    def total(self) -> Tensor:
        """The bound per sample, `[batch]`: the sum of all terms."""
        return sum(self.reconstruction.values(), self.cells + self.latent + self.cell_entropy + self.latent_entropy)

    def times(self, factor: float) -> ELBOTerms:
        """Every term times a number; the terms themselves where it is 1."""
        if factor == 1:
            return self
        reconstruction = {name: factor * value for name, value in self.reconstruction.items()}
        others = (factor * value for value in (self.cells, self.latent, self.cell_entropy, self.latent_entropy))
        return ELBOTerms(reconstruction, *others)

    def parts(self) -> dict[str, Tensor]:
        """Every term by name, `reconstruction/NAME` per modality, `[batch]` each."""
        parts = {f"reconstruction/{name}": value for name, value in self.reconstruction.items()}
        return parts | {name: getattr(self, name) for name in ("cells", "latent", "cell_entropy", "latent_entropy")}

    def sums(self) -> dict[str, float]:
        """Sum of every term over the batch, named as in `parts`."""
        parts = self.parts()
        stacked = torch.stack([value.detach().sum() for value in parts.values()])
        return dict(zip(parts, stacked.tolist(), strict=True))
