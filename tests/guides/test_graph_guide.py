"""q over graphs: its bound against brute force, and what it finds against the exact posterior."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import torch

from causalpima.guides.graph import GraphGuide
from causalpima.inference.graphs.dags import all_dags
from causalpima.inference.training.graph_updates import fit_graph_guide, graph_bound
from causalpima.models.graph.bayesian import BayesianGraph


def collider(n: int) -> torch.Tensor:
    """Expected counts of 0 -> 1 <- 2, `[C]`."""
    share = torch.tensor([[[0.9, 0.1], [0.4, 0.6]], [[0.3, 0.7], [0.2, 0.8]]])  # p(N1 | N0, N2)
    return (n / 4 * share.permute(0, 2, 1)).flatten()


def graph_and_guide(temperature: float = 0.01) -> tuple[BayesianGraph, GraphGuide]:
    graph = BayesianGraph((2, 2, 2), temperature, equivalent_sample_size=2.0)
    return graph, GraphGuide(graph)


def test_weights_of_parent_sets_are_the_products_over_edges() -> None:
    graph, _ = graph_and_guide(temperature=1.0)
    score, share = torch.randn(3), torch.rand(3)
    strength, weights = graph.strength(score, share), graph.parent_weights(score, share)
    assert torch.allclose(weights.sum(-1), torch.ones(3))
    members = graph.families.members(torch.from_numpy(all_dags(3)).long())
    of_dag = weights[torch.arange(3), members].prod(-1)  # independent edges: the sets of all nodes together
    edges = torch.einsum("g,gij->ij", of_dag, torch.from_numpy(all_dags(3)).to(of_dag))
    assert torch.allclose(of_dag.sum(), torch.ones(()))
    assert torch.allclose(edges, strength)


def test_bound_is_the_sum_over_graphs() -> None:
    """With scores that are as good as fixed, against Σ_G q(G) (log p(G) + score(G) - log q(G)) - KL(q(ξ) || p(ξ))."""
    graph, guide = graph_and_guide()
    guide.set_counts(collider(200))
    with torch.no_grad():
        guide.score_loc.copy_(torch.tensor([-1.0, 1.0, 0.0]))
        guide.score_log_scale.fill_(0.001).log_()
        guide.edge_logit.copy_(torch.tensor([1.0, -0.5, 0.3]))
    members = graph.families.members(torch.from_numpy(all_dags(3)).long())
    share = torch.sigmoid(guide.edge_logit)
    nodes = torch.arange(3)
    q, p = (
        graph.parent_weights(guide.score_loc, part)[nodes, members].prod(-1) for part in (share, torch.full((3,), 0.5))
    )
    score = guide.log_evidence()[nodes, members].sum(-1)
    there = q > 0
    expected = (q * (p.log() + score - q.log()))[there].sum()
    loc, scale = guide.score_loc, guide.score_log_scale.exp()
    divergence = (0.5 * (loc**2 + scale**2 - 1) - scale.log()).sum()
    assert torch.allclose(graph_bound(guide, 2000), expected - divergence, atol=0.2)  # the draws' own log q varies
    assert not torch.allclose(graph_bound(guide, 2000), expected, atol=0.2)


def test_fit_finds_the_collider_and_no_other_edge() -> None:
    _, guide = graph_and_guide(0.05)
    fit_graph_guide(guide, collider(2000), 0.05, 60)
    found = guide.edge_probability(2000)
    assert found[0, 1] > 0.9
    assert found[2, 1] > 0.9
    assert found[0, 2] + found[2, 0] < 0.2
    assert guide.graph.adjacency().long().equal(torch.tensor([[0, 1, 0], [0, 0, 0], [0, 1, 0]]))


def test_written_p_of_n_is_normalised_and_near_the_counts() -> None:
    graph, guide = graph_and_guide(0.05)
    fit_graph_guide(guide, collider(4000), 0.05, 20)
    joint = graph.eval().log_joint().exp()
    assert torch.allclose(joint.sum(), torch.ones(()))
    assert torch.allclose(joint.flatten(), collider(4000) / 4000, atol=0.02)
    form = graph.score_form()
    ascent = torch.relu(form.node_score[None] - form.node_score[:, None])
    assert torch.allclose(torch.tanh(form.edge_weight * ascent / form.temperature), graph.edge_strength(), atol=1e-5)


def test_start_is_the_order_of_highest_evidence() -> None:
    _, guide = graph_and_guide()
    guide.set_counts(collider(2000))
    scores, sets = guide.log_evidence(), guide.graph.families.sets
    evidence = {}
    for order in permutations(range(3)):
        total = 0.0
        for place, node in enumerate(order):
            before = sum(1 << k for k in order[:place])
            allowed = torch.tensor([not int(s) & ~before for s in sets[node]])
            total += float(torch.logsumexp(scores[node][allowed], 0)) - place * np.log(2)
        evidence[order] = total
    found = tuple(torch.argsort(guide.score_loc).tolist())
    assert np.isclose(evidence[found], max(evidence.values()))
