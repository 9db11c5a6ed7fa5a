"""Measured curves and predictive bands of each cell, against a decoder whose predictive moments are known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from pyro.distributions import Poisson, TorchDistribution
from torch import nn

from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.findings.collect import curve_arrays, predictive_deviation
from causalpima.models.batch import Standardisation
from causalpima.models.decoders.base import Decoder, DecoderVariance
from causalpima.models.decoders.networks import GaussianDecoder
from causalpima.models.distributions import Elementwise, IsotropicNormal
from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.mixture import GaussianMixture
from causalpima.models.program import CausalPIMA

_POSITIONS = 4


@pytest.fixture
def model() -> CausalPIMA:
    """Three cells, the last with two Gaussians; X = W z + noise of variance 0.3."""
    mixture = GaussianMixture(3, 2)
    loc = torch.tensor([[0.0, 0.0], [3.0, -1.0], [-2.0, 1.0], [-4.0, 2.0]])
    scale = torch.tensor([[0.1, 0.2], [1.0, 0.5], [0.3, 0.3], [0.2, 0.6]])
    share = torch.tensor([1.0, 1.0, 0.25, 0.75]).log()
    mixture.replace(loc, scale, torch.tensor([0, 1, 2, 2]), share)
    decoder = GaussianDecoder(nn.Identity(), nn.Linear(2, _POSITIONS), (_POSITIONS,), DecoderVariance())
    decoder.variance.report(torch.tensor(0.3))
    return CausalPIMA(HodgeGraph((3,)), mixture, {"curve": decoder})


def moments(model: CausalPIMA, cell: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and variance of X given a cell in closed form, by the laws of total mean and variance."""
    mixture, decoder = model.mixture, model.decoders["curve"]
    linear = cast(nn.Linear, decoder.head)
    members = mixture.component_cell == cell
    share = mixture.component_log_share[members].exp()
    means = linear(mixture.component_loc[members])
    variances = mixture.component_scale[members].square() @ linear.weight.T.square()
    mean = share @ means
    return mean, share @ (variances + (means - mean).square()) + 0.3


@torch.no_grad()
def test_deviation_is_that_of_the_predictive_distribution(model: CausalPIMA) -> None:
    middle = torch.randn(3, _POSITIONS)
    repeats = torch.stack([predictive_deviation(model, "curve", middle).square() for _ in range(60)])  # type: ignore[union-attr]
    for cell in range(3):
        mean, variance = moments(model, cell)
        expected = variance + (mean - middle[cell]).square()
        error = repeats[:, cell].std(0) / 60**0.5
        assert ((repeats[:, cell].mean(0) - expected).abs() < 5 * error + 1e-12).all()


@torch.no_grad()
def test_every_position_has_the_noise_of_its_own(model: CausalPIMA) -> None:
    middle, noise = torch.randn(3, _POSITIONS), torch.tensor([0.01, 0.3, 0.3, 25.0])
    torch.manual_seed(1)
    one = predictive_deviation(model, "curve", middle)
    decoder = cast(GaussianDecoder, model.decoders["curve"])
    decoder.variance = DecoderVariance(elements=(_POSITIONS,))
    decoder.variance.report(0.3)
    decoder.report_elements(1e9 * noise, torch.full((_POSITIONS,), 1e9))
    torch.manual_seed(1)
    found = predictive_deviation(model, "curve", middle)
    assert one is not None
    assert found is not None
    torch.testing.assert_close(found.square() - one.square(), (noise - 0.3).expand(3, -1))


class OwnDecoder(Decoder):
    """A decoder that is no Gaussian one of ours, and has no attribute `variance`."""

    event_shape = torch.Size([_POSITIONS])
    depends_on_cell, depends_on_latent = False, True

    def __init__(self, distribution: TorchDistribution) -> None:
        super().__init__()
        self.distribution = distribution

    def forward(self, latent: torch.Tensor, cell: torch.Tensor) -> TorchDistribution:
        return self.distribution.expand(latent.shape[:-1])


def test_the_variance_of_other_distributions_is_their_own_and_may_be_unknown(model: CausalPIMA) -> None:
    counts = model.with_decoders({"curve": OwnDecoder(Elementwise(Poisson(torch.full((_POSITIONS,), 9.0)), 1))})
    found = predictive_deviation(counts, "curve", torch.full((3, _POSITIONS), 5.0))
    torch.testing.assert_close(found, torch.full((3, _POSITIONS), 5.0))  # (16 + 9)^(1/2)
    normal = IsotropicNormal(torch.zeros(_POSITIONS), torch.tensor(2.0), 1)
    unknown = model.with_decoders({"curve": OwnDecoder(normal)})
    assert predictive_deviation(unknown, "curve", torch.zeros(3, _POSITIONS)) is None


def fitted(model: CausalPIMA, likelihood: str = "normal", transform: Any = "identity") -> tuple[Any, np.ndarray]:
    """A hundred samples, 60 in cell 0, 30 in cell 1 of which only two were measured, 10 in cell 2 with a gap."""
    rng = np.random.default_rng(0)
    cell = np.repeat([0, 1, 2], [60, 30, 10])
    values = np.arange(100.0)[:, None] + rng.uniform(size=(100, _POSITIONS)).astype(np.float32)
    present = (cell != 1) | (np.arange(100) < 62)
    observed = np.broadcast_to(present[:, None], values.shape).copy()
    observed[95, 2] = False
    data = MultimodalData("d", {"curve": values}, {"curve": present}, {"curve": "curve"}, observed={"curve": observed})
    scale = Standardisation(loc=0.5, scale=2.0, transform=transform)
    tensors = SimpleNamespace(standardisation={"curve": scale})
    return SimpleNamespace(model=model, data=data, tensors=tensors, likelihoods={"curve": likelihood}), np.eye(3)[cell]


def test_examples_are_measured_curves_of_the_cell_and_the_same_each_time(model: CausalPIMA) -> None:
    fit, r = fitted(model)
    examples = curve_arrays(fit, "curve", r, torch.zeros(3, _POSITIONS)).examples
    assert examples.shape == (3, 40, _POSITIONS)
    rows = np.floor(examples[..., 0])
    assert len(set(rows[0])) == 40
    assert rows[0].max() < 60
    assert not np.array_equal(rows[0], np.arange(40)), "not merely the first ones"
    assert list(rows[1][:2]) == [60, 61]
    assert np.isnan(examples[1, 2:]).all()
    assert list(rows[2][:10]) == list(range(90, 100))
    np.testing.assert_array_equal(np.isnan(examples[2, :10]), np.arange(10)[:, None] * 10 + np.arange(4) == 52)
    np.testing.assert_array_equal(examples, curve_arrays(fit, "curve", r, torch.zeros(3, _POSITIONS)).examples)


def test_the_band_is_even_on_the_scale_of_the_model_and_in_the_units_of_the_data(model: CausalPIMA) -> None:
    fit, r = fitted(model, transform="log")
    middle = torch.randn(3, _POSITIONS)
    torch.manual_seed(1)
    found = curve_arrays(fit, "curve", r, middle)
    torch.manual_seed(1)
    deviation = predictive_deviation(model, "curve", middle)
    assert deviation is not None
    assert found.lower is not None
    assert found.upper is not None
    np.testing.assert_allclose(found.upper, (2.0 * (middle + 2 * deviation) + 0.5).exp().numpy())
    np.testing.assert_allclose(found.lower * found.upper, (2 * (2.0 * middle + 0.5)).exp().numpy())


def test_counts_have_no_negative_band_and_categories_none(model: CausalPIMA) -> None:
    fit, r = fitted(model, "poisson")
    fit.tensors.standardisation["curve"] = Standardisation()
    found = curve_arrays(fit, "curve", r, torch.zeros(3, _POSITIONS))
    assert found.lower is not None
    assert (found.lower == 0).all()
    for likelihood in ("bernoulli", "categorical"):
        fit.likelihoods["curve"] = likelihood
        assert curve_arrays(fit, "curve", r, torch.zeros(3, _POSITIONS)).lower is None
