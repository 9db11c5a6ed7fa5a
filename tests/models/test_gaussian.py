"""Gaussian log-densities and expectations against quadrature and torch's own distributions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal, Normal

from causalpima.models import gaussian

KINDS = ["diagonal", "full"]


def components(kind: str, *shape: int) -> tuple[Tensor, Tensor]:
    """Random loc `[*shape]` and scale `[*shape]` or lower-triangular `[*shape, J]`, nowhere symmetric."""
    loc, scale = torch.randn(*shape), 0.3 + torch.rand(*shape)
    if kind == "diagonal":
        return loc, scale
    return loc, torch.diag_embed(scale) + torch.tril(torch.randn(*shape, shape[-1]), -1)


def reference(loc: Tensor, scale: Tensor) -> MultivariateNormal:
    return MultivariateNormal(loc, scale_tril=scale if scale.dim() > loc.dim() else torch.diag_embed(scale))


def quadrature(q_loc: Tensor, q_scale: Tensor, order: int = 12) -> tuple[Tensor, Tensor]:
    """Gauss-Hermite nodes `[order^J, *q.shape]` and weights `[order^J]` for expectations under q."""
    nodes, weights = (torch.from_numpy(part) for part in np.polynomial.hermite_e.hermegauss(order))
    n_dims = q_loc.shape[-1]
    grid = torch.cartesian_prod(*[nodes] * n_dims).reshape(-1, n_dims)
    weight = torch.cartesian_prod(*[weights / weights.sum()] * n_dims).reshape(-1, n_dims).prod(-1)
    return q_loc + q_scale * grid.reshape(-1, *[1] * (q_loc.dim() - 1), n_dims), weight


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("latent_dim", [1, 2, 3])
def test_log_density_is_that_of_torch(kind: str, latent_dim: int) -> None:
    loc, scale = components(kind, 5, latent_dim)
    value = torch.randn(7, 1, latent_dim)
    ours = gaussian.log_density(value, loc, scale)
    assert ours.shape == (7, 5)
    torch.testing.assert_close(ours, reference(loc, scale).log_prob(value), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("latent_dim", [1, 2, 3])
def test_expected_log_density_is_the_integral(kind: str, latent_dim: int) -> None:
    loc, scale = components(kind, 4, latent_dim)
    q_loc, q_scale = components("diagonal", 3, 1, latent_dim)
    points, weight = quadrature(q_loc, q_scale)
    integral = torch.einsum("p,pbk->bk", weight, gaussian.log_density(points, loc, scale))
    expected = gaussian.expected_log_density(q_loc, q_scale, loc, scale)
    assert expected.shape == (3, 4)
    torch.testing.assert_close(expected, integral, rtol=1e-11, atol=1e-11)
    at_mean = gaussian.log_density(q_loc, loc, scale)
    assert (at_mean - expected).min() > 1e-3, "the spread of q costs something"


@pytest.mark.parametrize("latent_dim", [1, 2, 3])
def test_expected_log_density_of_a_full_covariance_is_the_diagonal_one_where_it_is_diagonal(latent_dim: int) -> None:
    loc, scale = components("diagonal", 4, latent_dim)
    q_loc, q_scale = components("diagonal", 3, 1, latent_dim)
    diagonal = gaussian.expected_log_density(q_loc, q_scale, loc, scale)
    full = gaussian.expected_log_density(q_loc, q_scale, loc, torch.diag_embed(scale))
    torch.testing.assert_close(full, diagonal)


@pytest.mark.parametrize("kind", KINDS)
def test_expectation_with_batches_of_components_as_under_enumeration(kind: str) -> None:
    loc, scale = components(kind, 4, 1, 2)
    q_loc, q_scale = components("diagonal", 6, 2)
    ours = gaussian.expected_log_density(q_loc, q_scale, loc, scale)
    one_by_one = [gaussian.expected_log_density(q_loc, q_scale, loc[c, 0], scale[c, 0]) for c in range(4)]
    torch.testing.assert_close(ours, torch.stack(one_by_one))


@pytest.mark.parametrize("latent_dim", [1, 2, 3])
def test_entropy_is_minus_the_expected_log_density_of_itself(latent_dim: int) -> None:
    q_loc, q_scale = components("diagonal", 5, latent_dim)
    points, weight = quadrature(q_loc, q_scale)
    integral = -torch.einsum("p,pb->b", weight, gaussian.log_density(points, q_loc, q_scale))
    torch.testing.assert_close(gaussian.entropy(q_scale), integral, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(gaussian.entropy(q_scale), Normal(q_loc, q_scale).entropy().sum(-1))


@pytest.mark.parametrize("kind", KINDS)
def test_covariance_is_that_of_torch(kind: str) -> None:
    loc, scale = components(kind, 4, 3)
    torch.testing.assert_close(gaussian.covariance(scale), reference(loc, scale).covariance_matrix)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind: str) -> None:
    inputs = [*components("diagonal", 3, 1, 2), *components(kind, 4, 2)]
    leaves = [part.requires_grad_() for part in inputs]
    assert torch.autograd.gradcheck(gaussian.expected_log_density, leaves)


@pytest.mark.parametrize("kind", KINDS)
def test_far_and_narrow_components_stay_finite_in_float32(kind: str) -> None:
    loc, scale = (part.float() for part in components(kind, 4, 2))
    value = gaussian.expected_log_density(
        torch.full((1, 2), 1e4, dtype=torch.float32), torch.ones(1, 2, dtype=torch.float32), loc, 1e-3 * scale
    )
    assert value.isfinite().all()
    assert (value < -1e12).all()
