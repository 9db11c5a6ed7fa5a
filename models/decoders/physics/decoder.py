"""Gaussian decoder whose mean is a physical law, with parameters per cell, from Z, or both."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from pyro.distributions import TorchDistribution
from torch import Tensor, nn

from causalpima.models.batch import Modality
from causalpima.models.decoders.base import DecoderVariance, VarianceDecoder
from causalpima.models.decoders.physics.law import LawCurve, PhysicsLaw
from causalpima.models.decoders.physics.least_squares import fit_cells
from causalpima.models.distributions import IsotropicNormal

__all__ = ["ParameterSource", "PhysicsDecoder"]

ParameterSource = Literal["cell", "latent", "both"]

_PERTURBATION = 0.1


class PhysicsDecoder(VarianceDecoder):
    """p(X_m | Z, N) = N(law(positions; x), σ̂_m² I), the paper's expert (appendix B.3), on the scale of the model.

    The parameters are x = bijection(u), u being `table[N]` (`cell`), `network(Z)` about the starting values (`latent`)
    or their sum (`both`). All cells begin at the starting values with small different perturbations, so that cells
    that see the same data can part.

    Args:
        law: The law; it is bound to the modality here.
        modality: Positions, unit and standardisation of the curves.
        n_cells: Number of cells.
        variance: σ̂_m².
        latent_dim: Dimension of Z.
        source: What the parameters depend on.
        hidden: Widths of the hidden layers of the network on Z.
        seed: Of the starts that `update_cells` draws.

    Raises:
        ValueError: The modality is no curve, or the law breaks its interface on it.
    """

    def __init__(
        self,
        law: PhysicsLaw,
        modality: Modality,
        n_cells: int,
        variance: DecoderVariance,
        latent_dim: int,
        source: ParameterSource = "cell",
        hidden: Sequence[int] = (32,),
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.curve = LawCurve(law, modality)
        self.law, self.variance, self.source, self.seed = self.curve.law, variance, source, seed
        self.event_shape = torch.Size(modality.event_shape)
        self.depends_on_cell, self.depends_on_latent = source != "latent", source != "cell"
        start = self.curve.parameters_of_law.start().to(torch.get_default_dtype())
        if self.depends_on_cell:
            self.table = nn.Parameter(start + _PERTURBATION * torch.randn(n_cells, len(start)))
        if self.depends_on_latent:
            self.network = _network(latent_dim, hidden, torch.zeros_like(start) if self.depends_on_cell else start)

    def forward(self, latent: Tensor, cell: Tensor) -> TorchDistribution:
        """Distribution of the modality; see `Decoder.forward`."""
        mean = self.curve(self._unconstrained(latent, cell)) if self.depends_on_latent else self._of_cells(latent, cell)
        return IsotropicNormal(mean, self.variance.scale(), len(self.event_shape), validate_args=False)

    def _of_cells(self, latent: Tensor, cell: Tensor) -> Tensor:
        """The curves of all cells once, then the one of each."""
        shape = np.broadcast_shapes(latent.shape[:-1], cell.shape)
        return self.curve(self.table)[cell].expand(*shape, *self.event_shape)

    def _unconstrained(self, latent: Tensor, cell: Tensor) -> Tensor:
        offset = self.network(latent)
        return self.table[cell] + offset if self.depends_on_cell else offset

    def with_table(self, n_cells: int) -> PhysicsDecoder:
        """A copy whose parameters are a table per cell at the starting values, for `update_cells` to fit."""
        other = copy.deepcopy(self)
        other.source, other.depends_on_cell, other.depends_on_latent = "cell", True, False
        start = self.curve.parameters_of_law.start().to(torch.get_default_dtype())
        other.table = nn.Parameter(start.repeat(n_cells, 1))
        return other

    def physical(self) -> Float[Tensor, "C P"]:
        """The physical parameters of the cells, before what Z adds.

        Raises:
            ValueError: The parameters depend on Z alone.
        """
        if not self.depends_on_cell:
            raise ValueError('source: expected "cell" or "both" for parameters per cell, got "latent"')
        return self.curve.parameters_of_law.to_physical(self.table.detach().double())

    @torch.no_grad()
    def relabel(self, permutation: Tensor) -> None:
        """Give the rows of the table the new numbers of their cells; see `Decoder.relabel`."""
        if self.depends_on_cell:
            self.table.copy_(self.table[torch.argsort(permutation)])

    @torch.no_grad()
    def update_cells(self, mean: Tensor, weight: Tensor) -> None:
        """Least squares of the law on the mean curve of every cell; parameters that depend on Z stay as they are.

        With one variance for all elements this is the maximiser of the expected log-likelihood given q(N|X): the sum
        over samples of `γ ‖x - law‖²` is `Σ_d weight_d (mean_d - law_d)²` plus what no parameter changes. See
        `Decoder.update_cells` for the arguments.
        """
        if self.source == "cell":
            self.table.copy_(fit_cells(self.curve, self.table, mean, weight, seed=self.seed))


def _network(latent_dim: int, hidden: Sequence[int], start: Tensor) -> nn.Sequential:
    """Multilayer perceptron whose output begins close to `start` for every Z."""
    widths = [latent_dim, *hidden]
    layers = [layer for pair in pairwise(widths) for layer in (nn.Linear(*pair), nn.Tanh())]
    last = nn.Linear(widths[-1], len(start))
    with torch.no_grad():
        last.weight.mul_(_PERTURBATION)
        last.bias.copy_(start)
    return nn.Sequential(*layers, last)
