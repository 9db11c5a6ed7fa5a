"""Updates of the blocks ascend the objective that they belong to, with absent modalities; each block apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from causalpima.inference.objectives import closed_form
from causalpima.inference.objectives.closed_form import Components
from causalpima.inference.training.mixture_updates import (
    BlockSums,
    apply_block_update,
    apply_update,
    block_moments,
    log_prior,
    moments,
)
from causalpima.models.batch import Batch
from causalpima.models.block_mixture import BlockMixture
from causalpima.models.mixture import Covariance, GaussianMixture

OUTCOMES, VISIBLE, LATENT, N = (2, 2, 2), {"a": (0, 1), "b": (1, 2), "c": (2,)}, 2, 40
J = LATENT * len(VISIBLE)


class Problem(NamedTuple):
    """Everything but the mixture, held fixed."""

    batch: Batch
    q_loc: Tensor
    q_scale: Tensor
    draw: Tensor
    log_joint: Tensor
    shared: Tensor
    per_cell: Tensor


def make_problem() -> Problem:
    present = {"a": torch.rand(N) < 0.6, "b": torch.rand(N) < 0.7, "c": None}
    batch = Batch({name: torch.zeros(N, 1) for name in VISIBLE}, present, torch.arange(N), N)
    q_loc, q_scale = 2.0 * torch.randn(N, J), 0.1 + 1.5 * torch.rand(N, J)
    draw = q_loc + q_scale * torch.randn(N, J)
    return Problem(batch, q_loc, q_scale, draw, torch.log_softmax(torch.randn(8), 0), torch.randn(N), torch.randn(N, 8))


def make_mixture(kind: Covariance) -> BlockMixture:
    mixture = BlockMixture(OUTCOMES, VISIBLE, LATENT, kind)
    for name in VISIBLE:
        block = mixture.block(name)
        n, scale = block.n_cells, 0.8 + torch.rand(block.n_cells, LATENT)
        scales = scale if kind == "diagonal" else torch.diag_embed(scale)
        block.replace(2.0 * torch.randn(n, LATENT), scales, torch.arange(n), torch.zeros(n))
    return mixture


def components(problem: Problem, mixture: BlockMixture) -> Components:
    return Components(problem.log_joint, mixture.component_loc, mixture.component_scale, mixture.component_cell)


def meanfield(p: Problem, mixture: BlockMixture) -> tuple[Tensor, BlockSums]:
    """L_ii(r*) with one decoder on Z and one on N alone, and the sums of its update."""
    parts, present = components(p, mixture), mixture.present(p.batch)
    likelihoods = {"shared": p.shared, "latent_free": p.per_cell}
    bound = closed_form.meanfield(p.q_loc, p.q_scale, parts, likelihoods, p.per_cell, present).total.sum()
    log_r = closed_form.geometric_log_responsibilities(p.q_loc, p.q_scale, parts, p.per_cell, present)
    return bound, block_moments(mixture, p.batch, log_r.exp(), p.q_loc, p.q_scale.square())


def collapsed(p: Problem, mixture: BlockMixture) -> tuple[Tensor, BlockSums]:
    """The collapsed bound at the draw, and the sums of its update."""
    parts, present = components(p, mixture), mixture.present(p.batch)
    likelihoods = {"shared": p.shared, "per_cell": p.per_cell}
    bound = closed_form.collapsed(p.draw, p.q_loc, p.q_scale, parts, likelihoods, present).total.sum()
    r = torch.softmax(p.log_joint + mixture.log_density(p.draw, present) + p.per_cell, -1)
    return bound, block_moments(mixture, p.batch, r, p.draw)


def with_absent_samples(p: Problem, mixture: BlockMixture) -> tuple[Tensor, BlockSums]:
    """A mistake: filler of absent modalities, here far away, takes part in the update."""
    bound, _ = collapsed(p, mixture)
    present = mixture.present(p.batch)
    assert present is not None
    filled = torch.where(present, p.draw, p.draw + 10.0)
    complete = Batch(p.batch.values, dict.fromkeys(VISIBLE), p.batch.index, N)
    r = torch.softmax(p.log_joint + mixture.log_density(p.draw, present) + p.per_cell, -1)
    return bound, block_moments(mixture, complete, r, filled)


Objective = Callable[[Problem, BlockMixture], tuple[Tensor, BlockSums]]


def changes(objective: Objective, kind: Covariance, pseudo_count: float, floor: float, seed: int) -> Tensor:
    """Changes of bound plus log-prior over six updates."""
    torch.manual_seed(seed)
    mixture, problem, values = make_mixture(kind), make_problem(), []
    for _ in range(7):
        bound, sums = objective(problem, mixture)
        priors = [log_prior(mixture.block(name), pseudo_count) for name in VISIBLE]
        values.append(bound + sum(priors, torch.zeros(())))
        apply_block_update(mixture, sums, pseudo_count, floor)
    return torch.stack(values).diff()


@pytest.mark.parametrize("objective", [meanfield, collapsed])
@pytest.mark.parametrize("kind", ["diagonal", "full"])
@pytest.mark.parametrize("pseudo_count", [1e-3, 1.0])
def test_updates_never_lower_the_objective_that_they_belong_to(
    objective: Objective, kind: Covariance, pseudo_count: float
) -> None:
    for seed in range(10):
        found = changes(objective, kind, pseudo_count, 1e-4, seed)
        assert found.min() > -1e-9
        assert found[0] > 1e-3, "there was something to gain"


def test_absent_samples_in_the_sums_lower_it() -> None:
    """Negative control of the law above."""
    assert min(float(changes(with_absent_samples, "full", 1e-3, 1e-4, seed).min()) for seed in range(10)) < -1e-2


def test_a_block_is_updated_as_a_mixture_over_its_levels_from_the_samples_that_have_it() -> None:
    torch.manual_seed(0)
    mixture, problem = make_mixture("full"), make_problem()
    r = torch.softmax(torch.randn(N, 8), -1)
    sums = block_moments(mixture, problem.batch, r, problem.draw)
    torch.testing.assert_close(sums.count, r.sum(0).double())
    apply_block_update(mixture, sums, 1e-3, 1e-4)
    rows = problem.batch.has("b")
    plain = GaussianMixture(4, LATENT, "full")
    of_levels = r.reshape(N, 2, 4).sum(1)[rows]
    apply_update(plain, moments(of_levels, problem.draw[rows, LATENT : 2 * LATENT]), 1e-3, 1e-4)
    torch.testing.assert_close(mixture.block("b").component_loc, plain.component_loc)
    torch.testing.assert_close(mixture.block("b").component_scale, plain.component_scale)


def test_sums_of_two_halves_are_those_of_the_whole() -> None:
    torch.manual_seed(0)
    mixture, problem = make_mixture("full"), make_problem()
    r = torch.softmax(torch.randn(N, 8), -1)
    whole = block_moments(mixture, problem.batch, r, problem.draw, problem.q_scale.square())
    halves = [
        block_moments(mixture, problem.batch.at(rows), r[rows], problem.draw[rows], problem.q_scale[rows].square())
        for rows in torch.arange(N).split(25)
    ]
    both = halves[0].plus(halves[1])
    torch.testing.assert_close(both.count, whole.count)
    for name in VISIBLE:
        for one, other in zip(both.blocks[name], whole.blocks[name], strict=True):
            torch.testing.assert_close(one, other)
