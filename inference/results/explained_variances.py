"""What nodes explain of the modalities, in one pass over the samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from inference.data.tensors import TensorData
from inference.evaluation.cell_moments import CellMoments, WeightedValues
from inference.evaluation.variance_explained import VarianceExplained, variance_explained
from models.batch import Batch

__all__ = ["explained_variances"]

_PASS_SIZE = 1024


def explained_variances(
    data: TensorData,
    responsibilities: np.ndarray,
    outcomes: Sequence[int],
    categorical: Iterable[str] = (),
    seed: int = 0,
) -> dict[str, VarianceExplained]:
    """Shares of the variance of every modality, on the scale of the model.

    Args:
        data: All samples.
        responsibilities: q(N|X), `[n, C]`.
        outcomes: Number of outcomes of each node.
        categorical: Modalities whose values are codes: the variance is that of the indicators of their categories.
        seed: Seed of the random labellings.
    """
    n_categories = {name: _n_categories(data, name) for name in categorical}
    sums: dict[str, CellMoments] = {}
    for batch in data.batches(_PASS_SIZE):
        r = responsibilities[batch.index.cpu().numpy()]
        for name in batch.values:
            part = CellMoments.of(_values(batch, name, r, n_categories))
            sums[name] = sums[name] + part if name in sums else part
    generator = np.random.default_rng(seed)
    return {name: variance_explained(moments, outcomes, generator) for name, moments in sums.items()}


def _n_categories(data: TensorData, name: str) -> int:
    return 1 + int(max(batch.values[name].max() for batch in data.batches(_PASS_SIZE)))


def _values(batch: Batch, name: str, r: np.ndarray, n_categories: Mapping[str, int]) -> WeightedValues:
    values, measured = batch.values[name], batch.measured(name)
    if name in n_categories:
        values = torch.nn.functional.one_hot(values.long(), n_categories[name]).to(values)
        measured = measured.unsqueeze(-1).expand(values.shape)
    return WeightedValues(r, _array(values), _array(measured))


def _array(value: Tensor) -> np.ndarray:
    array: np.ndarray = value.detach().cpu().numpy()
    return array
