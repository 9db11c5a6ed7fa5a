"""Predictions against brute force: z from q, N from p(N | z, X), x from the decoder, written out once more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pytest
import torch
from small_runs import random_run, samples
from torch import Tensor

from causalpima.inference.analyses.predict import PredictionOptions, predict
from causalpima.inference.analyses.samples import fit_to_run
from causalpima.inference.training.config import GuideConfig
from causalpima.inference.training.fitted_run import FittedRun
from causalpima.models.batch import Standardisation
from causalpima.models.decoders.physics.decoder import PhysicsDecoder

DRAWS, SIMULATED = 2000, 10_000

# Settings of the curve's decoder, its standardisation, and whether its values are whole numbers.
CASES: dict[str, tuple[dict[str, Any], Standardisation | None, bool]] = {
    "latent": ({}, Standardisation(1.5, 0.4), False),
    "heads": ({"per_cell": True}, Standardisation(1.5, 0.4), False),
    "law of cells": ({"kind": "linear"}, Standardisation(1.5, 0.4), False),
    "law of both": ({"kind": "linear", "source": "both"}, Standardisation(1.5, 0.4), False),
    "logarithm": ({}, Standardisation(0.3, 0.3, "log"), False),
    "asinh": ({"per_cell": True}, Standardisation(1.0, 0.4, "asinh", 0.7), False),
    "student": ({"likelihood": "student_t"}, Standardisation(1.5, 0.4), False),
    "poisson": ({"likelihood": "poisson", "per_cell": True}, None, True),
    "negative binomial": ({"likelihood": "negative_binomial"}, None, True),
    "bernoulli": ({"likelihood": "bernoulli"}, None, True),
}


@pytest.fixture(params=[*CASES, "mixture of experts"], ids=str)
def case(request: pytest.FixtureRequest) -> tuple[FittedRun, bool]:
    decoder, standardisation, counts = CASES.get(request.param, CASES["heads"])
    guide = GuideConfig("poe" if request.param in CASES else "moe")
    return random_run(decoder=decoder, standardisation=standardisation, weight=0.6, unequal=True, guide=guide), counts


def simulate(fitted: FittedRun, row: int, counts: bool) -> tuple[Tensor, Tensor]:
    """Cells `[S]` and curves `[S, 4]` in the unit of the data, given what sample `row` has."""
    model, data = fitted.model, samples(counts=counts)
    experts = {
        name: _encoded(fitted, data.modalities[name][row], name) for name in data.modalities if data.present[name][row]
    }
    z = _latent(list(experts.values()), fitted.config.guide.fusion)
    log_cell = torch.stack([_log_joint(fitted, z, cell, data, row, list(experts)) for cell in range(4)], dim=-1)
    cell = torch.distributions.Categorical(logits=log_cell).sample()
    drawn = model.decode("curve", z, cell).sample()
    return cell, fitted.modalities["curve"].standardisation.invert(drawn)


def _latent(experts: list[tuple[Tensor, Tensor]], fusion: str) -> Tensor:
    """z `[S, J]` from the product of the experts, or each from one of them."""
    loc, log_variance = (torch.stack(parts) for parts in zip(*experts, strict=True))
    if fusion == "moe":
        chosen = torch.randint(len(experts), (SIMULATED,))
        return loc[chosen] + (0.5 * log_variance[chosen]).exp() * torch.randn(SIMULATED, loc.shape[1])
    precision = torch.exp(-log_variance)
    mean = (loc * precision).sum(0) / precision.sum(0)
    return mean + torch.randn(SIMULATED, len(mean)) / precision.sum(0).sqrt()


def _encoded(fitted: FittedRun, value: np.ndarray, name: str) -> tuple[Tensor, Tensor]:
    standardised = fitted.modalities[name].standardisation.apply(value.astype(np.float64))
    loc, log_variance = fitted.guide.encoders[name](torch.tensor(np.float32(standardised)).double()[None])
    return loc[0], log_variance[0]


def _log_joint(fitted: FittedRun, z: Tensor, cell: int, data: Any, row: int, names: list[str]) -> Tensor:
    """log p(N, z) + Σ weight log p(x_m | z, N) by scalar loops over components; with one variance per modality."""
    mixture = fitted.model.mixture
    log_p = fitted.model.graph.log_joint().reshape(-1)[cell]
    terms = [
        torch.distributions.MultivariateNormal(
            mixture.component_loc[k], scale_tril=mixture.component_scale[k]
        ).log_prob(z)
        + mixture.component_log_share[k]
        for k in range(5)
        if mixture.component_cell[k] == cell
    ]
    total = log_p + torch.logsumexp(torch.stack(terms), 0)
    for name in names:
        value = fitted.modalities[name].standardisation.apply(data.modalities[name][row].astype(np.float64))
        distribution = fitted.model.decoders[name](z, torch.full((len(z),), cell))
        weight = fitted.config.modality[name].weight
        total = total + weight * distribution.log_prob(torch.tensor(np.float32(value)).double().expand(len(z), -1))
    return total


@pytest.mark.parametrize("row", [0, 1, 2], ids=["hidden", "alone", "both"])
@torch.no_grad()
def test_moments_interval_and_responsibilities(case: tuple[FittedRun, bool], row: int) -> None:
    fitted, counts = case
    found = predict(fitted, fit_to_run(samples(counts=counts), fitted), PredictionOptions(DRAWS)).isel(sample=row)
    cell, simulated = simulate(fitted, row, counts)
    shares = torch.bincount(cell, minlength=4) / SIMULATED
    both = np.sqrt(1 / DRAWS + 1 / SIMULATED)
    assert found.responsibilities.to_numpy() == pytest.approx(shares.numpy(), abs=4.5 * 0.5 * both)
    mean, deviation = simulated.mean(0).numpy(), simulated.std(0).numpy()
    assert (np.abs(found.curve_mean - mean) < 4.5 * deviation * both).all()
    centred = (simulated - simulated.mean(0)).numpy()
    kurtosis = (centred**4).mean(0) / deviation**4
    relative = 4.5 * np.sqrt(np.maximum(kurtosis - 1, 0.1)) / 2 * both
    assert (np.abs(found.curve_std / deviation - 1) < relative).all()
    for name, p in (("curve_lower", 0.05), ("curve_upper", 0.95)):
        _check_quantile(found[name].to_numpy(), simulated.numpy(), p)


def _check_quantile(quantile: np.ndarray, simulated: np.ndarray, p: float) -> None:
    """The share of simulated values below and up to the quantile brackets p within the errors of both."""
    error = 4.5 * np.sqrt(p * (1 - p) * (1 / 1000 + 1 / SIMULATED))
    slack = 1e-6 * np.abs(quantile)
    assert ((simulated < quantile - slack).mean(0) < p + error).all()
    assert ((simulated <= quantile + slack).mean(0) > p - error).all()


def test_decoders_on_cells_alone_are_summed_exactly() -> None:
    """Mean and variance of a law per cell are those of a finite mixture with the responsibilities as weights."""
    fitted = random_run(decoder={"kind": "linear"}, standardisation=Standardisation(1.5, 0.4), unequal=True)
    found = predict(fitted, fit_to_run(samples(), fitted), PredictionOptions(7))
    decoder = cast(PhysicsDecoder, fitted.model.decoders["curve"])
    curves = 1.5 + 0.4 * decoder.curve(decoder.table).detach().numpy()
    r = found.responsibilities.to_numpy().astype(float)
    mean = r @ curves
    noise = decoder.variance.reported_variance().numpy()
    assert noise[-1] > 1.5 * noise[0]
    variance = 0.4**2 * noise + np.einsum("nc,ncd->nd", r, (curves - mean[:, None]) ** 2)
    assert found.curve_mean.to_numpy() == pytest.approx(mean, rel=1e-5)
    assert found.curve_std.to_numpy() == pytest.approx(np.sqrt(variance), rel=1e-5)


def test_categories_get_probabilities() -> None:
    fitted = random_run(decoder={"likelihood": "categorical", "per_cell": True})
    found = predict(fitted, fit_to_run(samples(counts=True), fitted), PredictionOptions(DRAWS))
    assert found.curve_probability.sizes == {"sample": 6, "strain": 4, "curve_category": 3}
    assert found.curve_probability.sum("curve_category").to_numpy() == pytest.approx(1)
    assert "curve_mean" not in found
    with torch.no_grad():
        _, simulated = simulate(fitted, 0, counts=True)
    shares = np.stack([(simulated == k).double().mean(0).numpy() for k in range(3)], axis=-1)
    assert found.curve_probability[0].to_numpy() == pytest.approx(
        shares, abs=4.5 * 0.5 * np.sqrt(1 / DRAWS + 1 / SIMULATED)
    )


def test_student_t_has_no_mean_behind_a_logarithm() -> None:
    fitted = random_run(decoder={"likelihood": "student_t"}, standardisation=Standardisation(0.3, 0.3, "log"))
    found = predict(fitted, fit_to_run(samples(), fitted))
    assert np.isnan(found.curve_mean).all()
    assert np.isnan(found.curve_std).all()
    assert (found.curve_lower < found.curve_upper).all()
    assert (found.curve_lower > 0).all()


def test_covariates_shift_the_prediction() -> None:
    levels: Mapping[str, tuple[str, ...]] = {"batch": ("x", "y")}
    fitted = random_run(levels=levels)
    codes = {"batch": np.zeros(6, dtype=int)}
    found = [
        predict(fitted, fit_to_run(samples(covariates=codes, covariate_levels={"batch": (level,)}), fitted))
        for level in ("x", "y")
    ]
    average = predict(fitted, fit_to_run(samples(), fitted))
    assert np.abs(found[0].curve_mean - found[1].curve_mean).max() > 0.1
    assert np.abs(average.curve_mean - found[0].curve_mean).max() > 0.01
