"""The physical parameters of a fit, with their uncertainty."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from inference.data.tensors import TensorData
from inference.data.weighted_means import weighted_means
from inference.results.arrays import PhysicsArrays
from models.decoders.physics import PhysicsDecoder
from models.decoders.physics.uncertainty import EstimateAccumulator

if TYPE_CHECKING:
    from inference.results.collect import Fitted

__all__ = ["physical_estimates"]

_PASS_SIZE = 2048


@torch.no_grad()
def physical_estimates(fitted: Fitted, name: str, r: np.ndarray) -> PhysicsArrays | None:
    """Parameters of the law of each cell over the training samples; None for decoders without such parameters.

    Least squares of the law on the samples of each cell, weighted by q(N|X), with sandwich intervals. With a table per
    cell (`source` cell) that is what the decoder itself holds. Where its parameters depend on Z, it is fitted here, for
    what is reported alone: the outputs of a network hardly differ within a cell, whatever the data do, so that their
    spread would be no uncertainty. Under a mask, cells that the modality does not tell apart share their samples, and
    have the same parameters.

    Args:
        fitted: The fit.
        name: The modality.
        r: q(N|X) of all samples, `[n, C]`.
    """
    decoder = fitted.model.decoders[name]
    if not isinstance(decoder, PhysicsDecoder):
        return None
    training = np.flatnonzero(fitted.split == "train")
    data, mixture = fitted.tensors.subset(training), fitted.model.mixture
    share = mixture.sum_to_levels(name, torch.from_numpy(r[training]).to(data.device)).cpu()
    if decoder.source != "cell":
        decoder = decoder.with_table(share.shape[1])
        decoder.update_cells(*weighted_means(data, name, share.to(data.device)))
    groups = None if fitted.data.groups is None else fitted.data.groups[training]
    level = mixture.level(name, torch.arange(mixture.n_cells, device=data.device)).cpu().numpy()
    return _of_cells(_estimates(decoder, name, data, share, groups), level)


def _of_cells(found: PhysicsArrays, level: np.ndarray) -> PhysicsArrays:
    """Per cell what was found per level."""
    per_level = {field: value for field, value in vars(found).items() if isinstance(value, np.ndarray)}
    return dataclasses.replace(found, **{field: value[level] for field, value in per_level.items()})


def _estimates(
    decoder: PhysicsDecoder, name: str, data: TensorData, share: Tensor, groups: np.ndarray | None
) -> PhysicsArrays:
    sums = EstimateAccumulator(decoder)
    for batch in data.batches(_PASS_SIZE):
        index, present, observed = batch.index.cpu(), batch.present[name], batch.observed.get(name)
        weight = share[index].double()
        sums.add(
            batch.values[name].cpu().double(),
            None if observed is None else observed.cpu(),
            weight if present is None else weight * present.cpu()[:, None],
            None if groups is None else groups[index.numpy()],
        )
    found = sums.estimate()
    return PhysicsArrays(**{field: getattr(found, field) for field in PhysicsArrays.__dataclass_fields__})
