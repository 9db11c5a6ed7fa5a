"""The posterior over all graphs against one that loops over every directed graph with networkx."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations, permutations, product
from math import exp, log
from typing import Any

import networkx as nx
import numpy as np
import pytest

from causalpima.inference.graphs.dags import GraphKnowledge, all_dags, cpdag
from causalpima.inference.graphs.enumeration import Evidence, credible_classes, enumerated_posterior, weigh_dags
from causalpima.inference.graphs.scores import Score

_EVIDENCE = Evidence(Score(), 100, 100)


def _nodes(n_nodes: int) -> tuple[str, ...]:
    return tuple("abcde"[:n_nodes])


def _random_scores(n_nodes: int, seed: int) -> np.ndarray:
    """Local scores that are not equivalent: graphs of a class weigh differently."""
    scores = np.random.default_rng(seed).normal(0, 2, (n_nodes, 2**n_nodes))
    return np.where(GraphKnowledge.none(_nodes(n_nodes)).parent_sets(), scores, -np.inf)


def _class_of(graph: nx.DiGraph) -> tuple[frozenset[frozenset[int]], frozenset[tuple[frozenset[int], int]]]:
    joined = frozenset(frozenset(edge) for edge in graph.edges)
    colliders = frozenset(
        (frozenset(pair), node)
        for node in graph
        for pair in combinations(sorted(graph.predecessors(node)), 2)
        if frozenset(pair) not in joined
    )
    return joined, colliders


def _brute(scores: np.ndarray, known: GraphKnowledge, odds: np.ndarray) -> dict[str, Any]:
    """Every digraph that has no cycle and agrees with what is known; plain sums of exponentials."""
    n_nodes, pairs = len(scores), list(permutations(range(len(scores)), 2))
    found: dict[object, list[tuple[nx.DiGraph, float, float]]] = defaultdict(list)
    for chosen in product((False, True), repeat=len(pairs)):
        edges = [pair for pair, there in zip(pairs, chosen, strict=True) if there]
        graph = nx.DiGraph(edges)
        graph.add_nodes_from(range(n_nodes))
        wrong = [e for e in edges if known.forbidden[e]] + [
            e for e in np.argwhere(known.required) if tuple(e) not in edges
        ]
        if wrong or not nx.is_directed_acyclic_graph(graph):
            continue
        score = sum(scores[node, sum(1 << parent for parent in graph.predecessors(node))] for node in range(n_nodes))
        prior = exp(sum(odds[edge] for edge in edges))
        found[_class_of(graph)].append((graph, prior, prior * exp(score)))
    everything = [member for members in found.values() for member in members]
    total = sum(weight for _, _, weight in everything)
    edge, compelled = np.zeros((n_nodes, n_nodes)), np.zeros((n_nodes, n_nodes))
    for graph, _, weight in everything:
        for pair in graph.edges:
            edge[pair] += weight / total
            members = [other for other, _, _ in found[_class_of(graph)]]
            compelled[pair] += weight / total * all(other.has_edge(*pair) for other in members)
    classes = sorted((sum(w for _, _, w in members) / total for members in found.values()), reverse=True)
    evidence = log(total / sum(prior for _, prior, _ in everything))
    return {"edge": edge, "compelled": compelled, "classes": classes, "evidence": evidence}


def _known(n_nodes: int) -> GraphKnowledge:
    known = GraphKnowledge.none(_nodes(n_nodes))
    known.forbidden[0, 1], known.required[1, 2] = True, True
    return known


@pytest.mark.parametrize("n_nodes", [2, 3, 4])
@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("has_prior", [False, True])
def test_it_is_the_plain_sum_over_all_graphs(n_nodes: int, is_known: bool, has_prior: bool) -> None:
    scores = _random_scores(n_nodes, n_nodes)
    known = _known(n_nodes) if is_known and n_nodes > 2 else GraphKnowledge.none(_nodes(n_nodes))
    odds = np.random.default_rng(1).normal(size=(n_nodes, n_nodes)) * has_prior
    found, wanted = enumerated_posterior(scores, known, _EVIDENCE, odds), _brute(scores, known, odds)
    np.testing.assert_allclose(found.edge_probability, wanted["edge"], atol=1e-12)
    np.testing.assert_allclose(found.compelled_probability, wanted["compelled"], atol=1e-12)
    assert found.log_marginal_likelihood == pytest.approx(wanted["evidence"], abs=1e-10)
    probable = [entry.probability for entry in found.classes]
    np.testing.assert_allclose(probable, wanted["classes"][: len(probable)], atol=1e-12)
    assert sum(probable[:-1]) < 0.95 <= sum(probable) + 1e-12
    assert found.weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(np.tensordot(found.weights, found.dags, 1), found.edge_probability, atol=1e-8)


def test_without_data_classes_weigh_by_their_graphs() -> None:
    """Of the 25 graphs of three nodes, 3 are the chain a - b - c, 1 is the collider, 6 are complete."""
    scores = np.where(GraphKnowledge.none(_nodes(3)).parent_sets(), 0.0, -np.inf)
    found = enumerated_posterior(scores, GraphKnowledge.none(_nodes(3)), _EVIDENCE)
    by_edges = sorted((int(entry.graph.sum()), round(entry.probability * 25)) for entry in found.classes)
    assert (6, 6) in by_edges
    assert (4, 3) in by_edges
    assert found.classes[0].graph.sum() == 6
    assert found.log_marginal_likelihood == pytest.approx(0)
    np.testing.assert_allclose(found.edge_probability[~np.eye(3, dtype=bool)], 8 / 25)
    np.testing.assert_array_equal(found.adjacency_probability, found.adjacency_probability.T)


def test_the_class_of_the_best_graph_may_not_be_the_most_probable_one() -> None:
    """One collider a little better than every other graph: its class is it alone, the complete one has six graphs."""
    dags = all_dags(3)
    collider = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    values = np.where((dags == collider).all((1, 2)), 0.5, 0.0)
    found = weigh_dags(dags, values, GraphKnowledge.none(_nodes(3)), _EVIDENCE)
    assert found.best.tolist() == collider.tolist()
    assert found.classes[0].graph.sum() == 6


def test_without_knowledge_a_class_is_drawn_as_its_cpdag() -> None:
    scores = _random_scores(3, 5)
    found = enumerated_posterior(scores, GraphKnowledge.none(_nodes(3)), _EVIDENCE)
    drawn = {entry.graph.tobytes() for entry in found.classes}
    assert drawn <= {cpdag(dag).tobytes() for dag in all_dags(3)}
    assert found.best.tobytes() == found.classes[0].graph.tobytes()


def test_knowledge_directs_edges_within_a_class() -> None:
    """a - b - c, with b -> a forbidden: a -> b -> c is the only chain left; a line to nothing."""
    known = GraphKnowledge.none(_nodes(3))
    known.forbidden[1, 0] = True
    scores = np.where(known.parent_sets(), -50.0, -np.inf)
    scores[[0, 0, 1, 1, 1, 2, 2], [0, 2, 0, 1, 4, 0, 2]] = [0, 9, 0, 9, 9, 0, 9]  # a|b, b|a, b|c, c|b pay
    found = enumerated_posterior(np.where(known.parent_sets(), scores, -np.inf), known, _EVIDENCE)
    assert found.best.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert found.compelled_probability[0, 1] > 0.99
    assert found.edge_probability[1, 0] == 0


def test_five_nodes_have_29281_graphs() -> None:
    known = GraphKnowledge.none(_nodes(5))
    found = enumerated_posterior(np.where(known.parent_sets(), 0.0, -np.inf), known, _EVIDENCE)
    assert len(found.dags) == 29281
    assert found.edge_probability[0, 1] == pytest.approx(found.edge_probability[4, 2])
    assert (found.nodes, found.method, found.n_samples) == (_nodes(5), "enumeration", 100)


def test_the_credible_set_is_the_smallest() -> None:
    graphs = np.zeros((4, 2, 2))
    assert [entry.probability for entry in credible_classes(graphs, np.array([0.1, 0.6, 0.26, 0.04]))] == [
        0.6,
        0.26,
        0.1,
    ]
    assert len(credible_classes(graphs[:1], np.ones(1))) == 1
