"""Scores against known factors: brute force, chance, and the entry of the summary."""

from __future__ import annotations

import json
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalpima.examples.circle_truths import Truth
from causalpima.examples.circles import circles
from causalpima.inference.analyses.node_scores import (
    NodeAccuracy,
    best_matching,
    contingency,
    node_accuracy,
    node_factor_accuracy,
    random_labelling_baseline,
)
from causalpima.inference.analyses.scores import cluster_accuracy, evaluate, nmi, node_factor_nmi
from causalpima.inference.clusters.matching import ari


def brute_force_matching(found: np.ndarray, known: np.ndarray) -> float:
    """Best share of agreement over all injective renamings of the smaller side."""
    if found.max() > known.max():
        found, known = known, found
    renamings = permutations(range(int(known.max()) + 1), int(found.max()) + 1)
    return max(float(np.mean(np.array(renaming)[found] == known)) for renaming in renamings)


def brute_force_nodes(nodes: np.ndarray, factors: dict[str, np.ndarray]) -> float:
    """Best mean accuracy over all one-to-one assignments; a factor without a node gets its most frequent level."""
    columns = [*nodes.T, *[np.zeros(len(nodes), dtype=int)] * (len(factors) - nodes.shape[1])]
    scores = [[brute_force_matching(node, codes) for codes in factors.values()] for node in columns]
    choices = permutations(range(len(columns)), len(factors))
    return max(float(np.mean([scores[node][column] for column, node in enumerate(choice)])) for choice in choices)


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, tuple[int, ...], dict[str, np.ndarray]]:
    """Nodes, outcomes and factors of any small sizes, somewhat dependent."""
    generator = np.random.default_rng(draw(st.integers(0, 2**31)))
    outcomes = tuple(draw(st.lists(st.integers(2, 4), min_size=1, max_size=3)))
    levels = draw(st.lists(st.integers(2, 4), min_size=1, max_size=3))
    nodes = np.stack([generator.integers(0, size, 30) for size in outcomes], axis=1)
    factors = {
        f"factor {i}": np.where(generator.random(30) < 0.5, nodes[:, -1 - i % len(outcomes)], 1) % size
        for i, size in enumerate(levels)
    }
    return nodes, outcomes, factors


@given(problems())
def test_cluster_accuracy_equals_brute_force(
    problem: tuple[np.ndarray, tuple[int, ...], dict[str, np.ndarray]],
) -> None:
    nodes, _, factors = problem
    known = next(iter(factors.values()))
    assert cluster_accuracy(nodes[:, 0], known) == pytest.approx(brute_force_matching(nodes[:, 0], known))


@given(problems())
def test_node_accuracy_equals_brute_force(problem: tuple[np.ndarray, tuple[int, ...], dict[str, np.ndarray]]) -> None:
    nodes, outcomes, factors = problem
    found = node_accuracy(nodes, outcomes, factors)
    assert found.mean == pytest.approx(brute_force_nodes(nodes, factors))
    assert found.worst == min(found.accuracy.values())
    assigned = [node for node in found.assignment.values() if node is not None]
    assert len(set(assigned)) == len(assigned) == min(len(outcomes), len(factors))
    for name, node in found.assignment.items():
        column = np.zeros(30, dtype=int) if node is None else nodes[:, node]
        assert found.accuracy[name] == pytest.approx(brute_force_matching(column, factors[name]))


@given(problems())
def test_every_pair_of_node_and_factor_equals_brute_force(
    problem: tuple[np.ndarray, tuple[int, ...], dict[str, np.ndarray]],
) -> None:
    nodes, outcomes, factors = problem
    expected = [[brute_force_matching(node, codes) for codes in factors.values()] for node in nodes.T]
    np.testing.assert_allclose(node_factor_accuracy(nodes, outcomes, factors), expected)


def test_node_accuracy_ignores_order_of_nodes_and_names_of_outcomes() -> None:
    generator = np.random.default_rng(0)
    factors = {"metal": generator.integers(0, 3, 200), "state": generator.integers(0, 2, 200)}
    noisy_state = np.where(generator.random(200) < 0.1, 1 - factors["state"], factors["state"])
    nodes = np.stack([1 - noisy_state, np.array([2, 0, 1])[factors["metal"]]], axis=1)
    found = node_accuracy(nodes, (2, 3), factors)
    assert found.assignment == {"metal": 1, "state": 0}
    assert found.accuracy == {"metal": 1.0, "state": pytest.approx(np.mean(noisy_state == factors["state"]))}
    assert found.mean == pytest.approx((1 + found.worst) / 2)


def test_assignment_maximises_the_mean_not_the_best_pair() -> None:
    # Scores in sixths (rows: nodes, columns: a, b) are [[5, 4], [4, 2]]: the best pair is not part of the best mean.
    nodes = np.array([[1, 0, 0, 1, 0, 2], [2, 2, 1, 0, 1, 0]]).T
    factors = {"a": np.array([0, 1, 1, 0, 1, 0]), "b": np.array([0, 2, 0, 0, 2, 2])}
    found = node_accuracy(nodes, (3, 3), factors)
    assert found == NodeAccuracy({"a": 4 / 6, "b": 4 / 6}, {"a": 1, "b": 0})


def test_surplus_outcomes_and_levels_count_as_wrong() -> None:
    level = np.array([0, 0, 0, 1, 1, 1])
    outcome = np.array([0, 0, 2, 1, 1, 1])
    assert node_accuracy(outcome[:, None], (3,), {"level": level}).accuracy["level"] == pytest.approx(5 / 6)
    assert node_accuracy(level[:, None], (2,), {"outcome": outcome}).accuracy["outcome"] == pytest.approx(5 / 6)


def test_factor_without_a_node_scores_a_constant_guess() -> None:
    factors = {"rare": np.array([0, 0, 0, 0, 1]), "known": np.array([0, 1, 0, 1, 0])}
    found = node_accuracy(factors["known"][:, None], (2,), factors)
    assert found == NodeAccuracy({"rare": 0.8, "known": 1.0}, {"rare": None, "known": 0})


def test_negative_codes_are_refused() -> None:
    with pytest.raises(ValueError, match="codes: expected none below 0, got -1"):
        node_accuracy(np.array([[0], [1]]), (2,), {"a": np.array([0, -1])})


def test_contingency_rows_are_the_first_argument() -> None:
    table = contingency(np.array([0, 0, 1]), np.array([2, 2, 0]))
    np.testing.assert_array_equal(table, [[0, 0, 2], [1, 0, 0]])
    assert best_matching(table) == 3


def test_nmi_and_ari_by_hand() -> None:
    first, second = np.array([0, 0, 0, 1, 1, 1]), np.array([1, 1, 0, 0, 0, 0])
    joint = np.array([[1, 2], [3, 0]]) / 6
    rows, columns = joint.sum(1), joint.sum(0)
    information = sum(joint[i, j] * np.log(joint[i, j] / (rows[i] * columns[j])) for i, j in [(0, 0), (0, 1), (1, 0)])
    entropies = [-(p * np.log(p)).sum() for p in (rows, columns)]
    assert nmi(first, second) == pytest.approx(information / np.mean(entropies))
    pairs, expected = 1 + 3, (3 + 3) * (1 + 6) / 15  # pairs together in both; by chance
    assert ari(first, second) == pytest.approx((pairs - expected) / ((6 + 7) / 2 - expected))


def test_rows_of_node_factor_nmi_are_nodes() -> None:
    generator = np.random.default_rng(1)
    a, b, c = generator.integers(0, 2, (3, 400))
    table = node_factor_nmi(np.stack([b, c], axis=1), {"a": a, "b": b, "c": 1 - c})
    assert table.shape == (2, 3)
    np.testing.assert_allclose(table > 0.99, [[False, True, False], [False, False, True]])


@pytest.mark.parametrize("outcomes", [(2, 2), (3, 2), (2, 3)])
@pytest.mark.parametrize("n_clusters", [3, 4])
def test_baseline_equals_the_mean_over_all_labellings(outcomes: tuple[int, ...], n_clusters: int) -> None:
    generator = np.random.default_rng(7)
    clusters = generator.integers(0, n_clusters, 120)
    factors = {"a": clusters % 2, "b": np.where(generator.random(120) < 0.2, 0, clusters // 2)}
    cells = list(product(*map(range, outcomes)))
    scores = [
        node_accuracy(np.array(labelling)[clusters], outcomes, factors) for labelling in permutations(cells, n_clusters)
    ]
    found = random_labelling_baseline(clusters, outcomes, factors, np.random.default_rng(2))
    assert abs(found.mean - np.mean([score.mean for score in scores])) < 4 * found.mean_standard_error + 1e-12
    assert abs(found.worst - np.mean([score.worst for score in scores])) < 4 * found.worst_standard_error + 1e-12
    assert 0 < found.mean_standard_error < 0.01


@pytest.mark.parametrize("truth", ["independent", "chain", "fork", "collider", "edge"])
def test_chance_on_clean_clusters_of_circles(truth: Truth) -> None:
    factors = circles(seed=1, truth=truth).factors
    cells = np.ravel_multi_index(tuple(factors.values()), (2, 2, 2))
    found = random_labelling_baseline(cells, (2, 2, 2), factors, np.random.default_rng(0))
    assert 0.62 < found.worst < 0.67
    assert 0.75 < found.mean < 0.78
    assert found.worst_standard_error < 0.004


def test_baseline_is_repeatable_and_independent_of_how_clusters_were_labelled() -> None:
    factors = circles(1000, seed=1).factors
    cells = np.ravel_multi_index(tuple(factors.values()), (2, 2, 2))
    first, again = (random_labelling_baseline(cells, (2, 2, 2), factors, np.random.default_rng(3)) for _ in range(2))
    relabelled = np.array([5, 2, 7, 0, 1, 6, 3, 4])[cells]
    other = random_labelling_baseline(relabelled, (2, 2, 2), factors, np.random.default_rng(4))
    assert first == again
    assert abs(first.mean - other.mean) < 4 * np.hypot(first.mean_standard_error, other.mean_standard_error)


def soft(cells: np.ndarray, n_cells: int) -> np.ndarray:
    return 0.9 * np.eye(n_cells)[cells] + 0.1 / n_cells


def test_summary_of_a_perfect_fit() -> None:
    data = circles(500, seed=2)
    hue, radius, shift = data.factors.values()
    cells = np.ravel_multi_index((1 - shift, hue, radius), (2, 2, 2))
    summary = evaluate(soft(cells, 8), (2, 2, 2), data.factors, bayes_ceiling=data.bayes_ceiling)
    assert list(summary) == [
        "cluster_accuracy",
        "nmi",
        "ari",
        "node_accuracy",
        "node_accuracy_mean",
        "node_accuracy_worst",
        "random_labelling_baseline",
        "node_factor_nmi",
        "node_factor_accuracy",
        "assignment",
        "bayes_ceiling",
        "split",
        "n_samples",
    ]
    assert json.loads(json.dumps(summary)) == summary
    assert (summary["cluster_accuracy"], summary["ari"]) == (1.0, 1.0)
    assert summary["nmi"] == pytest.approx(1.0)
    assert summary["node_accuracy"] == {"hue": 1.0, "radius": 1.0, "shift": 1.0}
    assert summary["assignment"] == {"hue": "N2", "radius": "N3", "shift": "N1"}
    assert summary["random_labelling_baseline"]["worst"] < summary["random_labelling_baseline"]["mean"] < 0.8
    assert (summary["bayes_ceiling"], summary["split"], summary["n_samples"]) == (data.bayes_ceiling, "all", 500)


def test_right_clusters_with_wrong_nodes_show_in_the_nodes_only() -> None:
    data = circles(500, seed=2)
    cells = np.array([0, 3, 5, 6, 7, 4, 2, 1])[np.ravel_multi_index(tuple(data.factors.values()), (2, 2, 2))]
    summary = evaluate(soft(cells, 8), (2, 2, 2), data.factors)
    assert summary["cluster_accuracy"] == 1.0
    assert summary["node_accuracy_worst"] < 0.9
    assert summary["bayes_ceiling"] is None


def test_only_masked_samples_with_known_factors_count() -> None:
    data = circles(400, seed=3)
    generator = np.random.default_rng(0)
    responsibilities = generator.dirichlet(np.ones(6), 400)
    mask = generator.random(400) < 0.4
    factors = {"hue": data.factors["hue"], "shift": np.where(generator.random(400) < 0.3, -1, data.factors["shift"])}
    kept = mask & (factors["shift"] >= 0)
    found = evaluate(responsibilities, (3, 2), factors, node_names=["type", "state"], mask=mask, split="test")
    expected = evaluate(responsibilities[kept], (3, 2), {name: codes[kept] for name, codes in factors.items()})
    assert (found["split"], found["n_samples"]) == ("test", kept.sum())
    assert set(found["assignment"].values()) == {"type", "state"}
    assert {**found, "split": 0, "assignment": 0} == {**expected, "split": 0, "assignment": 0}


def test_a_fit_with_one_cluster_is_scored() -> None:
    factors = {"a": np.array([0, 1, 1, 1]), "b": np.array([0, 0, 1, 1])}
    summary = evaluate(np.tile([0.7, 0.1, 0.1, 0.1], (4, 1)), (2, 2), factors)
    assert summary["cluster_accuracy"] == 0.5
    assert summary["node_accuracy"] == {"a": 0.75, "b": 0.5}
    assert summary["random_labelling_baseline"] == {
        "mean": 0.625,
        "worst": 0.5,
        "node_accuracy": {"a": 0.75, "b": 0.5},
    }


GOOD = {"responsibilities": np.full((3, 4), 0.25), "outcomes": (2, 2), "factors": {"a": np.array([0, 1, 1])}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outcomes": (2, 3)}, r"responsibilities: expected shape \[sample, 6\], got \(3, 4\)"),
        ({"responsibilities": np.full((3, 4), np.nan)}, "responsibilities: expected finite values, got NaN"),
        ({"factors": {}}, r"factors: expected at least one, each of shape \(3,\), got \{\}"),
        ({"factors": {"a": np.array([0, 1])}}, r"factors: expected at least one, .* got \{'a': \(2,\)\}"),
        (
            {"factors": {"a": np.array([-1, -1, -1])}},
            "factors: expected a sample with all of them known in split 'all'",
        ),
        ({"mask": np.array([0, 1, 2])}, r"mask: expected bool \(3,\), got int64 \(3,\)"),
        ({"node_names": ["type"]}, "node_names: expected 2, got 1"),
    ],
)
def test_bad_input_is_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(**{**GOOD, **change})  # type: ignore[arg-type]
