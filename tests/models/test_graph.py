"""The owner of the graph's parameters: weights per pair, noise, order, read-out, prior, bad input."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from causalpima.models import dag
from causalpima.models.graph.base import EDGE_THRESHOLD
from causalpima.models.graph.hodge import HodgeGraph


def set_edges(graph: HodgeGraph, node_score: list[float], pair_weight: list[float]) -> None:
    with torch.no_grad():
        graph.node_score.copy_(torch.tensor(node_score))
        graph.pair_weight.copy_(torch.tensor(pair_weight))


# N2 --> N3, N2 --> N1  (N1, N3) has weight zero; pairs are (1, 2), (1, 3), (2, 3)
@pytest.fixture
def fork() -> HodgeGraph:
    graph = HodgeGraph((2, 3, 4), temperature=0.5)
    set_edges(graph, [0.9, -0.7, 0.1], [0.6, 0.0, 0.3])
    return graph


def test_parameters_and_sizes(fork: HodgeGraph) -> None:
    assert {name for name, _ in fork.named_parameters()} == {"node_score", "pair_weight", "conditional_logits"}
    assert (fork.n_nodes, fork.n_cells, fork.pair_weight.numel()) == (3, 24, 3)
    assert fork.conditional_logits.shape == (3, 2, 3, 4)


# N2 --> N3, N2 --> N1
def test_one_weight_per_pair_makes_a_symmetric_matrix(fork: HodgeGraph) -> None:
    expected = torch.tensor([[0.0, 0.6, 0.0], [0.6, 0.0, 0.3], [0.0, 0.3, 0.0]])
    assert torch.equal(fork.edge_weight(), expected)


# N2 --> N3, N2 --> N1
def test_module_is_thin_around_the_functions(fork: HodgeGraph) -> None:
    strength = dag.edge_strength(fork.node_score, fork.edge_weight(), 0.5)
    assert torch.equal(fork.edge_strength(), strength)
    assert torch.equal(fork.conditional_log_tables(), dag.conditional_log_tables(fork.conditional_logits, strength))
    torch.testing.assert_close(fork.log_joint(), dag.log_joint(fork.conditional_logits, strength))


# N2 --> N3, N2 --> N1
def test_edges_are_read_off_above_one_half(fork: HodgeGraph) -> None:
    set_edges(fork, [0.9, -0.7, 0.1], [0.6, 0.0, 0.3])
    strength = torch.tanh(torch.tensor([0.6 * 1.6, 0.3 * 0.8]) / 0.5)
    assert strength[0] > EDGE_THRESHOLD > strength[1]
    assert fork.adjacency().nonzero().tolist() == [[1, 0]]
    fork.temperature.fill_(0.1)
    assert fork.adjacency().nonzero().tolist() == [[1, 0], [1, 2]]


# N1 --- N2 ...         as the temperature falls: the complete graph of the order, but for the pairs with B = 0
@given(st.permutations(range(4)), st.lists(st.booleans(), min_size=6, max_size=6))
def test_the_cold_limit_has_the_pairs_with_weight(order: list[int], has_weight: list[bool]) -> None:
    graph = HodgeGraph((2, 2, 2, 2), temperature=1e-3)
    set_edges(graph, [float(score) for score in order], [0.1 * kept for kept in has_weight])
    adjacency = graph.adjacency()
    assert torch.equal(adjacency | adjacency.T, graph.edge_weight() > 0)
    assert nx.is_directed_acyclic_graph(nx.from_numpy_array(adjacency.numpy(), create_using=nx.DiGraph))


# N1 -?- N2             below zero means off; the projection puts it to zero, from where it can come back
def test_negative_weights_are_zero_and_can_come_back_once_projected() -> None:
    graph = HodgeGraph((2, 3), temperature=0.5)
    set_edges(graph, [0.2, 1.1], [-0.4])
    assert graph.edge_strength().count_nonzero() == 0
    (gradient,) = torch.autograd.grad(graph.edge_strength().sum(), graph.pair_weight)
    assert gradient.item() == 0.0
    graph.project()
    assert graph.pair_weight.item() == 0.0
    (gradient,) = torch.autograd.grad(graph.edge_strength().sum(), graph.pair_weight)
    torch.testing.assert_close(gradient, torch.tensor([0.9 / 0.5]))


# N1 -?-> N2            the same tables W; data from an edge switch it on, data without one switch it off, exactly
@pytest.mark.parametrize("is_edge", [True, False])
def test_projected_descent_reaches_and_leaves_exact_zeros(is_edge: bool) -> None:
    conditional = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    truth = 0.5 * (conditional if is_edge else conditional.mean(0, keepdim=True).expand(2, 2))
    graph = HodgeGraph((2, 2), temperature=0.5, edge_rate=0.05)
    set_edges(graph, [-0.5, 0.5], [0.0 if is_edge else 1.0])
    graph.conditional_logits.data = torch.stack([torch.zeros(2, 2), conditional.log()])
    optimiser = torch.optim.SGD([graph.pair_weight], lr=0.5)
    for _ in range(40):
        optimiser.zero_grad()
        (-(truth * graph.log_joint()).sum() - graph.log_prior()).backward()
        optimiser.step()
        graph.project()
    assert bool(graph.adjacency()[0, 1]) == is_edge
    assert is_edge or graph.pair_weight.item() == 0.0


# N2 --> N3, N2 --> N1
def test_noise_is_one_draw_for_all_uses_and_off_in_evaluation(fork: HodgeGraph) -> None:
    quiet = fork.edge_strength()
    fork.draw_noise(2.0)
    noise = fork.node_noise.clone()
    assert noise.unique().numel() == 3
    assert torch.equal(fork.edge_strength(), fork.edge_strength()), "the same within a step"
    assert not torch.equal(fork.edge_strength(), quiet)
    noisy = dag.edge_strength(fork.node_score + noise, fork.edge_weight(), 0.5)
    assert torch.equal(fork.edge_strength(), noisy)
    assert torch.equal(fork.conditional_log_tables(), dag.conditional_log_tables(fork.conditional_logits, noisy))
    fork.node_noise.copy_(torch.tensor([-9.0, 0.0, 0.0]))
    assert not torch.equal(fork.edge_strength() > EDGE_THRESHOLD, quiet > EDGE_THRESHOLD)
    assert torch.equal(fork.adjacency(), quiet > EDGE_THRESHOLD), "never in what is read off"
    fork.eval()
    assert torch.equal(fork.edge_strength(), quiet)
    fork.train()
    fork.draw_noise(2.0)
    assert not torch.equal(fork.node_noise, noise), "fresh in the next step"
    fork.draw_noise(0.0)
    assert torch.equal(fork.edge_strength(), quiet)


# N2 --> N3, N2 --> N1
def test_noise_has_the_scale_asked_for(fork: HodgeGraph) -> None:
    draws = []
    for _ in range(1000):
        fork.draw_noise(0.3)
        draws.append(fork.node_noise.clone())
    values = torch.stack(draws).flatten()
    standard_error = 0.3 / values.numel() ** 0.5
    assert abs(values.mean()) < 4 * standard_error
    assert abs(values.std() - 0.3) < 4 * standard_error / 2**0.5


# N2 --> N3, N2 --> N1
def test_causes_come_first_also_under_noise(fork: HodgeGraph) -> None:
    assert fork.causal_order() == [1, 2, 0]
    fork.node_noise.copy_(torch.tensor([-3.0, 0.0, 0.0]))
    assert fork.causal_order() == [0, 1, 2]
    strength = fork.edge_strength()[fork.causal_order()][:, fork.causal_order()]
    assert strength.tril().count_nonzero() == 0
    assert fork.eval().causal_order() == [1, 2, 0]


# N2 --> N3, N2 --> N1
def test_the_prior_fixes_the_scale_of_scores_and_pulls_at_weights() -> None:
    graph = HodgeGraph((2, 2, 2), edge_rate=0.7)
    set_edges(graph, [0.9, -0.7, 0.1], [0.6, 0.0, 0.3])
    expected = -0.5 * (0.81 + 0.49 + 0.01) - 0.7 * 0.9
    assert graph.log_prior().item() == pytest.approx(expected)
    graph.log_prior().backward()
    assert graph.pair_weight.grad is not None
    torch.testing.assert_close(graph.pair_weight.grad, torch.full((3,), -0.7))


# N1
def test_a_single_node_has_a_marginal_and_no_edges() -> None:
    graph = HodgeGraph((3,))
    assert graph.edge_strength().shape == (1, 1)
    assert graph.adjacency().count_nonzero() == 0
    torch.testing.assert_close(graph.log_joint(), torch.log_softmax(graph.conditional_logits[0], 0))


def test_state_goes_through_a_file_form() -> None:
    graph, other = HodgeGraph((2, 3), temperature=0.25), HodgeGraph((2, 3))
    graph.draw_noise(1.0)
    other.load_state_dict(graph.state_dict())
    assert torch.equal(other.edge_strength(), graph.edge_strength())
    assert torch.equal(other.log_joint(), graph.log_joint())


@pytest.mark.parametrize("outcomes", [(), (2, 1), (0,)])
def test_nodes_without_a_choice_are_refused(outcomes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="nodes: expected at least one node and at least 2 outcomes each, got"):
        HodgeGraph(outcomes)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_a_temperature_that_is_not_positive_is_refused(temperature: float) -> None:
    with pytest.raises(ValueError, match="temperature: expected a positive number, got"):
        HodgeGraph((2, 2), temperature=temperature)


@pytest.mark.float32
def test_in_float32_log_joint_normalises() -> None:
    graph = HodgeGraph((2, 3, 4), temperature=1e-3)
    assert graph.log_joint().dtype == torch.float32
    assert abs(torch.logsumexp(graph.log_joint().flatten(), 0).item()) < 1e-5


@pytest.mark.parametrize(
    "edges", [[], [(0, 1)], [(1, 0)], [(2, 0), (2, 1)], [(0, 2), (1, 2)], [(1, 2), (2, 0), (1, 0)]], ids=str
)
def test_a_graph_is_taken_over_with_its_joint(edges: list[tuple[int, int]]) -> None:
    outcomes, adjacency = (2, 3, 2), torch.zeros(3, 3, dtype=torch.long)
    for cause, effect in edges:
        adjacency[cause, effect] = 1
    joint = torch.ones(outcomes)
    for node in range(3):
        shape = [size if k == node or adjacency[k, node] else 1 for k, size in enumerate(outcomes)]
        joint = joint * torch.rand(shape).log().softmax(node)
    graph = HodgeGraph(outcomes, temperature=0.05)
    graph.take_over(adjacency, joint)
    assert torch.equal(graph.adjacency().long(), adjacency)
    assert torch.allclose(graph.edge_strength(), adjacency.to(joint), atol=1e-7)
    assert torch.allclose(graph.log_joint().exp(), joint, atol=1e-7)


def test_a_graph_with_cells_that_never_occur_is_taken_over() -> None:
    joint = torch.tensor([[0.4, 0.6], [0.0, 0.0]])
    graph = HodgeGraph((2, 2))
    graph.take_over(torch.tensor([[0, 1], [0, 0]]), joint)
    assert torch.isfinite(graph.log_joint()).all()
    assert torch.allclose(graph.log_joint().exp(), joint, atol=1e-7)


def test_a_cycle_is_not_taken_over() -> None:
    with pytest.raises(ValueError, match=r"^adjacency: expected a graph without cycles"):
        HodgeGraph((2, 2)).take_over(torch.tensor([[0, 1], [1, 0]]), torch.full((2, 2), 0.25))
