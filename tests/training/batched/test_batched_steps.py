"""Four steps of starts that are trained together equal those of each start alone, in float64, to rounding.

Both see the same minibatches and the same noise: a start alone draws its noise first thing in a step, so the generator
is seeded for each start and step, read, and seeded again.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import torch
from tiny_fits import settings, tiny_samples, with_settings
from torch import Tensor

from causalpima.inference.data.tensors import TensorData
from causalpima.inference.graphs.dags import KnowledgeConfig
from causalpima.inference.run import Run
from causalpima.inference.training.batched import Group, Stack, update_mixtures
from causalpima.inference.training.batched import evaluate as batched_evaluate
from causalpima.inference.training.batched import pretraining_step as batched_pretraining_step
from causalpima.inference.training.batched import training_step as batched_training_step
from causalpima.inference.training.clustering import start_clusters, update_mixture
from causalpima.inference.training.config import FitConfig
from causalpima.inference.training.loop import evaluate, hide_modalities, pretraining_step, training_step
from causalpima.inference.training.state import TrainingState, surroundings
from causalpima.models.batch import Batch
from causalpima.models.graph.hodge import HodgeGraph

N_STEPS, N_STARTS = 4, 3
CPU = torch.device("cpu")
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "missing modalities": ({"missing": True}, {}),
    "missing elements": ({"missing": True, "gaps": True}, {}),
    "prior expert": ({"missing": True}, {"guide__prior_expert": True}),
    "concatenation": ({"missing": True}, {"guide__fusion": "concat"}),
    "modality dropout": ({"missing": True}, {"training__modality_dropout": 0.4}),
    "meanfield": ({}, {"objective": "meanfield"}),
    "paper": ({}, {"objective": "paper"}),
    "per cell": ({"missing": True}, {"decoder__per_cell": True}),
    "per cell, meanfield": ({}, {"decoder__per_cell": True, "objective": "meanfield"}),
    "diagonal": ({}, {"model__covariance": "diagonal"}),
    "one Gaussian per cell": ({}, {"mixture__gaussians": "one"}),
    "learned variance": ({}, {"decoder__variance": "learned", "decoder__variance_floor": 0.5}),
    "fixed variance, weighted": ({}, {"decoder__variance": "fixed", "model__likelihood_scaling": "dimension"}),
    "different numbers of Gaussians": ({}, {"read_out__sizes": (6,)}),
    "edge prior": ({}, {"graph__edge_rate": 2.0, "nodes": {"A": 2, "B": 3, "C": 2}}),
    "known edges": ({}, {"knowledge": KnowledgeConfig(("B->A",), ("B->C",)), "nodes": {"A": 2, "B": 3, "C": 2}}),
}
every_kind = pytest.mark.parametrize("kind", KINDS)
some_kinds = pytest.mark.parametrize(
    "kind", ["missing elements", "meanfield", "paper", "per cell", "diagonal", "different numbers of Gaussians"]
)


def doubled(data: TensorData) -> TensorData:
    values = {name: torch.as_tensor(value).double() for name, value in data.values.items()}
    return dataclasses.replace(data, values=values)


def starts(kind: str, clustered: bool) -> tuple[list[Run], TensorData]:
    """Runs in float64, apart from one another, and their training samples."""
    samples, changes = KINDS[kind]
    runs = [Run(tiny_samples(n=80, **samples), settings(restart=k, **changes)) for k in range(N_STARTS)]
    data = doubled(runs[0].task.training)
    for run in runs:
        run.state.modules.double()
        if clustered:
            with surroundings(CPU):
                start_clusters(run.state, data, _config_of_clusters(run, kind), keep_cells=False)
    return runs, data


def _config_of_clusters(run: Run, kind: str) -> FitConfig:
    is_odd = kind == "different numbers of Gaussians" and run.config.restart == 0
    return with_settings(run.config, {"mixture__gaussians": "one"}) if is_odd else run.config


def test_one_kind_has_different_numbers_of_gaussians() -> None:
    runs, _ = starts("different numbers of Gaussians", clustered=True)
    assert len({run.state.model.mixture.n_components for run in runs}) > 1


def batches(data: TensorData, config: Any) -> list[Batch]:
    torch.manual_seed(5)
    found = [b for _ in range(N_STEPS) for b in data.batches(16, shuffle=True)][:N_STEPS]
    return [hide_modalities(batch, config.training.modality_dropout) for batch in found]


def each_alone(states: Sequence[TrainingState], step: Callable[[TrainingState], object], number: int) -> None:
    for k, state in enumerate(states):
        torch.manual_seed(1000 * number + k)
        step(state)


def noise(number: int, *shape: int) -> Tensor:
    """What each start alone draws in this step."""

    def of_start(k: int) -> Tensor:
        torch.manual_seed(1000 * number + k)
        return torch.randn(*shape)

    return torch.stack([of_start(k) for k in range(N_STARTS)])


def together(runs: Sequence[Run]) -> Group:
    """The same starts as a group, on copies of their states."""
    states = [copy.deepcopy(run.state) for run in runs]
    return Group([run.config for run in runs], Stack(states))


def assert_equal_states(group: Group, runs: Sequence[Run]) -> None:
    group.stack.hand_back_moments()
    for ours, run in zip(group.states, runs, strict=True):
        theirs = run.state.modules.state_dict()
        for name, value in ours.modules.state_dict().items():
            torch.testing.assert_close(value, theirs[name], rtol=1e-10, atol=1e-12, msg=f"{name} differs")
        moments = run.state.optimizer.state_dict()["state"]
        torch.testing.assert_close(ours.optimizer.state_dict()["state"], moments, rtol=1e-8, atol=1e-10)


@every_kind
def test_pretraining_steps(kind: str) -> None:
    runs, data = starts(kind, clustered=False)
    group = together(runs)
    group.stack.train()
    for number, batch in enumerate(batches(data, group.config)):
        for run in runs:
            run.state.modules.train()
        each_alone([run.state for run in runs], partial(pretraining_step, batch=batch, prior_weight=0.7), number)
        batched_pretraining_step(group, batch, 0.7, noise(number, len(batch), 2))
    assert_equal_states(group, runs)


@every_kind
def test_joint_steps(kind: str) -> None:
    runs, data = starts(kind, clustered=True)
    group, elbo = together(runs), runs[0].task.elbo
    group.stack.train()
    with surroundings(CPU):
        torch.set_default_dtype(torch.float64)
        for number, batch in enumerate(batches(data, group.config)):
            node_noise = noise(10_000 + number, len(group.config.nodes))
            group.stack.set_node_noise(node_noise)
            for run, own in zip(runs, node_noise, strict=True):
                run.state.modules.train()
                assert isinstance(run.state.model.graph, HodgeGraph)
                run.state.model.graph.node_noise.copy_(own)
            each_alone([r.state for r in runs], partial(training_step, elbo=elbo, batch=batch), number)
            batched_training_step(group, batch, noise(number, len(batch), 2))
    assert_equal_states(group, runs)


@some_kinds
def test_updates_of_mixtures(kind: str) -> None:
    runs, data = starts(kind, clustered=True)
    group = together(runs)
    group.stack.train()
    group.noise.normal = lambda *shape: noise(0, *shape)  # type: ignore[method-assign]
    with surroundings(CPU):
        torch.set_default_dtype(torch.float64)
        for run in runs:
            run.state.modules.train()
        each_alone([run.state for run in runs], lambda state: update_mixture(state, data, runs[0].config), 0)
        update_mixtures(group, data)
    assert_equal_states(group, runs)


@some_kinds
@pytest.mark.parametrize("joint", [False, True])
def test_held_out_terms(kind: str, joint: bool) -> None:
    runs, data = starts(kind, clustered=joint)
    group = together(runs)
    group.noise.normal = lambda *shape: noise(0, *shape)  # type: ignore[method-assign]
    tallies = []
    with surroundings(CPU):
        torch.set_default_dtype(torch.float64)
        each_alone(
            [run.state for run in runs],
            lambda state: tallies.append(evaluate(state, runs[0].task.elbo if joint else None, data)),
            0,
        )
        found = batched_evaluate(group, data, joint)
    for k, tally in enumerate(tallies):
        assert found[k]["terms"] == pytest.approx(tally.means(), rel=1e-10, abs=1e-10)
        assert found[k]["validation_objective"] == pytest.approx(tally.objective(), rel=1e-10)


def test_noise_of_another_start_is_told_from_ones_own() -> None:
    """The negative control of this file: the tests above fail where starts swap their noise."""
    runs, data = starts("plain", clustered=False)
    group = together(runs)
    (batch,) = batches(data, group.config)[:1]
    each_alone([run.state for run in runs], lambda state: pretraining_step(state, batch, 0.7), 0)
    batched_pretraining_step(group, batch, 0.7, noise(0, len(batch), 2).flip(0))
    with pytest.raises(AssertionError):
        assert_equal_states(group, runs)
