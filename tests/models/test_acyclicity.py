"""Cycles of weighted graphs: how many there are, how they are driven out, and what is left."""

from __future__ import annotations

import math

import networkx as nx
import pytest
import torch

from causalpima.models.dag import acyclic_edges, trace_exponential


def test_a_cycle_of_two_is_twice_the_hyperbolic_cosine_less_two() -> None:
    a, b = 0.7, -1.3
    weight = torch.tensor([[0.0, a], [b, 0.0]])
    assert float(trace_exponential(weight)) == pytest.approx(2 * math.cosh(a * b) - 2)


def test_closed_walks_are_counted_by_the_series_with_its_gradient() -> None:
    weight = torch.randn(4, 4, requires_grad=True)
    powers, walks = torch.eye(4), torch.tensor(0.0)
    for k in range(1, 60):
        powers = powers @ weight.square() / k
        walks = walks + powers.trace()
    torch.testing.assert_close(trace_exponential(weight), walks)
    (gradient,) = torch.autograd.grad(trace_exponential(weight), weight)
    torch.testing.assert_close(gradient, torch.matrix_exp(weight.square()).T * 2 * weight)


def test_a_graph_without_cycles_has_none_whatever_its_order() -> None:
    order = torch.randperm(5)
    weight = 3 * torch.randn(5, 5).triu(1)[order][:, order]
    assert float(trace_exponential(weight)) == pytest.approx(0, abs=1e-9)
    assert float(trace_exponential(weight + 0.1 * torch.eye(5))) > 0.01


def test_the_weakest_edge_of_a_cycle_goes_and_a_weaker_one_elsewhere_stays() -> None:
    # 0 -> 1 -> 2 -> 0, and 0 -> 3
    strength = torch.zeros(4, 4)
    strength[0, 1], strength[1, 2], strength[2, 0], strength[0, 3], strength[3, 1] = 0.9, 0.5, 0.8, 0.4, 0.2
    found = acyclic_edges(strength, 0.3)
    assert found.nonzero().tolist() == [[0, 1], [0, 3], [2, 0]]
    required = torch.zeros(4, 4, dtype=torch.bool)
    required[1, 2] = True
    assert acyclic_edges(strength, 0.3, required).nonzero().tolist() == [[0, 1], [0, 3], [1, 2]]


@pytest.mark.parametrize("seed", range(20))
def test_the_weakest_edges_on_cycles_go_one_by_one_until_there_is_none(seed: int) -> None:
    """Against networkx: an edge is on a cycle where a path leads back."""
    torch.manual_seed(seed)
    strength = torch.rand(7, 7)
    graph = nx.DiGraph([(i, j) for i, j in (strength > 0.6).nonzero().tolist() if i != j])
    while on_cycle := [(i, j) for i, j in graph.edges if nx.has_path(graph, j, i)]:
        graph.remove_edge(*min(on_cycle, key=lambda edge: float(strength[edge])))
    assert graph.number_of_edges() > 0
    assert acyclic_edges(strength, 0.6).nonzero().tolist() == sorted(map(list, graph.edges))
