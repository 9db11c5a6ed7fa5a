"""log p(N) over a soft graph: against Algorithm 1 as printed, sums over edge masks, and every small DAG."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise, product

import networkx as nx
import pytest
import torch
from dag_oracles import Case, algorithm_1, cases, chain_with_skip, hard_joint, mixture_over_masks, symmetric
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from causalpima.models.dag import conditional_log_tables, edge_strength, log_joint, log_normalise_tables


# N1 --E12-- N2         any number of nodes from 1 to 4, any order, any soft edges
#   \        /          (each pair at most one way round, along ascending scores)
#   E13    E23  ...
#     \    /
#      N3
@given(cases())
def test_log_joint_normalises(case: Case) -> None:
    total = torch.logsumexp(log_joint(case.conditional_logits, case.strength).flatten(), 0)
    assert abs(total.item()) < 1e-12


# N1 --- N2             the same graphs; sorted causes first, mixed one parent at a time, sorted back
#   \   /
#    N3
@given(cases())
def test_log_joint_is_algorithm_1_with_the_index_of_its_derivation(case: Case) -> None:
    sorted_form = algorithm_1(case.conditional_logits, case.strength, case.node_score)
    ours = log_joint(case.conditional_logits, case.strength).exp()
    torch.testing.assert_close(ours, sorted_form, rtol=1e-10, atol=1e-12)


# N2 --.6--> N3         here the index as printed gives    N1   N2   N3
#   \        /          no edge at all
#    -> N1 <-
def test_the_printed_index_gives_the_product_of_marginals() -> None:
    case = chain_with_skip()
    printed = algorithm_1(case.conditional_logits, case.strength, case.node_score, transposed=True)
    no_edge = log_joint(case.conditional_logits, torch.zeros(3, 3)).exp()
    torch.testing.assert_close(printed, no_edge, rtol=0, atol=1e-14)
    product_of_marginals = torch.einsum("i,j,k->ijk", no_edge.sum((1, 2)), no_edge.sum((0, 2)), no_edge.sum((0, 1)))
    torch.testing.assert_close(printed, product_of_marginals, rtol=0, atol=1e-14)
    assert (printed - log_joint(case.conditional_logits, case.strength).exp()).abs().max() > 1e-2


# N2 --> N3             E transposed points along descending scores: an order, so it normalises, but another p(N)
#   \    /
#    -> N1
def test_rows_are_causes() -> None:
    case = chain_with_skip()
    forwards = log_joint(case.conditional_logits, case.strength)
    backwards = log_joint(case.conditional_logits, case.strength.T)
    assert (forwards - backwards).abs().max() > 0.1


# N1 --- N2             = sum over all hard graphs with these pairs, each edge drawn alone
#   \   /
#    N3
@given(cases())
@settings(max_examples=40)
def test_log_joint_is_the_mixture_over_independent_edges(case: Case) -> None:
    brute_force = mixture_over_masks(case.conditional_logits, case.strength)
    ours = log_joint(case.conditional_logits, case.strength).exp()
    torch.testing.assert_close(ours, brute_force, rtol=1e-10, atol=1e-12)


# N1 --- N2             cut at any height, what is left has no cycle
#   \   /
#    N3
@given(cases(), st.floats(0, 1))
def test_every_threshold_leaves_an_acyclic_graph(case: Case, threshold: float) -> None:
    graph = nx.from_numpy_array((case.strength > threshold).numpy(), create_using=nx.DiGraph)
    assert nx.is_directed_acyclic_graph(graph)
    assert ((case.strength >= 0) & (case.strength <= 1)).all()


# N1 -> N2 -> N3 -> N1  no order: the control that the sums above can fail
def test_a_cycle_does_not_normalise() -> None:
    cycle = 0.8 * torch.tensor([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=torch.float64)
    total = log_joint(chain_with_skip().conditional_logits, cycle).exp().sum()
    assert abs(total - 1) > 1e-3


# Pa(N1) = {N2, N3}, Pa(N3) = {N2}, Pa(N2) = {}
def test_tables_are_conditional_distributions_of_the_parents_alone() -> None:
    case = chain_with_skip()
    tables = conditional_log_tables(case.conditional_logits, case.strength)
    for node, table in enumerate(tables):
        torch.testing.assert_close(torch.logsumexp(table, node), torch.zeros(()).expand_as(table.select(node, 0)))
    assert (tables[1] - tables[1][:1, :, :1]).abs().max() < 1e-14, "N2 has no parents"
    assert (tables[2] - tables[2][:1]).abs().max() < 1e-14, "N1 is no parent of N3"
    assert (tables[0] - tables[0][:, :1]).abs().max() > 1e-2, "N2 is a parent of N1"


# N2 --> N3, N2 --> N1, N3 --> N1
def test_edge_strength_is_equation_4() -> None:
    case = chain_with_skip(temperature=0.7)
    score, weight = case.node_score, case.edge_weight
    as_printed = torch.relu(torch.tanh(weight * (score[None, :] - score[:, None]) / 0.7))
    torch.testing.assert_close(case.strength, as_printed, rtol=0, atol=1e-15)
    assert [tuple(edge) for edge in case.strength.nonzero().tolist()] == [(1, 0), (1, 2), (2, 0)]


EXTREME_SCORES = {"apart": [1e3, -1e3, 0.0, 3.0], "ties": [0.0, 0.0, 1.0, 1.0], "close": [0.0, 1e-30, 1e-7, 1.0]}


# N1 --- N2             every pair with weight, none, or tied
#  | \ / |
#  | / \ |
# N3 --- N4
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scores", EXTREME_SCORES.values(), ids=EXTREME_SCORES.keys())
@pytest.mark.parametrize("temperature", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("size", [0.0, 1e3])
def test_extreme_parameters_give_finite_values_and_gradients(
    dtype: torch.dtype, scores: list[float], temperature: float, size: float
) -> None:
    score = torch.tensor(scores, dtype=dtype, requires_grad=True)
    weight = symmetric([1e3, 0.0, 1.0, 1e-20, 2.0, 1.0], 4).to(dtype).requires_grad_()
    signs = torch.randint(0, 2, (4, 2, 3, 2, 2)) * 2 - 1
    logits = (size * signs).to(dtype).requires_grad_()
    value = log_joint(logits, edge_strength(score, weight, temperature))
    assert value.isfinite().all()
    assert abs(torch.logsumexp(value.double().flatten(), 0)) < 1e-3
    gradients = torch.autograd.grad(value.sum(), [score, weight, logits])
    assert all(gradient.isfinite().all() for gradient in gradients)


# N1 --E--> N2          E runs up to one, where the other branch of the mixture takes over
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nothing_jumps_where_an_edge_saturates(dtype: torch.dtype) -> None:
    logits = torch.randn(2, 2, 3, dtype=dtype)
    almost = 1 - torch.finfo(dtype).eps
    one, below = (log_joint(logits, torch.tensor([[0, e], [0, 0]], dtype=dtype)) for e in (1.0, almost))
    torch.testing.assert_close(one, below, rtol=0, atol=20 * torch.finfo(dtype).eps)


def all_dags(n_nodes: int) -> Iterator[nx.DiGraph]:
    """Every DAG on labelled nodes: each pair absent, forwards or backwards, cycles left out."""
    pairs = list(combinations(range(n_nodes), 2))
    for directions in product((0, 1, -1), repeat=len(pairs)):
        graph = nx.DiGraph([pair[::d] for pair, d in zip(pairs, directions, strict=True) if d])
        graph.add_nodes_from(range(n_nodes))
        if nx.is_directed_acyclic_graph(graph):
            yield graph


# N1   N2    N1 -> N2    N1 <- N2    ...    N1 -> N2
#                                            |  x  |     all 1, 3, 25 and 543 of them
#                                           N3 -> N4
@pytest.mark.parametrize(("n_nodes", "number"), [(1, 1), (2, 3), (3, 25), (4, 543)])
def test_every_dag_can_be_represented(n_nodes: int, number: int) -> None:
    graphs = list(all_dags(n_nodes))
    assert len(graphs) == number
    logits = torch.randn(n_nodes, *[2] * n_nodes)
    tables = log_normalise_tables(logits).exp()
    ours, hard = [], []
    for graph in graphs:
        order = list(nx.topological_sort(graph))
        score = torch.tensor([float(order.index(node)) for node in range(n_nodes)])
        adjacency = torch.from_numpy(nx.to_numpy_array(graph, nodelist=range(n_nodes)))
        strength = edge_strength(score, adjacency + adjacency.T, 0.02)
        assert torch.equal(strength, adjacency)
        ours.append(log_joint(logits, strength).exp())
        hard.append(hard_joint(tables, set(graph.edges)))
    torch.testing.assert_close(torch.stack(ours), torch.stack(hard), rtol=0, atol=1e-14)


# N2 --> N3, N2 --> N1, N3 --> N1
def test_gradients_of_log_joint() -> None:
    case = chain_with_skip()

    def value(score: Tensor, weight: Tensor, logits: Tensor) -> Tensor:
        return log_joint(logits, edge_strength(score, weight, case.temperature))

    inputs = [part.clone().requires_grad_() for part in (case.node_score, case.edge_weight, case.conditional_logits)]
    assert torch.autograd.gradcheck(value, inputs)


# N1   N2  (B = 0)      the edge N1 -> N2 can come back: right-hand derivative of E is (ξ2 - ξ1) / β, not zero
@pytest.mark.parametrize("temperature", [1e-3, 0.5, 10.0])
def test_a_zero_weight_keeps_the_edge_off_and_can_be_left(temperature: float) -> None:
    score, weight = torch.tensor([-0.4, 0.9]), torch.zeros(2, 2, requires_grad=True)
    logits = torch.randn(2, 2, 3)
    strength = edge_strength(score, weight, temperature)
    assert torch.equal(strength, torch.zeros(2, 2))
    torch.testing.assert_close(log_joint(logits, strength), log_joint(logits, torch.zeros(2, 2)))
    (gradient,) = torch.autograd.grad(strength.sum(), weight)
    torch.testing.assert_close(gradient, torch.tensor([[0.0, 1.3 / temperature], [0.0, 0.0]]))


# N1 --E--> N2          one-sided difference quotient of the whole log p(N) at B = 0
def test_the_derivative_at_zero_weight_is_the_right_hand_one() -> None:
    score, logits, step = torch.tensor([-0.4, 0.9]), torch.randn(2, 2, 3), 1e-7

    def value(pair_weight: Tensor) -> Tensor:
        weight = pair_weight * torch.tensor([[0.0, 1.0], [1.0, 0.0]])
        return log_joint(logits, edge_strength(score, weight, 0.5))[0, 1]

    zero = torch.zeros((), requires_grad=True)
    (gradient,) = torch.autograd.grad(value(zero), zero)
    assert gradient.abs() > 1e-2
    torch.testing.assert_close(
        gradient, (value(torch.tensor(step)) - value(torch.tensor(0.0))) / step, rtol=1e-5, atol=0
    )


# N1 -- N2 -- N3 -- N4  equal scores everywhere: no edge, whatever the weights
def test_ties_have_no_edge() -> None:
    strength = edge_strength(torch.full((4,), 0.3), torch.full((4, 4), 2.0), 1e-3)
    assert torch.equal(strength, torch.zeros(4, 4))


# N1 -> N2 -> ... -> N10: as the graph grows, the sum stays one
def test_ten_nodes_in_a_chain_normalise() -> None:
    n = 10
    strength = torch.zeros(n, n)
    for cause, effect in pairwise(range(n)):
        strength[cause, effect] = 0.9
    total = torch.logsumexp(log_joint(torch.randn(n, *[2] * n), strength).flatten(), 0)
    assert abs(total.item()) < 1e-12
