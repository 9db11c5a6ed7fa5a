"""q(Z|X_m) of every modality by itself, and fused again with rows that do not belong together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch

from guides.encoders.base import GaussianParameters
from inference.checks.embedded_run import EmbeddedRun, Expert
from inference.checks.resampling import permuted
from inference.data.multimodal import MultimodalData
from inference.prediction.samples import RunSamples, fit_to_run
from inference.training.fitted_run import FittedRun
from inference.training.surroundings import surroundings
from models.batch import Batch

__all__ = ["embedding_with_permuted", "encode_modalities"]

_ROWS_AT_ONCE = 1024


def encode_modalities(fitted: FittedRun, data: MultimodalData, kept: np.ndarray) -> dict[str, Expert]:
    """q(Z|X_m) of the kept samples, by modality; none under a mask, where nothing is fused, and of one modality.

    Args:
        fitted: Model and guide.
        data: All samples of the run.
        kept: Positions of the samples that are wanted, `[n]`.

    Raises:
        ValueError: The samples are not those of the run.
    """
    if fitted.guide.blocks or len(fitted.modalities) < 2:
        return {}
    with surroundings(fitted.device), torch.no_grad():
        samples = fit_to_run(data, fitted)
        return {name: _expert(fitted, samples, name, kept) for name in fitted.guide.encoders}


def _expert(fitted: FittedRun, samples: RunSamples, name: str, kept: np.ndarray) -> Expert:
    parts = list(_encoded(fitted, samples, name))
    loc, log_variance = (torch.cat(part).double().cpu().numpy()[kept] for part in zip(*parts, strict=True))
    return Expert(loc, log_variance)


def _encoded(fitted: FittedRun, samples: RunSamples, name: str) -> Iterator[GaussianParameters]:
    for _, batch in samples.batches(_ROWS_AT_ONCE, fitted.model.mixture.component_loc):
        yield _encode(fitted, name, batch)


def _encode(fitted: FittedRun, name: str, batch: Batch) -> GaussianParameters:
    guide = fitted.guide
    value = guide.covariate_shift(name, batch.values[name], batch.covariates)
    observed = [batch.observed[name]] if name in batch.observed else []
    encoded: GaussianParameters = guide.encoders[name](value, *observed)
    return encoded


def embedding_with_permuted(
    run: EmbeddedRun, names: Sequence[str], generator: np.random.Generator | None
) -> np.ndarray:
    """Where the samples would be if these modalities were those of other samples, `[n, J]`.

    Each of them is permuted among the samples that have it, groups as a whole, so that what is missing stays missing.
    Under a mask that moves rows of blocks; else the experts are fused anew.

    Args:
        run: A run under a mask, or with experts.
        names: Modalities.
        generator: Of the permutations; None leaves all as it was.
    """
    order = {name: _order(run.present[name], run.groups, generator if name in names else None) for name in run.present}
    if not run.visible:
        return _fused(run, order)
    loc = run.loc.copy()
    for name in run.visible:
        block = run.block(name)
        loc[:, block] = run.loc[order[name]][:, block]
    return loc


def _order(present: np.ndarray, groups: np.ndarray | None, generator: np.random.Generator | None) -> np.ndarray:
    order, rows = np.arange(len(present)), np.flatnonzero(present)
    if generator is not None:
        order[rows] = permuted(rows, None if groups is None else groups[rows], generator)
    return order


def _fused(run: EmbeddedRun, order: Mapping[str, np.ndarray]) -> np.ndarray:
    experts = [
        GaussianParameters(*(torch.from_numpy(part[order[name]]) for part in expert))
        for name, expert in run.experts.items()
    ]
    present = [torch.from_numpy(run.present[name]) for name in run.experts]
    with torch.no_grad():
        loc: np.ndarray = run.fusion(experts, present).loc.numpy()
    return loc
