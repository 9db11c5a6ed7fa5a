"""The learned graph with edges that are fixed: order, strengths, gradients, taking a graph over."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from causalpima.inference.graphs.dags import all_dags, is_acyclic
from causalpima.models.graph.base import EdgeConstraints
from causalpima.models.graph.hodge import HodgeGraph

N_NODES = 4
OUTCOMES = (2, 3, 2, 2)


def matrix(*edges: tuple[int, int], n_nodes: int = N_NODES) -> Tensor:
    found = torch.zeros(n_nodes, n_nodes, dtype=torch.bool)
    for cause, effect in edges:
        found[cause, effect] = True
    return found


@st.composite
def constraints(draw: st.DrawFn) -> EdgeConstraints:
    """Required edges along one order of the nodes, and forbidden ones among the others."""
    order = draw(st.permutations(range(N_NODES)))
    kinds = draw(st.lists(st.sampled_from(["free", "required", "forbidden"]), min_size=12, max_size=12))
    pairs = list(permutations(range(N_NODES), 2))
    forbidden = matrix(*(pair for pair, kind in zip(pairs, kinds, strict=True) if kind == "forbidden"))
    required = [pair for pair, kind in zip(pairs, kinds, strict=True) if kind == "required"]
    return EdgeConstraints(forbidden, matrix(*((i, j) for i, j in required if order.index(i) < order.index(j))))


def graph_with(fixed: EdgeConstraints, scores: list[float], weights: list[float], temperature: float) -> HodgeGraph:
    graph = HodgeGraph(OUTCOMES, temperature, constraints=fixed)
    with torch.no_grad():
        graph.node_score.copy_(torch.tensor(scores))
        graph.pair_weight.copy_(torch.tensor(weights))
    return graph


extreme = st.floats(-1e3, 1e3) | st.floats(-2, 2)
parameters = st.tuples(
    st.lists(extreme, min_size=4, max_size=4),
    st.lists(st.floats(0, 50), min_size=6, max_size=6),
    st.sampled_from([1e-3, 0.05, 1.0, 1e3]),
)


@given(constraints(), parameters)
@settings(max_examples=100, deadline=None)
def test_fixed_edges_hold_and_nothing_has_a_cycle_whatever_the_parameters(
    fixed: EdgeConstraints, values: tuple[list[float], list[float], float]
) -> None:
    graph = graph_with(fixed, *values)
    graph.draw_noise(1.0)
    for mode in (True, False):
        strength = graph.train(mode).edge_strength().detach()
        assert bool((strength[fixed.required] == 1).all())
        assert bool((strength[fixed.forbidden] == 0).all())
        assert bool(is_acyclic((strength > 0).numpy()))
        place = np.argsort(graph.causal_order())
        assert all(place[i] < place[j] for i, j in torch.nonzero(strength > 0).tolist())
    torch.testing.assert_close(graph.log_joint().exp().sum(), torch.tensor(1.0))
    assert bool(graph.adjacency()[fixed.required].all())
    assert not bool(graph.adjacency()[fixed.forbidden].any())


@given(constraints(), st.integers(0, 542))
@settings(max_examples=100, deadline=None)
def test_every_allowed_graph_can_be_taken_over_and_no_other(fixed: EdgeConstraints, number: int) -> None:
    dag = torch.from_numpy(all_dags(N_NODES)[number]).bool()
    graph = HodgeGraph(OUTCOMES, 0.1, constraints=fixed).eval()
    joint = torch.rand(OUTCOMES) + 0.1
    if bool((dag & fixed.forbidden).any()) or bool((fixed.required & ~dag).any()):
        with pytest.raises(ValueError, match="adjacency: expected a graph that agrees with what is known"):
            graph.take_over(dag, joint / joint.sum())
        return
    graph.take_over(dag, joint / joint.sum())
    torch.testing.assert_close(graph.edge_strength(), dag.double(), atol=1e-7, rtol=0)
    assert torch.equal(graph.adjacency(), dag)


# 0 --> 1 --> 2 required, 3 free
def test_required_causes_come_first_and_scores_move_with_a_gradient() -> None:
    fixed = EdgeConstraints(matrix(), matrix((0, 1), (1, 2)))
    score = torch.tensor([2.0, 0.5, 1.0, -0.3], requires_grad=True)
    ordered = fixed.ordered(score)
    expected_1 = 2 + np.log1p(np.exp(-1.5))
    expected_2 = expected_1 + np.log1p(np.exp(1.0 - expected_1))
    torch.testing.assert_close(ordered, torch.tensor([2.0, expected_1, expected_2, -0.3]))
    ordered.sum().backward()
    assert score.grad is not None
    assert bool((score.grad > 0).all())


@pytest.mark.parametrize(
    ("forbidden", "before"),
    [
        (matrix((1, 0), (2, 0), (3, 0)), {(0, 1), (0, 2), (0, 3)}),  # 0 is designed
        (matrix((2, 0), (2, 1), (3, 0), (3, 1)), {(0, 2), (0, 3), (1, 2), (1, 3)}),  # tiers 0, 1; 2, 3
        (matrix((2, 0)), set()),  # tiers 0; 2 with free nodes: 2 -> 1 -> 0 is allowed
    ],
)
def test_an_order_is_imposed_exactly_where_no_allowed_graph_is_lost(
    forbidden: Tensor, before: set[tuple[int, int]]
) -> None:
    fixed = EdgeConstraints(forbidden, matrix())
    found = fixed.with_order(matrix())
    assert {tuple(pair) for pair in torch.nonzero(found).tolist()} == before


def test_nothing_known_changes_nothing() -> None:
    score = torch.randn(4)
    assert torch.equal(EdgeConstraints.none(4).ordered(score), score)
    assert EdgeConstraints.none(4).order == [0, 1, 2, 3]


# 0 --> 1 --> 2, 3: tiers 0; 1; 2, 3, from scores in the wrong order p(N) is reached, and 0 -/-> 2 exactly
def test_the_order_that_is_known_is_no_barrier_to_a_fit() -> None:
    edges, joint = matrix((0, 1), (1, 2)), torch.ones(OUTCOMES)
    for node in range(4):
        shape = [size if k == node or edges[k, node] else 1 for k, size in enumerate(OUTCOMES)]
        joint = joint * torch.randn(shape).mul(1.5).softmax(node)
    later = matrix((1, 0), (2, 1), (2, 0), (3, 0), (3, 1))
    fixed = EdgeConstraints(later | matrix((0, 2)), matrix((1, 2)))
    graph = graph_with(fixed, [2.0, 0.0, -2.0, 0.5], [5.0] * 6, 0.3)
    optimizer = torch.optim.Adam(graph.parameters(), lr=0.05)
    for _ in range(400):
        optimizer.zero_grad()
        loss = (joint * (joint.log() - graph.log_joint())).sum()
        loss.backward()
        optimizer.step()
        graph.project()
    assert float(loss.detach()) < 1e-3
    assert graph.adjacency()[0, 2] == 0


# 0 --> 1 required, 2 -/-> 3 forbidden; designed: 0
def test_gradients_reach_every_parameter_that_is_free() -> None:
    fixed = EdgeConstraints(matrix((1, 0), (2, 0), (3, 0), (2, 3), (3, 2)), matrix((0, 1)))
    graph = graph_with(fixed, [0.5, -0.2, 0.1, 0.3], [1.0] * 6, 1.0)
    weight = torch.rand(OUTCOMES)
    (weight * graph.log_joint()).sum().backward()
    assert graph.node_score.grad is not None
    assert bool((graph.node_score.grad != 0).all())
    pairs = [tuple(pair) for pair in graph._pairs.T.tolist()]
    assert graph.pair_weight.grad is not None
    moved = {pair for pair, slope in zip(pairs, graph.pair_weight.grad.tolist(), strict=True) if slope != 0}
    assert moved == set(pairs) - {(0, 1), (2, 3)}


@given(constraints(), parameters)
@settings(max_examples=100, deadline=None)
def test_scores_and_weights_that_are_told_give_the_edges(
    fixed: EdgeConstraints, values: tuple[list[float], list[float], float]
) -> None:
    graph = graph_with(fixed, [score / 100 for score in values[0]], *values[1:]).eval()
    form = graph.score_form()
    distinct = form.node_score[:, None].sub(form.node_score).abs().add(torch.eye(N_NODES)).min() > 1e-9
    assume(bool(distinct))
    ascent = torch.relu(form.node_score - form.node_score.unsqueeze(1))
    found = torch.tanh(form.edge_weight * ascent / form.temperature)
    torch.testing.assert_close(found, graph.edge_strength(), atol=1e-8, rtol=0)


def test_contradictions_are_refused() -> None:
    with pytest.raises(ValueError, match="required: expected edges that are not forbidden"):
        EdgeConstraints(matrix((0, 1)), matrix((0, 1)))
    with pytest.raises(ValueError, match="required: expected edges without a cycle"):
        EdgeConstraints(matrix(), matrix(*pairwise([0, 1, 2, 0])))


def test_checkpoints_hold_no_settings() -> None:
    fixed = EdgeConstraints(matrix((0, 1)), matrix((0, 2)))
    known, free = HodgeGraph(OUTCOMES, constraints=fixed), HodgeGraph(OUTCOMES)
    known.load_state_dict(free.state_dict())
    assert known.edge_strength()[0, 2] == 1
