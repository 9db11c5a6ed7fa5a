"""The guide as a Pyro program: Z from the encoders, fused or in blocks, N where the objective asks for it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, cast

import pyro
import pyro.distributions as dist
import torch
from pyro.ops.indexing import Vindex
from torch import Tensor, nn

from causalpima.guides.encoders import Encoder, GaussianParameters
from causalpima.guides.fusion import Fusion, LatentPosterior, ProductOfExperts
from causalpima.guides.graph import GraphGuide
from causalpima.models.batch import Batch
from causalpima.models.distributions import ComponentNormal
from causalpima.models.program import (
    CellSites,
    data_plate,
    observed_where,
    register_parameters,
    sample_cell,
    sample_nodes_jointly,
)

__all__ = [
    "CellLogits",
    "CellPosterior",
    "CovariateShift",
    "Guide",
]


# What covariates explain of a modality on their own, taken out before it is encoded.


class CovariateShift(nn.Module):
    r"""`x - B_m [1, c]`: the residual of a linear regression of every element on the covariates.

    A batch that is brighter throughout would else be the first thing that encoders tell apart, and Z would have to
    encode what decoders know already. Any encoder gives a valid bound, so the model is not touched by this. What
    really differs between the batches goes out of the encoders' sight, too.

    Args:
        shapes: Shape of one sample per modality that is shifted.
        n_levels: Number of indicators of levels, V.
    """

    def __init__(self, shapes: Mapping[str, Sequence[int]], n_levels: int) -> None:
        super().__init__()
        for name, shape in shapes.items():
            self.register_buffer(name, torch.zeros(n_levels, math.prod(shape)))

    def forward(self, name: str, value: Tensor, covariates: Tensor | None) -> Tensor:
        """The modality without what its covariates explain.

        Args:
            name: The modality; those without a regression come back as they are.
            value: `[batch, *event]`.
            covariates: Indicators, `[batch, V]`, or None.
        """
        if covariates is None or name not in self._buffers:
            return value
        return value - (covariates @ getattr(self, name)).reshape(value.shape)

    @torch.no_grad()
    def set_effects(self, name: str, effects: Tensor) -> None:
        """Fix the effects of the levels on a modality, `[V, D]`."""
        getattr(self, name).copy_(effects)


class CellLogits(NamedTuple):
    """q(N | X), and q(component | N, X) where a cell has several Gaussians.

    Attributes:
        cell: `[batch, C_1, ..., C_L]`, unnormalised.
        component: `[batch, C, K_max]`, unnormalised, or None with one Gaussian per cell.
    """

    cell: Tensor
    component: Tensor | None


CellPosterior = Callable[[LatentPosterior, Tensor, Batch], CellLogits | None]


class Guide(nn.Module):
    """q(Z | X), fused from the encoders, and q(N | X) if `cell_posterior` is given (paper, section 2.1).

    With `blocks`, for a `BlockMixture`: q(Z | X) = ∏_m q(Z_m | X_m), a site `Z_NAME` per modality, masked where the
    modality is absent; nothing is fused.

    Args:
        encoders: Per modality, q(Z | X_m).
        prior_expert: Add the prior N(0, I) as one more expert; then samples without any modality are allowed.
        cell_posterior: q(N | X) from (q(Z|X), the drawn z, the batch), None while the model has no N. None leaves N to
            enumeration in the model.
        node_names: Names of the nodes, as in the model; needed for `sites="nodes"`.
        sites: As in the model.
        covariate_shift: What covariates explain, taken out of the values before they are encoded; default: nothing.
        blocks: One block of Z per modality in place of the product.
        graph_guide: q of the graph, where that is random; None: it is not.
        unimodal: Encoders that take over where a sample has their modality alone (`inference.training.loop`).
        fusion: How the encoders become one; default a product of experts, with the prior expert if there is one.
            Unimodal encoders need one that gives a single Gaussian.

    Raises:
        ValueError: `sites="nodes"` without names of the nodes, or a prior expert or unimodal encoders with `blocks`.
    """

    def __init__(
        self,
        encoders: Mapping[str, Encoder],
        prior_expert: bool = False,
        cell_posterior: CellPosterior | None = None,
        node_names: Sequence[str] = (),
        sites: CellSites = "cells",
        unimodal: Mapping[str, Encoder] | None = None,
        covariate_shift: CovariateShift | None = None,
        blocks: bool = False,
        graph_guide: GraphGuide | None = None,
        fusion: Fusion | None = None,
    ) -> None:
        super().__init__()
        if cell_posterior is not None and sites == "nodes" and not node_names:
            raise ValueError('node_names: expected the names of the nodes for sites="nodes", got none')
        if blocks and (prior_expert or unimodal):
            raise ValueError(
                "blocks: expected neither prior expert nor unimodal encoders, which are parts of a product, got one; "
                "leave it out"
            )
        self.encoders = nn.ModuleDict(encoders)
        self.unimodal = nn.ModuleDict(unimodal or {})
        self.covariate_shift = covariate_shift or CovariateShift({}, 0)
        self.prior_expert, self.blocks = prior_expert, blocks
        self.fusion = fusion or ProductOfExperts(prior_expert)
        self.cell_posterior = cell_posterior
        self.node_names = tuple(node_names)
        self.graph_guide = graph_guide
        self.sites: CellSites = sites

    def copy_encoders(self) -> None:
        """Copies of all encoders as the unimodal ones."""
        self.unimodal = copy.deepcopy(self.encoders)

    def encode(self, batch: Batch) -> LatentPosterior:
        """q(Z | X) of a batch, `[batch, J]`; with blocks one after the other, standard normal where one is absent."""
        seen = {name: batch.seen(name) for name in self.encoders}
        experts = [self._encode_seen(encoder, name, batch, seen[name]) for name, encoder in self.encoders.items()]
        if self.blocks:
            return GaussianParameters(*(torch.cat(parts, dim=-1) for parts in zip(*experts, strict=True)))
        fused: LatentPosterior = self.fusion(experts, list(seen.values()))
        if not self.unimodal:
            return fused
        return self._alone(cast(GaussianParameters, fused), batch, seen)

    def _alone(self, fused: GaussianParameters, batch: Batch, seen: Mapping[str, Tensor | None]) -> GaussianParameters:
        """The distilled encoder's q(Z | X_m) in the rows of which m is the only modality."""
        rows = {name: batch.has(name) if mask is None else mask for name, mask in seen.items()}
        n_seen = torch.stack(list(rows.values())).sum(0)
        for name, encoder in self.unimodal.items():
            alone = rows[name] & (n_seen == 1)
            if not bool(alone.any()):
                continue
            encoded = self._encode_seen(encoder, name, batch, alone)
            fused = GaussianParameters(
                *(torch.where(alone[:, None], *parts) for parts in zip(encoded, fused, strict=True))
            )
        return fused

    def _encode_seen(self, encoder: nn.Module, name: str, batch: Batch, seen: Tensor | None) -> GaussianParameters:
        """Encode the rows that are seen; the others get a standard normal that fusion leaves out."""
        value = self.covariate_shift(name, batch.values[name], batch.covariates)
        arguments = [value, *([batch.observed[name]] if name in batch.observed else [])]
        if seen is None:
            return cast(GaussianParameters, encoder(*arguments))
        rows = torch.nonzero(seen).squeeze(-1)
        encoded = encoder(*(argument[rows] for argument in arguments))
        shape = (len(seen), encoded.loc.shape[-1])
        return GaussianParameters(*(part.new_zeros(shape).index_copy(0, rows, part) for part in encoded))

    def forward(self, batch: Batch) -> None:
        """Run the program on a batch."""
        register_parameters("guide", self)
        if self.graph_guide is not None:
            self.graph_guide()
        posterior = self.encode(batch)
        with data_plate(batch):
            latent = self._sample_latent(posterior, batch)
            logits = None if self.cell_posterior is None else self.cell_posterior(posterior, latent, batch)
            if logits is not None:
                self._sample_cell(logits)

    def _sample_latent(self, posterior: LatentPosterior, batch: Batch) -> Tensor:
        if not self.blocks:
            return pyro.sample("Z", posterior.distribution())
        parts = []
        moments = (part.chunk(len(self.encoders), dim=-1) for part in (posterior.loc, posterior.scale))
        for name, loc, scale in zip(self.encoders, *moments, strict=True):
            with observed_where(batch.present[name]):
                parts.append(_sample_gaussian(f"Z_{name}", loc, scale))
        return torch.cat(parts, dim=-1)

    def _sample_cell(self, logits: CellLogits) -> None:
        if self.sites == "cells":
            cell = sample_cell(logits.cell.flatten(1))
        else:
            cell = sample_nodes_jointly(self.node_names, logits.cell)
        if logits.component is not None:
            rows = torch.arange(len(logits.component), device=cell.device)
            share = dist.Categorical(logits=Vindex(logits.component)[rows, cell, :])
            pyro.sample("component", share, infer={"enumerate": "parallel"})


def _sample_gaussian(name: str, loc: Tensor, scale: Tensor) -> Tensor:
    return pyro.sample(name, ComponentNormal(loc, scale, validate_args=False))
