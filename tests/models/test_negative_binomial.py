"""The negative binomial by mean and dispersion against SciPy, sums over its support, and its limit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from causalpima.models.distributions import MeanNegativeBinomial, log_rising_product

MEANS = [1e-3, 0.7, 12.0, 4e3]
DISPERSIONS = [1e-6, 1e-3, 0.0499, 0.0501, 0.3, 2.0, 50.0]
grid = pytest.mark.parametrize(("mean", "dispersion"), [(m, a) for m in MEANS for a in DISPERSIONS])


def distribution(mean: float, dispersion: float) -> MeanNegativeBinomial:
    return MeanNegativeBinomial(torch.tensor(mean).log(), torch.tensor(dispersion))


@pytest.mark.parametrize("step", DISPERSIONS)
def test_rising_product_by_its_definition(step: float) -> None:
    counts = torch.tensor([0.0, 1.0, 2.0, 7.0, 19.0, 20.0, 500.0])
    expected = torch.stack([(torch.arange(int(x)) * step).to(counts).log1p().sum() for x in counts])
    torch.testing.assert_close(log_rising_product(counts, torch.tensor(step)), expected, rtol=1e-10, atol=1e-9)


@grid
def test_log_probabilities_are_scipys(mean: float, dispersion: float) -> None:
    counts = np.array([0, 1, 2, 3, 10, 47, 4000])
    expected = stats.nbinom(1 / dispersion, 1 / (1 + dispersion * mean)).logpmf(counts)
    actual = distribution(mean, dispersion).log_prob(torch.tensor(counts, dtype=torch.float64))
    # SciPy subtracts gamma functions of size 1/α log 1/α, and takes the logarithm of 1 - p = αμ / (1 + αμ).
    gamma = 1e-14 / dispersion * abs(np.log(dispersion))
    complement = 1e-15 * counts * (1 + 1 / (dispersion * mean))
    assert (np.abs(actual.numpy() - expected) <= 1e-9 * (1 + np.abs(expected)) + gamma + complement).all()


@pytest.mark.parametrize(("mean", "dispersion"), [(m, a) for m in MEANS[:3] for a in DISPERSIONS[:-1]])
def test_probabilities_sum_to_one_and_have_the_moments(mean: float, dispersion: float) -> None:
    counts = torch.arange(3000.0)
    one = distribution(mean, dispersion)
    probability = one.log_prob(counts).exp()
    expected = torch.stack([torch.tensor(1.0), one.mean, one.variance])
    torch.testing.assert_close(one.variance, torch.tensor(mean + dispersion * mean**2))
    moments = [probability.sum(), (probability * counts).sum(), (probability * (counts - mean) ** 2).sum()]
    torch.testing.assert_close(torch.stack(moments), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mean", MEANS)
def test_without_dispersion_it_is_poissons(mean: float) -> None:
    counts = torch.tensor([0.0, 1.0, 5.0, 20.0])
    poisson = torch.distributions.Poisson(torch.tensor(mean)).log_prob(counts)
    # To first order in α the difference is α ((x - μ)² - x) / 2.
    for dispersion in (1e-6, 1e-8):
        actual = distribution(mean, dispersion).log_prob(counts) - poisson
        expected = dispersion * ((counts - mean) ** 2 - counts) / 2
        torch.testing.assert_close(actual, expected, rtol=0.01 if dispersion == 1e-8 else 0.05, atol=1e-10)


@grid
def test_gradients_are_those_of_finite_differences(mean: float, dispersion: float) -> None:
    log_mean = torch.tensor(mean).log().requires_grad_()
    log_dispersion = torch.tensor(dispersion).log().requires_grad_()
    counts = torch.tensor([0.0, 3.0, 40.0])

    def log_prob(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return MeanNegativeBinomial(a, b.exp()).log_prob(counts)

    assert torch.autograd.gradcheck(log_prob, (log_mean, log_dispersion), eps=1e-5, atol=1e-4, rtol=1e-4)


@grid
def test_single_precision_comes_close(mean: float, dispersion: float) -> None:
    counts = torch.tensor([0.0, 1.0, 9.0, 300.0, 4000.0])
    exact = distribution(mean, dispersion).log_prob(counts)
    one = MeanNegativeBinomial(torch.tensor(mean).log().float(), torch.tensor(dispersion).float())
    actual = one.log_prob(counts.float())
    assert actual.dtype == torch.float32
    size = torch.lgamma(counts + 1) + counts * 14 + mean  # of the terms that are added
    assert ((actual.double() - exact).abs() <= 1e-6 * (1 + size)).all()


@pytest.mark.float32
@pytest.mark.parametrize("dispersion", [1e-6, 1e6, 1e10])
def test_gradients_are_finite_in_single_precision(dispersion: float) -> None:
    log_mean, step = torch.randn(9, requires_grad=True), torch.tensor(dispersion, requires_grad=True)
    log_prob = MeanNegativeBinomial(log_mean, step).log_prob(torch.arange(9.0))
    assert log_prob.isfinite().all()
    gradients = torch.autograd.grad(log_prob.sum(), (log_mean, step))
    assert all(g.isfinite().all() for g in gradients)


def test_torchs_own_form_loses_what_ours_keeps() -> None:
    """The control: the textbook form in single precision, close to Poisson's."""
    mean, dispersion, count = 12.0, 1e-6, torch.tensor(9.0)
    exact = distribution(mean, dispersion).log_prob(count)
    logits = torch.tensor(mean * dispersion).log().float()
    textbook = torch.distributions.NegativeBinomial(torch.tensor(1 / dispersion).float(), logits=logits)
    assert (textbook.log_prob(count.float()) - exact).abs() > 0.01


@pytest.mark.parametrize("dispersion", [0.01, 0.5, 2.0])
def test_draws_have_the_moments(dispersion: float) -> None:
    one, n = distribution(6.0, dispersion), 40_000
    draws = one.expand((3,)).sample((n,))
    assert draws.shape == (n, 3)
    error = (draws.mean(0) - one.mean) / (one.variance / n).sqrt()
    assert (error.abs() < 4.5).all()
    squares = (draws - one.mean) ** 2
    assert ((squares.mean(0) - one.variance).abs() < 4.5 * squares.std(0) / n**0.5).all()


def test_parameters_broadcast() -> None:
    one = MeanNegativeBinomial(torch.zeros(4, 1, 3), torch.ones(3))
    assert one.batch_shape == (4, 1, 3)
    assert one.expand((4, 2, 3)).mean.shape == (4, 2, 3)
    assert one.log_prob(torch.ones(2, 3)).shape == (4, 2, 3)
