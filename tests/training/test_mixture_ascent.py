"""Mixture updates ascend the objective that they belong to, and only that one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import settings as at_most
from hypothesis import strategies as st
from torch import Tensor
from toy_mixtures import KINDS, MAPS, Problem, make_mixture, make_problem

from causalpima.inference.objectives import closed_form
from causalpima.inference.training.mixture_updates import MixtureSums, apply_update, log_prior, moments
from causalpima.models.mixture import Covariance, GaussianMixture

Objective = Callable[[Problem, GaussianMixture], Tensor]


def meanfield_bound(problem: Problem, mixture: GaussianMixture) -> Tensor:
    """L_ii(r*), with one decoder on Z and one on N alone."""
    likelihoods = {"shared": problem.shared, "latent_free": problem.per_cell}
    parts = problem.components(mixture)
    return closed_form.meanfield(problem.q_loc, problem.q_scale, parts, likelihoods, problem.per_cell).total.sum()


def collapsed_bound(problem: Problem, mixture: GaussianMixture) -> Tensor:
    """The collapsed bound at the draw, with one decoder on Z and one per cell."""
    likelihoods = {"shared": problem.shared, "per_cell": problem.per_cell}
    parts = problem.components(mixture)
    return closed_form.collapsed(problem.draw, problem.q_loc, problem.q_scale, parts, likelihoods).total.sum()


def paper_bound(problem: Problem, mixture: GaussianMixture) -> Tensor:
    """The paper's objective at the draw."""
    parts = problem.components(mixture)
    return closed_form.paper(
        problem.draw, problem.q_loc, problem.q_scale, parts, {"shared": problem.shared}
    ).total.sum()


def meanfield_sums(problem: Problem, mixture: GaussianMixture) -> MixtureSums:
    """Under r*: moments of q(Z|X)."""
    parts = problem.components(mixture)
    log_r = closed_form.geometric_log_responsibilities(problem.q_loc, problem.q_scale, parts, problem.per_cell)
    return moments(log_r.exp(), problem.q_loc, problem.q_scale.square())


def collapsed_sums(problem: Problem, mixture: GaussianMixture) -> MixtureSums:
    """Under p(N | z, X): moments of the draw."""
    parts = problem.components(mixture)
    logits = parts.log_weight + mixture.log_density(problem.draw) + problem.per_cell[:, parts.cell]
    return moments(torch.softmax(logits, -1), problem.draw)


def paper_sums(problem: Problem, mixture: GaussianMixture) -> MixtureSums:
    """Under γ at the draw: moments of q(Z|X)."""
    logits = problem.components(mixture).log_weight + mixture.log_density(problem.draw)
    return moments(torch.softmax(logits, -1), problem.q_loc, problem.q_scale.square())


def sums_without_variance(problem: Problem, mixture: GaussianMixture) -> MixtureSums:
    """A mistake: r* with the moments of the means of q(Z|X) alone."""
    return meanfield_sums(problem._replace(q_scale=1e-6 * problem.q_scale), mixture)


class Settings(NamedTuple):
    """κ and the floor of an update."""

    pseudo_count: float
    floor: float


def steps(
    bound: Objective,
    sums: Callable[[Problem, GaussianMixture], MixtureSums],
    problem: Problem,
    mixture: GaussianMixture,
    settings: Settings,
    n_steps: int,
) -> Tensor:
    """Changes of bound plus log-prior over repeated updates."""
    values = []
    for _ in range(n_steps + 1):
        values.append(bound(problem, mixture) + log_prior(mixture, settings.pseudo_count))
        apply_update(mixture, sums(problem, mixture), *settings)
    return torch.stack(values).diff()


CASES = {
    "cell": st.sampled_from(list(MAPS.values())),
    "kind": st.sampled_from(KINDS),
    "latent_dim": st.integers(1, 3),
    # From nearly no prior to one that outweighs small components, which then are kept; the floors are below, around
    # and at the variances that the mixture starts with.
    "pseudo_count": st.sampled_from([1e-3, 0.1, 1.0, 3.0]),
    "floor": st.sampled_from([1e-4, 0.3, 0.6]),
    "seed": st.integers(0, 10_000),
}


@at_most(max_examples=25)
@given(**CASES)
def test_meanfield_updates_never_lower_the_meanfield_bound(
    cell: list[int], kind: Covariance, latent_dim: int, pseudo_count: float, floor: float, seed: int
) -> None:
    torch.manual_seed(seed)
    mixture, problem = make_mixture(cell, kind, latent_dim), make_problem(3, latent_dim=latent_dim)
    changes = steps(meanfield_bound, meanfield_sums, problem, mixture, Settings(pseudo_count, floor), 5)
    assert changes.min() > -1e-9
    assert changes[0] > 1e-3, "there was something to gain"


@at_most(max_examples=25)
@given(**CASES)
def test_collapsed_updates_never_lower_the_collapsed_bound_of_their_draw(
    cell: list[int], kind: Covariance, latent_dim: int, pseudo_count: float, floor: float, seed: int
) -> None:
    torch.manual_seed(seed)
    mixture, problem = make_mixture(cell, kind, latent_dim), make_problem(3, latent_dim=latent_dim)
    changes = steps(collapsed_bound, collapsed_sums, problem, mixture, Settings(pseudo_count, floor), 5)
    assert changes.min() > -1e-9
    assert changes[0] > 1e-3, "there was something to gain"


def worst_change(bound: Objective, sums: Callable[[Problem, GaussianMixture], MixtureSums]) -> float:
    """The deepest fall of a bound by a single update, in 30 random problems."""
    worst = torch.tensor(0.0)
    for seed in range(30):
        torch.manual_seed(seed)
        mixture, problem = make_mixture(MAPS["one each"], "diagonal"), make_problem(3)
        worst = torch.minimum(worst, steps(bound, sums, problem, mixture, Settings(1e-3, 1e-4), 3).min())
    return float(worst)


@pytest.mark.parametrize(
    ("bound", "sums"),
    [(paper_bound, paper_sums), (collapsed_bound, meanfield_sums), (meanfield_bound, sums_without_variance)],
    ids=["the paper's own", "r* on the collapsed bound", "r* without the variance of q"],
)
def test_no_other_update_is_safe(bound: Objective, sums: Callable[[Problem, GaussianMixture], MixtureSums]) -> None:
    """Negative controls of the two laws above; the first is what the paper does, which has no guarantee."""
    assert worst_change(bound, sums) < -1e-2


@pytest.mark.parametrize(
    ("bound", "sums"), [(meanfield_bound, meanfield_sums), (collapsed_bound, collapsed_sums)], ids=["r*", "draws"]
)
def test_the_search_for_a_fall_finds_none_where_it_is_ruled_out(
    bound: Objective, sums: Callable[[Problem, GaussianMixture], MixtureSums]
) -> None:
    assert worst_change(bound, sums) > -1e-9
