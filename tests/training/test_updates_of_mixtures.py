"""Updates of the clusters where q(Z | X) is a mixture: moments of all its Gaussians, and the ascent of the bound."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import Tensor
from toy_mixtures import KINDS, MAPS, Problem, make_mixture, make_problem

from causalpima.guides.graph import MixtureParameters
from causalpima.inference.training.mixture_updates import (
    MixtureSums,
    apply_update,
    log_prior,
    moments,
    posterior_moments,
)
from causalpima.models import gaussian
from causalpima.models.mixture import Covariance, GaussianMixture

N, PARTS, LATENT = 12, 3, 2
KAPPA, FLOOR = 0.3, 1e-6


def make_posterior() -> MixtureParameters:
    """Gaussians apart from each other, some without weight."""
    there = torch.ones(N, PARTS)
    there[:4, 1] = there[4:6, 0] = 0
    weight = there / there.sum(-1, keepdim=True)
    return MixtureParameters(3.0 * torch.randn(N, PARTS, LATENT), torch.randn(N, PARTS, LATENT) - 1, weight.log())


def expected_log_density(q: MixtureParameters, mixture: GaussianMixture) -> Tensor:
    """E_q log N_k(z), `[n, K]`, one Gaussian after the other."""
    total = torch.zeros(N, mixture.n_components)
    for s in range(PARTS):
        loc, scale = q.locs[:, s, None], (0.5 * q.log_variances[:, s, None]).exp()
        of_part = gaussian.expected_log_density(loc, scale, mixture.component_loc, mixture.component_scale)
        total = total + q.log_weights[:, s, None].exp() * of_part
    return total


def best_r(problem: Problem, q: MixtureParameters, mixture: GaussianMixture) -> Tensor:
    """log r*, with one decoder on N alone."""
    parts = problem.components(mixture)
    logits = parts.log_weight + expected_log_density(q, mixture) + problem.per_cell[:, parts.cell]
    return torch.log_softmax(logits, -1)


def bound(problem: Problem, q: MixtureParameters, mixture: GaussianMixture, log_r: Tensor) -> float:
    """The mean-field bound at r plus the declared log-prior, without the entropy of q(Z|X), which does not change."""
    parts = problem.components(mixture)
    inside = parts.log_weight + expected_log_density(q, mixture) + problem.per_cell[:, parts.cell] - log_r
    return float((log_r.exp() * inside).sum() + log_prior(mixture, KAPPA))


def test_moments_are_those_of_all_gaussians_by_hand() -> None:
    q, r = make_posterior(), torch.rand(N, 4)
    sums = posterior_moments(r, q)
    count, first, second = torch.zeros(4), torch.zeros(4, LATENT), torch.zeros(4, LATENT, LATENT)
    for d in range(N):
        for s in range(PARTS):
            weight = r[d] * q.log_weights[d, s].exp()
            loc, variance = q.locs[d, s], q.log_variances[d, s].exp()
            count, first = count + weight, first + weight[:, None] * loc
            second = second + weight[:, None, None] * (torch.outer(loc, loc) + torch.diag(variance))
    torch.testing.assert_close(tuple(sums), (count, first, second))
    torch.testing.assert_close(sums.count, r.sum(0))
    torch.testing.assert_close(sums.first, r.T @ q.loc)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cells", list(MAPS.values()), ids=list(MAPS))
def test_updates_ascend_the_bound_of_the_mixture(cells: list[int], kind: Covariance) -> None:
    mixture, problem, q = make_mixture(cells, kind), make_problem(max(cells) + 1, N), make_posterior()
    values = []
    for _ in range(6):
        log_r = best_r(problem, q, mixture)
        before = bound(problem, q, mixture, log_r)
        apply_update(mixture, posterior_moments(log_r.exp(), q), KAPPA, FLOOR)
        values += [before, bound(problem, q, mixture, log_r)]
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(values))
    assert values[1] > values[0]


@pytest.mark.parametrize("wrong", ["diagonal of the whole", "means alone"])
def test_other_moments_end_lower(wrong: str) -> None:
    """The covariance between the Gaussians of q(Z|X) is no diagonal, and counts."""
    mixture, problem, q = make_mixture([0, 1, 2], "full"), make_problem(3, N), make_posterior()
    q = q._replace(locs=q.locs[..., :1].expand(-1, -1, LATENT))  # along a line
    log_r = best_r(problem, q, mixture)
    variance = q.log_variance.exp() if wrong == "diagonal of the whole" else None
    found: list[float] = []
    for sums in (posterior_moments(log_r.exp(), q), moments(log_r.exp(), q.loc, variance)):
        assert isinstance(sums, MixtureSums)
        apply_update(mixture, sums, KAPPA, FLOOR)
        found.append(bound(problem, q, mixture, log_r))
    assert found[0] > found[1] + 0.1
