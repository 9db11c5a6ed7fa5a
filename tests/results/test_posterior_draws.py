"""Draws of a fitted model: densities in the units of the data by brute force, cells, predictions, what is held out."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyro.distributions as dist
import pytest
import torch
from circle_like_fit import circle_like_fit
from torch import Tensor
from torch.distributions import ExpTransform, MultivariateNormal, Normal, TransformedDistribution

from causalpima.guides.encoders import mlp_encoder
from causalpima.guides.fusion import FUSIONS
from causalpima.guides.guide import Guide
from causalpima.inference.data.tensors import TensorData
from causalpima.inference.findings.arrays import PosteriorDraws
from causalpima.inference.findings.collect import DrawBounds, central_value, draw_posterior, held_out_log_likelihood
from causalpima.models.batch import Standardisation
from causalpima.models.decoders.base import DecoderVariance
from causalpima.models.decoders.networks import GaussianDecoder, mlp_decoder
from causalpima.models.distributions import Elementwise
from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.mixture import GaussianMixture
from causalpima.models.program import CausalPIMA

N, LATENT, DRAWS = 6, 2, 3
WEIGHTS = {"rate": 0.3, "load": 2.5, "level": 1.0}
SHAPES = {"rate": (4,), "load": (3,), "level": (2,)}
VARIANCES = {"rate": 0.5, "load": 0.4, "level": 0.3}
SCALES = {
    "rate": Standardisation(0.4, 0.7, "log"),
    "load": Standardisation(0.1, 1.3, "asinh", 2.0),
    "level": Standardisation(-3.0, 2.0),
}
SAMPLES = np.array([0, 2, 3, 5])


# N1 -> N2 -> Z -> rate (logarithmic), load (asinh, a head per cell), level
def make_model(covariates: bool = False) -> CausalPIMA:
    torch.manual_seed(1)
    graph, mixture = HodgeGraph((2, 2)), GaussianMixture(4, LATENT, "full")
    graph.conditional_logits.data.mul_(10)
    scale = torch.diag_embed(torch.rand(5, LATENT) + 0.5) + torch.tril(torch.randn(5, LATENT, LATENT), -1)
    share = torch.tensor([0.0, 0.0, 0.0, 0.3, 0.7]).where(torch.arange(5) > 2, torch.ones(5)).log()
    mixture.replace(torch.randn(5, LATENT), scale, torch.tensor([0, 1, 2, 3, 3]), share)
    n_inputs = LATENT + (2 if covariates else 0)
    decoders = {
        m: mlp_decoder(n_inputs, shape, (5,), DecoderVariance("fixed", VARIANCES[m]), 4 if m == "load" else None)
        for m, shape in SHAPES.items()
    }
    average = torch.tensor([0.5, 0.5]) if covariates else None
    return CausalPIMA(graph, mixture, decoders, weights=WEIGHTS, mean_covariates=average)


def make_data(covariates: bool = False) -> tuple[TensorData, dict[str, Tensor]]:
    """Standardised samples, and the values in their own units."""
    torch.manual_seed(2)
    raw = {"rate": torch.randn(N, 4).exp(), "load": 5 * torch.randn(N, 3), "level": torch.randn(N, 2) - 4}
    observed = {"rate": torch.rand(N, 4) < 0.6, "level": torch.rand(N, 2) < 0.7}
    present = {"rate": torch.tensor([1, 1, 1, 0, 1, 1]).bool(), "load": torch.tensor([1, 1, 0, 1, 1, 1]).bool()}
    values = {m: SCALES[m].apply(value) for m, value in raw.items()}
    for m, mask in observed.items():
        values[m] = torch.where(mask, values[m], 0.0)
    levels = torch.eye(2)[torch.tensor([0, 1, 1, 0, 1, 1])] if covariates else None
    return TensorData(values, {**present, "level": None}, SCALES, observed, levels), raw


def make_guide(fusion: str = "poe") -> Guide:
    torch.manual_seed(3)
    encoders = {m: mlp_encoder(shape, (5,), LATENT, m != "load") for m, shape in SHAPES.items()}
    return Guide(encoders, prior_expert=True, fusion=FUSIONS[fusion](len(SHAPES), LATENT, True))


def draws_of(model: CausalPIMA, data: TensorData, n: int = DRAWS, fusion: str = "poe") -> PosteriorDraws:
    return draw_posterior(model, make_guide(fusion), data, SAMPLES, DrawBounds(draws=n))


def log_density(m: str, x: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """log p of a value in its own unit, element by element: the law of `invert(mean + noise)`."""
    scale = SCALES[m]
    in_transformed = Normal(scale.loc + scale.scale * mean, scale.scale * deviation)
    if m == "level":
        return in_transformed.log_prob(x)
    if m == "rate":
        return TransformedDistribution(in_transformed, [ExpTransform()]).log_prob(x)
    leaf = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(torch.asinh(leaf / scale.knee).sum(), leaf)
    return in_transformed.log_prob(torch.asinh(x / scale.knee)) + slope.log()


def per_cell(model: CausalPIMA, data: TensorData, raw: dict[str, Tensor], m: str, sample: int, z: Tensor) -> Tensor:
    """log p(x_m | z, c) of the measured elements in their own unit, `[C]`; zero where absent."""
    present: Any = data.present[m]
    if present is not None and not present[sample]:
        return torch.zeros(4)
    observed = torch.ones(SHAPES[m], dtype=torch.bool)
    if m in data.observed:
        observed = data.observed[m][torch.tensor([sample])][0]
    means = [model.decoders[m](z[None], torch.tensor(c)).mean[0] for c in range(4)]
    deviation = cast(DecoderVariance, model.decoders[m].variance).reported_variance().sqrt()
    return torch.stack([log_density(m, raw[m][sample], mean, deviation)[observed].sum() for mean in means])


@torch.no_grad()
def mixture_terms(model: CausalPIMA, z: Tensor) -> Tensor:
    """log p(c) p(z | c), `[C]`."""
    mixture, joint = model.mixture, model.graph.log_joint().flatten()
    terms = torch.full((4,), -torch.inf)
    for k, cell in enumerate(mixture.component_cell.tolist()):
        normal = MultivariateNormal(mixture.component_loc[k], mixture.covariance()[k])
        term = joint[cell] + mixture.component_log_share[k] + normal.log_prob(z)
        terms[cell] = torch.logaddexp(terms[cell], term)
    return terms


def with_elements(model: CausalPIMA) -> CausalPIMA:
    """With a variance per element in what is reported."""
    for m, shape in SHAPES.items():
        decoder = cast(GaussianDecoder, model.decoders[m])
        decoder.variance = DecoderVariance("fixed", VARIANCES[m], elements=shape)
        decoder.variance.report(VARIANCES[m])
        decoder.report_elements(9 * torch.rand(shape), torch.full(shape, 9.0))
    return model


@pytest.mark.parametrize(("elements", "fusion"), [(False, "poe"), (True, "poe"), (False, "moe"), (False, "mopoe")])
def test_log_likelihood_and_log_weight_are_densities_of_the_data_as_they_were_measured(
    elements: bool, fusion: str
) -> None:
    model, (data, raw), guide = make_model(), make_data(), make_guide(fusion)
    model = with_elements(model) if elements else model
    draws = draws_of(model, data, fusion=fusion)
    posterior = guide.encode(data.subset(SAMPLES).batch(torch.arange(4)))
    for d, s in np.ndindex(DRAWS, len(SAMPLES)):
        z, sample = torch.from_numpy(draws.latent[d, s]), int(SAMPLES[s])
        cell = int(np.ravel_multi_index(tuple(draws.nodes[d, s]), (2, 2)))
        likelihoods = {m: per_cell(model, data, raw, m, sample, z) for m in SHAPES}
        for m, expected in likelihoods.items():
            present: Any = data.present[m]
            found = draws.log_likelihood[m][d, s]
            if present is not None and not present[sample]:
                assert np.isnan(found)
            else:
                np.testing.assert_allclose(found, expected[cell].item(), rtol=1e-10)
        joint = mixture_terms(model, z) + sum(likelihoods.values())
        parts = [w[s].log() + Normal(one.loc[s], one.scale[s]).log_prob(z).sum() for w, one in posterior.parts()]
        log_q = torch.logsumexp(torch.stack(parts), 0)
        expected_weight = (torch.logsumexp(joint, 0) - log_q).item()
        np.testing.assert_allclose(draws.log_weight[d, s], expected_weight, rtol=1e-10)


def test_cells_are_drawn_with_the_weights_of_the_modalities() -> None:
    model, (data, raw), n = make_model(), make_data(), 300
    draws = draws_of(model, data, n)
    s, sample = 0, int(SAMPLES[0])  # it has the modality with a head per cell
    weighted, plain = torch.zeros(n, 4), torch.zeros(n, 4)
    for d in range(n):
        z = torch.from_numpy(draws.latent[d, s])
        jacobian = SCALES["load"].log_derivative(raw["load"][sample]).sum()
        load = per_cell(model, data, raw, "load", sample, z)
        base = mixture_terms(model, z)
        weighted[d] = torch.softmax(base + WEIGHTS["load"] * (load - jacobian), 0)
        plain[d] = torch.softmax(base + load, 0)
    cell = torch.from_numpy(np.ravel_multi_index(tuple(draws.nodes[:, s].T), (2, 2)))
    counts = torch.bincount(cell, minlength=4)
    deviation = (weighted * (1 - weighted)).sum(0).sqrt()
    assert ((counts - weighted.sum(0)).abs() < 4.5 * deviation + 1e-9).all()
    assert ((counts - plain.sum(0)).abs() > 4.5 * deviation).any(), "without the weights it would be another law"


@pytest.mark.parametrize("m", list(SHAPES))
@pytest.mark.parametrize("covariates", [False, True])
def test_predictions_are_draws_of_the_decoder_in_the_unit_of_the_data(m: str, covariates: bool) -> None:
    model, (data, _), n = make_model(covariates), make_data(covariates), 4000
    draws = draws_of(model, data, n)
    assert draws.predictive_samples.tolist() == SAMPLES.tolist()
    assert m != "rate" or (draws.predictive[m] > 0).all()
    drawn = SCALES[m].apply(draws.predictive[m])
    cell = torch.from_numpy(np.ravel_multi_index(tuple(np.moveaxis(draws.nodes, -1, 0)), (2, 2)))
    latent = torch.from_numpy(draws.latent)
    if covariates:
        assert data.covariates is not None
        levels = data.covariates[torch.from_numpy(SAMPLES)].expand(n, 4, 2)
        latent = torch.cat([latent, levels], -1)
    with torch.no_grad():
        mean = model.decoders[m](latent, cell).mean.numpy()
    error = (drawn - mean).reshape(n, 4, -1)
    assert (np.abs(error.mean(0)) < 4.8 * (VARIANCES[m] / n) ** 0.5).all()
    assert (np.abs(np.square(error).mean(0) - VARIANCES[m]) < 4.8 * VARIANCES[m] * (2 / n) ** 0.5).all()


def test_draws_bear_the_samples_that_were_asked_for() -> None:
    model, (data, _) = make_model(), make_data()
    draws = draw_posterior(model, make_guide(), data, SAMPLES, DrawBounds(draws=5, predictive_elements=2 * 5 * 4))
    assert draws.latent.shape == (5, 4, LATENT)
    assert draws.nodes.shape == (5, 4, 2)
    assert draws.predictive_samples.tolist() == [0, 5], "as many as may be predicted, evenly spread"
    assert {m: value.shape for m, value in draws.predictive.items()} == {m: (5, 2, *s) for m, s in SHAPES.items()}
    assert draws.prior_latent.shape == (5, LATENT)


# Held-out likelihood


def with_weights(log_weight: np.ndarray) -> PosteriorDraws:
    fit = circle_like_fit(40)
    n = log_weight.shape[1]
    return PosteriorDraws(**{**vars(fit.draws), "samples": np.arange(n), "log_weight": log_weight})


SPLIT = np.array(["train"] * 4 + ["validation"] * 3 + ["test"] * 8)


def test_held_out_likelihood_is_the_mean_of_importance_weights_over_the_test_split() -> None:
    log_weight = np.random.default_rng(0).normal(-900.0, 2.0, (7, 15))
    found = held_out_log_likelihood(with_weights(log_weight), SPLIT)
    per_sample = np.log(np.exp(log_weight[:, 7:] + 900).mean(0)) - 900
    assert found is not None
    assert found["per_sample"] == pytest.approx(per_sample.mean())
    assert found["standard_error"] == pytest.approx(per_sample.std(ddof=1) / 8**0.5)
    collapsed = log_weight[:, 7:].mean(0)
    assert found["collapsed_bound"]["per_sample"] == pytest.approx(collapsed.mean())
    assert found["collapsed_bound"]["standard_error"] == pytest.approx(collapsed.std(ddof=1) / 8**0.5)
    assert found["collapsed_bound"]["per_sample"] < found["per_sample"]
    assert (found["n_samples"], found["n_draws"], found["split"]) == (8, 7, "test")
    validation = held_out_log_likelihood(with_weights(log_weight), np.where(SPLIT == "test", "train", SPLIT))
    assert validation is not None
    assert (validation["n_samples"], validation["split"]) == (3, "validation")


def test_replicates_do_not_make_it_surer() -> None:
    """Four specimens measured twice with the same outcome tell as much as measured once."""
    once = np.random.default_rng(0).normal(-5.0, 2.0, (7, 4))
    twice = np.repeat(once, 2, axis=1)
    split, groups = np.array(["test"] * 8), np.repeat(np.arange(4), 2)
    alone = held_out_log_likelihood(with_weights(once), split[:4])
    grouped = held_out_log_likelihood(with_weights(twice), split, groups)
    assert alone is not None
    assert grouped is not None
    assert grouped["per_sample"] == pytest.approx(alone["per_sample"])
    assert grouped["standard_error"] == pytest.approx(alone["standard_error"])
    of_their_own = held_out_log_likelihood(with_weights(twice), split, np.arange(8))
    assert of_their_own == held_out_log_likelihood(with_weights(twice), split)


def test_one_group_says_nothing_of_its_spread() -> None:
    log_weight = np.zeros((3, 4))
    split = np.array(["train"] * 2 + ["test"] * 2)
    assert held_out_log_likelihood(with_weights(log_weight), split) is not None
    assert held_out_log_likelihood(with_weights(log_weight), split, np.array([0, 1, 2, 2])) is None
    assert held_out_log_likelihood(with_weights(log_weight), np.array(["train"] * 3 + ["test"])) is None


# What is shown of a distribution


def test_central_value_is_the_mean_and_of_categories_the_most_probable() -> None:
    mean = torch.randn(5, 2, 3)
    assert torch.equal(central_value(Elementwise(dist.Normal(mean, 1.0), 2)), mean)
    rate = torch.rand(5, 3) + 0.1
    assert torch.equal(central_value(Elementwise(dist.Poisson(rate), 1)), rate)
    logits = torch.randn(5, 2, 4)
    found = central_value(Elementwise(dist.Categorical(logits=logits), 1))
    assert found.dtype == logits.dtype
    assert torch.equal(found, logits.argmax(-1).to(logits))
