"""One epoch: its steps, its record, its updates, and evaluation that leaves everything as it was."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, cast

import pytest
import torch
from tiny_fits import settings, tiny_samples

from causalpima.inference.objectives.closed_form import ELBOTerms
from causalpima.inference.run import Run
from causalpima.inference.training import loop as epochs
from causalpima.inference.training.loop import Tally, evaluate, pretraining_step, training_step
from causalpima.inference.training.state import DivergedError
from causalpima.models.decoders.base import DecoderVariance
from causalpima.models.graph.hodge import HodgeGraph


def terms(value: float, n: int) -> ELBOTerms:
    full = torch.full((n,), value)
    return ELBOTerms({"x": full}, full * 2, full * 3, full * 4, full * 5)


def test_a_tally_is_a_mean_over_samples_not_over_batches() -> None:
    tally = Tally()
    tally.add(terms(1.0, 3), 3)
    tally.add(terms(5.0, 1), 1)
    assert tally.means() == {
        "reconstruction/x": 2, "cells": 4, "latent": 6, "cell_entropy": 8, "latent_entropy": 10
    }  # fmt: skip
    assert tally.objective() == 30


@pytest.mark.parametrize(
    ("n_steps", "n_updates", "expected"),
    [(6, 0, set()), (6, 1, {6}), (6, 3, {2, 4, 6}), (7, 2, {4, 7}), (1, 3, {1}), (2, 5, {1, 2})],
)
def test_updates_are_spread_and_end_with_the_epoch(n_steps: int, n_updates: int, expected: set[int]) -> None:
    assert epochs.update_steps(n_steps, n_updates) == expected


@pytest.mark.parametrize(("n_updates", "expected"), [(0, []), (1, [3]), (3, [1, 2, 3])])
def test_the_mixture_is_updated_after_these_steps(
    monkeypatch: pytest.MonkeyPatch, n_updates: int, expected: list[int]
) -> None:
    steps: list[str] = []

    def update(*_: object) -> list[int]:
        steps.append("update")
        return [4, 2]

    def step(*_: object) -> ELBOTerms:
        steps.append("step")
        return terms(1.0, 1)

    monkeypatch.setattr(epochs, "update_mixture", update)
    monkeypatch.setattr(epochs, "training_step", step)
    run = Run(
        tiny_samples(), settings(pretraining__kind="none", training__epochs=1, mixture__updates_per_epoch=n_updates)
    )
    run.train()
    assert [steps[: i + 1].count("step") for i, what in enumerate(steps) if what == "update"] == expected
    assert run.state.history[0]["reseeded"] == 2 * n_updates, "components that were re-seeded are told"


def test_a_mixture_that_is_not_updated_stays_as_it_was_read_out() -> None:
    run = Run(tiny_samples(), settings(training__epochs=1, mixture__updates_per_epoch=0))
    run.train(1)
    run.train(2)
    first = run.weights()["model.mixture.component_loc"]
    again = Run(tiny_samples(), settings(training__epochs=1, mixture__updates_per_epoch=1))
    again.train(1)
    again.train(2)
    moved = again.weights()["model.mixture.component_loc"]
    assert first.shape == moved.shape
    assert not torch.equal(first, moved)


@pytest.mark.parametrize(("kind", "weights"), [("vae", [0.5, 1.0, 1.0]), ("reconstruction", [0.0, 0.0, 0.0])])
def test_the_weight_of_the_prior_term_in_pretraining(kind: str, weights: list[float]) -> None:
    run = Run(tiny_samples(), settings(pretraining__kind=kind, pretraining__epochs=3, pretraining__kl_warmup=2))
    run.train(3)
    assert [record["kl_weight"] for record in run.state.history] == weights


def test_without_prior_term_only_the_reconstruction_moves_the_encoder() -> None:
    def gradient(weight: float, scale: float) -> torch.Tensor:
        run = Run(tiny_samples(), settings())
        with run._working():
            for decoder in run.state.decoders.values():
                for parameter in decoder.parameters():
                    parameter.data.mul_(scale)
            pretraining_step(run.state, next(run.task.training.batches(16)), weight)
        return torch.cat([p.grad.reshape(-1) for p in run.state.guide.parameters() if p.grad is not None])

    assert float(gradient(0.0, 0.0).abs().max()) == 0.0
    assert float(gradient(1.0, 0.0).abs().max()) > 0.0


def test_schedules_begin_and_end_where_they_should() -> None:
    run = Run(tiny_samples(), settings(training__epochs=3, graph__temperature_start=2.0, graph__temperature_end=0.5))
    run.train()
    joint = run.state.history[1:]
    assert [record["temperature"] for record in joint] == pytest.approx([2.0, 1.0, 0.5])
    assert [record["node_noise"] for record in joint] == pytest.approx([0.5, 0.25, 0.0])


@pytest.mark.parametrize("objective", ["collapsed", "meanfield", "paper"])
@pytest.mark.parametrize("per_cell", [False, True])
def test_one_joint_step_moves_every_parameter(objective: str, per_cell: bool) -> None:
    changes: dict[str, Any] = {"decoder__variance": "learned", "decoder__per_cell": per_cell}
    run = Run(tiny_samples(), settings(objective=objective, nodes={"A": 2, "B": 3, "C": 2}, **changes))
    before = run.weights()
    with run._working():
        training_step(run.state, run.task.elbo, next(run.task.training.batches(32)))
    still = [name for name, value in run.state.modules.named_parameters() if torch.equal(value, before[name])]
    assert still == []


@pytest.mark.parametrize("joint", [False, True])
def test_an_analytic_variance_follows_the_error_of_the_batch(joint: bool) -> None:
    run = Run(tiny_samples(missing=True), settings(decoder__variance_initial=9.0))
    run.train(1 if joint else 0)
    batch = next(run.task.training.batches(1000))
    with run._working():
        seen = [variance(run, name).n_batches.clone() for name in batch.values]
        before = {name: float(variance(run, name).training_variance()) for name in batch.values}
        step = partial(training_step, run.state, run.task.elbo) if joint else partial(pretraining_step, run.state)
        terms = step(batch) if joint else step(batch, 1.0)
    for n_batches, (name, values) in zip(seen, batch.values.items(), strict=True):
        mask = batch.present[name]
        assert mask is not None
        n_elements = int(mask.sum()) * values[0].numel()
        constant = 0.5 * math.log(2 * math.pi * before[name])
        mean_squared = -2 * before[name] * (float(terms.reconstruction[name].detach().sum()) / n_elements + constant)
        weight = 1 / (float(n_batches) + 1)
        expected = (1 - weight) * before[name] + weight * mean_squared
        assert float(variance(run, name).running) == pytest.approx(expected, rel=1e-3)


def variance(run: Run, name: str) -> DecoderVariance:
    found: Any = run.state.decoders[name]
    return cast(DecoderVariance, found.variance)


@pytest.mark.parametrize("joint", [False, True])
def test_evaluation_leaves_everything_but_the_generator_as_it_was(joint: bool) -> None:
    run = Run(tiny_samples(), settings())
    run.train(2)
    before = run.weights()
    assert run.task.validation is not None
    with run._working():
        tally = evaluate(run.state, run.task.elbo if joint else None, run.task.validation)
    assert tally.n_samples == run.task.validation.n_samples
    assert all(torch.equal(value, before[name]) for name, value in run.weights().items())


def test_evaluation_is_without_noise_on_the_graph() -> None:
    run = Run(tiny_samples(), settings())
    assert isinstance(run.state.model.graph, HodgeGraph)
    run.train(2)
    with run._working():
        values = []
        for noise in (0.0, 9.0):
            torch.manual_seed(0)
            run.state.model.graph.node_noise.copy_(torch.tensor([noise, -noise]))
            values.append(evaluate(run.state, run.task.elbo, run.task.training).objective())
    assert values[0] == values[1]


@pytest.mark.parametrize("joint", [False, True])
def test_an_objective_that_is_not_finite_is_no_step(joint: bool) -> None:
    run = Run(tiny_samples(), settings())
    first = next(iter(run.state.guide.parameters()))
    first.data[0] = float("nan")
    before = run.weights()
    batch = next(run.task.training.batches(16))
    step = partial(training_step, run.state, run.task.elbo) if joint else partial(pretraining_step, run.state)
    with run._working(), pytest.raises(DivergedError, match=r"^the objective is nan$"):
        step(batch) if joint else step(batch, 1.0)
    for name, value in run.weights().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0, equal_nan=True)
