"""Structural EM: exact search on expected counts and on the mixture, and what never falls over an update."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as at_most
from hypothesis import strategies as st
from tiny_fits import settings
from toy_mixtures import Problem, make_mixture, make_problem

from causalpima.inference.graphs.dags import GraphKnowledge, all_dags, cpdag
from causalpima.inference.graphs.enumeration import score_classes
from causalpima.inference.graphs.scores import score_of_dag, table_family_scores
from causalpima.inference.objectives import closed_form
from causalpima.inference.training.graph_updates import (
    search_by_counts,
    search_by_mixture,
    settle_tables,
    update_tables,
)
from causalpima.inference.training.mixture_updates import apply_update, log_prior, moments
from causalpima.models.graph.table import TableGraph
from causalpima.models.mixture import GaussianMixture

NODES = ("A", "B", "C")
NOTHING = GraphKnowledge.none(NODES)


def expected_bic(counts: np.ndarray, edges: np.ndarray) -> float:
    return score_of_dag(table_family_scores(counts), edges)


def bic_by_hand(counts: np.ndarray, dag: np.ndarray) -> float:
    """Log-likelihood of the shares of every family, less 1/2 log n for each free number."""
    total, n = 0.0, counts.sum()
    for node in range(counts.ndim):
        parents = [k for k in range(counts.ndim) if dag[k, node]]
        others = tuple(k for k in range(counts.ndim) if k != node and k not in parents)
        family = counts.sum(others, keepdims=True)
        share = family / family.sum(node, keepdims=True)
        total += float((family * np.log(share)).sum())
        total -= 0.5 * math.log(n) * (counts.shape[node] - 1) * math.prod(counts.shape[k] for k in parents)
    return total


@at_most(max_examples=25)
@given(st.integers(0, 10_000), st.booleans())
def test_the_search_finds_what_scoring_every_graph_finds(seed: int, is_known: bool) -> None:
    rng = np.random.default_rng(seed)
    counts, dags = 200 * rng.dirichlet(0.4 * np.ones(12)).reshape(2, 3, 2) + 0.01, all_dags(3)
    known = GraphKnowledge(NODES, np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]]) > 0, np.eye(3, k=2) > 0)
    known = known if is_known else NOTHING
    allowed = dags[known.allows(dags)]
    found = search_by_counts(counts, dags[0] > 0, known)
    by_hand = [bic_by_hand(counts, dag) for dag in allowed]
    assert known.allows(found[None])[0]
    assert bic_by_hand(counts, found) == pytest.approx(max(by_hand))
    assert expected_bic(counts, found) == pytest.approx(max(by_hand))


@at_most(max_examples=25)
@given(st.integers(0, 10_000))
def test_an_update_never_lowers_the_expected_bic_whatever_the_graph_was(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dags = all_dags(3)
    before = dags[rng.integers(len(dags))] > 0
    counts = 100 * rng.dirichlet(0.4 * np.ones(12)).reshape(2, 3, 2)
    after = search_by_counts(counts, before, NOTHING)
    assert expected_bic(counts, after) >= expected_bic(counts, before) - 1e-9


def test_a_graph_stays_until_another_class_is_better() -> None:
    """Chains either way are one class: no direction is better."""
    counts = 1000 * np.array([[0.4, 0.1], [0.1, 0.4]])
    for edges in ([[0, 1], [0, 0]], [[0, 0], [1, 0]]):
        present = np.array(edges) > 0
        found = search_by_counts(counts, present, GraphKnowledge.none(("A", "B")))
        np.testing.assert_array_equal(found, present)
    found = search_by_counts(counts, np.zeros((2, 2), dtype=bool), GraphKnowledge.none(("A", "B")))
    assert found.sum() == 1


@pytest.mark.parametrize("kind", ["exact", "complete", "empty"])
def test_tables_follow_the_counts_and_given_graphs_stay(kind: str) -> None:
    config = settings(model__graph=kind, graph__pseudo_count=1e-3)
    graph, counts = TableGraph((2, 2)), torch.tensor([40.0, 10.0, 10.0, 40.0])
    if kind == "complete":
        graph.set_edges(torch.ones(2, 2).triu(1))
    update_tables(graph, counts, config)
    expected = counts / 100 if kind != "empty" else torch.full((4,), 0.25)
    torch.testing.assert_close(graph.log_joint().exp().reshape(-1), expected, atol=1e-4, rtol=0)
    assert int(graph.adjacency().sum()) == (kind != "empty")


def mixture_of(dag: np.ndarray, seed: int) -> np.ndarray:
    """log p(x | c) of 1500 samples with cells from a graph with random tables, `[n, 8]`."""
    rng = np.random.default_rng(seed)
    joint = np.ones((2, 2, 2))
    for node in range(3):
        shape = [2 if k == node or dag[k, node] else 1 for k in range(3)]
        table = rng.uniform(0.15, 0.85, shape)
        other = np.take(table, [0], node)
        joint = joint * np.concatenate([other, 1 - other], node)
    return mixture_samples(joint, seed, 1500)


def mixture_samples(joint: np.ndarray, seed: int, n: int) -> np.ndarray:
    """log p(x | c) of samples whose clusters overlap, `[n, 8]`."""
    rng = np.random.default_rng(seed)
    cell = rng.choice(8, n, p=joint.reshape(-1))
    places = 3.0 * np.stack(np.unravel_index(np.arange(8), (2, 2, 2)), -1)
    x = places[cell] + rng.standard_normal((n, 3))
    density: np.ndarray = -0.5 * ((x[:, None] - places) ** 2).sum(-1)
    return density


@pytest.mark.parametrize("seed", range(3))
def test_the_final_graph_is_that_of_the_exact_search_over_classes(seed: int) -> None:
    dags = all_dags(3)
    likelihood = mixture_of(dags[7 * seed + 3], seed)
    edges, counts = search_by_mixture(likelihood, (2, 2, 2), np.zeros((3, 3), dtype=bool), NOTHING)
    found = score_classes(likelihood, (2, 2, 2))
    np.testing.assert_array_equal(cpdag(edges), found.best)
    np.testing.assert_allclose(counts / counts.sum(), found.joint[0].reshape(-1), atol=1e-6)
    again, _ = search_by_mixture(likelihood, (2, 2, 2), edges, NOTHING)
    np.testing.assert_array_equal(again, edges)


def test_replicates_count_once_for_the_final_graph() -> None:
    """Independent nodes: chance that 60 specimens have is no edge when each is measured 40 times."""
    joint, absent = np.full((2, 2, 2), 1 / 8), np.zeros((3, 3), dtype=bool)
    specimens = next(found for found in (mixture_samples(joint, seed, 60) for seed in range(20)) if _edges(found) == 0)
    replicates = np.repeat(specimens, 40, axis=0)
    assert _edges(replicates) > 0
    edges, counts = search_by_mixture(replicates, (2, 2, 2), absent, NOTHING, np.full(2400, 1 / 40))
    assert not edges.any()
    assert counts.sum() == pytest.approx(60)


def _edges(likelihood: np.ndarray) -> int:
    return int(search_by_mixture(likelihood, (2, 2, 2), np.zeros((3, 3), dtype=bool), NOTHING)[0].sum())


def test_what_is_known_holds_for_the_final_graph() -> None:
    """Every edge into A is forbidden: in the truth B -> A, the class has a member that agrees."""
    forbidden = np.zeros((3, 3), dtype=bool)
    forbidden[:, 0] = True
    truth = np.zeros((3, 3), dtype=int)
    truth[1, 0] = truth[0, 2] = 1
    likelihood = mixture_of(truth, 1)
    known = GraphKnowledge(NODES, forbidden, np.zeros((3, 3), dtype=bool))
    edges, _ = search_by_mixture(likelihood, (2, 2, 2), np.zeros((3, 3), dtype=bool), known)
    assert known.allows(edges[None])[0]


CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])


@pytest.mark.parametrize("kind", ["exact", "empty"])
def test_settling_finds_the_graph_of_the_mixture_and_leaves_given_ones_alone(kind: str) -> None:
    """h -> r -> s of the circles, clusters three standard deviations apart, responsibilities under independence."""
    joint = np.einsum("a,ab,bc->abc", [0.5, 0.5], [[0.7, 0.3], [0.25, 0.75]], [[0.8, 0.2], [0.3, 0.7]])
    likelihood = mixture_samples(joint, 0, 4000)
    graph = TableGraph((2, 2, 2))
    graph.take_over_joint(torch.from_numpy(joint))
    r = torch.from_numpy(likelihood) + graph.log_joint().reshape(-1)
    settle_tables(graph, r.softmax(-1), settings(nodes={"A": 2, "B": 2, "C": 2}, model__graph=kind))
    wanted = CHAIN if kind == "exact" else 0 * CHAIN
    np.testing.assert_array_equal(cpdag(graph.edges.numpy().astype(int)), cpdag(wanted))
    if kind == "exact":
        np.testing.assert_allclose(graph.log_joint().exp().numpy(), joint, atol=0.03)


def meanfield_objective(problem: Problem, mixture: GaussianMixture, graph: TableGraph, a: float) -> torch.Tensor:
    """L_ii(r*) with p(N) of the graph, the log-prior of the mixture and that of the tables."""
    parts = parts_of(problem, mixture, graph)
    bound = closed_form.meanfield(
        problem.q_loc, problem.q_scale, parts, {"latent_free": problem.per_cell}, problem.per_cell
    )
    return bound.total.sum() + log_prior(mixture, 1e-3) + graph.log_table_prior(a)


def parts_of(problem: Problem, mixture: GaussianMixture, graph: TableGraph) -> closed_form.Components:
    return problem.components(mixture)._replace(log_weight=mixture.log_weight(graph.log_joint()))


def step(problem: Problem, mixture: GaussianMixture, graph: TableGraph, pseudo_count: float, search: bool) -> None:
    parts = parts_of(problem, mixture, graph)
    log_r = closed_form.geometric_log_responsibilities(problem.q_loc, problem.q_scale, parts, problem.per_cell)
    sums = moments(log_r.exp(), problem.q_loc, problem.q_scale.square())
    count = mixture.sum_to_cells(sums.count)
    if search:
        present = graph.edges.numpy()
        counts = count.reshape(graph.outcomes).numpy()
        graph.set_edges(torch.from_numpy(search_by_counts(counts, present, GraphKnowledge.none(("A", "B")))))
    apply_update(mixture, sums, 1e-3, 1e-4)
    graph.fit(count, pseudo_count)


@at_most(max_examples=15)
@given(st.integers(0, 10_000), st.sampled_from([1e-3, 0.5, 2.0]), st.booleans())
def test_meanfield_updates_of_mixture_and_tables_never_lower_bound_and_priors(
    seed: int, pseudo_count: float, has_edge: bool
) -> None:
    torch.manual_seed(seed)
    mixture, problem = make_mixture([0, 1, 2, 3], "full", 2), make_problem(4, latent_dim=2)
    graph = TableGraph((2, 2), torch.tensor([[0, int(has_edge)], [0, 0]]))
    values = []
    for _ in range(6):
        values.append(meanfield_objective(problem, mixture, graph, pseudo_count))
        step(problem, mixture, graph, pseudo_count, search=False)
    changes = torch.stack(values).diff()
    assert changes.min() > -1e-9
    assert changes[0] > 1e-3, "there was something to gain"


@at_most(max_examples=15)
@given(st.integers(0, 10_000))
def test_structural_em_never_lowers_the_bound_with_the_penalty_of_bic(seed: int) -> None:
    """With next to no pseudo-count; the graph changes in between."""
    torch.manual_seed(seed)
    mixture, problem = make_mixture([0, 1, 2, 3], "full", 2), make_problem(4, 60, 2)
    graph, values = TableGraph((2, 2)), []
    for _ in range(6):
        penalty = 0.5 * math.log(60) * (3 if graph.edges.any() else 2)
        values.append(meanfield_objective(problem, mixture, graph, 1e-9) - penalty)
        step(problem, mixture, graph, 1e-9, search=True)
    assert torch.stack(values).diff().min() > -1e-6
