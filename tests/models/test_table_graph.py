"""The hard graph: tables in closed form against brute force and against a numerical maximum."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from causalpima.models.graph.table import TableGraph

OUTCOMES = (2, 3, 2)


def edges_of(*pairs: tuple[int, int], n: int = 3) -> Tensor:
    edges = torch.zeros(n, n, dtype=torch.bool)
    for cause, effect in pairs:
        edges[cause, effect] = True
    return edges


# N1 --> N3 <-- N2
def test_tables_are_shares_of_counts_with_the_pseudo_count() -> None:
    graph, count = TableGraph(OUTCOMES, edges_of((0, 2), (1, 2))), 5 * torch.rand(OUTCOMES)
    graph.fit(count.reshape(-1), 0.5)
    for a, b, c in itertools.product(*map(range, OUTCOMES)):
        expected = [
            (count[a].sum() + 0.5) / (count.sum() + 2 * 0.5),
            (count[:, b].sum() + 0.5) / (count.sum() + 3 * 0.5),
            (count[a, b, c] + 0.5) / (count[a, b].sum() + 2 * 0.5),
        ]
        torch.testing.assert_close(graph.conditional_log_tables()[:, a, b, c].exp(), torch.stack(expected))
        torch.testing.assert_close(graph.log_joint()[a, b, c].exp(), torch.stack(expected).prod())


# N2 --> N1, N2 --> N3
def test_the_closed_form_maximises_likelihood_and_declared_prior() -> None:
    """No step away from it, along any direction of the logits, raises the objective; elsewhere one does."""
    graph, count, a = TableGraph(OUTCOMES, edges_of((1, 0), (1, 2))), 5 * torch.rand(OUTCOMES), 0.7
    graph.fit(count, a)

    def objective() -> Tensor:
        return (count * graph.log_joint()).sum() + graph.log_table_prior(a)

    best, tables = objective(), graph.log_tables.clone()
    for node in range(3):
        shape = [size if k in (node, *graph.edges[:, node].nonzero()) else 1 for k, size in enumerate(OUTCOMES)]
        for _ in range(20):
            graph.log_tables.copy_(tables)
            moved = (tables[node] + 0.05 * torch.randn(shape)).log_softmax(node)
            graph.log_tables[node] = moved
            assert objective() < best
    graph.log_tables.copy_(tables)
    graph.fit(torch.ones(OUTCOMES), a)
    assert objective() < best - 0.1


def test_complete_graphs_have_any_joint_and_the_empty_one_its_marginals() -> None:
    joint = torch.rand(12).softmax(0).reshape(OUTCOMES)
    complete, empty = TableGraph(OUTCOMES, torch.ones(3, 3).triu(1)), TableGraph(OUTCOMES)
    for graph in (complete, empty):
        graph.fit(1e6 * joint, 1e-6)
    torch.testing.assert_close(complete.log_joint().exp(), joint)
    marginals = [joint.sum([k for k in range(3) if k != node], keepdim=True) for node in range(3)]
    torch.testing.assert_close(empty.log_joint().exp(), marginals[0] * marginals[1] * marginals[2])


def test_a_joint_is_taken_over_on_the_graph_that_is_there() -> None:
    graph, joint = TableGraph((2, 2)), torch.tensor([[0.4, 0.1], [0.1, 0.4]])
    graph.take_over_joint(joint)
    torch.testing.assert_close(graph.log_joint().exp(), torch.full((2, 2), 0.25))
    assert not graph.adjacency().any()


def test_nothing_has_a_gradient() -> None:
    graph = TableGraph(OUTCOMES)
    assert list(graph.parameters()) == []
    assert not graph.log_joint().requires_grad
    assert graph.log_prior() == 0


@pytest.mark.parametrize(
    ("edges", "match"),
    [
        (torch.zeros(2, 2), r"^edges: expected shape \(3, 3\), got \(2, 2\); pass a row per node"),
        (edges_of((0, 1), (1, 2), (2, 0)), "^adjacency: expected a graph without cycles"),
        (torch.eye(3), "^adjacency: expected a graph without cycles"),
        (torch.full((3, 3), torch.nan), "^edges: expected 0 and 1 alone"),
        (0.5 * torch.ones(3, 3).triu(1), "^edges: expected 0 and 1 alone"),
    ],
    ids=["size", "cycle", "loop", "nan", "soft"],
)
def test_other_graphs_are_refused(edges: Tensor, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        TableGraph(OUTCOMES, edges)
