"""Alignment of nodes and factors, distance of p(N), and graphs under perfect, vague and wrong labellings."""

from __future__ import annotations

import numpy as np
import pytest

from causalpima.inference.analyses.node_scores import Effort, NamedClusters, Truth, align, divergence, graph_recovery

EFFORT = Effort(n_draws=6)


def chain(n: int = 4096) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """h -> r -> s with two, three and two levels: p(h, r, s), the graph, and samples."""
    first = np.array([0.6, 0.4])
    second = np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])
    third = np.array([[0.8, 0.2], [0.5, 0.5], [0.15, 0.85]])
    joint = first[:, None, None] * second[:, :, None] * third[None]
    cells = np.random.default_rng(0).choice(12, n, p=joint.reshape(-1))
    codes = np.unravel_index(cells, (2, 3, 2))
    adjacency = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    return joint, adjacency, dict(zip("hrs", codes, strict=True))


def nodes_of(factors: dict[str, np.ndarray]) -> np.ndarray:
    """Cells over nodes (2, 2, 3) = (s, h flipped, r in another order)."""
    turned = np.array([2, 0, 1])[factors["r"]]
    return np.ravel_multi_index((factors["s"], 1 - factors["h"], turned), (2, 2, 3))


def fitted(joint: np.ndarray) -> np.ndarray:
    """p(N) of these nodes."""
    return joint.transpose(2, 0, 1)[:, ::-1][:, :, [1, 2, 0]]


def test_alignment_finds_nodes_and_outcomes() -> None:
    joint, _, factors = chain()
    found = align(nodes_of(factors), (2, 2, 3), factors, (2, 3, 2))
    assert found is not None
    assert found.node == (1, 2, 0)
    assert found.outcome == ((1, 0), (2, 0, 1), (0, 1))
    np.testing.assert_allclose(found.joint(fitted(joint)), joint)


def test_nodes_that_do_not_correspond_are_not_aligned() -> None:
    _, _, factors = chain(100)
    cells = nodes_of(factors)
    assert align(cells // 3, (2, 2), factors, (2, 3, 2)) is None
    two = {"h": factors["h"], "s": factors["s"], "r": np.minimum(factors["r"], 1)}
    assert align(cells, (2, 2, 3), two, (2, 2, 2)) is None


def test_divergence_is_that_of_kullback_and_leibler() -> None:
    p, q = np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.25, 0.5])
    assert divergence(p, q) == pytest.approx(np.log(2))
    assert divergence(p, p) == 0
    assert divergence(q, p) == np.inf


def test_a_perfect_fit_has_the_true_graph_and_joint() -> None:
    #  h -> r -> s, seen as nodes (s, h, r)
    joint, adjacency, factors = chain()
    r = 0.999 * np.eye(12)[nodes_of(factors)] + 0.001 / 12
    own = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]])  # s -> r <- h, which is another class
    found = graph_recovery(
        r, fitted(joint), own, factors, (2, 3, 2), Truth(joint, adjacency), np.random.default_rng(0), EFFORT
    )
    assert found is not None
    assert found["true_cpdag"] == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert found["exact_search"]["cpdag"] == found["true_cpdag"]
    assert found["exact_search"]["shd"] == 0
    assert found["exact_search"]["n_tied"] == 1
    assert found["exact_search"]["n_classes"] == 11
    assert found["edge_strength"]["cpdag"] == [[0, 1, 0], [0, 0, 0], [0, 1, 0]]
    assert found["edge_strength"]["shd"] == 2
    assert found["random_labelling"]["shd"] > 0.5
    assert found["joint_kl"]["learned"] == pytest.approx(0, abs=1e-12)
    assert 0 < found["joint_kl"]["true_labels"] < 0.01
    assert found["joint_kl"]["random_labelling"] > 0.1


def test_without_a_truth_or_beyond_the_effort_there_is_no_entry() -> None:
    joint, adjacency, factors = chain(500)
    r, own = np.eye(12)[nodes_of(factors)], np.zeros((3, 3))

    def found(truth: Truth, effort: Effort = EFFORT) -> dict:
        scores = graph_recovery(r, fitted(joint), own, factors, (2, 3, 2), truth, np.random.default_rng(0), effort)
        assert scores is not None
        return scores

    assert found(Truth(joint))["exact_search"] is None
    assert found(Truth(None, adjacency))["joint_kl"] is None
    small = found(Truth(joint, adjacency), Effort(search=2, search_at_random=2))
    assert small["exact_search"] is None
    assert small["random_labelling"] is None
    assert small["edge_strength"]["skeleton_f1"] == 0
    assert (
        graph_recovery(r, fitted(joint), own, {"h": factors["h"]}, (2,), Truth(), np.random.default_rng(0), EFFORT)
        is None
    )


def test_samples_of_unknown_factors_are_left_out_of_the_alignment() -> None:
    joint, adjacency, factors = chain(1000)
    known = {name: np.where(np.arange(1000) % 3 == 0, -1, codes) for name, codes in factors.items()}
    r = np.eye(12)[nodes_of(factors)]
    truth = Truth(joint, adjacency)
    found = graph_recovery(
        r, fitted(joint), np.zeros((3, 3)), known, (2, 3, 2), truth, np.random.default_rng(0), EFFORT
    )
    assert found is not None
    assert found["joint_kl"]["learned"] == pytest.approx(0, abs=1e-12)


def test_other_names_move_clusters_and_joint_alike() -> None:
    rng = np.random.default_rng(0)
    r, cell_of = rng.dirichlet(np.ones(6), 5), np.array([3, 0, 5, 1, 2, 4])
    joint = r.mean(0).reshape(2, 3)
    other = NamedClusters(r, (2, 3), joint, np.zeros((2, 2))).named_by(cell_of)
    for cluster, cell in enumerate(cell_of):
        np.testing.assert_array_equal(other.responsibilities[:, cell], r[:, cluster])
    np.testing.assert_allclose(other.joint.reshape(-1), other.responsibilities.mean(0))
