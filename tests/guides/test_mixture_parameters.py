"""A mixture as q(Z | X): against torch.distributions, quadrature and counting."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

from causalpima.guides.encoders import GaussianParameters
from causalpima.guides.graph import MixtureNormal, MixtureParameters

BATCH, PARTS, LATENT = 5, 3, 2


def make(batch: int = BATCH, latent: int = LATENT) -> MixtureParameters:
    """Equal weights over one, two or three Gaussians."""
    there = torch.tensor([[1, 0, 0], [0, 1, 1], [1, 1, 1], [1, 0, 1], [0, 0, 1]])[:batch].double()
    weight = there / there.sum(-1, keepdim=True)
    return MixtureParameters(torch.randn(batch, PARTS, latent), torch.randn(batch, PARTS, latent), weight.log())


def by_torch(mixture: MixtureParameters) -> MixtureSameFamily:
    parts = Independent(Normal(mixture.locs, (0.5 * mixture.log_variances).exp()), 1)
    return MixtureSameFamily(Categorical(probs=mixture.log_weights.exp()), parts)


def test_moments_and_density_are_those_of_torch() -> None:
    mixture = make()
    expected = by_torch(mixture)
    torch.testing.assert_close(mixture.loc, expected.mean)
    torch.testing.assert_close(mixture.scale.square(), expected.variance)
    torch.testing.assert_close(mixture.log_variance.exp(), expected.variance)
    z = torch.randn(4, BATCH, LATENT)
    torch.testing.assert_close(mixture.log_density(z), expected.log_prob(z))
    torch.testing.assert_close(mixture.entropy_at(z[0]), -expected.log_prob(z[0]))


def test_one_part_is_a_gaussian() -> None:
    one = GaussianParameters(torch.randn(BATCH, LATENT), torch.randn(BATCH, LATENT))
    mixture = MixtureParameters(one.loc.unsqueeze(1), one.log_variance.unsqueeze(1), torch.zeros(BATCH, 1))
    noise = torch.randn(4, BATCH, LATENT)
    for name in ("loc", "log_variance", "scale"):
        torch.testing.assert_close(getattr(mixture, name), getattr(one, name))
    torch.testing.assert_close(mixture.draw(noise), one.draw(noise))
    torch.testing.assert_close(mixture.log_density(noise), one.log_density(noise))
    (weight, part), *others = mixture.parts()
    assert not others
    torch.testing.assert_close((weight, *part), (torch.ones(BATCH), *one))
    torch.testing.assert_close(one.parts()[0][0], torch.ones(BATCH))


def test_draws_follow_the_weights_and_never_what_has_none() -> None:
    """Along an even grid of numbers every part has its share to the last draw."""
    mixture, n = make(), 600
    uniform = (torch.arange(n).double() / n).unsqueeze(-1)
    z = mixture.draw(torch.zeros(n, 1, LATENT), uniform)
    assert z.shape == (n, BATCH, LATENT)
    for row in range(BATCH):
        share = (z[:, row, None] == mixture.locs[row]).all(-1).double().mean(0)
        torch.testing.assert_close(share, mixture.log_weights[row].exp(), rtol=0, atol=1 / n)
    last = mixture.draw(torch.zeros(BATCH, LATENT), torch.full((BATCH,), np.nextafter(1.0, 0.0)))
    assert all((last[row] == mixture.locs[row, 2 if row else 0]).all() for row in range(BATCH))


def test_one_draw_is_of_the_global_generator() -> None:
    mixture = make()
    torch.manual_seed(3)
    z = mixture.draw()
    torch.manual_seed(3)
    torch.testing.assert_close(z, mixture.draw(torch.randn(BATCH, LATENT), torch.rand(BATCH)))


def test_samples_have_the_moments_and_the_distribution_of_the_parts() -> None:
    mixture, n = make(), 40000
    z = MixtureNormal(mixture).rsample((n,))
    error = (z.mean(0) - mixture.loc).abs() / (mixture.scale / math.sqrt(n))
    assert error.max() < 4.5
    share_below = (z < 0.3).double().mean(0)
    normal = Normal(mixture.locs, (0.5 * mixture.log_variances).exp())
    expected = (mixture.log_weights.exp().unsqueeze(-1) * normal.cdf(torch.tensor(0.3))).sum(1)
    assert ((share_below - expected).abs() / (expected * (1 - expected) / n).sqrt()).max() < 4.5


def grid() -> tuple[Tensor, float]:
    z = torch.linspace(-14, 14, 8001)
    return z, float(z[1] - z[0])


def test_the_density_is_normalised_and_the_entropy_is_unbiased() -> None:
    """By quadrature over z, and over the noise of every part."""
    mixture = make(latent=1)
    z, step = grid()
    log_q = mixture.log_density(z[:, None, None])
    torch.testing.assert_close(log_q.exp().sum(0) * step, torch.ones(BATCH), rtol=0, atol=1e-8)
    entropy = -(log_q.exp() * log_q).sum(0) * step
    points, weights = np.polynomial.hermite_e.hermegauss(120)
    noise, weight = torch.from_numpy(points), torch.from_numpy(weights / math.sqrt(2 * math.pi))
    mean = torch.zeros(BATCH)
    for share, one in mixture.parts():
        value = mixture.entropy_at(one.draw(noise[:, None, None]))
        mean = mean + share * (weight @ value)
    torch.testing.assert_close(mean, entropy, rtol=0, atol=2e-5)


def test_gradients_along_the_drawn_part_are_those_of_the_expectation() -> None:
    """E over parts and noise of pathwise gradients of `f(z) - log q(z)` against the gradient of quadrature over z."""
    mixture = MixtureParameters(*(part.requires_grad_(i < 2) for i, part in enumerate(make(latent=1))))
    leaves = mixture[:2]
    z, step = grid()
    log_q = mixture.log_density(z[:, None, None])
    exact = torch.autograd.grad(((torch.sin(z)[:, None] - log_q) * log_q.exp()).sum() * step, leaves)
    points, weights = np.polynomial.hermite_e.hermegauss(120)
    noise, weight = torch.from_numpy(points), torch.from_numpy(weights / math.sqrt(2 * math.pi))
    total = torch.zeros(())
    for part in range(PARTS):
        share = mixture.log_weights.exp()
        uniform = (share.cumsum(-1)[:, part] - share[:, part] / 2).clamp(max=0.999)  # the middle of its share
        drawn = mixture.draw(noise[:, None, None], uniform)
        value = torch.sin(drawn).squeeze(-1) - mixture.log_density(drawn)
        total = total + ((weight @ value) * share[:, part]).sum()
    pathwise = torch.autograd.grad(total, leaves)
    torch.testing.assert_close(pathwise, exact, rtol=0, atol=5e-5)
    assert all(grad[0, 1:].count_nonzero() == 0 for grad in pathwise)


def test_as_a_distribution_it_expands_and_keeps_its_density() -> None:
    mixture = make()
    distribution = MixtureNormal(mixture).expand((4, BATCH))
    assert (distribution.batch_shape, distribution.event_shape) == ((4, BATCH), (LATENT,))
    z = distribution.sample()
    assert z.shape == (4, BATCH, LATENT)
    torch.testing.assert_close(distribution.log_prob(z), by_torch(mixture).log_prob(z))
    torch.testing.assert_close(distribution.mean, by_torch(mixture).mean.expand(4, BATCH, LATENT))
    assert distribution.log_prob(z[0]).shape == (4, BATCH)


@pytest.mark.parametrize("present", [None, torch.tensor([True, False])])
def test_dimensions_that_are_not_present_are_marginalised(present: Tensor | None) -> None:
    mixture = make()
    z, kept = torch.randn(BATCH, LATENT), [0, 1] if present is None else [0]
    marginal = MixtureParameters(mixture.locs[..., kept], mixture.log_variances[..., kept], mixture.log_weights)
    mask = None if present is None else present.expand(BATCH, LATENT)
    torch.testing.assert_close(mixture.log_density(z, mask), marginal.log_density(z[:, kept]))
