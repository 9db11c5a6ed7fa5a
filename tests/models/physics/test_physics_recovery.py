"""Planted parameters come back within four standard errors, also from a bad start, and intervals cover as they say."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from planted_laws import PLANTED, PlantedLaw, every_law
from scipy import stats
from torch import Tensor

from causalpima.models.decoders.physics.decoder import PhysicsDecoder
from causalpima.models.decoders.physics.least_squares import fit_cells
from causalpima.models.decoders.physics.uncertainty import EstimateAccumulator, PhysicalEstimates

N_SAMPLES, N_REPLICATES = 30, 400


def fit(decoder: PhysicsDecoder, values: Tensor, observed: Tensor, **options: int) -> PhysicalEstimates:
    """Estimates from `[cell, sample, position]`, where every sample belongs to one cell for sure."""
    weight = observed.double().sum(1)
    mean = values.sum(1) / weight.clamp(min=1)
    with torch.no_grad():
        decoder.table.copy_(fit_cells(decoder.curve, decoder.table, mean, weight, **options))
    blocks = torch.arange(len(values)).split(20)  # of all cells at once, the work would be quadratic in their number
    return joined([estimate(decoder, values[cells], observed[cells], decoder.table[cells]) for cells in blocks])


def estimate(decoder: PhysicsDecoder, values: Tensor, observed: Tensor, table: Tensor) -> PhysicalEstimates:
    """Estimates of the cells with these parameters."""
    decoder = copy.deepcopy(decoder)
    decoder.table = torch.nn.Parameter(table.detach())
    accumulator = EstimateAccumulator(decoder)
    certain = torch.eye(len(values)).repeat_interleave(values.shape[1], 0)
    accumulator.add(values.flatten(0, 1), observed.flatten(0, 1), certain)
    return accumulator.estimate()


def joined(parts: Sequence[PhysicalEstimates]) -> PhysicalEstimates:
    """Estimates of several sets of cells, as of one."""
    names = [name for name, value in vars(parts[0]).items() if isinstance(value, np.ndarray)]
    whole: dict[str, Any] = {n: np.concatenate([getattr(part, n) for part in parts]) for n in names}
    return dataclasses.replace(parts[0], **whole)


@every_law
def test_planted_parameters_come_back_from_bad_starts(planted: PlantedLaw) -> None:
    decoder = planted.decoder(n_cells=8)
    with torch.no_grad():
        decoder.table.add_(4 * torch.randn_like(decoder.table))
    drawn = [planted.draw(4, N_SAMPLES, seed=1, has_gaps=has_gaps) for has_gaps in (False, True)]
    estimates = fit(decoder, *(torch.cat(whole_and_gaps) for whole_and_gaps in zip(*drawn, strict=True)))
    assert (estimates.status == "ok").all()
    assert (np.abs(estimates.value - planted.truth_array) < 4 * estimates.standard_error).all()
    assert (estimates.standard_error < 0.3 * np.abs(planted.truth_array)).all()


@every_law
def test_intervals_cover_the_truth_as_often_as_they_say(planted: PlantedLaw) -> None:
    decoder = planted.decoder(N_REPLICATES)
    estimates = fit(decoder, *planted.draw(N_REPLICATES, N_SAMPLES, seed=2, has_gaps=True), n_random=0)
    covers = (estimates.lower < planted.truth_array) & (planted.truth_array < estimates.upper)
    assert is_as_often_as(0.95, covers.sum(0))
    in_band = (estimates.curve_lower < planted.curve()) & (planted.curve() < estimates.curve_upper)
    has_width = (estimates.curve_upper - estimates.curve_lower > 1e-9).all(0)  # none where the law is zero for sure
    assert has_width.sum() >= len(has_width) - 1
    assert is_as_often_as(0.95, in_band[:, has_width].sum(0))


@pytest.mark.parametrize("factor", [0.7, 1.8])
def test_intervals_that_are_too_narrow_or_too_wide_would_be_seen(factor: float) -> None:
    planted = PLANTED["line"]
    estimates = fit(planted.decoder(N_REPLICATES), *planted.draw(N_REPLICATES, N_SAMPLES, seed=2), n_random=0)
    half = factor * 0.5 * (estimates.upper - estimates.lower)
    assert not is_as_often_as(0.95, (np.abs(estimates.value - planted.truth_array) < half).sum(0))


def is_as_often_as(probability: float, counts: np.ndarray) -> bool:
    """Whether each count of N_REPLICATES lies where 99.998 % of a binomial distribution does (359 to 396 at 0.95)."""
    low, high = stats.binom.interval(1 - 2e-5, N_REPLICATES, probability)
    return bool(((counts >= low) & (counts <= high)).all())
