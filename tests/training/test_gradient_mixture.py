"""`mixture.updates=gradient`: components move with the networks, along gradients of the objective of the updates."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from resumed_runs import whole_and_resumed
from test_mixture_ascent import collapsed_bound, meanfield_bound, paper_bound
from test_run import same
from tiny_fits import settings, tiny_samples
from toy_mixtures import KINDS, MAPS, make_mixture, make_problem

from causalpima.inference.run import Run
from causalpima.inference.training.batched import batched_support
from causalpima.inference.training.loop import training_step
from causalpima.inference.training.mixture_updates import log_prior
from causalpima.models.mixture import Covariance, GaussianMixture, TrainableMixture

KAPPA = 0.2
BOUNDS = {"collapsed": collapsed_bound, "meanfield": meanfield_bound, "paper": paper_bound}


def trainable(plain: GaussianMixture) -> TrainableMixture:
    settings = {"pseudo_count": KAPPA, "variance_floor": 1e-4}
    mixture = TrainableMixture(plain.n_cells, plain.latent_dim, plain.covariance_kind, **settings)
    mixture.replace(plain.component_loc, plain.component_scale, plain.component_cell, plain.component_log_share)
    return mixture


def run_of(**changes: Any) -> Run:
    return Run(tiny_samples(60), settings(mixture__updates="gradient", **changes))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cell", MAPS.values(), ids=MAPS.keys())
def test_the_declared_prior_is_that_of_the_closed_form_up_to_a_constant(cell: list[int], kind: Covariance) -> None:
    one, other = make_mixture(cell, kind), make_mixture(cell, kind)
    ours = trainable(one).log_prior() - trainable(other).log_prior()
    torch.testing.assert_close(ours, log_prior(one, KAPPA) - log_prior(other, KAPPA))


@pytest.mark.parametrize("objective", BOUNDS)
@pytest.mark.parametrize("kind", KINDS)
def test_small_steps_ascend_the_bound(kind: Covariance, objective: str) -> None:
    mixture, problem = trainable(make_mixture(MAPS["several"], kind)), make_problem(3)
    optimizer, values = torch.optim.SGD(mixture.parameters(), lr=1e-4), []
    for _ in range(20):
        optimizer.zero_grad()
        value = BOUNDS[objective](problem, mixture) + mixture.log_prior()
        (-value).backward()
        optimizer.step()
        values.append(float(value.detach()))
    assert all(later > earlier for earlier, later in itertools.pairwise(values))


@pytest.mark.parametrize("objective", BOUNDS)
def test_a_step_follows_the_gradient_of_the_bound_and_the_prior(objective: str) -> None:
    run = run_of(objective=objective, mixture__gaussians="several")
    run.train(2)
    state, task = run.state, run.task
    batch = next(task.training.batches(64))
    state.modules.train()
    state.model.graph.draw_noise(0.0)
    names = [name for name, p in state.model.mixture.named_parameters() if p.requires_grad]
    parameters = [dict(state.model.mixture.named_parameters())[name] for name in names]

    def loss() -> torch.Tensor:
        torch.manual_seed(3)
        bound = task.elbo.evaluate(state.model, state.guide, batch).elbo
        return -(bound + state.model.graph.log_prior() + state.model.mixture.log_prior()) / batch.n_samples

    expected = torch.autograd.grad(loss(), parameters)
    torch.manual_seed(3)
    training_step(state, task.elbo, batch)
    for parameter, gradient in zip(parameters, expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
    assert all(bool(gradient.any()) for gradient in expected)


def test_components_move_in_every_step_and_hold_still_without_a_rate() -> None:
    moving, still = run_of(), run_of(training__learning_rate=1e-30)
    for run in (moving, still):
        run.train(2)  # pretraining, and the first epoch of joint training
        before = {name: value.detach().clone() for name, value in run.state.model.mixture.named_parameters()}
        run.train(3)
        after = dict(run.state.model.mixture.named_parameters())
        assert all(torch.equal(after[name], value) == (run is still) for name, value in before.items())


def test_nothing_is_reseeded_or_set_in_closed_form(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("no closed form")

    run = run_of()
    run.train(2)
    monkeypatch.setattr("causalpima.inference.training.clustering.apply_update", never)
    monkeypatch.setattr("causalpima.inference.training.clustering.reseed", never)
    run.train(3)
    assert [record["reseeded"] for record in run.state.history if record["phase"] == "training"] == [0, 0]


@pytest.mark.parametrize("graph", ["hodge", "exact"])
def test_p_of_n_is_updated_as_ever(graph: str) -> None:
    run = run_of(model__graph=graph)
    run.train(2)
    before = run.state.model.graph.log_joint().detach().clone()
    run.train(3)
    assert not torch.equal(run.state.model.graph.log_joint(), before)


@pytest.mark.parametrize("epoch", [0, 1, 2, 3])
def test_a_resumed_run_is_the_same_bit_for_bit(tmp_path: Path, epoch: int) -> None:
    config = run_of(training__epochs=3).config
    whole, resumed = whole_and_resumed(tiny_samples(60), config, epoch, tmp_path)
    assert same(resumed.finish(), whole.finish())


def test_the_optimiser_follows_new_components() -> None:
    run = run_of()
    run.train(2)
    state = run.state
    group = next(group for group in state.optimizer.param_groups if group.get("part") == "mixture")
    assert {id(p) for p in group["params"]} == {id(p) for p in state.model.mixture.parameters()}
    assert group["lr"] == run.config.training.learning_rate
    known = {id(p) for group in state.optimizer.param_groups for p in group["params"]}
    assert {id(p) for p in state.optimizer.state} <= known, "no momentum of components that are no more"


def test_under_a_mask_every_block_moves() -> None:
    run = run_of(mask={"spectrum": ("A",), "curve": ("A", "B")})
    run.train(2)
    before = run.state.model.mixture.component_loc.detach().clone()
    run.train(3)
    assert bool((run.state.model.mixture.component_loc != before).all())
    assert run.finish().status in ("ok", "collapsed")


def test_starts_of_it_are_not_batched_and_the_reason_is_said() -> None:
    run = run_of()
    assert "gradients" in str(batched_support(run.config, run.modalities))


def test_a_prior_without_cells_refuses_it() -> None:
    with pytest.raises(ValueError, match=re.escape("mixture.updates: expected em with a prior without cells, got")):
        settings(mixture__updates="gradient", model__prior="standard")


def test_a_mixture_without_parameters_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causalpima.inference.training.components._gaussians", lambda _: GaussianMixture)
    with pytest.raises(ValueError, match=r"mixture\.updates: expected em with model\.prior dag"):
        run_of()
