"""Samples measured in several ways: the one form in which data reach training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

__all__ = ["ModalityKind", "MultimodalData"]

ModalityKind = Literal["image", "curve", "vector"]


@dataclass(frozen=True)
class MultimodalData:
    """Aligned modalities with a presence mask, and the factors known about them.

    Attributes:
        name: Name of the data set, as it appears in reports.
        modalities: Per modality, float32 values `[sample, *shape]`. Rows of absent samples hold zeros.
        present: Per modality, bool `[sample]`: was this sample measured in this way?
        kinds: Per modality, how it is shown: `image` is `[height, width, channel]`, `curve` is
            `[position]`, `vector` has no order.
        factors: Known categorical factors, integer codes `[sample]`. Used for evaluation only.
        factor_levels: Names of the levels of each factor, in the order of the codes.
        measurements: Known continuous quantities `[sample]` (for example the radius behind a circle).
        bayes_ceiling: Cluster accuracy of the Bayes-optimal classifier on these samples, where known.
    """

    name: str
    modalities: Mapping[str, np.ndarray]
    present: Mapping[str, np.ndarray]
    kinds: Mapping[str, ModalityKind]
    factors: Mapping[str, np.ndarray] = field(default_factory=dict)
    factor_levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    measurements: Mapping[str, np.ndarray] = field(default_factory=dict)
    bayes_ceiling: float | None = None

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(next(iter(self.present.values())))
