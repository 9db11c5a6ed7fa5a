"""The physical parameters of a fit, with their uncertainty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from guides.encoders.base import GaussianParameters
from inference.results.arrays import PhysicsArrays
from inference.results.clustered_means import ClusteredMeans
from models.batch import Batch
from models.decoders.physics import PhysicsDecoder
from models.decoders.physics.uncertainty import EstimateAccumulator

if TYPE_CHECKING:
    from inference.results.collect import Fitted

__all__ = ["physical_estimates"]

_PASS_SIZE = 2048


class _Part(NamedTuple):
    """Training samples with their weights in the cells, zero where the modality is absent, and their groups."""

    batch: Batch
    share: Tensor
    groups: np.ndarray | None


@torch.no_grad()
def physical_estimates(fitted: Fitted, name: str, r: np.ndarray) -> PhysicsArrays | None:
    """Parameters of the law of each cell over the training samples; None for decoders without such parameters.

    With a table per cell (`source` cell): least-squares estimates and their sandwich intervals. Where the parameters
    depend on Z, they differ from sample to sample: means over the samples of each cell, and intervals of these means,
    the network being taken as given.

    Args:
        fitted: The fit.
        name: The modality.
        r: q(N|X) of all samples, `[n, C]`.
    """
    decoder = fitted.model.decoders[name]
    if not isinstance(decoder, PhysicsDecoder):
        return None
    parts = _parts(fitted, name, r)
    return _fixed(decoder, name, parts) if decoder.source == "cell" else _varying(fitted, decoder, parts)


def _parts(fitted: Fitted, name: str, r: np.ndarray) -> Iterator[_Part]:
    training = np.flatnonzero(fitted.split == "train")
    groups = fitted.data.groups
    for batch in fitted.tensors.subset(training).batches(_PASS_SIZE):
        rows, present = training[batch.index.cpu().numpy()], batch.present[name]
        share = torch.from_numpy(r[rows]).double()
        weight = share if present is None else share * present.cpu()[:, None]
        yield _Part(batch, weight, None if groups is None else groups[rows])


def _fixed(decoder: PhysicsDecoder, name: str, parts: Iterator[_Part]) -> PhysicsArrays:
    sums = EstimateAccumulator(decoder)
    for batch, share, groups in parts:
        observed = batch.observed.get(name)
        values = batch.values[name].cpu().double()
        sums.add(values, None if observed is None else observed.cpu(), share, groups)
    found = sums.estimate()
    return PhysicsArrays(**{field: getattr(found, field) for field in PhysicsArrays.__dataclass_fields__})


def _varying(fitted: Fitted, decoder: PhysicsDecoder, parts: Iterator[_Part]) -> PhysicsArrays:
    n_parameters = len(decoder.law.parameters)
    means = ClusteredMeans()
    for batch, share, groups in parts:
        posterior: GaussianParameters = fitted.guide.encode(batch)
        cell = torch.arange(share.shape[1], device=posterior.loc.device).unsqueeze(-1)
        parameters, curve = decoder.in_units(posterior.loc, cell)
        both = torch.cat([parameters, curve], dim=-1).expand(len(cell), len(batch), -1)
        means.add(both.movedim(0, 1).double().cpu().numpy(), share.numpy(), groups)
    value, error, lower, upper, effective = means.estimate()
    status = np.where(np.broadcast_to(effective[:, None] < 2, value.shape), "too few samples", "ok")
    first, rest = slice(n_parameters), slice(n_parameters, None)
    return PhysicsArrays(
        names=tuple(parameter.name for parameter in decoder.law.parameters),
        units=tuple(parameter.unit for parameter in decoder.law.parameters),
        value=value[:, first],
        standard_error=error[:, first],
        lower=lower[:, first],
        upper=upper[:, first],
        status=status[:, first],
        effective_samples=effective,
        curve=value[:, rest],
        curve_lower=lower[:, rest],
        curve_upper=upper[:, rest],
    )
