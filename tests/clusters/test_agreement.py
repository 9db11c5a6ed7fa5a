"""Agreement of several fits, against brute force over all renumberings."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations, product

import numpy as np
import pytest

from causalpima.inference.clusters.matching import (
    adjacency_frequency,
    align_cells,
    align_nodes,
    edge_frequency,
    node_agreement,
    pairwise_ari,
)

OUTCOMES = (2, 3)
CELLS = np.stack(np.unravel_index(np.arange(6), OUTCOMES), axis=1)


def responsibilities(seed: int, n: int = 40, n_cells: int = 6) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(n_cells, 0.3), n)


def agreement(reference: np.ndarray, other: np.ndarray, permutation: np.ndarray) -> float:
    """Expected number of samples that keep their cell, as a plain double sum."""
    return sum(float(other[n, c] * reference[n, permutation[c]]) for n in range(len(other)) for c in range(6))


def keeping(fixed: list[int]) -> Iterator[np.ndarray]:
    """All bijections that leave the outcomes of some nodes as they are."""
    for permutation in permutations(range(6)):
        if all(CELLS[c, node] == CELLS[permutation[c], node] for c in range(6) for node in fixed):
            yield np.array(permutation)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("fixed", "count"), [([], 720), ([0], 36), ([1], 8), ([0, 1], 1)])
def test_cells_are_aligned_as_well_as_they_can(seed: int, fixed: list[int], count: int) -> None:
    reference, other = responsibilities(seed), responsibilities(seed + 100)
    possible = list(keeping(fixed))
    assert len(possible) == count
    found = align_cells(reference, other, OUTCOMES, fixed)
    assert any((found == p).all() for p in possible)
    best = max(agreement(reference, other, p) for p in possible)
    assert agreement(reference, other, found) == pytest.approx(best, rel=1e-12)


def test_a_renumbered_fit_is_found_again() -> None:
    reference, permutation = responsibilities(0), np.array([3, 0, 5, 1, 2, 4])
    np.testing.assert_array_equal(align_cells(reference, reference[:, permutation], OUTCOMES), permutation)


def by_nodes(outcomes: tuple[int, ...], exchange: bool) -> Iterator[np.ndarray]:
    """All renumberings of cells by renaming outcomes and, where told, exchanging nodes."""
    cells = np.stack(np.unravel_index(np.arange(np.prod(outcomes)), outcomes), axis=1)
    orders = permutations(range(len(outcomes))) if exchange else [tuple(range(len(outcomes)))]
    for order in orders:
        if any(outcomes[a] != outcomes[b] for a, b in enumerate(order)):
            continue
        for renamings in product(*(permutations(range(size)) for size in outcomes)):
            new = np.empty_like(cells)
            for node, target in enumerate(order):
                new[:, target] = np.array(renamings[node])[cells[:, node]]
            yield np.ravel_multi_index(tuple(new.T), outcomes)


def nodes_in_common(
    reference: np.ndarray, other: np.ndarray, permutation: np.ndarray, outcomes: tuple[int, ...]
) -> float:
    """Expected number of samples with the same outcome, summed over the nodes."""
    cells = np.stack(np.unravel_index(np.arange(np.prod(outcomes)), outcomes), axis=1)
    same = (cells[permutation][:, None] == cells[None]).sum(-1)
    return float(np.einsum("nc,nd,cd->", other, reference, same))


@pytest.mark.parametrize("outcomes", [(2, 3), (2, 2, 2), (3, 2, 3)])
@pytest.mark.parametrize("exchange", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_nodes_are_aligned_as_well_as_they_can(outcomes: tuple[int, ...], exchange: bool, seed: int) -> None:
    n_cells = int(np.prod(outcomes))
    reference, other = (responsibilities(seed + s, n_cells=n_cells) for s in (0, 50))
    possible = list(by_nodes(outcomes, exchange))
    found = align_nodes(reference, other, outcomes, exchange)
    assert any((found == p).all() for p in possible)
    best = max(nodes_in_common(reference, other, p, outcomes) for p in possible)
    assert nodes_in_common(reference, other, found, outcomes) == pytest.approx(best, rel=1e-12)


def test_exchanged_nodes_are_found_only_where_they_may_be() -> None:
    reference = responsibilities(1, n_cells=4)
    exchanged = reference[:, [0, 2, 1, 3]]
    np.testing.assert_array_equal(align_nodes(reference, exchanged, (2, 2), exchange=True), [0, 2, 1, 3])
    kept = align_nodes(reference, exchanged, (2, 2), exchange=False)
    assert not np.array_equal(kept, [0, 2, 1, 3])


def rand_index_adjusted_by_counting(one: np.ndarray, other: np.ndarray) -> float:
    """(pairs together in both - expected) / (mean of both - expected), by counting pairs."""
    pairs = list(combinations(range(len(one)), 2))
    a = sum(one[i] == one[j] for i, j in pairs)
    b = sum(other[i] == other[j] for i, j in pairs)
    both = sum(one[i] == one[j] and other[i] == other[j] for i, j in pairs)
    expected = a * b / len(pairs)
    return float((both - expected) / ((a + b) / 2 - expected))


def test_rand_index_of_every_pair() -> None:
    cells = [np.random.default_rng(seed).integers(0, 3, 20) for seed in range(3)]
    table = pairwise_ari([*cells, 2 - cells[0]])
    for i, j in combinations(range(3), 2):
        assert table[i, j] == table[j, i] == pytest.approx(rand_index_adjusted_by_counting(cells[i], cells[j]))
    np.testing.assert_array_equal(np.diag(table), 1.0)
    assert table[0, 3] == 1.0  # names do not matter


def test_node_agreement_counts_outcomes() -> None:
    #                 (0,0) (0,2) (1,0) (1,1)
    reference = np.array([0, 2, 3, 4])
    #                 (0,0) (1,2) (1,1) (1,1)
    other = np.array([0, 5, 4, 4])
    np.testing.assert_array_equal(node_agreement(reference, other, OUTCOMES), [0.75, 0.75])


def test_frequencies_keep_the_direction() -> None:
    #   0 -> 1, 0 -> 1 -> 2 and 1 -> 0
    graphs = np.zeros((3, 3, 3), dtype=int)
    graphs[0, 0, 1] = graphs[1, 0, 1] = graphs[1, 1, 2] = graphs[2, 1, 0] = 1
    np.testing.assert_allclose(edge_frequency(graphs), np.array([[0, 2, 0], [1, 0, 1], [0, 0, 0]]) / 3)
    np.testing.assert_allclose(adjacency_frequency(graphs), np.array([[0, 3, 0], [3, 0, 1], [0, 1, 0]]) / 3)
