"""The state of a run: saved and restored whole, best weights kept, the right learning rate for every parameter."""

from __future__ import annotations

import math
import sys

import pytest
import torch
from tiny_fits import settings, tiny_samples

from causalpima.inference.run import Run
from causalpima.inference.training.checkpoint import pack_state, pack_weights, unpack_state, unpack_weights
from causalpima.inference.training.state import Adam, TrainingState
from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.mixture import GaussianMixture


def trained(epochs: int, **changes: object) -> Run:
    run = Run(tiny_samples(), settings(**changes))
    run.train(epochs)
    return run


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(value, other[name]) for name, value in one.items())


def test_what_was_saved_is_restored_even_into_a_state_with_fewer_components() -> None:
    run, other = trained(2), Run(tiny_samples(), settings(seed=5))
    mixture = run.state.model.mixture
    assert isinstance(mixture, GaussianMixture)
    twice = [tensor.repeat_interleave(2, 0) for tensor in (mixture.component_loc, mixture.component_scale)]
    cell, log_share = (t.repeat_interleave(2) for t in (mixture.component_cell, mixture.component_log_share))
    mixture.replace(twice[0], twice[1], cell, log_share - math.log(2))
    assert run.state.model.mixture.n_components > other.state.model.mixture.n_components
    weights, scalars = run.state.weights(), run.state.scalars()
    other.state.restore(unpack_weights(pack_weights(weights)), unpack_state(pack_state(scalars)))
    assert equal(other.state.weights(), weights)
    assert same(other.state.scalars(), scalars)
    assert torch.equal(other.state.model.mixture.cell_components, run.state.model.mixture.cell_components)


def same(one: object, other: object) -> bool:
    """Whether nested dicts and lists hold the same, tensors bit for bit."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return (
        torch.equal(one, other) if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor) else one == other
    )


def test_restoring_puts_the_generator_where_it_was() -> None:
    run = trained(1)
    weights, scalars = run.state.weights(), run.state.scalars()
    drawn = torch.rand(3)
    run.state.restore(weights, scalars)
    assert torch.equal(torch.rand(3), drawn)


def test_saved_weights_are_no_views_of_those_that_go_on() -> None:
    run = trained(2)
    weights = unpack_weights(pack_weights(run.state.weights()))
    run.train(3)
    assert not equal(weights, run.state.weights())
    best = {name.removeprefix("best."): value for name, value in weights.items() if name.startswith("best.")}
    state = Run(tiny_samples(), settings()).state
    state.restore(weights, unpack_state(pack_state(run.state.scalars())))
    for parameter in state.model.parameters():
        parameter.data.fill_(7.0)
    assert equal(state.best_weights, best), "the best weights share no memory with the present ones"


def test_the_best_weights_are_those_of_the_highest_objective() -> None:
    state = trained(1).state
    graph = state.model.graph
    assert isinstance(graph, HodgeGraph)
    for epoch, objective in enumerate([-5.0, -3.0, float("nan"), -4.0, -3.0]):
        state.epoch = epoch
        graph.node_score.data.fill_(float(epoch))
        state.keep_best(objective)
    assert (state.best_objective, state.best_epoch) == (-3.0, 1)
    state.return_to_best()
    assert torch.equal(graph.node_score, torch.full_like(graph.node_score, 1.0))


def test_without_a_best_epoch_nothing_is_put_back() -> None:
    state = trained(1).state
    before = {name: value.clone() for name, value in state.modules.state_dict().items()}
    state.return_to_best()
    assert equal(dict(state.modules.state_dict()), before)


def test_every_parameter_has_the_learning_rate_of_its_part() -> None:
    run = Run(
        tiny_samples(), settings(training__learning_rate=0.1, graph__learning_rate=0.2, decoder__variance="learned")
    )
    rates = rates_by_parameter(run.state)
    names = dict(run.state.modules.named_parameters())
    assert len(rates) == len(names)
    for name, parameter in names.items():
        assert rates[id(parameter)] == (0.2 if name.startswith("model.graph.") else 0.1), name


def rates_by_parameter(state: TrainingState) -> dict[int, float]:
    return {id(parameter): group["lr"] for group in state.optimizer.param_groups for parameter in group["params"]}


def moved(kind: type[torch.optim.Adam], fused: bool) -> torch.nn.Sequential:
    """A network after four steps, its optimiser restored in between."""
    torch.default_generator.manual_seed(0)  # `torch.manual_seed` imports what this is about
    network = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 1))
    groups = [{"params": network[0].parameters(), "lr": 0.01}, {"params": network[2].parameters(), "lr": 0.1}]
    optimizer = kind(groups, fused=fused)
    for _ in range(4):
        optimizer.zero_grad(set_to_none=True)
        network(torch.randn(9, 5)).square().sum().backward()
        optimizer.step()
        optimizer.load_state_dict(optimizer.state_dict())
    return network


@pytest.mark.parametrize("fused", [True, False])
def test_adam_is_that_of_torch_without_its_compiler(fused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = moved(torch.optim.Adam, fused).state_dict()
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)
    assert equal(moved(Adam, fused).state_dict(), theirs)
    with pytest.raises(ImportError, match="_dynamo"):
        moved(torch.optim.Adam, fused)
