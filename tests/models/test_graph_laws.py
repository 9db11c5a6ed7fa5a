"""What holds of every graph over the nodes, whatever its kind."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import pytest
import torch
from torch import Tensor

from causalpima.models.graph.base import NodeGraph
from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.graph.relaxed import DagmaGraph, NocurlGraph, NotearsGraph, RelaxedGraph
from causalpima.models.graph.table import TableGraph

OUTCOMES = (2, 3, 2)
CHAIN = torch.tensor([[0, 1, 0], [0, 0, 1], [0, 0, 0]])


def fitted_table(edges: Tensor | None) -> TableGraph:
    graph = TableGraph(OUTCOMES, edges)
    graph.fit(torch.rand(12) * 20, 0.5)
    return graph


def hardened(graph: RelaxedGraph) -> RelaxedGraph:
    with torch.no_grad():
        graph.edge.copy_(0.9 * CHAIN + 0.6 * CHAIN.T.flip(0))
    graph.settle(torch.rand(12) * 20, 0.5)
    return graph


KINDS: dict[str, Callable[[], NodeGraph]] = {
    "hodge": lambda: HodgeGraph(OUTCOMES, temperature=0.3),
    "hodge, cold": lambda: HodgeGraph(OUTCOMES, temperature=1e-3),
    "exact": lambda: fitted_table(CHAIN),
    "complete": lambda: fitted_table(torch.ones(3, 3).triu(1)),
    "empty": lambda: fitted_table(None),
    "fixed, back to front": lambda: fitted_table(CHAIN.T),
    "notears, in the end": lambda: hardened(NotearsGraph(OUTCOMES)),
    "dagma, in the end": lambda: hardened(DagmaGraph(OUTCOMES)),
    "nocurl, in the end": lambda: hardened(NocurlGraph(OUTCOMES)),
}


@pytest.fixture(params=KINDS)
def graph(request: pytest.FixtureRequest) -> NodeGraph:
    return KINDS[request.param]()


def test_p_of_n_normalises_and_so_does_every_table(graph: NodeGraph) -> None:
    assert graph.log_joint().shape == OUTCOMES
    torch.testing.assert_close(graph.log_joint().exp().sum(), torch.tensor(1.0))
    for node, table in enumerate(graph.conditional_log_tables()):
        torch.testing.assert_close(table.exp().sum(node), torch.ones_like(table.sum(node)))
    torch.testing.assert_close(graph.conditional_log_tables().sum(0), graph.log_joint())


def test_edges_have_no_cycle_and_agree_with_the_order(graph: NodeGraph) -> None:
    strength, order = graph.eval().edge_strength(), graph.causal_order()
    assert strength.shape == (3, 3)
    assert ((strength >= 0) & (strength <= 1)).all()
    assert sorted(order) == [0, 1, 2]
    assert strength[order][:, order].tril().count_nonzero() == 0
    assert torch.equal(graph.adjacency(), strength > 0.5)
    assert nx.is_directed_acyclic_graph(nx.from_numpy_array(graph.adjacency().numpy(), create_using=nx.DiGraph))


def test_a_table_depends_on_nothing_but_parents(graph: NodeGraph) -> None:
    strength, tables = graph.eval().edge_strength(), graph.conditional_log_tables()
    for cause in range(3):
        for effect in range(3):
            if cause != effect and strength[cause, effect] == 0:
                spread = tables[effect].amax(cause) - tables[effect].amin(cause)
                torch.testing.assert_close(spread, torch.zeros_like(spread))


@pytest.mark.parametrize("edges", [[], [(0, 1)], [(2, 0), (2, 1)], [(0, 2), (1, 2)], [(1, 2), (2, 0), (1, 0)]], ids=str)
def test_a_graph_is_taken_over_with_its_joint(graph: NodeGraph, edges: list[tuple[int, int]]) -> None:
    adjacency, joint = torch.zeros(3, 3, dtype=torch.long), torch.ones(OUTCOMES)
    for cause, effect in edges:
        adjacency[cause, effect] = 1
    for node in range(3):
        shape = [size if k == node or adjacency[k, node] else 1 for k, size in enumerate(OUTCOMES)]
        joint = joint * torch.rand(shape).log().softmax(node)
    graph.take_over(adjacency, joint)
    assert torch.equal(graph.adjacency().long(), adjacency)
    torch.testing.assert_close(graph.eval().edge_strength(), adjacency.to(joint), atol=1e-7, rtol=0)
    torch.testing.assert_close(graph.log_joint().exp(), joint, atol=1e-7, rtol=0)


def test_a_cycle_is_not_taken_over(graph: NodeGraph) -> None:
    with pytest.raises(ValueError, match=r"^adjacency: expected a graph without cycles"):
        graph.take_over(CHAIN + CHAIN.T, torch.full(OUTCOMES, 1 / 12))


@pytest.mark.parametrize("kind", KINDS)
def test_state_goes_through_a_file_form(kind: str) -> None:
    graph, other = KINDS[kind](), KINDS[kind]()
    other.load_state_dict(graph.state_dict())
    assert torch.equal(other.log_joint(), graph.log_joint())
    assert torch.equal(other.edge_strength(), graph.edge_strength())
    assert torch.equal(other.adjacency(), graph.adjacency())


def test_types_and_devices_move(graph: NodeGraph) -> None:
    assert graph.to(torch.float32).log_joint().dtype == torch.float32
    assert graph.edge_strength().dtype == torch.float32
    assert graph.to("meta").log_joint().device.type == "meta"


def test_gradients_reach_every_parameter(graph: NodeGraph) -> None:
    parameters = dict(graph.named_parameters())
    assert bool(parameters) == isinstance(graph, HodgeGraph | RelaxedGraph)
    if isinstance(graph, HodgeGraph):
        weight = torch.rand(OUTCOMES)
        (-(weight * graph.log_joint()).sum() - graph.log_prior()).backward()
        assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in parameters.values())


def test_noise_schedules_and_projection_leave_a_proper_graph(graph: NodeGraph) -> None:
    graph.train()
    graph.draw_noise(0.7)
    graph.set_temperature(0.2)
    graph.project()
    torch.testing.assert_close(graph.log_joint().exp().sum(), torch.tensor(1.0))
    assert graph.log_prior().shape == ()


def test_scores_weights_and_temperature_give_the_edges(graph: NodeGraph) -> None:
    """At the temperature that is told; of a hard graph in the limit."""
    form, strength = graph.eval().score_form(), graph.edge_strength()
    ascent = torch.relu(form.node_score - form.node_score.unsqueeze(1))
    torch.testing.assert_close(torch.tanh(form.edge_weight * ascent / max(form.temperature, 1e-9)), strength)
