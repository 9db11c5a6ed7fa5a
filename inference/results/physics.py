"""The physical parameters of a fit, with their uncertainty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from inference.results.arrays import PhysicsArrays
from models.decoders.physics import PhysicsDecoder
from models.decoders.physics.uncertainty import EstimateAccumulator

if TYPE_CHECKING:
    from inference.results.collect import Fitted

__all__ = ["physical_estimates"]

_PASS_SIZE = 2048


def physical_estimates(fitted: Fitted, name: str, r: np.ndarray) -> PhysicsArrays | None:
    """Parameters of the law of each cell, fitted to the training samples; None for decoders without such parameters.

    Args:
        fitted: The fit.
        name: The modality.
        r: q(N|X) of all samples, `[n, C]`.
    """
    decoder = fitted.model.decoders[name]
    if not isinstance(decoder, PhysicsDecoder) or decoder.source != "cell":
        return None
    training = np.flatnonzero(fitted.split == "train")
    share, groups = torch.from_numpy(r[training]), fitted.data.groups
    sums = EstimateAccumulator(decoder)
    for batch in fitted.tensors.subset(training).batches(_PASS_SIZE):
        index, present = batch.index.cpu(), batch.present[name]
        weight = share[index] if present is None else share[index] * present.cpu()[:, None]
        observed = batch.observed.get(name)
        sums.add(
            batch.values[name].cpu().double(),
            None if observed is None else observed.cpu(),
            weight.double(),
            None if groups is None else groups[training][index.numpy()],
        )
    found = sums.estimate()
    return PhysicsArrays(**{field: getattr(found, field) for field in PhysicsArrays.__dataclass_fields__})
