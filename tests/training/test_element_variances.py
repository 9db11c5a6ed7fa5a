"""The variance of every element: against brute force, against planted noise, and what it must not change."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from tiny_fits import settings, tiny_samples
from torch import Tensor, nn

from causalpima.guides.encoders import GaussianParameters
from causalpima.inference.analyses.predictive_moments import Part, mixture_quantiles
from causalpima.inference.data.tensors import TensorData
from causalpima.inference.findings.arrays import FitArrays
from causalpima.inference.objectives.responsibilities import log_responsibilities
from causalpima.inference.result import FitResult
from causalpima.inference.run import Run
from causalpima.inference.training.loop import finish
from causalpima.inference.training.mixture_updates import report_element_variances
from causalpima.models.batch import Standardisation
from causalpima.models.decoders.base import DecoderVariance
from causalpima.models.decoders.networks import GaussianDecoder
from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.mixture import GaussianMixture
from causalpima.models.program import CausalPIMA


def trained(missing: bool = False, gaps: bool = False, law: bool = False, **changes: Any) -> Run:
    config = settings(seed=3, **changes)
    if law:
        curve = config.modality["curve"]
        decoder = type(curve.decoder)("linear", variance_per=curve.decoder.variance_per)
        config = settings(seed=3, modality={**config.modality, "curve": type(curve)(curve.encoder, decoder)}, **changes)
    run = Run(tiny_samples(60, missing=missing, gaps=gaps), config)
    run.train()
    with run._working():
        finish(run.state, run.task)
    return run


CASES: dict[str, dict[str, Any]] = {
    "on Z": {},
    "one draw for all cells": {"objective": "meanfield"},
    "per cell": {"decoder__per_cell": True},
    "per cell, meanfield": {"decoder__per_cell": True, "objective": "meanfield"},
    "law": {"law": True},
}


@pytest.mark.parametrize("absent", ["none", "gaps", "missing"])
@pytest.mark.parametrize("case", CASES)
def test_estimate_is_that_of_brute_force(case: str, absent: str) -> None:
    run = trained(missing=absent == "missing", gaps=absent == "gaps", **CASES[case])
    with run._working(), torch.no_grad():
        for name, decoder in run.state.decoders.items():
            variance = cast(DecoderVariance, decoder.variance)
            error, count = brute_force(run, name)
            expected = (error + 5 * float(variance.reported)) / (count + 5)
            np.testing.assert_allclose(variance.reported_variance(), expected, rtol=1e-4)
            assert variance.reported_variance().std() > 0


def brute_force(run: Run, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Sums per element by loops over samples and cells, with z drawn as the estimate draws it."""
    state, (batch,) = run.state, run.task.training.batches(1000)
    posterior = state.guide.encode(batch)
    noise = torch.randn(posterior.loc.shape, generator=torch.Generator().manual_seed(3))
    z = posterior.loc + posterior.scale * noise
    log_r = log_responsibilities(run.config.objective, state.model, posterior, z, batch)
    cell_of, shape = state.model.mixture.component_cell, batch.values[name].shape
    error, count = np.zeros(shape[1:]), np.zeros(shape[1:])
    present = batch.present[name] if batch.present[name] is not None else torch.ones(shape[0])
    observed = batch.observed.get(name, torch.ones(shape)) * present[:, None]  # type: ignore[index]
    for n in range(shape[0]):
        for cell in range(4):
            mean = state.decoders[name](z[n : n + 1], torch.tensor([cell])).mean[0]
            weight = float(log_r[n][cell_of == cell].exp().sum())
            error += weight * (observed[n] * (batch.values[name][n] - mean) ** 2).double().numpy()
        count += observed[n].double().numpy()
    return error, count


@pytest.mark.parametrize("case", ["on Z", "per cell", "law"])
def test_nothing_else_depends_on_it(case: str) -> None:
    element, modality = trained(**CASES[case]), trained(**CASES[case], decoder__variance_per="modality")
    first, second = element.weights(), modality.weights()
    own = {name for name in first if name.endswith("variance.element")}
    assert len(own) == 2
    assert set(first) - own == set(second)
    assert all(torch.equal(first[name], value) for name, value in second.items())
    results = element.finish(), modality.finish()
    r, cells = zip(*((result.responsibilities().to_numpy(), drawn_cells(result)) for result in results), strict=True)
    assert np.array_equal(r[0], r[1])
    assert np.array_equal(cells[0], cells[1]), "cells are drawn from the same q(N|X)"
    reported = [result.summary["modalities"]["curve"]["decoder_variance"] for result in results]
    assert reported[0] == reported[1]


def drawn_cells(result: FitResult) -> np.ndarray:
    return cast(FitArrays, result.arrays).draws.nodes


@pytest.mark.parametrize("case", ["on Z", "per cell", "law"])
def test_with_one_for_the_modality_every_element_has_the_variance_of_all(case: str) -> None:
    run = trained(**CASES[case], decoder__variance_per="modality")
    for decoder in run.state.decoders.values():
        variance = cast(DecoderVariance, decoder.variance)
        assert variance.reported_variance() is variance.reported
        noise = cast(FitArrays, run.finish().arrays).modalities["curve"].noise_sd
        assert noise is not None
        assert noise.shape == (8,)
        assert np.ptp(noise) == 0


def test_mean_over_the_elements_is_the_variance_of_all_up_to_draws_and_shrinkage() -> None:
    for decoder in trained(decoder__variance_floor=1e-3).state.decoders.values():
        variance = cast(DecoderVariance, decoder.variance)
        assert float(variance.reported_variance().mean()) == pytest.approx(float(variance.reported), rel=0.1)


# Planted noise: a decoder that is right, q(Z|X) all but a point at the truth, noise growing along the curve.

DEVIATION = 0.1 + torch.linspace(0, 0.9, 10, dtype=torch.float64)
N_SAMPLES = 3000


def planted(elements: bool) -> tuple[SimpleNamespace, TensorData]:
    """State and data of `x = w z + noise`, the deviation of the noise growing tenfold."""
    head = nn.Linear(1, 10)
    variance = DecoderVariance("fixed", float(DEVIATION.square().mean()), elements=(10,) if elements else None)
    decoder = GaussianDecoder(nn.Identity(), head, (10,), variance)
    variance.report(float(DEVIATION.square().mean()))
    model = CausalPIMA(HodgeGraph((2,)), GaussianMixture(2, 1), {"curve": decoder}).eval()
    z = torch.randn(N_SAMPLES, 1)
    value = head(z).detach() + DEVIATION * torch.randn(N_SAMPLES, 10)
    guide = SimpleNamespace(encode=lambda b: GaussianParameters(z[b.index], torch.full_like(z[b.index], -30.0)))
    state = SimpleNamespace(model=model, guide=guide, decoders={"curve": decoder}, latent=z)
    return state, TensorData({"curve": value}, {"curve": None}, {"curve": Standardisation()})


def told(elements: bool) -> tuple[SimpleNamespace, Tensor]:
    state, data = planted(elements)
    report_element_variances(cast(Any, state), data, settings())
    return state, cast(Tensor, data.values["curve"])


def shrunk(truth: Tensor) -> Tensor:
    return (N_SAMPLES * truth + 5 * truth.mean()) / (N_SAMPLES + 5)


def test_planted_noise_is_found() -> None:
    """Within five standard errors, `σ_e² (2 / n)^½`; shrinkage weighs 5 samples of 3000."""
    state, _ = told(elements=True)
    found, truth = state.decoders["curve"].variance.reported_variance(), DEVIATION.square()
    assert ((found - shrunk(truth)).abs() < 5 * truth * math.sqrt(2 / N_SAMPLES)).all()


def coverage(state: SimpleNamespace, value: Tensor) -> Tensor:
    """Share of new values inside the 90 % interval, per element."""
    z = state.latent
    fresh = state.model.decode("curve", z, torch.tensor(0)).mean + DEVIATION * torch.randn_like(value)
    part = Part(torch.ones(1, N_SAMPLES), state.model.decode("curve", z[None], torch.tensor(0)))
    lower, upper = mixture_quantiles(part, (0.05, 0.95), Standardisation())
    return ((lower <= fresh) & (fresh <= upper)).double().mean(0)


@torch.no_grad()
def test_intervals_cover_along_the_curve() -> None:
    """Five binomial standard errors, of the new samples and of those that the variance is from."""
    tolerance = 5 * math.sqrt(2 * 0.9 * 0.1 / N_SAMPLES)
    truth = DEVIATION.square()
    expected = 2 * torch.special.ndtr(1.6448536 * (shrunk(truth) / truth).sqrt()) - 1
    assert ((expected - 0.9).abs() < 0.011).all(), "what shrinkage does where the noise is small"
    assert ((coverage(*told(elements=True)) - expected).abs() < tolerance).all()
    one = coverage(*told(elements=False))
    assert one[0] > 0.99, "too wide where little scatters"
    assert one[-1] < 0.85, "too narrow where much does"


def test_global_random_numbers_are_left_alone() -> None:
    state, data = planted(elements=True)
    before = torch.get_rng_state()
    report_element_variances(cast(Any, state), data, settings())
    assert torch.equal(torch.get_rng_state(), before)


def test_batches_that_lack_the_modality_count_nothing() -> None:
    state, data = planted(elements=True)
    absent = TensorData(data.values, {"curve": torch.zeros(N_SAMPLES, dtype=torch.bool)}, data.standardisation)
    report_element_variances(cast(Any, state), absent, settings())
    found = state.decoders["curve"].variance.reported_variance()
    torch.testing.assert_close(found, DEVIATION.square().mean().expand(10))
