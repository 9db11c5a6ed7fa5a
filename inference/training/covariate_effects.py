"""Linear effects of covariates on every element of a modality, fitted to the training samples."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from torch import Tensor

from guides.guide import Guide
from inference.data.tensors import TensorData
from models.batch import Batch

__all__ = ["covariate_effects", "fit_covariate_shift", "with_trained_levels"]

_PASS_SIZE = 2048
_PSEUDO_SAMPLES = 1.0


@torch.no_grad()
def fit_covariate_shift(guide: Guide, data: TensorData) -> None:
    """Let encoders see every modality without what the covariates explain (`CovariateShift`).

    Args:
        guide: Its covariate shift is set.
        data: The training samples.
    """
    if data.covariates is None:
        return
    for name, _ in guide.covariate_shift.named_buffers():
        guide.covariate_shift.set_effects(name, covariate_effects(data, name))


def with_trained_levels(data: TensorData, training: np.ndarray) -> TensorData:
    """Held-out samples with a level that no training sample has get the average over the training samples instead.

    Args:
        data: All samples.
        training: Bool `[sample]`.
    """
    if data.covariates is None:
        return data
    mean = data.covariates[torch.from_numpy(np.flatnonzero(training)).to(data.device)].mean(0)
    unknown = (data.covariates * (mean == 0)).any(1, keepdim=True)
    return dataclasses.replace(data, covariates=torch.where(unknown, mean, data.covariates))


def covariate_effects(data: TensorData, name: str) -> Tensor:
    r"""Ridge regression of every element on the indicators of levels, `[V, D]`, one pass over the samples.

    `min_B Σ_n o_nd (x_nd - a_d - c_n · b_d)² + ‖b_d‖²` with an intercept a that is not part of the result, o = 1 where
    the element was measured; one pseudo-sample of weight keeps levels with few samples near zero.

    Args:
        data: Samples with covariates.
        name: The modality.
    """
    assert data.covariates is not None, "the caller has looked"
    gram = moment = torch.zeros((), dtype=torch.float64, device=data.device)
    for batch in data.batches(_PASS_SIZE):
        design = _design(batch)
        measured = batch.measured(name).double().flatten(1)
        if name not in batch.observed:
            measured = measured[:, :1]  # one regression design for all elements
        gram = gram + torch.einsum("nd,nu,nv->duv", measured, design, design)
        moment = moment + torch.einsum("nd,nu->du", measured * batch.values[name].double().flatten(1), design)
    ridge = torch.full((gram.shape[-1],), _PSEUDO_SAMPLES, dtype=torch.float64, device=data.device)
    ridge[0] = 1e-9  # the intercept is free; elements that nobody measured stay solvable
    effects = torch.linalg.solve(gram + torch.diag(ridge), moment.unsqueeze(-1)).squeeze(-1)
    return effects[:, 1:].T


def _design(batch: Batch) -> Tensor:
    """[1, c], `[batch, 1 + V]`."""
    assert batch.covariates is not None, "the caller has looked"
    return torch.nn.functional.pad(batch.covariates.double(), (1, 0), value=1.0)
