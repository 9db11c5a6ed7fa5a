"""Information and DCI: closed forms, scikit-learn, and what nodes that mix factors score."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import entropy as scipy_entropy
from sklearn.metrics import mutual_info_score

from causalpima.inference.analyses.node_scores import Disentanglement, contingency, disentanglement
from causalpima.inference.findings.information import entropy, mutual_information


def scored(
    nodes: list[np.ndarray], outcomes: tuple[int, ...], factors: dict[str, np.ndarray], n_draws: int = 50
) -> Disentanglement:
    cells = np.ravel_multi_index(tuple(nodes), outcomes)
    return disentanglement(cells, outcomes, factors, np.random.default_rng(0), n_draws)


def factorial(n: int = 12) -> dict[str, np.ndarray]:
    """All combinations of three levels and two, equally often."""
    return {"metal": np.arange(n) % 3, "state": np.arange(n) // 3 % 2}


def test_information_agrees_with_other_libraries() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, 300)
    b = np.where(rng.random(300) < 0.6, a, rng.integers(0, 3, 300)) % 3
    tables = np.stack([contingency(a, b), np.diag([3, 1, 0, 0])[:, :3]])
    assert mutual_information(tables)[0] == pytest.approx(mutual_info_score(a, b))
    assert mutual_information(tables)[1] == pytest.approx(scipy_entropy([0.75, 0.25]))
    np.testing.assert_allclose(entropy(tables[0]), [scipy_entropy(row / row.sum()) for row in tables[0]])
    assert entropy(np.zeros(3)) == 0


def test_nodes_that_are_the_factors_are_perfect_in_any_order() -> None:
    factors = factorial()
    found = scored([1 - factors["state"], (factors["metal"] + 1) % 3], (2, 3), factors)
    assert found.disentanglement == pytest.approx(1)
    assert found.completeness == pytest.approx(1)
    assert found.informativeness == pytest.approx(1)
    assert found.gap == {"metal": pytest.approx(1), "state": pytest.approx(1)}
    assert found.random["disentanglement"] < 0.9
    assert found.random["gap_mean"] < 0.9


def test_one_node_that_tells_both_factors_is_complete_but_not_disentangled() -> None:
    # N1 = (a, b) with four outcomes, N2 tells nothing: R = [[1, 1], [0, 0]]
    a, b = np.arange(8) // 2 % 2, np.arange(8) % 2
    found = scored([2 * a + b, np.arange(8) // 4], (4, 2), {"a": a, "b": b})
    assert found.disentanglement == pytest.approx(0)
    assert found.completeness == pytest.approx(1)
    assert found.gap == {"a": pytest.approx(1), "b": pytest.approx(1)}


def test_two_nodes_that_both_tell_one_factor_are_disentangled_but_not_complete() -> None:
    # R = [[1], [1]]: with a single factor no node can mix
    a = np.arange(8) % 2
    found = scored([a, 1 - a], (2, 2), {"a": a})
    assert found.disentanglement == pytest.approx(1)
    assert found.completeness == pytest.approx(0)
    assert found.gap == {"a": pytest.approx(0)}


def test_what_nodes_tell_only_together_counts_as_informative_alone() -> None:
    # a = N1 xor N2
    one, two = np.arange(8) // 2 % 2, np.arange(8) % 2
    found = scored([one, two], (2, 2), {"a": one ^ two})
    assert found.informativeness == pytest.approx(1)
    assert found.completeness == pytest.approx(0)
    assert found.gap == {"a": pytest.approx(0)}


def test_shares_by_hand() -> None:
    # R_ij = I(N_i; F_j) / H(F_j) by scikit-learn, then the formulas of the paper, written out
    rng = np.random.default_rng(3)
    factors = {"a": rng.integers(0, 2, 500), "b": rng.integers(0, 3, 500)}
    nodes = [
        np.where(rng.random(500) < 0.8, factors["a"], rng.integers(0, 2, 500)),
        np.where(rng.random(500) < 0.5, factors["b"], factors["a"]),
    ]
    shares = np.array(
        [[mutual_info_score(n, f) / scipy_entropy(np.bincount(f)) for f in factors.values()] for n in nodes]
    )
    rows = shares / shares.sum(1, keepdims=True)
    columns = shares / shares.sum(0)
    disentangled = [1 + (row * np.log2(row)).sum() for row in rows]
    complete = [1 + (column * np.log2(column)).sum() for column in columns.T]
    found = scored(nodes, (2, 3), factors)
    assert found.disentanglement == pytest.approx(float(shares.sum(1) / shares.sum() @ disentangled))
    assert found.completeness == pytest.approx(np.mean(complete))
    assert found.gap == {
        "a": pytest.approx(abs(np.diff(shares[:, 0])[0])),
        "b": pytest.approx(abs(np.diff(shares[:, 1])[0])),
    }


def test_clusters_that_are_not_there_play_no_part() -> None:
    factors = {"a": np.array([0, 0, 1, 1])}
    assert scored([np.array([0, 0, 1, 1]), np.zeros(4, dtype=int)], (2, 3), factors).completeness == pytest.approx(1)
    constant = scored([np.zeros(4, dtype=int)], (2,), factors)
    assert (constant.disentanglement, constant.completeness, constant.informativeness) == (0, 0, 0)
