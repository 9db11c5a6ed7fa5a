"""Some of the samples, as data of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from inference.data.multimodal import MultimodalData

__all__ = ["sample_subset"]


def sample_subset(data: MultimodalData, index: np.ndarray) -> MultimodalData:
    """The same data of these samples alone; levels keep their codes. Values that are on disk are read.

    Args:
        data: All samples.
        index: Positions, in the order in which they are wanted.
    """

    def of(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: np.asarray(values[index]) for name, values in arrays.items()}

    def row(values: np.ndarray | None) -> np.ndarray | None:
        return None if values is None else values[index]

    return replace(
        data,
        modalities=of(data.modalities),
        present=of(data.present),
        observed=of(data.observed),
        factors=of(data.factors),
        measurements=of(data.measurements),
        covariates=of(data.covariates),
        groups=row(data.groups),
        sample_names=row(data.sample_names),
        environment=row(data.environment),
    )
